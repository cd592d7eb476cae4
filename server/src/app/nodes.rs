//! Nodes.

use super::{Result, announce, changes, check_text, check_version, note, object, valid};
use crate::auth::token;
use crate::error::AppError;
use crate::state::AppState;
use crate::store::{NewNode, Page, Tx};
use shared::address::PortRange;
use shared::api::{DeletePreview, InstallCommand, Node, NodeInput, User, validate_node};
use shared::envelope::link_key;
use shared::field::FieldError;
use shared::ids::NodeId;

/// Room for dozens of ranges; more is a mistake.
const MAX_PORT_RANGE_BYTES: usize = 500;

fn with_online(state: &AppState, mut node: Node) -> Node {
    node.online = state.agents.is_online(node.id);
    node
}

async fn find(tx: &mut Tx, id: NodeId) -> Result<Node> {
    tx.node(id).await?.ok_or_else(|| AppError::NotFound(format!("node {id}")))
}

/// Nodes by id.
pub async fn list(state: &AppState, page: Page) -> Result<Vec<Node>> {
    let nodes = state.db.read().await?.nodes(page).await?;
    Ok(nodes.into_iter().map(|node| with_online(state, node)).collect())
}

/// One node.
pub async fn get(state: &AppState, id: NodeId) -> Result<Node> {
    let node = find(&mut state.db.read().await?, id).await?;
    Ok(with_online(state, node))
}

/// Writes addresses as they are compared and dialled: without brackets and spaces around.
fn tidy(mut input: NodeInput) -> NodeInput {
    let bare = |text: &str| text.trim_start_matches('[').trim_end_matches(']').to_owned();
    input.name = input.name.trim().to_owned();
    input.server_ip = bare(&input.server_ip);
    input.server_ip_v6 = bare(&input.server_ip_v6);
    input
}

async fn check(tx: &mut Tx, id: Option<NodeId>, input: &NodeInput) -> Result<()> {
    let mut errors = validate_node(input);
    check_text(&mut errors, "name", &input.name);
    check_text(&mut errors, "interfaceName", &input.interface_name);
    if tx.node_by_name(&input.name).await?.is_some_and(|other| Some(other) != id) {
        let message = format!("another node is called `{}`", input.name);
        errors.push(FieldError::new("name", "name_taken", message).with("name", &input.name));
    }
    if input.port_range.len() > MAX_PORT_RANGE_BYTES {
        let message = format!("write it in at most {MAX_PORT_RANGE_BYTES} characters");
        errors.push(FieldError::new("portRange", "too_long", message).with("max", MAX_PORT_RANGE_BYTES));
    }
    if let (Some(id), Ok(range)) = (id, PortRange::parse(&input.port_range)) {
        let used = tx.ports(&[id]).await?.remove(&id).unwrap_or_default();
        let outside: Vec<String> = used
            .iter()
            .filter(|(port, _)| !range.contains(**port))
            .take(5)
            .map(|(port, reservation)| format!("{port} ({})", reservation.label))
            .collect();
        if !outside.is_empty() {
            let ports = outside.join(", ");
            let message = format!("ports outside this range are in use: {ports}");
            errors.push(FieldError::new("portRange", "ports_in_use", message).with("ports", ports));
        }
    }
    valid(errors)
}

/// Creates a node. The answer is the only one with its secret.
pub async fn create(state: &AppState, user: &User, input: NodeInput) -> Result<Node> {
    let input = tidy(input);
    let secret = token::new_node_secret();
    let mut tx = state.db.write().await?;
    check(&mut tx, None, &input).await?;
    let new = NewNode { input: &input, link_key: link_key(&secret), at: state.clock.wall_ms() };
    let id = tx.insert_node(&new).await?;
    let node = find(&mut tx, id).await?;
    note(&mut tx, state, user, "node.create", object(&node.name, id), node.server_ip.clone()).await?;
    tx.commit().await?;
    announce(state, "node");
    Ok(Node { secret: Some(secret), ..with_online(state, node) })
}

/// Edits a node.
pub async fn update(state: &AppState, user: &User, id: NodeId, input: NodeInput) -> Result<Node> {
    let input = tidy(input);
    let mut tx = state.db.write().await?;
    let old = find(&mut tx, id).await?;
    check_version("the node", "revision", input.revision, old.revision)?;
    check(&mut tx, Some(id), &input).await?;
    tx.update_node(id, &input, state.clock.wall_ms()).await?;
    if input.name != old.name {
        tx.rename_defaults(id, &old.name, &input.name).await?;
    }
    let new = find(&mut tx, id).await?;
    note(&mut tx, state, user, "node.update", object(&new.name, id), changes(&old, &new)).await?;
    tx.commit().await?;
    announce(state, "node");
    Ok(with_online(state, new))
}

/// Gives a node a new secret and ends the link that uses the old one. The answer is the only one with the secret.
pub async fn rotate_secret(state: &AppState, user: &User, id: NodeId) -> Result<Node> {
    let secret = token::new_node_secret();
    let mut tx = state.db.write().await?;
    find(&mut tx, id).await?;
    tx.set_node_link_key(id, link_key(&secret), state.clock.wall_ms()).await?;
    let node = find(&mut tx, id).await?;
    note(&mut tx, state, user, "node.rotate_secret", object(&node.name, id), String::new()).await?;
    tx.commit().await?;
    state.agents.disconnect(id);
    announce(state, "node");
    Ok(Node { secret: Some(secret), ..with_online(state, node) })
}

/// What uses a node.
pub async fn delete_preview(state: &AppState, id: NodeId) -> Result<DeletePreview> {
    let mut tx = state.db.read().await?;
    let node = find(&mut tx, id).await?;
    let tunnels = tx.tunnels_of_node(id).await?.into_iter().map(|(_, name)| name).collect();
    Ok(DeletePreview { name: node.name, forwards: Vec::new(), tunnels })
}

/// Deletes a node that no tunnel uses.
pub async fn delete(state: &AppState, user: &User, id: NodeId) -> Result<()> {
    let mut tx = state.db.write().await?;
    let node = find(&mut tx, id).await?;
    let tunnels = tx.tunnels_of_node(id).await?;
    if !tunnels.is_empty() {
        let names = tunnels.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(", ");
        return Err(AppError::InUse(format!(
            "{} is part of the tunnels {names}; remove it there first",
            node.name
        )));
    }
    tx.delete_node(id).await?;
    note(&mut tx, state, user, "node.delete", object(&node.name, id), String::new()).await?;
    tx.commit().await?;
    state.agents.disconnect(id);
    announce(state, "node");
    Ok(())
}

/// How to install the agent. `host` is how the reader reached the panel; a configured public address is better.
pub async fn install(state: &AppState, id: NodeId, host: Option<&str>) -> Result<InstallCommand> {
    find(&mut state.db.read().await?, id).await?;
    let address = state.config.address_for(host);
    let panel = address.replacen("http", "ws", 1);
    let command = format!("exitpilot-agent run --panel {panel} --secret <secret>");
    let script = format!("curl -fsSL {address}/install.sh | sudo sh -s -- --panel {panel} --secret <secret>");
    Ok(InstallCommand { script, command, panel })
}
