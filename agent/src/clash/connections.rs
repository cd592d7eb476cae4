//! Connections: which are open, what they carry, through whom; closing them.

use super::directory::Directory;
use super::streams::{self, Ticks};
use super::time::rfc3339;
use super::{Served, not_found};
use crate::service::watch::{Cargo, TakenWay, WatchedConnection};
use axum::Json;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;

/// In one answer. The sums are always those of all.
const MOST: usize = 10_000;

/// Once, or again and again over a websocket.
pub(super) async fn all(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else { return Json(list(&served)).into_response() };
    let Some(ticks) = Ticks::read(query.as_deref()) else { return super::body_invalid() };
    let seen = served.clone();
    streams::over(upgrade, &served, ticks, move || list(&seen))
}

/// The connections that are through. Those that are still looking for their way lead nowhere yet.
fn list(served: &Served) -> Value {
    let directory = Directory::of(&served.runtime);
    let (open, carried) = served.runtime.watch().all();
    let shown = open.iter().filter_map(|connection| Some((connection, connection.way()?))).take(MOST);
    let shown = shown.map(|(connection, way)| show(connection, way, &directory));
    json!({
        "downloadTotal": carried.down,
        "uploadTotal": carried.up,
        "connections": shown.collect::<Vec<_>>(),
        "memory": streams::resident_bytes(),
    })
}

fn show(connection: &WatchedConnection, way: &TakenWay, directory: &Directory) -> Value {
    let WatchedConnection { id, service, cargo, client, since, traffic, .. } = connection;
    let address = way.target.host.parse::<IpAddr>().is_ok();
    let (host, ip) = if address { ("", way.target.host.as_str()) } else { (way.target.host.as_str(), "") };
    json!({
        "id": id.to_string(),
        "metadata": {
            "network": match cargo { Cargo::Stream => "tcp", Cargo::Datagrams => "udp" },
            "type": service,
            "sourceIP": client.ip().to_canonical().to_string(),
            "sourcePort": client.port().to_string(),
            "destinationIP": ip,
            "destinationPort": way.target.port.to_string(),
            "host": host,
            "dnsMode": "normal",
            "processPath": "",
        },
        "upload": traffic.up(),
        "download": traffic.down(),
        "start": rfc3339(*since),
        "chains": chains(way, directory),
        "rule": "",
        "rulePayload": "",
    })
}

/// What the connection goes through, what is nearest to the target first: each member, and its group if that is one.
fn chains(way: &TakenWay, directory: &Directory) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for step in &way.steps {
        match directory.called(&step.group, &step.member) {
            Some(member) => names.extend([step.group.clone(), member.to_owned()]),
            // A target or a chain that was not to be chosen says nothing that is not said elsewhere.
            None if step.group.starts_with("service/") => {}
            None => names.push(step.member.clone()),
        }
    }
    // A group within a group is the member of one and the group of the next.
    names.dedup();
    names.reverse();
    if names.is_empty() {
        // Clash's word.
        names.push("DIRECT".to_owned());
    }
    names
}

pub(super) async fn close_all(State(served): State<Arc<Served>>) -> StatusCode {
    served.runtime.watch().close_all();
    StatusCode::NO_CONTENT
}

pub(super) async fn close(State(served): State<Arc<Served>>, Path(id): Path<String>) -> Response {
    match id.parse().is_ok_and(|id| served.runtime.watch().close(id)) {
        true => StatusCode::NO_CONTENT.into_response(),
        false => not_found(),
    }
}
