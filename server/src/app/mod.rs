//! Use cases. Transaction boundaries live here: read, check, write, note it in the audit log, commit; then tell the
//! background tasks that there is something new to look at.

pub mod audit;
pub mod choices;
pub mod forwards;
pub mod nodes;
pub mod pins;
mod ports;
pub mod quality;
pub mod replays;
pub mod sessions;
pub mod settings;
pub mod span;
pub mod tunnels;
pub mod users;

use crate::error::AppError;
use crate::state::AppState;
use crate::store::{NewAuditEntry, Tx};
use serde_json::Value;
use shared::api::{DeploymentStatus, Event, NodeDeployment, User};
use shared::field::FieldError;
use shared::ids::NodeId;

/// Result of a use case.
pub type Result<T> = std::result::Result<T, AppError>;

/// After a commit: wakes whoever acts on the stored intent, and tells the watchers.
fn announce(state: &AppState, what: &str) {
    state.agents.wake();
    state.best_exit.wake();
    state.bus.send(Event::Changed { what: what.to_owned() });
}

/// What is to be said of nodes whose new configuration is stored and not planned yet.
fn not_planned_yet(nodes: impl Iterator<Item = NodeId>) -> Vec<NodeDeployment> {
    nodes.map(|node_id| NodeDeployment { node_id, status: DeploymentStatus::Pending, reason: None }).collect()
}

/// Notes who did what, in the transaction that does it.
async fn note(
    tx: &mut Tx,
    state: &AppState,
    user: &User,
    action: &'static str,
    object: String,
    detail: String,
) -> Result<()> {
    let at = state.clock.wall_ms();
    let entry = NewAuditEntry { at, username: user.username.clone(), action, object, detail };
    Ok(tx.append_audit(&entry).await?)
}

/// `name (7)`, as objects are called in the audit log.
fn object(name: &str, id: impl std::fmt::Display) -> String {
    format!("{name} ({id})")
}

/// The fields that differ, `name: "a" → "b"`, for the audit log.
fn changes<T: serde::Serialize>(old: &T, new: &T) -> String {
    let fields = |value: &T| match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (old, new) = (fields(old), fields(new));
    let null = Value::Null;
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let differing = names.into_iter().filter_map(|name| {
        let (before, after) = (old.get(name).unwrap_or(&null), new.get(name).unwrap_or(&null));
        (before != after).then(|| format!("{name}: {before} → {after}"))
    });
    differing.collect::<Vec<_>>().join("; ")
}

/// The version that a PUT was made from: present, and the stored one.
fn check_version(what: &'static str, field: &str, sent: Option<i64>, stored: i64) -> Result<()> {
    match sent {
        None => Err(AppError::field(field, "missing_field", format!("send the {field} that was edited"))),
        Some(sent) if sent != stored => Err(AppError::StaleVersion { what, stored }),
        Some(_) => Ok(()),
    }
}

/// Text that people read holds no control characters: they hide what is there.
fn check_text(errors: &mut Vec<FieldError>, field: &str, text: &str) {
    if text.contains(char::is_control) {
        errors.push(FieldError::new(field, "control_character", "remove the control characters"));
    }
}

/// Nothing wrong, or the answer that says what is.
fn valid(errors: Vec<FieldError>) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(AppError::Invalid(errors)) }
}
