//! Users: created, changed, deleted by admins, and never without one.

use crate::panel::{ADMIN, PASSWORD, Panel, VIEWER};
use axum::http::Method;
use serde_json::{Value, json};

const USERS: &str = "/users";

async fn login(panel: &Panel, username: &str, password: &str) -> (u16, Value) {
    let body = json!({ "username": username, "password": password });
    let answer = panel.call(Method::POST, "/api/v1/auth/login").json(&body).send().await;
    (answer.status.as_u16(), answer.json())
}

async fn me(panel: &Panel, token: &str) -> u16 {
    panel.call(Method::GET, "/api/v1/auth/me").bearer(token).send().await.status.as_u16()
}

async fn put(panel: &Panel, id: i64, body: Value) -> crate::panel::Answer {
    panel.call(Method::PUT, &format!("/api/v1/users/{id}")).bearer(ADMIN).json(&body).send().await
}

async fn post(panel: &Panel, body: Value) -> crate::panel::Answer {
    panel.call(Method::POST, "/api/v1/users").bearer(ADMIN).json(&body).send().await
}

#[tokio::test]
async fn a_user_from_create_to_delete() {
    let panel = Panel::new().await;
    let input = json!({ "username": " night shift ", "password": "a long enough one", "role": "viewer" });
    let user = post(&panel, input).await.expect(201);
    let id = user["id"].as_i64().unwrap();
    assert_eq!((&user["username"], &user["role"]), (&json!("night shift"), &json!("viewer")));
    assert!(user.get("password").is_none() && user.get("passwordHash").is_none());
    assert!(panel.get(USERS).await.expect(200).as_array().unwrap().contains(&user));

    let (status, session) = login(&panel, "night shift", "a long enough one").await;
    assert_eq!((status, &session["user"]["role"]), (200, &json!("viewer")));
    let token = session["token"].as_str().unwrap().to_owned();

    // A role counts from the next request on, in the same session.
    let node = json!({ "name": "n1", "serverIp": "192.0.2.1" });
    let create = || panel.call(Method::POST, "/api/v1/nodes").bearer(&token).json(&node).send();
    create().await.expect(403);
    assert_eq!(put(&panel, id, json!({ "role": "admin" })).await.expect(200)["role"], "admin");
    create().await.expect(201);

    // A password that somebody else sets ends the sessions.
    assert_eq!(put(&panel, id, json!({ "password": "another long one" })).await.expect(200)["role"], "admin");
    assert_eq!(me(&panel, &token).await, 401);
    assert_eq!(login(&panel, "night shift", "a long enough one").await.0, 401);
    let (status, session) = login(&panel, "night shift", "another long one").await;
    assert_eq!(status, 200);

    let path = format!("/api/v1/users/{id}");
    panel.call(Method::DELETE, &path).bearer(ADMIN).send().await.expect(204);
    assert_eq!(me(&panel, session["token"].as_str().unwrap()).await, 401);
    assert_eq!(login(&panel, "night shift", "another long one").await.0, 401);
    panel.call(Method::DELETE, &path).bearer(ADMIN).send().await.expect(404);

    let log = panel.get("/audit-log").await.expect(200);
    let actions: Vec<&str> = log.as_array().unwrap().iter().map(|e| e["action"].as_str().unwrap()).collect();
    let mine: Vec<&str> = actions.into_iter().filter(|action| action.starts_with("user.")).collect();
    assert_eq!(mine, ["user.delete", "user.reset_password", "user.update", "user.create"]);
    assert!(!log.to_string().contains("long one"), "{log}");
}

#[tokio::test]
async fn bad_input_is_named_and_changes_nothing() {
    let panel = Panel::new().await;
    let before = panel.get(USERS).await.expect(200);
    let good = json!({ "username": "new", "password": "a long enough one", "role": "viewer" });
    let with = |field: &str, value: Value| {
        let mut input = good.clone();
        input[field] = value;
        input
    };
    for (input, field, code) in [
        (with("username", json!("  ")), "username", "empty"),
        (with("username", json!("x".repeat(51))), "username", "too_long"),
        (with("username", json!("a\tb")), "username", "control_character"),
        (with("username", json!("admin")), "username", "name_taken"),
        (with("password", json!("short")), "password", "password_length"),
        (with("password", json!("ä".repeat(513))), "password", "password_length"),
        (with("password", json!("long enough\0")), "password", "control_character"),
    ] {
        let answer = post(&panel, input.clone()).await;
        assert_eq!(answer.errors(), [(field.to_owned(), code.to_owned())], "{input}");
    }
    for (field, value) in [("role", json!("root")), ("username", json!(7)), ("extra", json!(1))] {
        assert_eq!(post(&panel, with(field, value)).await.status, 422, "{field}");
    }
    let watcher = before.as_array().unwrap().iter().find(|user| user["username"] == "watcher").unwrap();
    let answer = put(&panel, watcher["id"].as_i64().unwrap(), json!({ "password": "short" })).await;
    assert_eq!(answer.errors(), [("password".to_owned(), "password_length".to_owned())]);
    assert_eq!(panel.get(USERS).await.expect(200), before);
}

#[tokio::test]
async fn nobody_takes_the_power_from_himself_or_has_any_without_the_role() {
    let panel = Panel::new().await;
    let before = panel.get(USERS).await.expect(200);
    for body in [json!({ "role": "viewer" }), json!({ "password": "a long enough one" })] {
        assert_eq!(put(&panel, 1, body).await.expect(409)["type"], "in_use");
    }
    panel.call(Method::DELETE, "/api/v1/users/1").bearer(ADMIN).send().await.expect(409);
    let viewer = |method, path: &'static str| panel.call(method, path).bearer(VIEWER);
    viewer(Method::DELETE, "/api/v1/users/1").send().await.expect(403);
    viewer(Method::PUT, "/api/v1/users/1").json(&json!({ "role": "viewer" })).send().await.expect(403);
    assert_eq!(panel.get(USERS).await.expect(200), before);
    assert_eq!(login(&panel, "admin", PASSWORD).await.0, 200);
}
