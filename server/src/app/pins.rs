//! Pins.

use super::tunnels::{exits, find, is_decided, owners};
use super::{Result, announce, check_text, note, object, valid};
use crate::state::AppState;
use shared::api::{PinInput, PinRecord, User};
use shared::field::FieldError;
use shared::ids::{NodeId, TunnelId};

/// Longest reason, in characters.
const MAX_REASON_CHARS: usize = 200;

/// Pins an exit of a tunnel, for one owner or for all. One for all replaces those of single owners.
pub async fn put(state: &AppState, user: &User, id: TunnelId, input: PinInput) -> Result<PinRecord> {
    let mut tx = state.db.write().await?;
    let tunnel = find(&mut tx, id).await?.tunnel;
    let now = state.clock.wall_ms();
    let reason = input.reason.trim().to_owned();
    let mut errors = Vec::new();
    if !is_decided(&tunnel) {
        let message = "only a tunnel with the strategy best and two or more exits can be pinned";
        errors.push(FieldError::new("exitNodeId", "nothing_to_pin", message));
    } else if !exits(&tunnel).contains(&input.exit_node_id) {
        let message = format!("node {} is no exit of {}", input.exit_node_id, tunnel.name);
        errors.push(FieldError::new("exitNodeId", "not_an_exit", message).with("node", input.exit_node_id));
    }
    if let Some(owner) = input.owner_node_id.filter(|owner| !owners(&tunnel).contains(owner)) {
        let message = format!("node {owner} does not choose an exit of {}", tunnel.name);
        errors.push(FieldError::new("ownerNodeId", "not_an_owner", message).with("node", owner));
    }
    if input.until.is_some_and(|until| until <= now) {
        errors.push(FieldError::new("until", "in_the_past", "choose a time to come or leave it out"));
    }
    let chars = reason.chars().count();
    if chars == 0 || chars > MAX_REASON_CHARS {
        let message = format!("give a reason of 1 to {MAX_REASON_CHARS} characters");
        errors.push(FieldError::new("reason", "reason_length", message).with("max", MAX_REASON_CHARS));
    }
    check_text(&mut errors, "reason", &reason);
    valid(errors)?;

    let pin = PinRecord {
        exit_node_id: input.exit_node_id,
        owner_node_id: input.owner_node_id,
        until: input.until,
        reason,
        author: user.username.clone(),
        created_at: now,
    };
    tx.put_pin(id, &pin).await?;
    let owner = pin.owner_node_id.map_or_else(|| "all owners".to_owned(), |owner| format!("owner {owner}"));
    let detail = format!("exit {} for {owner}: {}", pin.exit_node_id, pin.reason);
    note(&mut tx, state, user, "pin.set", object(&tunnel.name, id), detail).await?;
    tx.commit().await?;
    announce(state, "pin");
    Ok(pin)
}

/// Removes the pin of one owner, or all pins of a tunnel.
pub async fn delete(state: &AppState, user: &User, id: TunnelId, owner: Option<NodeId>) -> Result<()> {
    let mut tx = state.db.write().await?;
    let tunnel = find(&mut tx, id).await?.tunnel;
    if tx.delete_pins(id, owner).await? == 0 {
        return Ok(());
    }
    let detail = owner.map_or_else(|| "all owners".to_owned(), |owner| format!("owner {owner}"));
    note(&mut tx, state, user, "pin.remove", object(&tunnel.name, id), detail).await?;
    tx.commit().await?;
    announce(state, "pin");
    Ok(())
}
