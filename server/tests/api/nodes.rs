//! Nodes.

use crate::panel::Panel;
use axum::http::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_node_from_create_to_delete() {
    let panel = Panel::new().await;
    let body = json!({ "name": " hk-1 ", "serverIp": "[2001:db8::1]", "serverIpV4": "192.0.2.1" });
    let created = panel.post("/nodes", &body).await.expect(201);
    assert_eq!(created["name"], "hk-1");
    assert_eq!(created["serverIp"], "2001:db8::1");
    assert_eq!(created["portRange"], "10000-60000");
    assert_eq!((&created["online"], &created["revision"]), (&json!(false), &json!(1)));
    let secret = created["secret"].as_str().unwrap().to_owned();
    assert_eq!(secret.len(), 32);

    let mut got = panel.get("/nodes/1").await.expect(200);
    assert_eq!(got.get("secret"), None);
    assert_eq!(panel.get("/nodes").await.expect(200), json!([got.clone()]));
    // What was read can be sent back.
    got["name"] = json!("hk-one");
    let edited = panel.put("/nodes/1", &got).await.expect(200);
    assert_eq!((&edited["name"], &edited["revision"]), (&json!("hk-one"), &json!(2)));
    assert_eq!(edited.get("secret"), None);
    let stale = panel.put("/nodes/1", &got).await.expect(409);
    assert_eq!(stale["type"], "stale_version");

    let install = panel.get("/nodes/1/install").await.expect(200);
    assert_eq!(install["panel"], "ws://panel.test:6365");
    let command = "exitpilot-agent run --panel ws://panel.test:6365 --secret <secret>";
    assert_eq!(install["command"], command);
    let script = "curl -fsSL http://panel.test:6365/install.sh | sudo sh -s -- --panel ws://panel.test:6365 --secret <secret>";
    assert_eq!(install["script"], script);

    let rotated = panel.post("/nodes/1/secret", &Value::Null).await.expect(200);
    assert_ne!(rotated["secret"], secret.as_str());
    let key = |secret: &str| shared::envelope::link_key(secret);
    assert_eq!(panel.state.db.node_by_key(&key(&secret)).await.unwrap(), None);
    let new = rotated["secret"].as_str().unwrap();
    assert!(panel.state.db.node_by_key(&key(new)).await.unwrap().is_some());

    panel.delete("/nodes/1").await.expect(204);
    panel.get("/nodes/1").await.expect(404);
    let log = panel.get("/audit-log").await;
    let actions: Vec<Value> = log.json().as_array().unwrap().iter().map(|e| e["action"].clone()).collect();
    assert_eq!(actions, ["node.delete", "node.rotate_secret", "node.update", "node.create"]);
    assert!(!log.text.contains(&secret) && !log.text.contains(new), "{}", log.text);
    assert_eq!(log.json()[2]["username"], "admin");
    assert!(log.json()[2]["detail"].as_str().unwrap().contains(r#"name: "hk-1" → "hk-one""#), "{}", log.text);
}

#[tokio::test]
async fn a_node_in_use_stays() {
    let panel = Panel::new().await;
    let (_, nodes) = panel.best_tunnel("hk").await;
    let path = format!("/nodes/{}", nodes[1]);
    let preview = panel.get(&format!("{path}/delete-preview")).await.expect(200);
    assert_eq!(preview, json!({ "name": "hk-1", "forwards": [], "tunnels": ["hk"] }));
    let problem = panel.delete(&path).await.expect(409);
    assert_eq!(problem["type"], "in_use");
    assert!(problem["detail"].as_str().unwrap().contains("hk"), "{problem}");
    panel.get(&path).await.expect(200);
}

#[tokio::test]
async fn a_range_cannot_leave_used_ports_outside() {
    let panel = Panel::new().await;
    let (tunnel, nodes) = panel.best_tunnel("hk").await;
    let path = format!("/nodes/{}", nodes[1]);
    let mut node = panel.get(&path).await.expect(200);
    let port = tunnel["exit"]["nodes"][0]["port"].as_u64().unwrap();
    node["portRange"] = json!("1-9");
    let answer = panel.put(&path, &node).await;
    assert_eq!(answer.errors(), [("portRange".into(), "ports_in_use".into())]);
    assert!(answer.text.contains(&port.to_string()));
    node["portRange"] = json!(format!("1-9,{port}"));
    panel.put(&path, &node).await.expect(200);
}

#[tokio::test]
async fn of_many_creations_with_one_name_one_wins_and_the_others_hear_why() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("race.db").display());
    let db = server::store::Db::open(&url).await.unwrap();
    let panel = Panel::with(db, server::config::Config::default()).await;
    let body = json!({ "name": "same", "serverIp": "192.0.2.1" });
    let calls = (0..16).map(|_| panel.post("/nodes", &body));
    let answers = futures_util::future::join_all(calls).await;
    assert_eq!(answers.iter().filter(|a| a.status == 201).count(), 1);
    for answer in answers.iter().filter(|a| a.status != 201) {
        assert_eq!(answer.status, 422, "{}", answer.text);
        assert_eq!(answer.errors(), [("name".to_owned(), "name_taken".to_owned())]);
    }
    assert_eq!(panel.get("/nodes").await.expect(200).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_large_body_is_refused() {
    let panel = Panel::new().await;
    let body = json!({ "name": "x".repeat(1_100_000), "serverIp": "192.0.2.1" });
    assert_eq!(panel.post("/nodes", &body).await.expect(413)["type"], "too_large");
    let call = panel.call(Method::POST, "/api/v1/auth/login").text(&" ".repeat(1_100_000));
    call.send().await.expect(413);
}

#[tokio::test]
async fn lists_are_read_whole_or_in_parts() {
    let panel = Panel::new().await;
    for i in 0..3 {
        let (tunnel, _) = panel.best_tunnel(&format!("t{i}")).await;
        let forward = json!({ "tunnelId": tunnel["id"], "name": "web", "targets": ["a.example:80"] });
        panel.post("/forwards", &forward).await.expect(201);
    }
    for path in ["/nodes", "/tunnels", "/forwards"] {
        let all = panel.get(path).await.expect(200);
        let all = all.as_array().unwrap();
        let first = panel.get(&format!("{path}?limit=2")).await.expect(200);
        assert_eq!(first.as_array().unwrap()[..], all[..2], "{path}");
        let rest = panel.get(&format!("{path}?after={}", first[1]["id"])).await.expect(200);
        assert_eq!(rest.as_array().unwrap()[..], all[2..], "{path}");
        assert_eq!(panel.get(&format!("{path}?after=9999&limit=5")).await.expect(200), json!([]));
        let answer = panel.get(&format!("{path}?limit=0&page=2")).await;
        let expected = [("limit", "out_of_range"), ("page", "unknown_field")];
        assert_eq!(answer.errors(), expected.map(|(f, c)| (f.to_owned(), c.to_owned())));
    }
}
