//! `/tunnels`

use super::extract::{Id, Json, Query};
use super::stream::{Ndjson, ndjson};
use crate::app::{choices, pins, tunnels};
use crate::auth::CurrentUser;
use crate::diagnose;
use crate::error::AppError;
use crate::state::AppState;
use crate::store::DecisionLogQuery;
use axum::extract::State;
use axum::http::StatusCode;
use shared::api::{
    ChoiceInput, DecisionLogEntry, DeletePreview, DiagnoseLine, NodeRuntime, OwnerGroup, PinInput, PinRecord,
    Tunnel, TunnelDecisions, TunnelInput,
};
use shared::best_exit::Reason;
use shared::ids::{NodeId, TunnelId};

/// Log entries in one answer.
const LOG_LIMIT: std::ops::RangeInclusive<u32> = 1..=1000;
const LOG_DEFAULT: u32 = 50;

/// Tunnels by id: all of them, or `limit` of them behind the id `after`.
#[utoipa::path(get, path = "/tunnels", tag = "tunnels",
    params(("limit" = Option<u32>, Query, minimum = 1, maximum = 10000), ("after" = Option<i64>, Query)),
    responses((status = 200, body = Vec<Tunnel>)))]
pub(crate) async fn list_tunnels(
    State(state): State<AppState>,
    query: Query,
) -> Result<axum::Json<Vec<Tunnel>>, AppError> {
    tunnels::list(&state, query.page()?).await.map(axum::Json)
}

/// Creates a tunnel. It is stored when this answers; its nodes get their configuration in the background.
#[utoipa::path(post, path = "/tunnels", tag = "tunnels", request_body = TunnelInput,
    responses((status = 201, body = Tunnel)))]
pub(crate) async fn create_tunnel(
    State(state): State<AppState>,
    current: CurrentUser,
    Json(input): Json<TunnelInput>,
) -> Result<(StatusCode, axum::Json<Tunnel>), AppError> {
    let tunnel = tunnels::create(&state, &current.user, input).await?;
    Ok((StatusCode::CREATED, axum::Json(tunnel)))
}

/// One tunnel.
#[utoipa::path(get, path = "/tunnels/{id}", tag = "tunnels", params(("id" = i64, Path)),
    responses((status = 200, body = Tunnel)))]
pub(crate) async fn get_tunnel(
    State(state): State<AppState>,
    Id(id): Id<TunnelId>,
) -> Result<axum::Json<Tunnel>, AppError> {
    tunnels::get(&state, id).await.map(axum::Json)
}

/// Edits a tunnel; needs the version that was edited. Ports that are not given stay as they are.
#[utoipa::path(put, path = "/tunnels/{id}", tag = "tunnels", params(("id" = i64, Path)),
    request_body = TunnelInput, responses((status = 200, body = Tunnel)))]
pub(crate) async fn update_tunnel(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<TunnelId>,
    Json(input): Json<TunnelInput>,
) -> Result<axum::Json<Tunnel>, AppError> {
    tunnels::update(&state, &current.user, id, input).await.map(axum::Json)
}

/// Deletes a tunnel and its forwards.
#[utoipa::path(delete, path = "/tunnels/{id}", tag = "tunnels", params(("id" = i64, Path)),
    responses((status = 204)))]
pub(crate) async fn delete_tunnel(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<TunnelId>,
) -> Result<StatusCode, AppError> {
    tunnels::delete(&state, &current.user, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What would be deleted with a tunnel.
#[utoipa::path(get, path = "/tunnels/{id}/delete-preview", tag = "tunnels", params(("id" = i64, Path)),
    responses((status = 200, body = DeletePreview)))]
pub(crate) async fn preview_tunnel_delete(
    State(state): State<AppState>,
    Id(id): Id<TunnelId>,
) -> Result<axum::Json<DeletePreview>, AppError> {
    tunnels::delete_preview(&state, id).await.map(axum::Json)
}

/// Sends a tunnel's configuration to its nodes again.
#[utoipa::path(post, path = "/tunnels/{id}/redeploy", tag = "tunnels", params(("id" = i64, Path)),
    responses((status = 204)))]
pub(crate) async fn redeploy_tunnel(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<TunnelId>,
) -> Result<StatusCode, AppError> {
    tunnels::redeploy(&state, &current.user, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The configuration that each agent should be running for a tunnel, passwords masked.
#[utoipa::path(get, path = "/tunnels/{id}/runtime", tag = "tunnels", params(("id" = i64, Path)),
    responses((status = 200, body = Vec<NodeRuntime>)))]
pub(crate) async fn tunnel_runtime(
    State(state): State<AppState>,
    Id(id): Id<TunnelId>,
) -> Result<axum::Json<Vec<NodeRuntime>>, AppError> {
    tunnels::runtime(&state, id).await.map(axum::Json)
}

