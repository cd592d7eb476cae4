//! Tunnels.

use super::choices;
use super::ports::{self, Ports};
use super::{Result, announce, changes, check_text, check_version, not_planned_yet, note, object, valid};
use crate::auth::token;
use crate::clock::random_u64;
use crate::error::AppError;
use crate::plan::intent::TunnelIntent;
use crate::state::AppState;
use crate::store::{DecisionLogQuery, ForwardRow, NewTunnel, Page, PortUse, TunnelRow, Tx};
use shared::api::{
    BestExit, BestExitOwner, DecisionLogEntry, DecisionState, DeletePreview, Group, NodeRuntime, Tunnel,
    TunnelDecisions, TunnelInput, TunnelType, User,
};
use shared::field::FieldError;
use shared::gost::Auth;
use shared::ids::{NodeId, TunnelId};
use shared::strategy::Strategy;
use shared::topology::{World, validate_tunnel};
use std::collections::BTreeMap;

/// A stored tunnel.
pub(super) async fn find(tx: &mut Tx, id: TunnelId) -> Result<TunnelRow> {
    tx.tunnel(id).await?.ok_or_else(|| AppError::NotFound(format!("tunnel {id}")))
}

/// The nodes that hold the chain whose hop lists the exits.
pub(super) fn owners(tunnel: &Tunnel) -> Vec<NodeId> {
    match tunnel.hops.last() {
        Some(hop) => hop.nodes.iter().map(|member| member.node_id).collect(),
        None => tunnel.entry.nodes.iter().map(|entry| entry.node_id).collect(),
    }
}

/// Its exits in saved order.
pub(super) fn exits(tunnel: &Tunnel) -> Vec<NodeId> {
    tunnel.exit.iter().flat_map(|exit| &exit.nodes).map(|member| member.node_id).collect()
}

/// Whether there is something to decide: `best` with two or more exits.
pub(super) fn is_decided(tunnel: &Tunnel) -> bool {
    tunnel.exit.as_ref().is_some_and(|exit| exit.strategy == Strategy::Best && exit.nodes.len() > 1)
}

/// Adds what is not stored: decisions and deployment.
fn live(state: &AppState, row: TunnelRow, monitoring: bool) -> Result<Tunnel> {
    let intent = TunnelIntent::try_from(row.clone())?;
    let mut tunnel = row.tunnel;
    // Planning takes its time. Until then the nodes may well run what was planned before, which is not this.
    let planned =
        state.agents.plans().is_some_and(|plans| plans.intent.tunnels.get(&tunnel.id) == Some(&intent));
    tunnel.deployment =
        if planned { state.agents.deployment(tunnel.id) } else { not_planned_yet(nodes(&tunnel)) };
    if is_decided(&tunnel) {
        let summary = state.best_exit.summary(tunnel.id).filter(|_| planned);
        tunnel.best_exit = Some(summary.unwrap_or_else(|| undecided(&tunnel, monitoring)));
    }
    Ok(tunnel)
}

/// All its nodes: entries, hops, exits.
fn nodes(tunnel: &Tunnel) -> impl Iterator<Item = NodeId> {
    let members = tunnel.hops.iter().chain(&tunnel.exit).flat_map(|group| &group.nodes);
    let entries = tunnel.entry.nodes.iter().map(|entry| entry.node_id);
    entries.chain(members.map(|member| member.node_id))
}

/// What is known about a tunnel that nobody has looked at yet.
fn undecided(tunnel: &Tunnel, monitoring: bool) -> BestExit {
    let owner = |owner_node_id| BestExitOwner {
        owner_node_id,
        exit_node_id: None,
        reason: if monitoring { "no_decision" } else { "paused" }.to_owned(),
        since: None,
    };
    BestExit {
        status: if monitoring { DecisionState::Waiting } else { DecisionState::Paused },
        summary: String::new(),
        owners: owners(tunnel).into_iter().map(owner).collect(),
    }
}

/// Tunnels by id.
pub async fn list(state: &AppState, page: Page) -> Result<Vec<Tunnel>> {
    let mut tx = state.db.read().await?;
    let monitoring = tx.settings().await?.1.monitor_tunnel_quality_enabled;
    let rows = tx.tunnels(page).await?;
    rows.into_iter().map(|row| live(state, row, monitoring)).collect()
}

/// One tunnel.
pub async fn get(state: &AppState, id: TunnelId) -> Result<Tunnel> {
    let mut tx = state.db.read().await?;
    let monitoring = tx.settings().await?.1.monitor_tunnel_quality_enabled;
    let row = find(&mut tx, id).await?;
    live(state, row, monitoring)
}

/// A valid tunnel with all ports chosen.
struct Checked {
    input: TunnelInput,
    warnings: Vec<FieldError>,
}

/// What an edit starts from.
struct Before<'a> {
    tunnel: &'a Tunnel,
    forwards: &'a [ForwardRow],
}

fn members(input: &TunnelInput) -> impl Iterator<Item = (String, &Group)> {
    let hops = input.hops.iter().enumerate().map(|(i, hop)| (format!("hops[{i}]"), hop));
    hops.chain(input.exit.iter().map(|exit| ("exit".to_owned(), exit)))
}

