//! What persons choose in groups that leave it to them.

use super::tunnels::find;
use super::{Result, announce, note, object, valid};
use crate::state::AppState;
use crate::store::Tx;
use shared::api::{ChoiceInput, ChoiceRecord, Group, OwnerGroup, Tunnel, User};
use shared::field::FieldError;
use shared::ids::{NodeId, TunnelId};
use shared::policy::Policy;
use std::collections::BTreeMap;

/// Groups with the nodes that choose in them, in order.
fn groups(tunnel: &Tunnel) -> impl Iterator<Item = (Vec<NodeId>, &Group)> {
    let members = |group: &Group| group.nodes.iter().map(|member| member.node_id).collect::<Vec<_>>();
    let entry = tunnel.entry.nodes.iter().map(|node| node.node_id).collect();
    let owners = std::iter::once(entry).chain(tunnel.hops.iter().map(members));
    owners.zip(tunnel.hops.iter().chain(&tunnel.exit))
}

/// Those whose choice is a person's.
fn selectors(tunnel: &Tunnel) -> impl Iterator<Item = (Vec<NodeId>, &Group)> {
    groups(tunnel).filter(|(_, group)| matches!(group.strategy.policy(), Some(Policy::Selector { .. })))
}

/// The groups of a tunnel whose choice is made ahead of connections, as their owners' agents see them.
pub async fn list(state: &AppState, id: TunnelId) -> Result<Vec<OwnerGroup>> {
    let choices = {
        let mut tx = state.db.read().await?;
        find(&mut tx, id).await?;
        of_tunnel(&mut tx, id).await?
    };
    state.agents.replanned().await;
    Ok(state.agents.groups(id, &choices))
}

async fn of_tunnel(tx: &mut Tx, id: TunnelId) -> Result<BTreeMap<NodeId, ChoiceRecord>> {
    let all = tx.choices().await?.into_iter().filter(|(tunnel, ..)| *tunnel == id);
    Ok(all.map(|(_, owner, choice)| (owner, choice)).collect())
}

/// Chooses a node, for one owner or for all of its group. It is stored when this answers; the owners' agents are told
/// at once, or when they connect.
pub async fn put(state: &AppState, user: &User, id: TunnelId, input: ChoiceInput) -> Result<Vec<OwnerGroup>> {
    let mut tx = state.db.write().await?;
    let tunnel = find(&mut tx, id).await?.tunnel;
    let group = selectors(&tunnel).find(|(_, group)| group.nodes.iter().any(|m| m.node_id == input.node_id));
    let mut errors = Vec::new();
    let owners = match (group, input.owner_node_id) {
        (None, _) => {
            let message = format!(
                "node {} is in no group of {} that leaves the choice to a person",
                input.node_id, tunnel.name
            );
            errors.push(FieldError::new("nodeId", "nothing_to_choose", message).with("node", input.node_id));
            Vec::new()
        }
        (Some((owners, _)), Some(owner)) if !owners.contains(&owner) => {
            let message = format!("node {owner} does not choose in this group");
            errors.push(FieldError::new("ownerNodeId", "not_an_owner", message).with("node", owner));
            Vec::new()
        }
        (Some(_), Some(owner)) => vec![owner],
        (Some((owners, _)), None) => owners,
    };
    valid(errors)?;
    let choice = record(state, user, Some(input.node_id));
    for owner in &owners {
        tx.put_choice(id, *owner, &choice).await?;
    }
    let detail = format!("node {} for {}", input.node_id, said(&owners));
    note(&mut tx, state, user, "choice.set", object(&tunnel.name, id), detail).await?;
    tx.commit().await?;
    announce(state, "choice");
    list(state, id).await
}

/// Takes the choice of one owner back, or those of all owners of the tunnel, also what was chosen at their agents.
pub async fn delete(state: &AppState, user: &User, id: TunnelId, owner: Option<NodeId>) -> Result<()> {
    let mut tx = state.db.write().await?;
    let tunnel = find(&mut tx, id).await?.tunnel;
    let owners = selectors(&tunnel).flat_map(|(owners, _)| owners);
    let owners: Vec<NodeId> = owners.filter(|found| owner.is_none_or(|owner| owner == *found)).collect();
    if owners.is_empty() {
        return Ok(());
    }
    let choice = record(state, user, None);
    for owner in &owners {
        tx.put_choice(id, *owner, &choice).await?;
    }
    note(&mut tx, state, user, "choice.clear", object(&tunnel.name, id), said(&owners)).await?;
    tx.commit().await?;
    announce(state, "choice");
    Ok(())
}

fn record(state: &AppState, user: &User, node_id: Option<NodeId>) -> ChoiceRecord {
    ChoiceRecord { node_id, author: user.username.clone(), created_at: state.clock.wall_ms() }
}

fn said(owners: &[NodeId]) -> String {
    let owners: Vec<String> = owners.iter().map(ToString::to_string).collect();
    format!("owner {}", owners.join(", "))
}

/// After an edit: forgets choices of nodes that have left their group, and of owners that leave nothing to persons.
pub(super) async fn drop_orphaned(tx: &mut Tx, tunnel: &Tunnel) -> Result<()> {
    for (owner, choice) in of_tunnel(tx, tunnel.id).await? {
        let fits = selectors(tunnel).any(|(owners, group)| {
            let has = |node| group.nodes.iter().any(|member| member.node_id == node);
            owners.contains(&owner) && choice.node_id.is_none_or(has)
        });
        if !fits {
            tx.delete_choice(tunnel.id, owner).await?;
        }
    }
    Ok(())
}
