//! Several targets at once: the first that is reached wins, the others are let go.

use super::plane::Plane;
use super::reach::{Reached, Refusal, Way, reach_target};
use super::{Forwarder, Service};
use crate::chain::asking::Asking;
use crate::chain::dial::Budget;
use crate::chain::group::Attempt;
use crate::chain::race::{AT_ONCE, next_finished};
use futures_util::stream::FuturesUnordered;
use shared::policy::Network;
use std::collections::BTreeSet;
use tokio::sync::watch;

/// Reaches for all targets of a tier at once; the next tier is for when they have failed.
pub(super) async fn race<W: Way>(
    service: &Service,
    forwarder: &Forwarder,
    asking: &mut Asking<'_>,
    plane: &Plane,
    budget: &Budget,
) -> Result<Reached<W>, Refusal> {
    let draw = forwarder.group.draw(asking.key(), Network::Tcp4, &plane.options.random);
    let (told, spoken) = watch::channel(false);
    let (mut running, mut tried) = (FuturesUnordered::new(), BTreeSet::new());
    // One of the next tier, which waits.
    let mut waiting: Option<Attempt> = None;
    let (mut tier, mut last) = (None, Refusal::Time);
    loop {
        while running.len() < AT_ONCE && !budget.left().is_zero() {
            let picked = || forwarder.group.pick(|i| tried.contains(&i), &draw, &plane.options.clock);
            let Some(attempt) = waiting.take().or_else(picked) else { break };
            tried.insert(attempt.index());
            if running.is_empty() {
                tier = Some(attempt.tier());
            }
            if tier != Some(attempt.tier()) {
                waiting = Some(attempt);
                break;
            }
            let target = &forwarder.targets[attempt.index()];
            let (mut racer, mut budget) = (asking.racer(&spoken), budget.clone());
            running.push(async move {
                let reached = reach_target(service, target, &mut racer, plane, &mut budget).await;
                (attempt, reached)
            });
        }
        match next_finished(&mut running, asking, &told).await {
            Err(_) => return Err(Refusal::ClientGone),
            Ok(None) => return Err(last),
            Ok(Some((attempt, Ok(way)))) => return Ok(Reached { way, target: Some(attempt) }),
            Ok(Some((attempt, Err(refusal)))) => {
                if refusal.blames_target() {
                    attempt.count_failure(refusal.kind());
                    if attempt.mark() {
                        tracing::info!(service = service.name, %refusal, "target is left out");
                    }
                }
                last = refusal;
            }
        }
    }
}
