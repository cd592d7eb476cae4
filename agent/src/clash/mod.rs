//! The API of Clash and its descendants, so that the dashboards made for them show and steer this agent's groups. Off
//! unless an address is given, and never without a secret.
//!
//! What they say about subscriptions, rules and name resolution has no counterpart here: lists of those are empty, and
//! nothing of the configuration can be changed but the choices in groups.

mod about;
mod access;
mod connections;
mod delay;
mod directory;
mod proxies;
mod streams;
mod tested;
mod time;

use crate::runtime::Runtime;
use access::Origin;
use anyhow::Context as _;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get};
use axum::{Json, Router, middleware};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tested::Tested;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Streams at the same time: each window of a dashboard has up to four.
const MOST_STREAMS: usize = 64;
/// Tests of members at the same time; further ones wait for their turn.
const TESTS_AT_ONCE: usize = 32;
/// Names of members are shorter than that.
const MOST_BODY: usize = 16 * 1024;
/// For the streams to end when the agent does.
const END: Duration = Duration::from_secs(1);

/// Where the API listens and who may use it.
#[derive(Clone)]
pub struct ClashOptions {
    /// Where it listens.
    pub address: SocketAddr,
    /// What requests have to carry as bearer token, and websockets may carry as `token` in their address.
    pub secret: String,
    /// Pages of these origins (`https://dashboard.example`) may use it from within a browser.
    pub origins: Vec<String>,
}

impl std::fmt::Debug for ClashOptions {
    /// Never prints the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (address, origins) = (&self.address, &self.origins);
        f.debug_struct("ClashOptions")
            .field("address", address)
            .field("origins", origins)
            .finish_non_exhaustive()
    }
}

/// An API that listens and does not answer yet.
#[derive(Debug)]
pub struct Clash {
    listener: TcpListener,
    secret: String,
    origins: Vec<Origin>,
}

struct Served {
    runtime: Runtime,
    secret: String,
    origins: Vec<Origin>,
    tested: Tested,
    tests: Semaphore,
    streams: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Clash {
    /// Fails when the address is taken, when there is no secret, or when an origin is none.
    pub async fn bind(options: &ClashOptions) -> anyhow::Result<Self> {
        let ClashOptions { address, secret, origins } = options;
        anyhow::ensure!(!secret.is_empty(), "the Clash API on {address} needs a secret");
        let origins = origins.iter().map(|origin| Origin::parse(origin)).collect::<anyhow::Result<_>>()?;
        let listener = TcpListener::bind(address).await.with_context(|| format!("Clash API on {address}"))?;
        Ok(Self { listener, secret: secret.clone(), origins })
    }

    /// Where it listens, with the real port.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop`. Connections that were open before are not seen.
    pub async fn serve(self, runtime: Runtime, stop: CancellationToken) {
        runtime.watch().begin();
        let tasks = TaskTracker::new();
        let served = Arc::new(Served {
            runtime,
            secret: self.secret,
            origins: self.origins,
            tested: Tested::default(),
            tests: Semaphore::new(TESTS_AT_ONCE),
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            tasks: tasks.clone(),
            stop: stop.clone(),
        });
        let router = router(served);
        let serving =
            axum::serve(self.listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
        tokio::select! {
            outcome = async { serving.await } => {
                if let Err(error) = outcome {
                    tracing::error!(%error, "the Clash API ended");
                }
            }
            // Connections that are kept open must not hold the end up.
            () = stop.cancelled() => {}
        }
        tasks.close();
        if tokio::time::timeout(END, tasks.wait()).await.is_err() {
            tracing::warn!("a stream of the Clash API did not end in time");
        }
    }
}

fn router(served: Arc<Served>) -> Router {
    Router::new()
        .route("/", get(about::hello))
        .route("/version", get(about::version))
        .route("/configs", get(about::configs).put(about::no_change).patch(about::no_change))
        .route("/rules", get(about::rules))
        .route("/providers/proxies", get(about::providers))
        .route("/providers/rules", get(about::providers))
        .route("/proxies", get(proxies::all))
        .route("/proxies/{name}", get(proxies::one).put(proxies::choose).delete(proxies::clear))
        .route("/proxies/{name}/delay", get(delay::one))
        .route("/group", get(proxies::groups))
        .route("/group/{name}", get(proxies::group))
        .route("/group/{name}/delay", get(delay::group))
        .route("/connections", get(connections::all).delete(connections::close_all))
        .route("/connections/{id}", delete(connections::close))
        .route("/traffic", get(streams::traffic))
        .route("/memory", get(streams::memory))
        .route("/logs", get(streams::logs))
        .fallback(async || not_found())
        .method_not_allowed_fallback(async || message(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"))
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .layer(middleware::from_fn_with_state(served.clone(), access::guard))
        .with_state(served)
}

/// An error as dashboards expect it.
fn message(status: StatusCode, text: &str) -> Response {
    (status, Json(json!({"message": text}))).into_response()
}

fn not_found() -> Response {
    message(StatusCode::NOT_FOUND, "Resource not found")
}

fn body_invalid() -> Response {
    message(StatusCode::BAD_REQUEST, "Body invalid")
}
