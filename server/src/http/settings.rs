//! `/settings` and `/audit-log`

use super::extract::{Json, Query};
use crate::app::{audit, settings};
use crate::auth::CurrentUser;
use crate::error::AppError;
use crate::state::AppState;
use axum::extract::State;
use shared::api::{AuditEntry, SettingsAnswer, SettingsInput};

/// The settings of measuring and deciding.
#[utoipa::path(get, path = "/settings", tag = "settings", responses((status = 200, body = SettingsAnswer)))]
pub(crate) async fn get_settings(
    State(state): State<AppState>,
) -> Result<axum::Json<SettingsAnswer>, AppError> {
    settings::get(&state).await.map(axum::Json)
}

/// Changes the given settings; they count from the next round on.
#[utoipa::path(put, path = "/settings", tag = "settings", request_body = SettingsInput,
    responses((status = 200, body = SettingsAnswer)))]
pub(crate) async fn update_settings(
    State(state): State<AppState>,
    current: CurrentUser,
    Json(input): Json<SettingsInput>,
) -> Result<axum::Json<SettingsAnswer>, AppError> {
    settings::update(&state, &current.user, input).await.map(axum::Json)
}

/// Who changed what, newest first. `before` is the id of the last entry already known; `search` leaves what has this text
/// in the name of the user or of the object.
#[utoipa::path(get, path = "/audit-log", tag = "settings",
    params(("limit" = Option<u32>, Query, minimum = 1, maximum = 1000), ("before" = Option<i64>, Query),
        ("search" = Option<String>, Query)),
    responses((status = 200, body = Vec<AuditEntry>)))]
pub(crate) async fn audit_log(
    State(state): State<AppState>,
    mut query: Query,
) -> Result<axum::Json<Vec<AuditEntry>>, AppError> {
    let limit = query.integer("limit", 1..=1000).unwrap_or(100);
    let before = query.integer("before", i64::MIN..=i64::MAX);
    let search = query.text("search");
    query.finish()?;
    audit::list(&state, limit, before, search.as_deref()).await.map(axum::Json)
}
