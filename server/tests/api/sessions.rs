//! Logging in and out, throttling, cookies and passwords.

use crate::panel::{ADMIN, Answer, PASSWORD, Panel, START_MS};
use axum::http::{Method, header};
use serde_json::{Value, json};

const LOGIN: &str = "/api/v1/auth/login";

async fn login(panel: &Panel, username: &str, password: &str) -> Answer {
    let body = json!({ "username": username, "password": password });
    panel.call(Method::POST, LOGIN).json(&body).send().await
}

async fn me(panel: &Panel, token: &str) -> u16 {
    panel.call(Method::GET, "/api/v1/auth/me").bearer(token).send().await.status.as_u16()
}

fn cookie_of(answer: &Answer) -> String {
    let value = answer.headers[header::SET_COOKIE].to_str().unwrap();
    value.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_login_gives_a_token_and_a_cookie_that_both_work_and_end() {
    let panel = Panel::new().await;
    let answer = login(&panel, "admin", PASSWORD).await;
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    for part in ["exitpilot_session=", "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let pair = cookie_of(&answer);
    let body = answer.expect(200);
    assert_eq!(body["user"], json!({ "id": 1, "username": "admin", "role": "admin" }));
    assert_eq!(body["expiresAt"], START_MS + 7 * 24 * 3600 * 1000);
    let token = body["token"].as_str().unwrap();
    assert_eq!(token.len(), 64);

    assert_eq!(me(&panel, token).await, 200);
    let with_cookie = |method, path: &'static str| panel.call(method, path).header(header::COOKIE, &pair);
    assert_eq!(with_cookie(Method::GET, "/api/v1/auth/me").send().await.expect(200)["username"], "admin");
    // A week later it has ended.
    panel.hands.advance_ms(7 * 24 * 3600 * 1000 - 1);
    assert_eq!(me(&panel, token).await, 200);
    panel.hands.advance_ms(1);
    assert_eq!(me(&panel, token).await, 401);
    with_cookie(Method::GET, "/api/v1/auth/me").send().await.expect(401);
}

#[tokio::test]
async fn a_write_with_the_cookie_must_come_from_the_page() {
    let panel = Panel::new().await;
    let pair = cookie_of(&login(&panel, "admin", PASSWORD).await);
    let write = |origin: Option<&'static str>, name: &str| {
        let body = json!({ "name": name, "serverIp": "192.0.2.1" });
        let call = panel.call(Method::POST, "/api/v1/nodes").header(header::COOKIE, &pair).json(&body);
        match origin {
            Some(origin) => call.header(header::ORIGIN, origin),
            None => call,
        }
    };
    for origin in [None, Some("http://evil.test"), Some("null"), Some("http://panel.test")] {
        assert_eq!(write(origin, "a").send().await.expect(403)["type"], "bad_origin", "{origin:?}");
    }
    write(Some("http://panel.test:6365"), "a").send().await.expect(201);
    // A program's token needs no origin, whatever the cookie.
    write(Some("http://evil.test"), "b").bearer(ADMIN).send().await.expect(201);
    // Nor can another site log a browser in.
    let body = json!({ "username": "admin", "password": PASSWORD });
    let foreign = panel.call(Method::POST, LOGIN).header(header::ORIGIN, "http://evil.test").json(&body);
    assert_eq!(foreign.send().await.expect(403)["type"], "bad_origin");
}

#[tokio::test]
async fn a_logout_ends_the_session_and_removes_the_cookie() {
    let panel = Panel::new().await;
    let token = login(&panel, "admin", PASSWORD).await.expect(200)["token"].as_str().unwrap().to_owned();
    let answer = panel.call(Method::POST, "/api/v1/auth/logout").bearer(&token).send().await;
    assert!(answer.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    answer.expect(204);
    assert_eq!(me(&panel, &token).await, 401);
    assert_eq!(me(&panel, ADMIN).await, 200);
}

#[tokio::test]
async fn wrong_names_and_wrong_passwords_look_the_same() {
    let panel = Panel::new().await;
    let wrong = login(&panel, "admin", "wrong").await.expect(401);
    let unknown = login(&panel, "nobody", PASSWORD).await.expect(401);
    assert_eq!(wrong, unknown);
    assert_eq!(wrong["type"], "wrong_password");
}

#[tokio::test]
async fn guessing_is_slowed_down_per_user_and_a_success_costs_nothing() {
    let panel = Panel::new().await;
    for _ in 0..15 {
        login(&panel, "admin", PASSWORD).await.expect(200);
    }
    for _ in 0..10 {
        login(&panel, "admin", "wrong").await.expect(401);
    }
    let throttled = login(&panel, "admin", PASSWORD).await;
    assert_eq!(throttled.headers[header::RETRY_AFTER], "10");
    assert_eq!(throttled.expect(429)["type"], "too_many_attempts");
    // Another user is not affected, and time helps.
    login(&panel, "watcher", "wrong").await.expect(401);
    panel.hands.advance_ms(10_000);
    login(&panel, "admin", PASSWORD).await.expect(200);
}

#[tokio::test]
async fn guessing_many_names_from_one_address_is_slowed_down() {
    let panel = Panel::new().await;
    let mut statuses = Vec::new();
    for i in 0..51 {
        // Distinct names, so that only the address can be what is counted.
        statuses.push(login(&panel, &format!("user-{i}"), "wrong").await.status.as_u16());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 50);
    assert_eq!(statuses.last(), Some(&429));
}

#[tokio::test]
async fn a_new_password_ends_the_other_sessions() {
    let panel = Panel::new().await;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let body = login(&panel, "admin", PASSWORD).await.expect(200);
        tokens.push(body["token"].as_str().unwrap().to_owned());
    }
    let change = |current: &str, new: &str| {
        let body = json!({ "currentPassword": current, "newPassword": new });
        panel.call(Method::PUT, "/api/v1/auth/password").bearer(&tokens[0]).json(&body).send()
    };
    let answer = change("wrong", "a new password").await;
    assert_eq!(answer.errors(), [("currentPassword".into(), "wrong_password".into())]);
    answer.expect(422);
    let answer = change(PASSWORD, "short").await;
    assert_eq!(answer.errors(), [("newPassword".into(), "password_length".into())]);
    change(PASSWORD, "a new password").await.expect(204);

    assert_eq!(me(&panel, &tokens[0]).await, 200);
    assert_eq!(me(&panel, &tokens[1]).await, 401);
    login(&panel, "admin", PASSWORD).await.expect(401);
    let token = login(&panel, "admin", "a new password").await.expect(200)["token"].clone();
    let log = panel.call(Method::GET, "/api/v1/audit-log").bearer(token.as_str().unwrap()).send().await;
    assert_eq!(log.json()[0]["action"], "user.change_password");
    assert!(!log.text.contains("a new password"), "{}", log.text);
}

#[tokio::test]
async fn guessing_the_current_password_with_a_stolen_session_is_slowed_down() {
    let panel = Panel::new().await;
    let guess = json!({ "currentPassword": "x", "newPassword": "long enough" });
    for _ in 0..10 {
        panel.put("/auth/password", &guess).await.expect(422);
    }
    panel.put("/auth/password", &guess).await.expect(429);
}

#[tokio::test]
async fn wrong_login_bodies_name_the_field() {
    let panel = Panel::new().await;
    let table = [
        (json!({ "username": "admin" }), "password", "missing_field"),
        (json!({ "username": 7, "password": "x" }), "username", "invalid_type"),
        (json!({ "username": "a", "password": "x", "otp": 1 }), "otp", "unknown_field"),
        (json!({ "username": "", "password": "x" }), "username", "empty"),
        (json!({ "username": "a", "password": "x".repeat(2000) }), "password", "too_long"),
    ];
    for (body, field, code) in table {
        let answer = panel.call(Method::POST, LOGIN).json(&body).send().await;
        assert_eq!(answer.errors(), [(field.to_owned(), code.to_owned())], "{body}");
        answer.expect(422);
    }
    let answer = panel.call(Method::POST, LOGIN).text("{").send().await;
    assert_eq!(answer.expect(400)["type"], "malformed_json");
}

#[tokio::test]
async fn over_https_the_cookie_is_for_https_only() {
    let config = server::config::Config {
        public_url: Some("https://panel.example".into()),
        ..server::config::Config::default()
    };
    let panel = Panel::with(server::store::Db::memory().await.unwrap(), config).await;
    let answer = login(&panel, "admin", PASSWORD).await;
    assert!(answer.headers[header::SET_COOKIE].to_str().unwrap().ends_with("; Secure"));
    let pair = cookie_of(&answer);
    let call = panel.call(Method::POST, "/api/v1/auth/logout").header(header::COOKIE, &pair);
    assert_eq!(call.header(header::ORIGIN, "https://panel.example").send().await.expect(204), Value::Null);
}
