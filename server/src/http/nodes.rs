//! `/nodes`

use super::extract::{Id, Json, Query};
use crate::app::nodes;
use crate::auth::CurrentUser;
use crate::error::AppError;
use crate::state::AppState;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use shared::api::{DeletePreview, InstallCommand, Node, NodeInput};
use shared::ids::NodeId;

/// Nodes by id: all of them, or `limit` of them behind the id `after`.
#[utoipa::path(get, path = "/nodes", tag = "nodes",
    params(("limit" = Option<u32>, Query, minimum = 1, maximum = 10000), ("after" = Option<i64>, Query)),
    responses((status = 200, body = Vec<Node>)))]
pub(crate) async fn list_nodes(
    State(state): State<AppState>,
    query: Query,
) -> Result<axum::Json<Vec<Node>>, AppError> {
    nodes::list(&state, query.page()?).await.map(axum::Json)
}

/// Creates a node. This answer and that of the rotation are the only ones with its secret.
#[utoipa::path(post, path = "/nodes", tag = "nodes", request_body = NodeInput,
    responses((status = 201, body = Node)))]
pub(crate) async fn create_node(
    State(state): State<AppState>,
    current: CurrentUser,
    Json(input): Json<NodeInput>,
) -> Result<(StatusCode, axum::Json<Node>), AppError> {
    let node = nodes::create(&state, &current.user, input).await?;
    Ok((StatusCode::CREATED, axum::Json(node)))
}

/// One node.
#[utoipa::path(get, path = "/nodes/{id}", tag = "nodes", params(("id" = i64, Path)),
    responses((status = 200, body = Node)))]
pub(crate) async fn get_node(
    State(state): State<AppState>,
    Id(id): Id<NodeId>,
) -> Result<axum::Json<Node>, AppError> {
    nodes::get(&state, id).await.map(axum::Json)
}

/// Edits a node; needs the revision that was edited.
#[utoipa::path(put, path = "/nodes/{id}", tag = "nodes", params(("id" = i64, Path)), request_body = NodeInput,
    responses((status = 200, body = Node)))]
pub(crate) async fn update_node(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<NodeId>,
    Json(input): Json<NodeInput>,
) -> Result<axum::Json<Node>, AppError> {
    nodes::update(&state, &current.user, id, input).await.map(axum::Json)
}

/// Deletes a node that no tunnel uses.
#[utoipa::path(delete, path = "/nodes/{id}", tag = "nodes", params(("id" = i64, Path)),
    responses((status = 204)))]
pub(crate) async fn delete_node(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<NodeId>,
) -> Result<StatusCode, AppError> {
    nodes::delete(&state, &current.user, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What uses a node.
#[utoipa::path(get, path = "/nodes/{id}/delete-preview", tag = "nodes", params(("id" = i64, Path)),
    responses((status = 200, body = DeletePreview)))]
pub(crate) async fn preview_node_delete(
    State(state): State<AppState>,
    Id(id): Id<NodeId>,
) -> Result<axum::Json<DeletePreview>, AppError> {
    nodes::delete_preview(&state, id).await.map(axum::Json)
}

/// Gives a node a new secret; its agent is disconnected until it has the new one.
#[utoipa::path(post, path = "/nodes/{id}/secret", tag = "nodes", params(("id" = i64, Path)),
    responses((status = 200, body = Node)))]
pub(crate) async fn rotate_node_secret(
    State(state): State<AppState>,
    current: CurrentUser,
    Id(id): Id<NodeId>,
) -> Result<axum::Json<Node>, AppError> {
    nodes::rotate_secret(&state, &current.user, id).await.map(axum::Json)
}

/// How to install a node's agent.
#[utoipa::path(get, path = "/nodes/{id}/install", tag = "nodes", params(("id" = i64, Path)),
    responses((status = 200, body = InstallCommand)))]
pub(crate) async fn node_install_command(
    State(state): State<AppState>,
    headers: HeaderMap,
    Id(id): Id<NodeId>,
) -> Result<axum::Json<InstallCommand>, AppError> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    nodes::install(&state, id, host).await.map(axum::Json)
}
