//! `/auth`

use super::extract::Json;
use super::session::{remove_cookie, set_cookie};
use crate::app::sessions;
use crate::auth::throttle::address_key;
use crate::auth::{CurrentUser, origin};
use crate::error::AppError;
use crate::state::AppState;
use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{AppendHeaders, IntoResponse};
use shared::api::{LoginAnswer, LoginRequest, PasswordChange, User};
use std::net::SocketAddr;

/// Logs in. The token is for programs; browsers keep it in a cookie.
#[utoipa::path(post, path = "/auth/login", tag = "auth", security(()), request_body = LoginRequest,
    responses((status = 200, body = LoginAnswer)))]
pub(crate) async fn login(
    State(state): State<AppState>,
    address: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    uri: Uri,
    Json(request): Json<LoginRequest>,
) -> Result<impl IntoResponse, AppError> {
    // Another site must not log a browser in as somebody else.
    let foreign = headers.contains_key(header::ORIGIN)
        && !origin::is_own(&headers, &uri, state.config.public_url.as_deref());
    if foreign {
        return Err(AppError::BadOrigin);
    }
    let address =
        address.map_or_else(|| "unknown".to_owned(), |Extension(ConnectInfo(peer))| address_key(peer.ip()));
    let answer = sessions::login(&state, request, &address).await?;
    let cookie = set_cookie(&answer.token, answer.expires_at, state.clock.wall_ms(), state.config.is_https());
    Ok((AppendHeaders(cookie.map(|cookie| (header::SET_COOKIE, cookie))), axum::Json(answer)))
}

/// Ends the session.
#[utoipa::path(post, path = "/auth/logout", tag = "auth", responses((status = 204)))]
pub(crate) async fn logout(
    State(state): State<AppState>,
    current: CurrentUser,
) -> Result<impl IntoResponse, AppError> {
    sessions::logout(&state, &current).await?;
    let cookie = remove_cookie(state.config.is_https());
    Ok((StatusCode::NO_CONTENT, AppendHeaders(cookie.map(|cookie| (header::SET_COOKIE, cookie)))))
}

/// Who is logged in.
#[utoipa::path(get, path = "/auth/me", tag = "auth", responses((status = 200, body = User)))]
pub(crate) async fn me(current: CurrentUser) -> axum::Json<User> {
    axum::Json(current.user)
}

/// Changes the password and ends all other sessions.
#[utoipa::path(put, path = "/auth/password", tag = "auth", request_body = PasswordChange,
    responses((status = 204)))]
pub(crate) async fn change_password(
    State(state): State<AppState>,
    current: CurrentUser,
    Json(change): Json<PasswordChange>,
) -> Result<StatusCode, AppError> {
    sessions::change_password(&state, &current, change).await?;
    Ok(StatusCode::NO_CONTENT)
}
