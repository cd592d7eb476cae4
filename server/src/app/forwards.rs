//! Forwards.

use super::{
    Result, announce, changes, check_text, check_version, not_planned_yet, note, object, ports, valid,
};
use crate::clock::random_u64;
use crate::error::AppError;
use crate::plan::dial::unbracketed;
use crate::plan::intent::ForwardIntent;
use crate::state::AppState;
use crate::store::{ForwardRow, NewForward, Page, PortUse, Tx};
use shared::address::HostPort;
use shared::api::{Forward, ForwardInput, Node, User};
use shared::ids::{ForwardId, NodeId, TunnelId};
use shared::topology::validate_forward;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A stored forward.
pub(super) async fn find(tx: &mut Tx, id: ForwardId) -> Result<ForwardRow> {
    tx.forward(id).await?.ok_or_else(|| AppError::NotFound(format!("forward {id}")))
}

/// `host:port` to connect to, one per entry node.
fn addresses(forward: &Forward, entries: &[&Node]) -> Vec<String> {
    let own: Option<IpAddr> = forward.listen_ip.as_deref().and_then(|ip| unbracketed(ip).parse().ok());
    // Listening on one address of the node means that only this one answers.
    let own = own.filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string());
    let address = |node: &&Node| {
        let host = own.as_deref().unwrap_or_else(|| unbracketed(&node.server_ip));
        HostPort::new(host, forward.listen_port).to_string()
    };
    entries.iter().map(address).collect()
}

/// Adds what is not stored.
fn live(state: &AppState, row: ForwardRow, entries: &[&Node]) -> Forward {
    let intent = ForwardIntent::from(row.clone());
    let mut forward = row.forward;
    forward.addresses = addresses(&forward, entries);
    let planned = state.agents.plans().is_some_and(|plans| {
        let tunnel = plans.intent.tunnels.get(&forward.tunnel_id);
        let listens_there =
            tunnel.is_some_and(|tunnel| tunnel.entry.iter().eq(entries.iter().map(|node| &node.id)));
        listens_there && plans.intent.forwards.get(&forward.id) == Some(&intent)
    });
    forward.deployment = if planned {
        state.agents.forward_deployment(forward.id)
    } else {
        not_planned_yet(entries.iter().map(|node| node.id))
    };
    forward
}

/// The entry nodes of a tunnel; `None` = there is no such tunnel.
async fn entries_of(tx: &mut Tx, tunnel: TunnelId) -> Result<Option<Vec<Node>>> {
    let Some(row) = tx.tunnel(tunnel).await? else { return Ok(None) };
    let mut nodes = Vec::new();
    for entry in row.tunnel.entry.nodes {
        nodes.extend(tx.node(entry.node_id).await?);
    }
    Ok(Some(nodes))
}

async fn read_live(state: &AppState, tx: &mut Tx, id: ForwardId) -> Result<Forward> {
    let row = find(tx, id).await?;
    let entries = entries_of(tx, row.forward.tunnel_id).await?.unwrap_or_default();
    Ok(live(state, row, &entries.iter().collect::<Vec<_>>()))
}

/// Forwards by id.
pub async fn list(state: &AppState, page: Page) -> Result<Vec<Forward>> {
    let mut tx = state.db.read().await?;
    let nodes: BTreeMap<NodeId, Node> =
        tx.nodes(Page::ALL).await?.into_iter().map(|node| (node.id, node)).collect();
    let tunnels = tx.tunnels(Page::ALL).await?.into_iter().map(|row| (row.tunnel.id, row.tunnel.entry));
    let tunnels: BTreeMap<TunnelId, _> = tunnels.collect();
    let rows = tx.forwards(page).await?;
    let complete = |row: ForwardRow| {
        let entry = tunnels.get(&row.forward.tunnel_id);
        let entries = entry.into_iter().flat_map(|entry| &entry.nodes);
        let entries: Vec<&Node> = entries.filter_map(|entry| nodes.get(&entry.node_id)).collect();
        live(state, row, &entries)
    };
    Ok(rows.into_iter().map(complete).collect())
}

/// One forward.
pub async fn get(state: &AppState, id: ForwardId) -> Result<Forward> {
    read_live(state, &mut state.db.read().await?, id).await
}

