//! Who may do what, for every operation of the document.

use crate::panel::{Panel, VIEWER};
use axum::http::Method;
use serde_json::Value;

/// Method and path of every operation, from the document itself, so that none is forgotten.
fn operations() -> Vec<(Method, String)> {
    let document = serde_json::to_value(server::http::document()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().keys().filter_map(|method| {
            let method = method.to_uppercase().parse::<Method>().ok()?;
            Some((method, path.replace("{id}", "1")))
        })
    });
    operations.collect()
}

#[tokio::test]
async fn nothing_but_the_login_works_without_a_session() {
    let panel = Panel::new().await;
    let operations = operations();
    assert!(operations.len() >= 40, "{}", operations.len());
    for (method, path) in operations.iter().filter(|(_, path)| path != "/api/v1/auth/login") {
        let answer = panel.call(method.clone(), path).send().await;
        assert_eq!(answer.expect(401)["type"], "unauthenticated", "{method} {path}");
        let answer = panel.call(method.clone(), path).bearer("made up").send().await;
        assert_eq!(answer.expect(401)["type"], "unauthenticated", "{method} {path}");
    }
}

#[tokio::test]
async fn a_viewer_reads_everything_and_changes_nothing() {
    let panel = Panel::new().await;
    panel.best_tunnel("hk").await;
    let before = panel.everything().await;
    for (method, path) in operations() {
        // What a replay is told and tells is stored nowhere.
        let own = path.starts_with("/api/v1/auth/") || path.ends_with("/replay");
        // The event stream does not end by itself.
        if own || path.ends_with("/events") {
            continue;
        }
        let answer = panel.call(method.clone(), &path).bearer(VIEWER).send().await;
        if method == Method::GET {
            assert_ne!(answer.status, 403, "{method} {path}");
            assert!(answer.status != 401 && answer.status.as_u16() < 500, "{method} {path} {}", answer.text);
        } else {
            assert_eq!(answer.expect(403)["type"], "forbidden", "{method} {path}");
        }
    }
    assert_eq!(panel.everything().await, before);
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_not_there() {
    let panel = Panel::new().await;
    for (method, path) in operations().iter().filter(|(_, path)| path.contains("/1")) {
        let body = match (path.as_str(), method.as_str()) {
            ("/api/v1/tunnels/1/replay", _) => serde_json::json!({}),
            (_, "GET" | "DELETE" | "POST") => Value::Null,
            ("/api/v1/nodes/1", _) => {
                serde_json::json!({ "name": "a", "serverIp": "192.0.2.1", "revision": 1 })
            }
            ("/api/v1/users/1", _) => serde_json::json!({}),
            ("/api/v1/tunnels/1/pin", _) => serde_json::json!({ "exitNodeId": 1, "reason": "x" }),
            ("/api/v1/tunnels/1/choice", _) => serde_json::json!({ "nodeId": 1 }),
            ("/api/v1/forwards/1", _) => {
                serde_json::json!({ "tunnelId": 1, "name": "a", "targets": ["a.example:1"], "version": 1 })
            }
            _ => serde_json::json!({ "name": "ab", "entry": { "nodes": [] }, "version": 1 }),
        };
        for id in ["1", "-7", "9223372036854775807", "99999999999999999999", "x", "1.5", "%00"] {
            // The one who asks.
            if id == "1" && path.starts_with("/api/v1/users/") {
                continue;
            }
            let path = path.replace("/1", &format!("/{id}"));
            let answer =
                panel.call(method.clone(), &path).bearer(crate::panel::ADMIN).json(&body).send().await;
            assert_eq!(answer.expect(404)["type"], "not_found", "{method} {path}");
        }
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems_too() {
    let panel = Panel::new().await;
    for path in ["/api", "/api/", "/api/v1", "/api/v1/", "/api/v1/nothing", "/api/v2/nodes", "/api/x.js"] {
        let answer = panel.call(Method::GET, path).send().await;
        assert_eq!(answer.expect(404)["type"], "not_found", "{path}");
    }
    let answer = panel.call(Method::PATCH, "/api/v1/nodes").bearer(crate::panel::ADMIN).send().await;
    assert_eq!(answer.expect(405)["type"], "method_not_allowed");
    panel.call(Method::POST, "/api/openapi.json").send().await.expect(405);
    panel.call(Method::POST, "/healthz").send().await.expect(405);
}

#[tokio::test]
async fn watchers_need_no_login() {
    let panel = Panel::new().await;
    for path in ["/healthz", "/readyz"] {
        let answer = panel.call(Method::GET, path).send().await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, "ok"), "{path}");
    }
    let metrics = panel.call(Method::GET, "/metrics").send().await;
    assert_eq!(metrics.status, 200);
    assert!(metrics.text.contains("exitpilot_agents_online 0"), "{}", metrics.text);
    assert!(metrics.text.trim_end().ends_with("# EOF"));
}
