//! What dashboards ask first, and what there is none of here.

use super::message;
use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

/// By this some dashboards know that they have found what they speak.
pub(super) async fn hello() -> Json<Value> {
    Json(json!({"hello": "clash"}))
}

/// `meta`: the fields that came later are there.
pub(super) async fn version() -> Json<Value> {
    let version = concat!("exitpilot-agent ", env!("CARGO_PKG_VERSION"));
    Json(json!({"version": version, "premium": true, "meta": true}))
}

/// There is one mode, in which the agent's own configuration decides. Its ports are those of its services, of which it has
/// any number.
pub(super) async fn configs() -> Json<Value> {
    Json(json!({
        "port": 0, "socks-port": 0, "redir-port": 0, "tproxy-port": 0, "mixed-port": 0,
        "allow-lan": true, "bind-address": "*", "mode": "rule", "mode-list": ["rule"], "modes": ["rule"],
        "log-level": "info", "ipv6": true, "tun": {"enable": false}
    }))
}

/// The configuration comes from a file or a panel.
pub(super) async fn no_change() -> Response {
    let reason = "the agent's configuration is its file's or its panel's and is not changed here";
    message(StatusCode::FORBIDDEN, reason)
}

pub(super) async fn rules() -> Json<Value> {
    Json(json!({"rules": []}))
}

pub(super) async fn providers() -> Json<Value> {
    Json(json!({"providers": {}}))
}
