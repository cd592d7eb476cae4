//! Limits of services for datagrams: sessions are what connections are to others, and excess is dropped.

use crate::udp_rig::*;
use agent::limit::LimitKind;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::json;
use shared::gost::LimiterConfig;
use std::time::Duration;

async fn limited(kind: LimitKind, line: &str, target: &UdpTarget) -> UdpEntry {
    let runtime = Runtime::new(RuntimeOptions::default());
    let limiter = LimiterConfig { name: "x".into(), limits: vec![line.into()] };
    runtime.apply(Change::AddLimiter(kind, limiter)).await.unwrap();
    UdpEntry::in_runtime(runtime, &[target.addr], json!({kind.field(): "x"})).await
}

#[tokio::test(start_paused = true)]
async fn datagrams_beyond_the_rate_are_dropped_and_time_makes_room() {
    let time = Frozen::start();
    for (line, all_arrive) in [("$ 10KB 1GB", false), ("$ 1GB 10KB", true)] {
        let target = UdpTarget::start().await;
        let entry = limited(LimitKind::Traffic, line, &target).await;
        let client = entry.client().await;
        let (mut answers, mut sent) = (0, 0);
        for round in 1..=3 {
            for _ in 0..30 {
                client.send(&[round; 1000]).await;
                sent += 1;
                // Each is answered or dropped.
                while answers + entry.runtime.dropped() < sent {
                    tokio::task::yield_now().await;
                    answers += u64::from(client.0.try_recv(&mut [0; 2000]).is_ok());
                }
            }
            // 10,240 at first, and as many in each second.
            assert!((10 * u64::from(round)..=11 * u64::from(round)).contains(&answers), "{line}: {answers}");
            time.pass(Duration::from_secs(1)).await;
        }
        let arrived = target.seen().len() as u64;
        assert_eq!(arrived, if all_arrive { sent } else { answers });
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_counts_as_a_connection_until_its_end() {
    let time = Frozen::start();
    let target = UdpTarget::start().await;
    let entry = limited(LimitKind::Connections, "$ 1", &target).await;
    let (one, two) = (entry.client().await, entry.client().await);
    one.echo(b"one").await;
    let report = || entry.runtime.service_report("u").unwrap();
    let refused = || report().refused.get("connection_limit").copied();
    // However much it sends in a second, it is one client that was refused.
    for _ in 0..3 {
        two.send(b"refused").await;
    }
    while refused().is_none() {
        tokio::task::yield_now().await;
    }
    time.pass(Duration::from_millis(999)).await;
    two.send(b"refused").await;
    // Received in order: what the first client sends now is behind all of that.
    one.echo(b"behind").await;
    assert_eq!(refused(), Some(1));
    time.pass(Duration::from_millis(1)).await;
    two.send(b"refused").await;
    while refused() != Some(2) {
        tokio::task::yield_now().await;
    }
    assert_eq!(entry.runtime.dropped(), 0, "a client that is refused is no datagram without room");
    assert_eq!((report().connections, report().open), (1, 1));
    time.pass(Duration::from_secs(30)).await;
    assert_eq!((report().connections, report().open), (1, 0));
    two.echo(b"two").await;
    assert_eq!((report().connections, report().open), (2, 1));
    assert_eq!(target.seen(), [&b"one"[..], b"behind", b"two"]);
}
