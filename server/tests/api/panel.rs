//! A panel in memory with a clock that is moved by hand, and a client for it.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use serde_json::{Value, json};
use server::auth::token;
use server::clock::{Clock, ManualClock};
use server::config::Config;
use server::state::AppState;
use server::store::Db;
use shared::api::Role;
use std::sync::LazyLock;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

/// When the tests begin: a moment in 2026.
pub(crate) const START_MS: i64 = 1_790_000_000_000;
/// Password of the user admin.
pub(crate) const PASSWORD: &str = "correct horse battery";
/// Token of the user admin.
pub(crate) const ADMIN: &str = "admin-token";
/// Token of the user watcher, a viewer.
pub(crate) const VIEWER: &str = "viewer-token";

/// Hash of a password that nobody uses.
static VIEWER_HASH: LazyLock<String> =
    LazyLock::new(|| server::auth::password::hash_now("a viewer's own").unwrap());

pub(crate) struct Panel {
    pub(crate) state: AppState,
    pub(crate) hands: ManualClock,
    router: axum::Router,
    _stop: DropGuard,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    /// Checks the status and answers the body; null where there is none.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        if status >= 400 {
            let kind = self.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
            assert_eq!(kind, Some("application/problem+json"));
            assert_eq!(self.json()["status"], status);
        }
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// Field and code of each error of a problem.
    pub(crate) fn errors(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let errors = self.json()["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().map(|e| (text(&e["field"]), text(&e["code"]))).collect()
    }
}

/// A request to be sent.
pub(crate) struct Call<'a> {
    panel: &'a Panel,
    request: axum::http::request::Builder,
    body: Vec<u8>,
}

impl Call<'_> {
    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header(header::AUTHORIZATION, &format!("Bearer {token}"))
    }

    pub(crate) fn text(mut self, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        let text = body.to_string();
        self.header(header::CONTENT_TYPE, "application/json").text(&text)
    }

    /// The response as it comes, for streams.
    pub(crate) async fn response(self) -> axum::response::Response {
        let request = self.request.body(Body::from(self.body)).unwrap();
        self.panel.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn send(self) -> Answer {
        let response = self.response().await;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 16 * 1024 * 1024).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Answer { status: parts.status, headers: parts.headers, text }
    }
}

impl Panel {
    pub(crate) async fn new() -> Self {
        Self::with(Db::memory().await.unwrap(), Config::default()).await
    }

    pub(crate) async fn with(db: Db, config: Config) -> Self {
        let (clock, hands) = Clock::manual(START_MS);
        server::app::users::ensure_first(&db, &clock, Some(PASSWORD)).await.unwrap();
        let mut tx = db.write().await.unwrap();
        let admin = tx.user_by_name("admin").await.unwrap().unwrap().user;
        if tx.user_by_name("watcher").await.unwrap().is_none() {
            let viewer = tx.insert_user("watcher", &VIEWER_HASH, Role::Viewer, START_MS).await.unwrap();
            for (user, token) in [(admin, ADMIN), (viewer, VIEWER)] {
                let ends = START_MS + token::SESSION_MS;
                tx.insert_session(&token::hash(token), user.id, START_MS, ends).await.unwrap();
            }
        }
        tx.commit().await.unwrap();
        let shutdown = CancellationToken::new();
        let state = server::start(config, db, clock, &TaskTracker::new(), &shutdown).await.unwrap();
        let router = server::http::router(state.clone());
        Self { state, hands, router, _stop: shutdown.drop_guard() }
    }

    /// A request without login.
    pub(crate) fn call(&self, method: Method, path: &str) -> Call<'_> {
        let request = Request::builder().method(method).uri(path);
        let host = HeaderValue::from_static("panel.test:6365");
        Call { panel: self, request: request.header(header::HOST, host), body: Vec::new() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, &format!("/api/v1{path}")).bearer(ADMIN).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, &format!("/api/v1{path}")).bearer(ADMIN).json(body).send().await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::PUT, &format!("/api/v1{path}")).bearer(ADMIN).json(body).send().await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, &format!("/api/v1{path}")).bearer(ADMIN).send().await
    }

    /// Creates a node and answers its id.
    pub(crate) async fn node(&self, name: &str) -> i64 {
        let number = name.bytes().map(u32::from).sum::<u32>() % 250;
        let body = json!({ "name": name, "serverIp": format!("192.0.2.{number}") });
        self.post("/nodes", &body).await.expect(201)["id"].as_i64().unwrap()
    }

    /// Creates a `best` tunnel with one entry and two exits; answers the tunnel and the three nodes.
    pub(crate) async fn best_tunnel(&self, name: &str) -> (Value, [i64; 3]) {
        let mut nodes = [0; 3];
        for (i, id) in nodes.iter_mut().enumerate() {
            *id = self.node(&format!("{name}-{i}")).await;
        }
        let tunnel = self.post("/tunnels", &best(name, nodes[0], &nodes[1..])).await.expect(201);
        (tunnel, nodes)
    }

    /// Everything stored that an edit could change, for "nothing was stored".
    pub(crate) async fn everything(&self) -> Value {
        let mut all = Vec::new();
        for path in ["/nodes", "/tunnels", "/forwards", "/settings", "/audit-log"] {
            all.push(self.get(path).await.expect(200));
        }
        let pins = self.state.db.pins().await.unwrap();
        all.push(json!(pins.iter().map(|(id, pin)| (id.0, pin.clone())).collect::<Vec<_>>()));
        without_live(Value::Array(all))
    }
}

/// What happens in the background is not stored by requests.
pub(crate) fn without_live(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("deployment");
            fields.remove("bestExit");
            fields.values_mut().for_each(|field| *field = without_live(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_live(item.take())),
        _ => {}
    }
    value
}

/// The body of a `best` tunnel.
pub(crate) fn best(name: &str, entry: i64, exits: &[i64]) -> Value {
    let exits: Vec<Value> = exits.iter().map(|id| json!({ "nodeId": id })).collect();
    json!({
        "name": name,
        "entry": { "nodes": [{ "nodeId": entry }] },
        "exit": { "strategy": "best", "protocol": "tls", "nodes": exits }
    })
}
