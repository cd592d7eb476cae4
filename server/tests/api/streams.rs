//! Event stream and diagnoses.

use crate::panel::{ADMIN, PASSWORD, Panel, VIEWER};
use axum::http::{Method, header};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use server::auth::token::SESSION_MS;
use server::state::AppState;
use shared::api::Event;
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

/// A stream of events, as far as it was read.
struct Events(axum::body::BodyDataStream);

impl Events {
    async fn open(panel: &Panel, token: &str) -> Self {
        let response = panel.call(Method::GET, "/api/v1/events").bearer(token).response().await;
        assert_eq!(response.status(), 200);
        Self(response.into_body().into_data_stream())
    }

    /// Reads until the panel ends it, and answers what came before.
    async fn end(mut self) -> String {
        let mut text = String::new();
        while let Some(part) = tokio::time::timeout(PATIENCE, self.0.next()).await.unwrap() {
            text.push_str(std::str::from_utf8(&part.unwrap()).unwrap());
        }
        text
    }

    /// Makes sure that it goes on: something that happens now is told.
    async fn goes_on(&mut self, panel: &Panel) {
        panel.state.bus.send(Event::Lagged);
        let mut text = String::new();
        while !text.contains("lagged") {
            let part = tokio::time::timeout(PATIENCE, self.0.next()).await.unwrap();
            text.push_str(std::str::from_utf8(&part.expect("the stream ended").unwrap()).unwrap());
        }
    }
}

/// The id of the user watcher.
async fn watcher(panel: &Panel) -> i64 {
    let users = panel.get("/users").await.expect(200);
    users.as_array().unwrap().iter().find(|user| user["username"] == "watcher").unwrap()["id"]
        .as_i64()
        .unwrap()
}

async fn login(panel: &Panel) -> String {
    let body = json!({ "username": "admin", "password": PASSWORD });
    let answer = panel.call(Method::POST, "/api/v1/auth/login").json(&body).send().await;
    answer.expect(200)["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn events_of_a_deleted_user_end_and_those_of_others_go_on() {
    let panel = Panel::new().await;
    let (mut own, his) = (Events::open(&panel, ADMIN).await, Events::open(&panel, VIEWER).await);
    panel.delete(&format!("/users/{}", watcher(&panel).await)).await.expect(204);
    // What happens after the deletion is not for him, even if it was told before he was seen to be gone.
    panel.state.bus.send(Event::Round { at: 1 });
    assert!(!his.end().await.contains("round"));
    own.goes_on(&panel).await;
}

#[tokio::test]
async fn events_end_when_an_admin_sets_another_password() {
    let panel = Panel::new().await;
    let (mut own, his) = (Events::open(&panel, ADMIN).await, Events::open(&panel, VIEWER).await);
    let change = json!({ "password": "another long password" });
    panel.put(&format!("/users/{}", watcher(&panel).await), &change).await.expect(200);
    panel.state.bus.send(Event::Round { at: 1 });
    assert!(!his.end().await.contains("round"));
    own.goes_on(&panel).await;
}

#[tokio::test]
async fn a_new_password_of_ones_own_ends_the_events_of_the_other_sessions() {
    let panel = Panel::new().await;
    let other = login(&panel).await;
    let (mut own, others) = (Events::open(&panel, ADMIN).await, Events::open(&panel, &other).await);
    let change = json!({ "currentPassword": PASSWORD, "newPassword": "another long password" });
    panel.put("/auth/password", &change).await.expect(204);
    panel.state.bus.send(Event::Round { at: 1 });
    assert!(!others.end().await.contains("round"));
    own.goes_on(&panel).await;
}

#[tokio::test]
async fn events_end_with_a_logout() {
    let panel = Panel::new().await;
    let token = login(&panel).await;
    let (mut other, own) = (Events::open(&panel, ADMIN).await, Events::open(&panel, &token).await);
    panel.call(Method::POST, "/api/v1/auth/logout").bearer(&token).send().await.expect(204);
    panel.state.bus.send(Event::Round { at: 1 });
    assert!(!own.end().await.contains("round"));
    other.goes_on(&panel).await;
}

#[tokio::test]
async fn events_end_when_their_session_has_run_out() {
    let panel = Panel::new().await;
    let mut events = Events::open(&panel, VIEWER).await;
    events.goes_on(&panel).await;
    panel.hands.advance_ms(SESSION_MS.unsigned_abs());
    events.end().await;
}

#[tokio::test]
async fn events_end_after_a_password_reset_on_the_command_line() {
    let panel = Panel::new().await;
    let events = Events::open(&panel, VIEWER).await;
    let AppState { db, clock, .. } = &panel.state;
    assert!(server::app::users::reset_password(db, clock, "watcher").await.unwrap().is_some());
    events.end().await;
}

#[tokio::test]
async fn another_role_ends_no_events() {
    let panel = Panel::new().await;
    let mut events = Events::open(&panel, VIEWER).await;
    let path = format!("/users/{}", watcher(&panel).await);
    panel.put(&path, &json!({ "role": "admin" })).await.expect(200);
    events.goes_on(&panel).await;
    panel.put(&path, &json!({ "role": "viewer" })).await.expect(200);
    events.goes_on(&panel).await;
}

#[tokio::test]
async fn a_diagnosis_ends_with_the_session_or_the_role_that_allowed_it() {
    let panel = Panel::new().await;
    let (tunnel, _) = panel.best_tunnel("hk").await;
    let path = format!("/users/{}", watcher(&panel).await);
    let diagnosis = format!("/api/v1/tunnels/{}/diagnose", tunnel["id"]);
    for change in [json!({ "role": "viewer" }), json!({ "password": "another long password" })] {
        panel.put(&path, &json!({ "role": "admin" })).await.expect(200);
        let response = panel.call(Method::POST, &diagnosis).bearer(VIEWER).response().await;
        assert_eq!(response.status(), 200);
        let mut lines = response.into_body().into_data_stream();
        let first = tokio::time::timeout(PATIENCE, lines.next()).await.unwrap().unwrap().unwrap();
        assert!(first.starts_with(br#"{"type":"start""#), "{first:?}");
        panel.put(&path, &change).await.expect(200);
        assert!(tokio::time::timeout(PATIENCE, lines.next()).await.unwrap().is_none(), "{change}");
    }
}
