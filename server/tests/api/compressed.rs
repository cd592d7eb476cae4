//! What is compressed on its way, and what must not be.

use crate::panel::{ADMIN, Answer, Panel};
use axum::body::to_bytes;
use axum::http::{HeaderMap, Method, header};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read as _;

/// Headers and body of an answer to a browser, as they come.
async fn asked(panel: &Panel, method: Method, path: &str) -> (HeaderMap, Vec<u8>) {
    let call = panel.call(method, path).bearer(ADMIN).header(header::ACCEPT_ENCODING, "gzip, br");
    let (parts, body) = call.response().await.into_parts();
    assert!(parts.status.is_success(), "{path}: {}", parts.status);
    (parts.headers, to_bytes(body, 1024 * 1024).await.unwrap().to_vec())
}

#[tokio::test]
async fn long_answers_are_compressed_for_who_can_read_that() {
    let panel = Panel::new().await;
    for number in 0..40 {
        panel.node(&format!("node-{number}")).await;
    }
    let plain: Answer = panel.get("/nodes").await;
    assert_eq!(plain.headers.get(header::CONTENT_ENCODING), None);
    let (headers, body) = asked(&panel, Method::GET, "/api/v1/nodes").await;
    assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
    assert!(headers[header::VARY].to_str().unwrap().contains("accept-encoding"), "{headers:?}");
    assert!(body.len() * 4 < plain.text.len(), "{} of {} bytes", body.len(), plain.text.len());
    let mut text = String::new();
    GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, plain.text);
}

#[tokio::test]
async fn secrets_and_streams_are_not() {
    let panel = Panel::new().await;
    let (tunnel, _) = panel.best_tunnel("hk").await;
    // Each line is told when it happens.
    for (method, path) in [
        (Method::POST, format!("/api/v1/tunnels/{}/diagnose", tunnel["id"])),
        (Method::POST, "/api/v1/nodes/1/secret".to_owned()),
    ] {
        let (headers, body) = asked(&panel, method, &path).await;
        assert_eq!(headers.get(header::CONTENT_ENCODING), None, "{path}");
        assert!(serde_json::Deserializer::from_slice(&body).into_iter::<Value>().all(|line| line.is_ok()));
    }
    let call = panel.call(Method::GET, "/api/v1/events").bearer(ADMIN);
    let events = call.header(header::ACCEPT_ENCODING, "gzip").response().await;
    assert_eq!(events.headers().get(header::CONTENT_ENCODING), None);
    let login = json!({ "username": "admin", "password": crate::panel::PASSWORD });
    let call = panel.call(Method::POST, "/api/v1/auth/login").header(header::ACCEPT_ENCODING, "gzip");
    assert_eq!(call.json(&login).response().await.headers().get(header::CONTENT_ENCODING), None);
}
