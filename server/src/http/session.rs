//! Who sends a request: bearer token or session cookie.

use crate::auth::{CurrentUser, origin, token};
use crate::error::AppError;
use crate::state::AppState;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use shared::api::{Role, WallMs};

/// Name of the session cookie.
pub(crate) const COOKIE: &str = "exitpilot_session";

/// The token of a request, and whether it came by itself.
enum Token<'a> {
    Bearer(&'a str),
    Cookie(&'a str),
}

fn token_of(headers: &HeaderMap) -> Option<Token<'_>> {
    // A program that sends a token means that one, whatever cookies its client library keeps.
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| Token::Bearer(token.trim()));
    }
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, token)| Token::Cookie(token))
}

fn reads_only(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Finds out who it is; a write with the cookie must come from the panel's own page.
async fn authenticate(
    state: &AppState,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<CurrentUser, AppError> {
    let token = token_of(headers).ok_or(AppError::Unauthenticated)?;
    let (text, by_itself) = match token {
        Token::Bearer(text) => (text, false),
        Token::Cookie(text) => (text, true),
    };
    let token_hash = token::hash(text);
    let user = state.db.session_user(&token_hash, state.clock.wall_ms()).await?;
    let user = user.ok_or(AppError::Unauthenticated)?;
    let own = || origin::is_own(headers, uri, state.config.public_url.as_deref());
    if by_itself && !reads_only(method) && !own() {
        return Err(AppError::BadOrigin);
    }
    Ok(CurrentUser { user, token_hash })
}

/// For what every user may do.
pub(crate) async fn require_user(
    State(state): State<AppState>,
    mut request: Request,
    next: Next,
) -> Result<Response, AppError> {
    let current = authenticate(&state, request.method(), request.uri(), request.headers()).await?;
    request.extensions_mut().insert(current);
    Ok(next.run(request).await)
}

/// For what viewers may look at and admins may change.
pub(crate) async fn require_role(
    State(state): State<AppState>,
    mut request: Request,
    next: Next,
) -> Result<Response, AppError> {
    let current = authenticate(&state, request.method(), request.uri(), request.headers()).await?;
    if !reads_only(request.method()) && current.user.role != Role::Admin {
        return Err(AppError::Forbidden);
    }
    request.extensions_mut().insert(current);
    Ok(next.run(request).await)
}

impl<S: Send + Sync> FromRequestParts<S> for CurrentUser {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AppError> {
        parts.extensions.get::<CurrentUser>().cloned().ok_or(AppError::Unauthenticated)
    }
}

/// The header that keeps the token in the browser. Scripts cannot read it and other sites cannot use it.
pub(crate) fn set_cookie(token: &str, expires_at: WallMs, now: WallMs, https: bool) -> Option<HeaderValue> {
    let max_age_s = (expires_at - now).max(0) / 1000;
    let secure = if https { "; Secure" } else { "" };
    HeaderValue::from_str(&format!(
        "{COOKIE}={token}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict{secure}"
    ))
    .ok()
}

/// The header that removes it.
pub(crate) fn remove_cookie(https: bool) -> Option<HeaderValue> {
    set_cookie("", 0, 0, https)
}
