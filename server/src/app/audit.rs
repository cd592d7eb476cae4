//! Who changed what.

use super::Result;
use crate::state::AppState;
use shared::api::AuditEntry;

/// Changes, newest first, older than the one with the id `before`; with `search` those that have it in the name of the user
/// or of the object.
pub async fn list(
    state: &AppState,
    limit: u32,
    before: Option<i64>,
    search: Option<&str>,
) -> Result<Vec<AuditEntry>> {
    Ok(state.db.read().await?.audit_log(limit, before, search).await?)
}