async fn check(tx: &mut Tx, mut input: TunnelInput, before: Option<Before<'_>>) -> Result<Checked> {
    input.name = input.name.trim().to_owned();
    let id = before.as_ref().map(|before| before.tunnel.id);
    let own = id.map(PortUse::Tunnel);

    let entries = input.entry.nodes.iter().map(|entry| entry.node_id);
    let others = members(&input).flat_map(|(_, group)| &group.nodes).map(|member| member.node_id);
    let mentioned: Vec<NodeId> = entries.chain(others).collect();
    let ports = tx.ports(&mentioned).await?;
    let nodes: BTreeMap<NodeId, _> =
        tx.nodes(Page::ALL).await?.into_iter().map(|node| (node.id, node)).collect();
    let mut world = World::default();
    for node in mentioned.iter().filter_map(|id| nodes.get(id)) {
        world.nodes.insert(node.id, ports::known(node, &ports, own));
    }
    if tx.tunnel_by_name(&input.name).await?.is_some_and(|other| Some(other) != id) {
        world.tunnel_names.insert(input.name.clone());
    }

    let findings = validate_tunnel(&input, &world);
    let mut errors = findings.errors;
    check_text(&mut errors, "name", &input.name);
    if let Some(before) = &before {
        check_forwards(&mut errors, &input, before, &world, &ports);
    }
    valid(errors)?;

    if input.kind == TunnelType::Port {
        input.exit = None;
    }
    choose_ports(&mut input, before.as_ref().map(|before| before.tunnel), &world)?;
    Ok(Checked { input, warnings: findings.warnings })
}

/// A new entry node must have the ports of the tunnel's forwards free.
fn check_forwards(
    errors: &mut Vec<FieldError>,
    input: &TunnelInput,
    before: &Before<'_>,
    world: &World,
    ports: &Ports,
) {
    for (i, entry) in input.entry.nodes.iter().enumerate() {
        let is_old = before.tunnel.entry.nodes.contains(entry);
        let Some(node) = world.nodes.get(&entry.node_id).filter(|_| !is_old) else { continue };
        for forward in before.forwards.iter().map(|row| &row.forward) {
            let port = forward.listen_port;
            let inside =
                shared::address::PortRange::parse(&node.port_range).is_ok_and(|range| range.contains(port));
            let user = ports.get(&entry.node_id).and_then(|ports| ports.get(&port));
            // A port that the tunnel itself gives up by this edit is free again.
            let taken = user.filter(|reservation| reservation.user != PortUse::Tunnel(before.tunnel.id));
            let (code, why) = match taken {
                _ if !inside => ("port_outside_range", format!("it may use {} only", node.port_range)),
                Some(reservation) => ("port_taken", format!("{} uses it there", reservation.label)),
                None => continue,
            };
            let message =
                format!("{} cannot listen on port {port} of the forward {}: {why}", node.name, forward.name);
            let error = FieldError::new(format!("entry.nodes[{i}].nodeId"), code, message);
            errors.push(error.with("node", &node.name).with("port", port).with("forward", &forward.name));
        }
    }
}

/// Gives every group member its port: what was typed, else the one it had, else a free one.
fn choose_ports(input: &mut TunnelInput, old: Option<&Tunnel>, world: &World) -> Result<()> {
    let had: BTreeMap<NodeId, u16> = old
        .into_iter()
        .flat_map(|tunnel| tunnel.hops.iter().chain(&tunnel.exit))
        .flat_map(|group| &group.nodes)
        .filter_map(|member| Some((member.node_id, member.port?)))
        .collect();
    let mut errors = Vec::new();
    let hops = input.hops.iter_mut().enumerate().map(|(i, hop)| (format!("hops[{i}]"), hop));
    let groups = hops.chain(input.exit.iter_mut().map(|exit| ("exit".to_owned(), exit)));
    for (path, group) in groups {
        for (i, member) in group.nodes.iter_mut().enumerate() {
            // Validation has seen that the node exists, and that it is in the tunnel only once.
            let Some(node) = world.nodes.get(&member.node_id) else { continue };
            member.port = member
                .port
                .or_else(|| had.get(&member.node_id).copied())
                .or_else(|| ports::choose(&[node], random_u64()));
            if member.port.is_none() {
                let message = format!("{} has no free port in {}", node.name, node.port_range);
                let field = format!("{path}.nodes[{i}].port");
                errors.push(FieldError::new(field, "no_free_port", message).with("node", &node.name));
            }
        }
    }
    valid(errors)
}

/// Creates a tunnel.
pub async fn create(state: &AppState, user: &User, input: TunnelInput) -> Result<Tunnel> {
    let mut tx = state.db.write().await?;
    let checked = check(&mut tx, input, None).await?;
    let new = NewTunnel { input: &checked.input, at: state.clock.wall_ms() };
    let relay_auth = Auth { username: token::new_node_secret(), password: token::new_node_secret() };
    let id = tx.insert_tunnel(&new, &relay_auth).await?;
    let row = find(&mut tx, id).await?;
    let name = object(&row.tunnel.name, id);
    note(&mut tx, state, user, "tunnel.create", name, String::new()).await?;
    let monitoring = tx.settings().await?.1.monitor_tunnel_quality_enabled;
    tx.commit().await?;
    announce(state, "tunnel");
    Ok(Tunnel { warnings: checked.warnings, ..live(state, row, monitoring)? })
}

