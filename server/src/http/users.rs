//! `/users`

use super::extract::{Id, Json};
use crate::app::users;
use crate::auth::CurrentUser;
use crate::error::AppError;
use crate::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use shared::api::{UserChange, UserInput, UserRecord};
use shared::ids::UserId;

/// All users by id.
#[utoipa::path(get, path = "/users", tag = "users", responses((status = 200, body = Vec<UserRecord>)))]
pub(crate) async fn list_users(
    State(state): State<AppState>,
) -> Result<axum::Json<Vec<UserRecord>>, AppError> {
    users::list(&state).await.map(axum::Json)
}

/// Creates a user.
#[utoipa::path(post, path = "/users", tag = "users", request_body = UserInput,
    responses((status = 201, body = UserRecord)))]
pub(crate) async fn create_user(
    State(state): State<AppState>,
    current: CurrentUser,
    Json(input): Json<UserInput>,
) -> Result<(StatusCode, axum::Json<UserRecord>), AppError> {
    let user = users::create(&state, &current.user, input).await?;
    Ok((StatusCode::CREATED, axum::Json(user)))
}

/// Changes somebody else's role or password; a new password ends his sessions.
#[utoipa::path(put, path = "/users/{id}", tag = "users", params(("id" = i64, Path)), request_body = UserChange,
    responses((status = 200, body = UserRecord)))]
pub(crate) async fn update_user(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<UserId>,
    Json(change): Json<UserChange>,
) -> Result<axum::Json<UserRecord>, AppError> {
    users::update(&state, &current.user, id, change).await.map(axum::Json)
}

/// Deletes somebody else and ends his sessions.
#[utoipa::path(delete, path = "/users/{id}", tag = "users", params(("id" = i64, Path)),
    responses((status = 204)))]
pub(crate) async fn delete_user(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<UserId>,
) -> Result<StatusCode, AppError> {
    users::delete(&state, &current.user, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
