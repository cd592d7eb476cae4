//! HTTP: all routes are in this file.

mod auth;
mod extract;
mod forwards;
mod guarded;
mod health;
mod history;
pub mod install;
mod nodes;
mod openapi;
mod page;
mod session;
mod settings;
mod stream;
mod tunnels;
mod users;

use crate::agents;
use crate::error::AppError;
use crate::state::AppState;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::any::Any;
use std::time::Duration;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tower_http::compression::{CompressionLayer, CompressionLevel};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::TraceLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How long a request may take until its answer begins. Streams begin at once and go on for longer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers in bytes from which on they are compressed. Smaller ones fit into a packet, and those that hold a new secret are smaller.
const COMPRESS_ABOVE: u16 = 1024;

/// Everything under `/api/v1`, with its document.
fn api(state: &AppState) -> (Router<AppState>, OpenApi) {
    let open = OpenApiRouter::with_openapi(openapi::head()).routes(routes!(auth::login));
    let every_user = for_everyone().route_layer(from_fn_with_state(state.clone(), session::require_user));
    let by_role = described().route_layer(from_fn_with_state(state.clone(), session::require_role));
    let (router, document) = OpenApiRouter::with_openapi(openapi::head())
        .nest("/api/v1", open.merge(every_user).merge(by_role))
        .split_for_parts();
    (router, openapi::complete(document))
}

/// What every user may do, with methods that usually change something.
fn for_everyone() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(auth::logout))
        .routes(routes!(auth::me))
        .routes(routes!(auth::change_password))
        .routes(routes!(history::replay_tunnel))
}

/// What viewers may read and admins may change.
fn described() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(nodes::list_nodes, nodes::create_node))
        .routes(routes!(nodes::get_node, nodes::update_node, nodes::delete_node))
        .routes(routes!(nodes::preview_node_delete))
        .routes(routes!(nodes::rotate_node_secret))
        .routes(routes!(nodes::node_install_command))
        .routes(routes!(tunnels::list_tunnels, tunnels::create_tunnel))
        .routes(routes!(tunnels::get_tunnel, tunnels::update_tunnel, tunnels::delete_tunnel))
        .routes(routes!(tunnels::preview_tunnel_delete))
        .routes(routes!(tunnels::redeploy_tunnel))
        .routes(routes!(tunnels::tunnel_runtime))
        .routes(routes!(tunnels::tunnel_decisions))
        .routes(routes!(tunnels::tunnel_decision_log))
        .routes(routes!(history::tunnel_quality))
        .routes(routes!(history::tunnel_history))
        .routes(routes!(tunnels::pin_exit, tunnels::unpin_exit))
        .routes(routes!(tunnels::tunnel_groups))
        .routes(routes!(tunnels::choose_member, tunnels::clear_choice))
        .routes(routes!(tunnels::diagnose_tunnel))
        .routes(routes!(forwards::list_forwards, forwards::create_forward))
        .routes(routes!(forwards::get_forward, forwards::update_forward, forwards::delete_forward))
        .routes(routes!(forwards::pause_forward))
        .routes(routes!(forwards::resume_forward))
        .routes(routes!(forwards::diagnose_forward))
        .routes(routes!(settings::get_settings, settings::update_settings))
        .routes(routes!(settings::audit_log))
        .routes(routes!(users::list_users, users::create_user))
        .routes(routes!(users::update_user, users::delete_user))
        .routes(routes!(stream::events))
}

/// The OpenAPI document.
pub fn document() -> OpenApi {
    let router = OpenApiRouter::<AppState>::new()
        .routes(routes!(auth::login))
        .merge(for_everyone())
        .merge(described());
    let nested = OpenApiRouter::with_openapi(openapi::head()).nest("/api/v1", router);
    openapi::complete(nested.into_openapi())
}

/// All routes.
pub fn router(state: AppState) -> Router {
    let (api, document) = api(&state);
    let serve_document = move || async move { axum::Json(document) };
    let no_sniffing = (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let no_referrer = (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // Answers hold what is true now, and some of them secrets.
    let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let no_frames = (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    let fixed =
        |(name, value): (HeaderName, HeaderValue)| SetResponseHeaderLayer::if_not_present(name, value);
    let answers = api
        .route("/api/openapi.json", get(serve_document))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .route("/install.sh", get(install::script))
        .route("/agent/{name}", get(install::agent))
        .fallback(elsewhere)
        .method_not_allowed_fallback(|| async { AppError::MethodNotAllowed })
        .layer(DefaultBodyLimit::max(extract::MAX_BODY_BYTES))
        .layer(from_fn(in_time))
        // A week of measurements over four exits is 13 MB of JSON and 4 MB on its way.
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(is_long_text()))
        .layer(fixed(no_store));
    answers
        .merge(agents::link_routes())
        .layer(CatchPanicLayer::custom(panicked))
        .layer(fixed(no_sniffing))
        .layer(fixed(no_referrer))
        .layer(fixed(no_frames))
        // What fails is logged where it becomes an answer.
        .layer(TraceLayer::new_for_http().on_failure(()))
        .with_state(state)
}

/// What is compressed on its way: answers that are there as a whole. Streams tell every line when it happens, and the page's files are
/// compressed already.
fn is_long_text() -> impl Predicate {
    let is_whole_text = |_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions| {
        let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        [&b"application/json"[..], b"text/csv"].iter().any(|known| kind.starts_with(known))
    };
    SizeAbove::new(COMPRESS_ABOVE).and(is_whole_text)
}

/// Gives a request up that takes too long. Dropping it leaves no trace: its transaction was not committed.
async fn in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => AppError::TimedOut.into_response(),
    }
}

/// What no route knows: an error under `/api`, the page elsewhere.
async fn elsewhere(request: Request) -> Response {
    let path = request.uri().path();
    if path == "/api" || path.starts_with("/api/") {
        return AppError::NotFound(path.to_owned()).into_response();
    }
    page::serve(request.method(), request.uri(), request.headers())
}

fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    AppError::Internal(anyhow::anyhow!("panic: {text}")).into_response()
}
