//! History of the legs of a tunnel.

use super::span::{Asked, HOUR_MS, Span};
use super::{Result, tunnels};
use crate::error::AppError;
use crate::plan::dial;
use crate::plan::intent::{NodeIntent, TunnelIntent};
use crate::state::AppState;
use crate::store::{Db, LegHistoryQuery, LegKey, Page};
use shared::api::LegHistory;
use shared::field::FieldError;
use shared::ids::{NodeId, TunnelId};
use std::collections::BTreeMap;

/// Points per leg in one answer; the newest win.
const MAX_POINTS: u32 = 5000;
/// Points of all legs in one file.
const MAX_FILE_POINTS: usize = 2_000_000;

/// The history of every leg of a tunnel: each owner to each exit, each exit to the probe target. Usually of the last hour.
pub async fn history(state: &AppState, id: TunnelId, asked: Asked) -> Result<Vec<LegHistory>> {
    let span = asked.span(state.clock.wall_ms(), HOUR_MS)?;
    legs(&state.db, id, span, Points::Newest(MAX_POINTS)).await
}

/// The same for a file, complete, and the names of the nodes.
pub async fn export(
    state: &AppState,
    id: TunnelId,
    asked: Asked,
) -> Result<(Vec<LegHistory>, BTreeMap<NodeId, String>)> {
    let span = asked.span(state.clock.wall_ms(), HOUR_MS)?;
    let legs = legs(&state.db, id, span, Points::All(MAX_FILE_POINTS)).await?;
    let nodes = state.db.read().await?.nodes(Page::ALL).await?;
    Ok((legs, nodes.into_iter().map(|node| (node.id, node.name)).collect()))
}

/// How much of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Points {
    /// Of each leg at most so many, the newest.
    Newest(u32),
    /// All; more than so many together are an error.
    All(usize),
}

/// The same from a database.
pub(crate) async fn legs(db: &Db, id: TunnelId, span: Span, points: Points) -> Result<Vec<LegHistory>> {
    let mut tx = db.read().await?;
    let row = tunnels::find(&mut tx, id).await?;
    let owners = tunnels::owners(&row.tunnel);
    let tunnel = TunnelIntent::try_from(row)?;
    let Some(exit) = &tunnel.exit else { return Ok(Vec::new()) };
    let probe_target = tx.settings().await?.1.probe_target;
    let mut nodes: BTreeMap<NodeId, NodeIntent> = BTreeMap::new();
    for id in owners.iter().copied().chain(exit.nodes.iter().map(|member| member.node)) {
        nodes.extend(tx.node(id).await?.map(|node| (id, node.into())));
    }

    let mut legs = Vec::new();
    for owner in &owners {
        for member in &exit.nodes {
            let (Some(from), Some(to)) = (nodes.get(owner), nodes.get(&member.node)) else { continue };
            // Nodes without a common address family have no leg to measure.
            let Ok(target) = dial::address(from, to, member, tunnel.ip_preference) else { continue };
            // Tunnels share this leg, whatever their ports.
            legs.push(("a", *owner, target.host, member.node));
        }
    }
    legs.extend(exit.nodes.iter().map(|member| ("b", member.node, probe_target.clone(), member.node)));

    let each = match points {
        Points::Newest(points) => points,
        Points::All(most) => u32::try_from(most / legs.len().max(1)).unwrap_or(u32::MAX - 1),
    };
    let complete = matches!(points, Points::All(_));
    // One more than there may be shows that there are more.
    let max_points = if complete { each + 1 } else { each };
    let Span { from, to, step_ms } = span;
    let query = LegHistoryQuery { from, to, step_ms, max_points };
    let mut histories = Vec::with_capacity(legs.len());
    for (leg, from_node_id, target, exit_node_id) in legs {
        let key = LegKey { from: from_node_id, target };
        let points = tx.leg_history(&key, query).await?;
        if complete && points.len() > each as usize {
            let message = format!("there are more than {each} rounds; choose a shorter time, or a step");
            let error = FieldError::new("from", "too_long", message).with("max", each);
            return Err(AppError::Invalid(vec![error]));
        }
        histories.push(LegHistory {
            from_node_id,
            target: key.target,
            exit_node_id,
            leg: leg.to_owned(),
            points,
        });
    }
    Ok(histories)
}
