//! The port of an exit belongs to some other program.

use crate::stages::{SWITCH, heal, on_stage, options};
use crate::{all_served_by, visit};
use anyhow::{Context as _, Result, bail, ensure};
use shared::api::{DeploymentStatus, Tunnel};
use shared::ids::NodeId;
use std::time::Duration;
use tests::rig::client::Outcome;
use tests::rig::{Place, eventually};

/// Free on a host of the lab until somebody takes it: inside of the nodes' range, outside of the kernel's.
const PORT: u16 = 20_443;
/// The panel tries a refused object again after 5 s, 10 s, 20 s, … at most 60 s.
const RETRIED: Duration = Duration::from_secs(90);

fn part(tunnel: &Tunnel, node: NodeId) -> Result<(DeploymentStatus, Option<String>)> {
    let part = tunnel.deployment.iter().find(|part| part.node_id == node);
    let part = part.with_context(|| format!("node {node} has no part in {:?}", tunnel.deployment))?;
    Ok((part.status, part.reason.clone()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_of_an_exit_is_told_for_that_node_and_heals_by_itself() {
    on_stage(options("f-port"), async |stage| {
        heal(stage, &["entry-1"])?;
        // Some other program answers there, with nothing.
        let foreign = Place::from(stage.host("exit-a")?).listen(PORT)?;
        let foreign = tokio::spawn(async move {
            while let Ok((stream, _)) = foreign.accept().await {
                drop(stream);
            }
        });

        let mut best = stage.best("best", &["entry-1"], &[], &["exit-a", "exit-b"])?;
        let exit = best.exit.as_mut().context("the tunnel has exits")?;
        exit.nodes[0].port = Some(PORT);
        // So that the way back does not wait for the mark of an exit that failed.
        exit.fail_timeout_ms = 1000;
        let tunnel = stage.api.create_tunnel(&best).await?;
        let forward = stage.api.create_forward(&stage.forward(&tunnel)).await?;

        let (entry, taken, free) = (stage.node("entry-1")?, stage.node("exit-a")?, stage.node("exit-b")?);
        let reason = eventually("one node has failed", SWITCH, async || {
            let tunnel = stage.api.tunnel(tunnel.id).await?;
            for node in [entry, free] {
                let part = part(&tunnel, node)?;
                ensure!(part.0 == DeploymentStatus::Applied, "{}: {part:?}", stage.name(node));
            }
            match part(&tunnel, taken)? {
                (DeploymentStatus::Failed, Some(reason)) => Ok(reason),
                other => bail!("{other:?}"),
            }
        })
        .await?;
        ensure!(reason.to_lowercase().contains("address already in use"), "{reason}");

        let forward = stage.forward_deployed(forward.id).await?;
        let address = stage.host("entry-1")?.addr(forward.listen_port);
        all_served_by(stage, address, "exit-b").await?;

        foreign.abort();
        let _ = foreign.await;
        eventually("it heals by itself", RETRIED, async || {
            let part = part(&stage.api.tunnel(tunnel.id).await?, taken)?;
            ensure!(part.0 == DeploymentStatus::Applied && part.1.is_none(), "{part:?}");
            Ok(())
        })
        .await?;
        let visit = visit(stage)?;
        eventually("users go through it", SWITCH, async || {
            let outcome = visit.pay(address).await;
            ensure!(outcome == Outcome::Served("exit-a".into()), "{outcome:?}");
            Ok(())
        })
        .await
    })
    .await;
}
