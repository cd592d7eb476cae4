//! Where agents connect.

use super::Agents;
use super::session::Session;
use super::slot::Live;
use super::{driver, hello};
use crate::state::AppState;
use axum::Router;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, FromRef, Query, State};
use axum::http::{Extensions, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde::Deserialize;
use shared::api::Event;
use shared::envelope::{Sealer, link_key};
use shared::ids::NodeId;
use shared::link::{LINK_PATH, LINK_VERSION, MAX_FRAME_BYTES, PANEL_HEADER};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Orders waiting for a driver. The decider sends one per tunnel at most.
const PUSH_QUEUE: usize = 256;
/// Read at once from a connection, which keeps a buffer of this size. Most frames are smaller; the library's 128 KiB would be
/// most of what a thousand agents cost.
const READ_BUFFER: usize = 8 * 1024;
/// Refused connections are logged at most once in this time, with their number: an agent with an old secret knocks for
/// ever.
const REFUSAL_LOG_MS: u64 = 10_000;

/// The websocket endpoint of agents.
pub fn link_routes() -> Router<AppState> {
    routes()
}

impl FromRef<AppState> for Agents {
    fn from_ref(state: &AppState) -> Self {
        state.agents.clone()
    }
}

/// The same for any state that holds the agents, [`Agents`] itself included.
pub fn routes<S>() -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    Agents: FromRef<S>,
{
    Router::new().route(LINK_PATH, get(connect))
}

#[derive(Deserialize)]
struct LinkQuery {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    secret: String,
    #[serde(default)]
    version: String,
}

/// Refuses before the upgrade, so that a client sees a plain HTTP answer: 400 for another `type`, 403 for an unknown
/// secret.
async fn connect(
    State(agents): State<Agents>,
    query: Result<Query<LinkQuery>, axum::extract::rejection::QueryRejection>,
    extensions: Extensions,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(Query(query)) = query else { return (StatusCode::BAD_REQUEST, "bad request").into_response() };
    if query.kind != "1" {
        return (StatusCode::BAD_REQUEST, "bad request").into_response();
    }
    let key = link_key(&query.secret);
    let node = match agents.inner.db.node_by_key(&key).await {
        Ok(Some(node)) => node,
        Ok(None) => {
            let address = extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
            agents.inner.metrics.agents_refused.inc();
            agents.inner.refusals.log(address, agents.inner.clock.mono_ms());
            return (StatusCode::FORBIDDEN, "forbidden").into_response();
        }
        Err(error) => {
            tracing::error!(%error, "an agent was sent away because the database cannot be read");
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
    };
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let sealer = Sealer::from_key(&key);
    let mut response = upgrade
        .read_buffer_size(READ_BUFFER)
        .max_message_size(MAX_FRAME_BYTES)
        .max_frame_size(MAX_FRAME_BYTES)
        .on_upgrade(move |socket| agents.serve(socket, node, query.version, sealer));
    response.headers_mut().insert(PANEL_HEADER, HeaderValue::from(LINK_VERSION));
    response
}

impl Agents {
    async fn serve(self, socket: WebSocket, node: NodeId, version: String, sealer: Sealer) {
        let inner = self.inner;
        let closed = inner.cancel.child_token();
        let (session, queue) = Session::new(node, version, inner.ids.clone(), closed);
        let (pushes, requests) = mpsc::channel(PUSH_QUEUE);
        let slot = inner.slot(node);
        let ended = CancellationToken::new();
        let live = Live { session: session.clone(), pushes, ended: ended.clone() };
        let before = slot.connect(live);
        match &before {
            Some(before) => {
                tracing::info!(
                    node.id = node.0,
                    "the agent connected again; its earlier connection is closed"
                );
                before.session.closed.cancel();
            }
            None => {
                inner.metrics.agents_online.inc();
                tracing::info!(node.id = node.0, version = session.version, "the agent connected");
            }
        }
        let _entered = inner.tracker.token();
        let driver = async {
            let _ended = ended.drop_guard();
            if let Some(before) = before {
                before.ended.cancelled().await;
            }
            driver::drive(inner.clone(), slot.clone(), session.clone(), requests).await;
        };
        let driver = Box::pin(driver);
        let (why, ()) = tokio::join!(session.serve(socket, &sealer, queue, &inner.clock), driver);
        let last = slot.disconnect(&session);
        if last {
            inner.metrics.agents_online.dec();
            tracing::info!(node.id = node.0, why, "the agent is gone");
            inner.bus.send(Event::Node { node_id: node, online: false });
            hello::note_alive(&inner, node).await;
        }
    }
}

/// Logs refused connections, not each of them.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<Refused>);

#[derive(Debug, Default)]
struct Refused {
    logged_at: Option<u64>,
    unlogged: u64,
}

impl Refusals {
    fn log(&self, address: Option<SocketAddr>, now_ms: u64) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.logged_at.is_some_and(|at| now_ms.saturating_sub(at) < REFUSAL_LOG_MS) {
            refused.unlogged += 1;
            return;
        }
        let address = address.map_or_else(|| "unknown".to_owned(), |address| address.to_string());
        tracing::warn!(address, others = refused.unlogged, "an agent with an unknown secret was refused");
        *refused = Refused { logged_at: Some(now_ms), unlogged: 0 };
    }
}