/// The valid input with its port chosen, and the nodes it listens on.
async fn check(
    tx: &mut Tx,
    mut input: ForwardInput,
    old: Option<&Forward>,
) -> Result<(ForwardInput, Vec<NodeId>)> {
    input.name = input.name.trim().to_owned();
    let entries = entries_of(tx, input.tunnel_id).await?;
    let ids: Vec<NodeId> = entries.iter().flatten().map(|node| node.id).collect();
    let used = tx.ports(&ids).await?;
    let own = old.map(|old| PortUse::Forward(old.id));
    let known: Option<Vec<_>> =
        entries.map(|nodes| nodes.iter().map(|node| ports::known(node, &used, own)).collect());
    let mut errors = validate_forward(&input, known.as_deref()).errors;
    check_text(&mut errors, "name", &input.name);
    valid(errors)?;
    if input.listen_port == 0 {
        let known: Vec<_> = known.iter().flatten().collect();
        // An edit keeps the port, unless the new tunnel's entries use it otherwise.
        let kept = old.map(|old| old.listen_port).filter(|port| {
            let input = ForwardInput { listen_port: *port, ..input.clone() };
            validate_forward(&input, Some(&known.iter().map(|node| (*node).clone()).collect::<Vec<_>>()))
                .errors
                .is_empty()
        });
        input.listen_port = kept.or_else(|| ports::choose(&known, random_u64())).ok_or_else(|| {
            AppError::field("listenPort", "no_free_port", "no port is free on all entry nodes of the tunnel")
        })?;
    }
    Ok((input, ids))
}

/// Creates a forward.
pub async fn create(state: &AppState, user: &User, input: ForwardInput) -> Result<Forward> {
    let mut tx = state.db.write().await?;
    let (input, entries) = check(&mut tx, input, None).await?;
    let new = NewForward { input: &input, entries: &entries, at: state.clock.wall_ms() };
    let id = tx.insert_forward(&new, user.id).await?;
    let forward = read_live(state, &mut tx, id).await?;
    let detail = format!(":{} → {}", forward.listen_port, forward.targets.join(", "));
    note(&mut tx, state, user, "forward.create", object(&forward.name, id), detail).await?;
    tx.commit().await?;
    announce(state, "forward");
    Ok(forward)
}

/// Edits a forward.
pub async fn update(state: &AppState, user: &User, id: ForwardId, input: ForwardInput) -> Result<Forward> {
    let mut tx = state.db.write().await?;
    let old = find(&mut tx, id).await?.forward;
    check_version("the forward", "version", input.version, old.version)?;
    let (input, entries) = check(&mut tx, input, Some(&old)).await?;
    tx.update_forward(id, &NewForward { input: &input, entries: &entries, at: state.clock.wall_ms() })
        .await?;
    let stored = find(&mut tx, id).await?.forward;
    note(&mut tx, state, user, "forward.update", object(&stored.name, id), changes(&old, &stored)).await?;
    let forward = read_live(state, &mut tx, id).await?;
    tx.commit().await?;
    announce(state, "forward");
    Ok(forward)
}

/// Pauses or resumes a forward.
pub async fn set_enabled(state: &AppState, user: &User, id: ForwardId, enabled: bool) -> Result<Forward> {
    let mut tx = state.db.write().await?;
    let old = find(&mut tx, id).await?.forward;
    tx.set_forward_enabled(id, enabled, state.clock.wall_ms()).await?;
    let action = if enabled { "forward.resume" } else { "forward.pause" };
    note(&mut tx, state, user, action, object(&old.name, id), String::new()).await?;
    let forward = read_live(state, &mut tx, id).await?;
    tx.commit().await?;
    announce(state, "forward");
    Ok(forward)
}

/// Deletes a forward.
pub async fn delete(state: &AppState, user: &User, id: ForwardId) -> Result<()> {
    let mut tx = state.db.write().await?;
    let forward = find(&mut tx, id).await?.forward;
    tx.delete_forward(id).await?;
    note(&mut tx, state, user, "forward.delete", object(&forward.name, id), String::new()).await?;
    tx.commit().await?;
    announce(state, "forward");
    Ok(())
}

/// There is such a forward, and it is planned: it can be diagnosed.
pub async fn exists(state: &AppState, id: ForwardId) -> Result<()> {
    find(&mut state.db.read().await?, id).await?;
    state.agents.replanned().await;
    Ok(())
}
