//! The agent's own HTTP API: what runs, who is connected, what was counted. Off unless an address is given.
//!
//! `GET /v1/services`, `/v1/chains`, `/v1/connections`, `/v1/limits`, `POST /v1/reload`, and `GET /metrics` for
//! Prometheus. `GET /v1/groups` and `/v1/groups/NAME`; `PUT` there chooses a member, `DELETE` takes the choice back,
//! `POST` tries all members.

mod groups;
mod metrics;
mod views;

use crate::runtime::Runtime;
use crate::standalone::Reload;
use anyhow::Context as _;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// For one request.
const DEADLINE: Duration = Duration::from_secs(30);

/// Where the API listens and who may use it.
#[derive(Clone)]
pub struct ApiOptions {
    /// Where it listens.
    pub address: SocketAddr,
    /// What requests have to carry as bearer token.
    pub token: Option<String>,
}

impl std::fmt::Debug for ApiOptions {
    /// Never prints the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiOptions").field("address", &self.address).finish_non_exhaustive()
    }
}

/// An API that listens and does not answer yet.
#[derive(Debug)]
pub struct Api {
    listener: TcpListener,
    token: Option<String>,
}

struct Served {
    runtime: Runtime,
    token: Option<String>,
    /// `None` when there is no file.
    reloads: Option<mpsc::Sender<Reload>>,
}

impl Api {
    /// Fails when the address is taken, or when others could reach it and no token keeps them out.
    pub async fn bind(options: &ApiOptions) -> anyhow::Result<Self> {
        let ApiOptions { address, token } = options;
        anyhow::ensure!(
            token.is_some() || address.ip().is_loopback(),
            "the API on {address} needs a token: others can reach that address"
        );
        let listener = TcpListener::bind(address).await.with_context(|| format!("API on {address}"))?;
        Ok(Self { listener, token: token.clone() })
    }

    /// Where it listens, with the real port.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop`. `reloads` takes wishes to read the file again, if there is one.
    pub async fn serve(
        self,
        runtime: Runtime,
        reloads: Option<mpsc::Sender<Reload>>,
        stop: CancellationToken,
    ) {
        runtime.tally().keep_list();
        let served = Arc::new(Served { runtime, token: self.token, reloads });
        let router = Router::new()
            .route("/v1/services", get(views::services))
            .route("/v1/chains", get(views::chains))
            .route("/v1/connections", get(views::connections))
            .route("/v1/limits", get(views::limits))
            .route("/v1/groups", get(groups::all))
            .route(
                "/v1/groups/{*name}",
                get(groups::one).put(groups::choose).delete(groups::clear).post(groups::try_all),
            )
            .route("/v1/reload", post(reload))
            .route("/metrics", get(metrics::metrics))
            .fallback(async || problem(StatusCode::NOT_FOUND, "there is nothing here"))
            .layer(middleware::from_fn_with_state(served.clone(), guard))
            .with_state(served);
        let serving =
            axum::serve(self.listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
        tokio::select! {
            outcome = async { serving.await } => {
                if let Err(error) = outcome {
                    tracing::error!(%error, "the API ended");
                }
            }
            // Connections that are kept open must not hold the end up.
            () = stop.cancelled() => {}
        }
    }
}

/// Lets requests through that carry the token.
async fn guard(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let allowed = served.token.as_deref().is_none_or(|token| {
        let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        // Takes a time that depends on the lengths only.
        given
            .and_then(|given| given.strip_prefix("Bearer "))
            .is_some_and(|given| bool::from(given.as_bytes().ct_eq(token.as_bytes())))
    });
    if !allowed {
        let refused = problem(StatusCode::UNAUTHORIZED, "a bearer token is needed");
        return ([(header::WWW_AUTHENTICATE, "Bearer")], refused).into_response();
    }
    match tokio::time::timeout(DEADLINE, next.run(request)).await {
        Ok(response) => response,
        Err(_) => problem(StatusCode::GATEWAY_TIMEOUT, "it took too long"),
    }
}

fn problem(status: StatusCode, detail: &str) -> Response {
    (status, Json(json!({"error": detail}))).into_response()
}

/// Reads the file again. A bad one changes nothing, and the answer says what is wrong with it.
async fn reload(State(served): State<Arc<Served>>) -> Response {
    let Some(reloads) = &served.reloads else {
        return problem(StatusCode::CONFLICT, "there is no file: a panel decides what runs");
    };
    let (answer, answered) = oneshot::channel();
    if reloads.send(Reload(Some(answer))).await.is_err() {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "the agent is stopping");
    }
    match answered.await {
        Ok(Ok(())) => Json(json!({"reloaded": true})).into_response(),
        Ok(Err(reason)) => problem(StatusCode::UNPROCESSABLE_ENTITY, &reason),
        Err(_) => problem(StatusCode::SERVICE_UNAVAILABLE, "the agent is stopping"),
    }
}
