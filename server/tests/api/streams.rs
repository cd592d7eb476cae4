//! Event stream and diagnoses.

use crate::panel::{ADMIN, Panel};
use axum::http::{Method, header};
use futures_util::StreamExt as _;
use serde_json::Value;
use std::time::Duration;

/// Long enough for a busy machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn events_tell_what_changed_and_end_with_the_panel() {
    let panel = Panel::new().await;
    let response = panel.call(Method::GET, "/api/v1/events").bearer(ADMIN).response().await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    let mut stream = response.into_body().into_data_stream();
    panel.node("hk").await;
    let mut text = String::new();
    while !text.contains("\"changed\"") {
        let part = tokio::time::timeout(PATIENCE, stream.next()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(&part).unwrap());
    }
    assert!(text.contains(r#"data: {"type":"changed","what":"node"}"#), "{text}");
    panel.state.shutdown.cancel();
    while let Some(part) = tokio::time::timeout(PATIENCE, stream.next()).await.unwrap() {
        part.unwrap();
    }
}

#[tokio::test]
async fn a_diagnosis_is_lines_of_json_from_start_to_done() {
    let panel = Panel::new().await;
    let (tunnel, _) = panel.best_tunnel("hk").await;
    let forward = serde_json::json!({ "tunnelId": tunnel["id"], "name": "web", "targets": ["a.example:80"] });
    let forward = panel.post("/forwards", &forward).await.expect(201);
    for path in [format!("/tunnels/{}", tunnel["id"]), format!("/forwards/{}", forward["id"])] {
        let call = panel.call(Method::POST, &format!("/api/v1{path}/diagnose")).bearer(ADMIN);
        let answer = tokio::time::timeout(PATIENCE, call.send()).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers[header::CONTENT_TYPE], "application/x-ndjson");
        let lines: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.first().unwrap()["type"], "start", "{path}");
        assert_eq!(lines.last().unwrap()["type"], "done", "{path}");
    }
}
