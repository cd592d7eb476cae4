//! What the panel offers between groups is what agents carry: every protocol, connections and datagrams.

use crate::stages::{decided, heal, on_stage, options};
use anyhow::{Context as _, Result, ensure};
use shared::strategy::Protocol;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tests::rig::Stage;
use tests::rig::client::{Outcome, Visit};
use tokio::net::UdpSocket;

/// For one datagram there and back, on a busy machine.
const ANSWER: Duration = Duration::from_secs(20);

/// Sends every datagram back, with the sender's address in front.
fn echo(stage: &Stage) -> Result<tokio::task::JoinHandle<()>> {
    let socket = stage.host("target")?.udp_socket(stage.target.service().port())?;
    let socket = UdpSocket::from_std(socket)?;
    Ok(tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
            let answer = [format!("{} ", peer.ip()).as_bytes(), &buffer[..length]].concat();
            if socket.send_to(&answer, peer).await.is_err() {
                return;
            }
        }
    }))
}

/// What comes back for a datagram.
async fn ask(stage: &Stage, to: SocketAddr, text: &str) -> Result<String> {
    let socket = UdpSocket::from_std(stage.host("client")?.udp_socket(0)?)?;
    socket.send_to(text.as_bytes(), to).await?;
    let mut buffer = vec![0; 65_536];
    let (length, peer) = tokio::time::timeout(ANSWER, socket.recv_from(&mut buffer))
        .await
        .with_context(|| format!("no answer to {text}"))??;
    ensure!(peer == to, "the answer came from {peer}");
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_protocol_carries_connections_and_datagrams_over_two_hops() {
    on_stage(options("protocols"), async |stage| {
        heal(stage, &["mid-1"])?;
        let echo = echo(stage)?;
        let exits: BTreeSet<String> = stage.exits.iter().cloned().collect();
        let visit = Visit { place: stage.client()?, exits: Arc::new(exits), payload: Arc::from([7; 10_000]) };
        for protocol in Protocol::KNOWN {
            let mut best =
                stage.best(&format!("over-{protocol}"), &["entry-1"], &["mid-1"], &["exit-a", "exit-b"])?;
            for group in best.hops.iter_mut().chain(&mut best.exit) {
                group.protocol = protocol.clone();
            }
            let (tunnel, _, addresses) = stage.open(&best).await?;
            decided(stage, tunnel.id, "current_is_best").await?;
            let outcome = visit.pay(addresses[0]).await;
            ensure!(outcome == Outcome::Served("exit-a".into()), "{protocol}: {outcome:?}");
            let answer = ask(stage, addresses[0], &format!("over {protocol}")).await?;
            let expected = format!("{} over {protocol}", stage.host("exit-a")?.ip());
            ensure!(answer == expected, "{answer:?} instead of {expected:?}");
        }
        echo.abort();
        Ok(())
    })
    .await;
}
