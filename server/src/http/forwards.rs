//! `/forwards`

use super::extract::{Id, Json, Query};
use super::stream::{Ndjson, ndjson};
use crate::app::forwards;
use crate::auth::CurrentUser;
use crate::diagnose;
use crate::error::AppError;
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use shared::api::{DiagnoseLine, Forward, ForwardInput};
use shared::ids::ForwardId;

/// Forwards by id: all of them, or `limit` of them behind the id `after`.
#[utoipa::path(get, path = "/forwards", tag = "forwards",
    params(("limit" = Option<u32>, Query, minimum = 1, maximum = 10000), ("after" = Option<i64>, Query)),
    responses((status = 200, body = Vec<Forward>)))]
pub(crate) async fn list_forwards(
    State(state): State<AppState>,
    query: Query,
) -> Result<axum::Json<Vec<Forward>>, AppError> {
    forwards::list(&state, query.page()?).await.map(axum::Json)
}

/// Creates a forward. Port 0 chooses one that is free on all entry nodes of the tunnel.
#[utoipa::path(post, path = "/forwards", tag = "forwards", request_body = ForwardInput,
    responses((status = 201, body = Forward)))]
pub(crate) async fn create_forward(
    State(state): State<AppState>,
    current: CurrentUser,
    Json(input): Json<ForwardInput>,
) -> Result<(StatusCode, axum::Json<Forward>), AppError> {
    let forward = forwards::create(&state, &current.user, input).await?;
    Ok((StatusCode::CREATED, axum::Json(forward)))
}

/// One forward.
#[utoipa::path(get, path = "/forwards/{id}", tag = "forwards", params(("id" = i64, Path)),
    responses((status = 200, body = Forward)))]
pub(crate) async fn get_forward(
    State(state): State<AppState>,
    Id(id): Id<ForwardId>,
) -> Result<axum::Json<Forward>, AppError> {
    forwards::get(&state, id).await.map(axum::Json)
}

/// Edits a forward; needs the version that was edited.
#[utoipa::path(put, path = "/forwards/{id}", tag = "forwards", params(("id" = i64, Path)),
    request_body = ForwardInput, responses((status = 200, body = Forward)))]
pub(crate) async fn update_forward(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<ForwardId>,
    Json(input): Json<ForwardInput>,
) -> Result<axum::Json<Forward>, AppError> {
    forwards::update(&state, &current.user, id, input).await.map(axum::Json)
}

/// Deletes a forward.
#[utoipa::path(delete, path = "/forwards/{id}", tag = "forwards", params(("id" = i64, Path)),
    responses((status = 204)))]
pub(crate) async fn delete_forward(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<ForwardId>,
) -> Result<StatusCode, AppError> {
    forwards::delete(&state, &current.user, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Closes a forward's ports and its connections; it keeps its place.
#[utoipa::path(post, path = "/forwards/{id}/pause", tag = "forwards", params(("id" = i64, Path)),
    responses((status = 200, body = Forward)))]
pub(crate) async fn pause_forward(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<ForwardId>,
) -> Result<axum::Json<Forward>, AppError> {
    forwards::set_enabled(&state, &current.user, id, false).await.map(axum::Json)
}

/// Opens a paused forward again.
#[utoipa::path(post, path = "/forwards/{id}/resume", tag = "forwards", params(("id" = i64, Path)),
    responses((status = 200, body = Forward)))]
pub(crate) async fn resume_forward(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<ForwardId>,
) -> Result<axum::Json<Forward>, AppError> {
    forwards::set_enabled(&state, &current.user, id, true).await.map(axum::Json)
}

/// Tries a forward's targets; one JSON object per line as each is done.
#[utoipa::path(post, path = "/forwards/{id}/diagnose", tag = "forwards", params(("id" = i64, Path)),
    responses((status = 200, body = DiagnoseLine, content_type = "application/x-ndjson")))]
pub(crate) async fn diagnose_forward(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<ForwardId>,
) -> Result<Ndjson, AppError> {
    forwards::exists(&state, id).await?;
    Ok(ndjson(&state, current, diagnose::forward(&state, id)))
}
