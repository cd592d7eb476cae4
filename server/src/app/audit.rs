//! Who changed what.

use super::Result;
use crate::state::AppState;
use shared::api::AuditEntry;

/// Changes, newest first, older than the one with the id `before`.
pub async fn list(state: &AppState, limit: u32, before: Option<i64>) -> Result<Vec<AuditEntry>> {
    Ok(state.db.read().await?.audit_log(limit, before).await?)
}