/// The state of a tunnel's decisions: scores, applied orders, reasons.
#[utoipa::path(get, path = "/tunnels/{id}/decisions", tag = "decisions", params(("id" = i64, Path)),
    responses((status = 200, body = TunnelDecisions)))]
pub(crate) async fn tunnel_decisions(
    State(state): State<AppState>,
    Id(id): Id<TunnelId>,
) -> Result<axum::Json<TunnelDecisions>, AppError> {
    tunnels::decisions(&state, id).await.map(axum::Json)
}

/// Switches and refusals, newest first. `before` is the id of the last entry already known, `from` the first moment,
/// `reason` the codes of the reasons that are wanted, between commas.
#[utoipa::path(get, path = "/tunnels/{id}/decision-log", tag = "decisions",
    params(("id" = i64, Path), ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000),
        ("before" = Option<i64>, Query), ("from" = Option<i64>, Query), ("reason" = Option<String>, Query)),
    responses((status = 200, body = Vec<DecisionLogEntry>)))]
pub(crate) async fn tunnel_decision_log(
    State(state): State<AppState>,
    Id(id): Id<TunnelId>,
    mut query: Query,
) -> Result<axum::Json<Vec<DecisionLogEntry>>, AppError> {
    let part = DecisionLogQuery {
        limit: query.integer("limit", LOG_LIMIT).unwrap_or(LOG_DEFAULT),
        before: query.integer("before", i64::MIN..=i64::MAX),
        from: query.integer("from", i64::MIN..=i64::MAX),
        reasons: query.words("reason", &Reason::CODES),
    };
    query.finish()?;
    tunnels::decision_log(&state, id, &part).await.map(axum::Json)
}

/// Pins an exit: it is used as long as it works.
#[utoipa::path(put, path = "/tunnels/{id}/pin", tag = "decisions", params(("id" = i64, Path)),
    request_body = PinInput, responses((status = 200, body = PinRecord)))]
pub(crate) async fn pin_exit(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<TunnelId>,
    Json(input): Json<PinInput>,
) -> Result<axum::Json<PinRecord>, AppError> {
    pins::put(&state, &current.user, id, input).await.map(axum::Json)
}

/// Removes the pin of one owner, or all pins of a tunnel.
#[utoipa::path(delete, path = "/tunnels/{id}/pin", tag = "decisions",
    params(("id" = i64, Path), ("ownerNodeId" = Option<i64>, Query)), responses((status = 204)))]
pub(crate) async fn unpin_exit(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<TunnelId>,
    mut query: Query,
) -> Result<StatusCode, AppError> {
    let owner = query.integer("ownerNodeId", i64::MIN..=i64::MAX).map(NodeId);
    query.finish()?;
    pins::delete(&state, &current.user, id, owner).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The groups whose choice is made ahead of connections: who is in use, why, and what is known of each node.
#[utoipa::path(get, path = "/tunnels/{id}/groups", tag = "decisions", params(("id" = i64, Path)),
    responses((status = 200, body = Vec<OwnerGroup>)))]
pub(crate) async fn tunnel_groups(
    State(state): State<AppState>,
    Id(id): Id<TunnelId>,
) -> Result<axum::Json<Vec<OwnerGroup>>, AppError> {
    choices::list(&state, id).await.map(axum::Json)
}

/// Chooses a node in a group with the strategy `selector`. It is stored when this answers; agents that are not
/// connected are told when they return.
#[utoipa::path(put, path = "/tunnels/{id}/choice", tag = "decisions", params(("id" = i64, Path)),
    request_body = ChoiceInput, responses((status = 200, body = Vec<OwnerGroup>)))]
pub(crate) async fn choose_member(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<TunnelId>,
    Json(input): Json<ChoiceInput>,
) -> Result<axum::Json<Vec<OwnerGroup>>, AppError> {
    choices::put(&state, &current.user, id, input).await.map(axum::Json)
}

/// Takes the choice of one owner back, or all choices of a tunnel.
#[utoipa::path(delete, path = "/tunnels/{id}/choice", tag = "decisions",
    params(("id" = i64, Path), ("ownerNodeId" = Option<i64>, Query)), responses((status = 204)))]
pub(crate) async fn clear_choice(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<TunnelId>,
    mut query: Query,
) -> Result<StatusCode, AppError> {
    let owner = query.integer("ownerNodeId", i64::MIN..=i64::MAX).map(NodeId);
    query.finish()?;
    choices::delete(&state, &current.user, id, owner).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tries every stretch of a tunnel; one JSON object per line as each is done.
#[utoipa::path(post, path = "/tunnels/{id}/diagnose", tag = "tunnels", params(("id" = i64, Path)),
    responses((status = 200, body = DiagnoseLine, content_type = "application/x-ndjson")))]
pub(crate) async fn diagnose_tunnel(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<TunnelId>,
) -> Result<Ndjson, AppError> {
    tunnels::exists(&state, id).await?;
    Ok(ndjson(&state, current, diagnose::tunnel(&state, id)))
}
