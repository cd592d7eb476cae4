//! Faults of the whole system, one at a time, with real processes in a lab: who is told, and who does not notice.

mod agent_killed;
mod owner_away;
mod panel_killed;
mod port_taken;
mod push_unanswered;
#[path = "../system/stages.rs"]
mod stages;
mod unmeasured;
mod wrong_secret;

use anyhow::{Result, ensure};
use shared::ids::TunnelId;
use std::sync::Arc;
use std::time::Duration;
use tests::rig::client::{Outcome, Visit};
use tests::rig::{Stage, eventually};

/// For agents to come back after the panel did: their waits between attempts grow while it is away.
const BACK: Duration = Duration::from_secs(90);

/// One user with a short message.
fn visit(stage: &Stage) -> Result<Visit> {
    Ok(Visit {
        place: stage.client()?,
        exits: Arc::new(stage.exits.iter().cloned().collect()),
        payload: Arc::from([7; 100]),
    })
}

/// Fails unless every one of some connections in a row goes through this exit.
async fn all_served_by(stage: &Stage, address: std::net::SocketAddr, exit: &str) -> Result<()> {
    let visit = visit(stage)?;
    for number in 0..5 {
        let outcome = visit.pay(address).await;
        ensure!(outcome == Outcome::Served(exit.to_owned()), "connection {number}: {outcome:?}");
    }
    Ok(())
}

/// Waits until the agents that run are connected; nodes that tests invented have none.
async fn agents_are_back(stage: &Stage) -> Result<()> {
    eventually("the agents are back", BACK, async || {
        for node in stage.api.nodes().await? {
            ensure!(node.online || !stage.agents.contains_key(&node.name), "{} is not", node.name);
        }
        Ok(())
    })
    .await
}

/// Waits until the only owner was evaluated in a round that began after now.
async fn evaluated_anew(stage: &Stage, tunnel: TunnelId) -> Result<()> {
    let before = stage.api.decision(tunnel).await?.evaluated_at;
    eventually("the owner is evaluated anew", stages::SWITCH, async || {
        let decision = stage.api.decision(tunnel).await?;
        ensure!(decision.evaluated_at > before, "{:?} at {:?}", decision.reason, decision.evaluated_at);
        Ok(())
    })
    .await
}