/// Edits a tunnel. Ports that its nodes have are kept, its forwards follow its entries.
pub async fn update(state: &AppState, user: &User, id: TunnelId, input: TunnelInput) -> Result<Tunnel> {
    let mut tx = state.db.write().await?;
    let old = find(&mut tx, id).await?.tunnel;
    check_version("the tunnel", "version", input.version, old.version)?;
    let forwards = tx.forwards_of_tunnel(id).await?;
    let checked = check(&mut tx, input, Some(Before { tunnel: &old, forwards: &forwards })).await?;
    tx.update_tunnel(id, &NewTunnel { input: &checked.input, at: state.clock.wall_ms() }).await?;
    let row = find(&mut tx, id).await?;
    let new = &row.tunnel;
    if new.entry != old.entry {
        let entries: Vec<NodeId> = new.entry.nodes.iter().map(|entry| entry.node_id).collect();
        for row in &forwards {
            tx.listen_elsewhere(row.forward.id, row.forward.listen_port, &entries).await?;
        }
    }
    tx.drop_orphaned_decisions(id, &owners(new)).await?;
    tx.drop_orphaned_pins(id, &owners(new), &exits(new)).await?;
    choices::drop_orphaned(&mut tx, new).await?;
    note(&mut tx, state, user, "tunnel.update", object(&new.name, id), changes(&old, new)).await?;
    let monitoring = tx.settings().await?.1.monitor_tunnel_quality_enabled;
    tx.commit().await?;
    announce(state, "tunnel");
    Ok(Tunnel { warnings: checked.warnings, ..live(state, row, monitoring)? })
}

/// What goes with a tunnel.
pub async fn delete_preview(state: &AppState, id: TunnelId) -> Result<DeletePreview> {
    let mut tx = state.db.read().await?;
    let name = find(&mut tx, id).await?.tunnel.name;
    let forwards = tx.forwards_of_tunnel(id).await?.into_iter().map(|row| row.forward.name).collect();
    Ok(DeletePreview { name, forwards, tunnels: Vec::new() })
}

/// Deletes a tunnel with its forwards.
pub async fn delete(state: &AppState, user: &User, id: TunnelId) -> Result<()> {
    let mut tx = state.db.write().await?;
    let name = find(&mut tx, id).await?.tunnel.name;
    let forwards = tx.forwards_of_tunnel(id).await?;
    let names: Vec<_> = forwards.iter().map(|row| row.forward.name.as_str()).collect();
    let detail =
        if names.is_empty() { String::new() } else { format!("with the forwards {}", names.join(", ")) };
    tx.delete_tunnel(id).await?;
    note(&mut tx, state, user, "tunnel.delete", object(&name, id), detail).await?;
    tx.commit().await?;
    announce(state, "tunnel");
    Ok(())
}

/// Has everything that a tunnel needs sent to its nodes once more.
pub async fn redeploy(state: &AppState, user: &User, id: TunnelId) -> Result<()> {
    let mut tx = state.db.write().await?;
    let name = find(&mut tx, id).await?.tunnel.name;
    note(&mut tx, state, user, "tunnel.redeploy", object(&name, id), String::new()).await?;
    tx.commit().await?;
    state.agents.redeploy(id);
    announce(state, "tunnel");
    Ok(())
}

/// What the agents of its nodes should be running.
pub async fn runtime(state: &AppState, id: TunnelId) -> Result<Vec<NodeRuntime>> {
    exists(state, id).await?;
    Ok(state.agents.runtime(id).await)
}

/// The state of its decisions.
pub async fn decisions(state: &AppState, id: TunnelId) -> Result<TunnelDecisions> {
    let stored = find(&mut state.db.read().await?, id).await?;
    // What else was edited need not be waited for.
    if !state.agents.has_planned(id, &TunnelIntent::try_from(stored)?) {
        state.agents.replanned().await;
    }
    let missing = || {
        AppError::NotFound(format!(
            "a decision about tunnel {id}, which has no two exits to choose from by measuring,"
        ))
    };
    state.best_exit.decisions(id).await.ok_or_else(missing)
}

/// Switches and refusals, newest first.
pub async fn decision_log(
    state: &AppState,
    id: TunnelId,
    query: &DecisionLogQuery,
) -> Result<Vec<DecisionLogEntry>> {
    let mut tx = state.db.read().await?;
    find(&mut tx, id).await?;
    Ok(tx.decision_log(id, query).await?)
}

/// There is such a tunnel, and it is planned: it can be diagnosed.
pub async fn exists(state: &AppState, id: TunnelId) -> Result<()> {
    find(&mut state.db.read().await?, id).await?;
    state.agents.replanned().await;
    Ok(())
}
