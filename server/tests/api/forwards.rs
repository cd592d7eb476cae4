//! Forwards.

use crate::panel::{Panel, without_live};
use serde_json::{Value, json};
use shared::ids::NodeId;

fn body(tunnel: &Value, name: &str) -> Value {
    json!({ "tunnelId": tunnel["id"], "name": name, "targets": ["a.example:80", "[2001:db8::1]:443"] })
}

#[tokio::test]
async fn a_forward_from_create_to_delete() {
    let panel = Panel::new().await;
    let (tunnel, nodes) = panel.best_tunnel("hk").await;
    let created = panel.post("/forwards", &body(&tunnel, "web")).await.expect(201);
    let port = created["listenPort"].as_u64().unwrap();
    assert!((10_000..=60_000).contains(&port));
    assert_eq!(created["strategy"], "fifo");
    let entry = panel.get(&format!("/nodes/{}", nodes[0])).await.expect(200);
    let address = format!("{}:{port}", entry["serverIp"].as_str().unwrap());
    assert_eq!(created["addresses"], json!([address]));

    let path = format!("/forwards/{}", created["id"]);
    let mut got = panel.get(&path).await.expect(200);
    let listed = panel.get("/forwards").await.expect(200);
    assert_eq!(without_live(listed), without_live(json!([got.clone()])));
    // Port 0 in an edit keeps the port.
    got["listenPort"] = json!(0);
    got["name"] = json!("web-2");
    let edited = panel.put(&path, &got).await.expect(200);
    assert_eq!((&edited["name"], &edited["listenPort"]), (&json!("web-2"), &json!(port)));
    assert_eq!(panel.put(&path, &got).await.expect(409)["type"], "stale_version");

    let paused = panel.post(&format!("{path}/pause"), &Value::Null).await.expect(200);
    assert_eq!((&paused["enabled"], &paused["version"]), (&json!(false), &json!(3)));
    let again = panel.post(&format!("{path}/pause"), &Value::Null).await.expect(200);
    assert_eq!(again["version"], 3);
    let resumed = panel.post(&format!("{path}/resume"), &Value::Null).await.expect(200);
    assert_eq!(resumed["enabled"], true);

    panel.delete(&path).await.expect(204);
    panel.get(&path).await.expect(404);
    let mut tx = panel.state.db.read().await.unwrap();
    assert!(!tx.ports(&[NodeId(nodes[0])]).await.unwrap().contains_key(&NodeId(nodes[0])));
}

#[tokio::test]
async fn port_0_finds_the_one_port_that_is_free_on_all_entries() {
    let panel = Panel::new().await;
    let mut entries = Vec::new();
    for (name, range) in [("a", "7000-7002"), ("b", "7001-7003")] {
        let body = json!({ "name": name, "serverIp": "192.0.2.1", "portRange": range });
        entries.push(json!({ "nodeId": panel.post("/nodes", &body).await.expect(201)["id"] }));
    }
    let both = json!({ "name": "both", "type": "port", "entry": { "nodes": entries } });
    let both = panel.post("/tunnels", &both).await.expect(201);
    let only_b = json!({ "name": "only-b", "type": "port", "entry": { "nodes": [entries[1]] } });
    let only_b = panel.post("/tunnels", &only_b).await.expect(201);
    let mut taken = body(&only_b, "taken");
    taken["listenPort"] = json!(7001);
    panel.post("/forwards", &taken).await.expect(201);

    let created = panel.post("/forwards", &body(&both, "one")).await.expect(201);
    assert_eq!(created["listenPort"], 7002);
    assert_eq!(created["addresses"].as_array().unwrap().len(), 2);
    let answer = panel.post("/forwards", &body(&both, "two")).await;
    assert_eq!(answer.errors(), [("listenPort".into(), "no_free_port".into())]);
    // A port that is free on one entry only is refused, and it is said by whom it is used.
    let mut wanted = body(&both, "three");
    wanted["listenPort"] = json!(7001);
    let answer = panel.post("/forwards", &wanted).await;
    assert_eq!(answer.errors(), [("listenPort".into(), "port_taken".into())]);
    assert!(answer.text.contains("forward taken"), "{}", answer.text);
}

#[tokio::test]
async fn a_forward_can_move_to_another_tunnel() {
    let panel = Panel::new().await;
    let (hk, hk_nodes) = panel.best_tunnel("hk").await;
    let (jp, jp_nodes) = panel.best_tunnel("jp").await;
    let created = panel.post("/forwards", &body(&hk, "web")).await.expect(201);
    let mut moved = created.clone();
    moved["tunnelId"] = jp["id"].clone();
    let moved = panel.put(&format!("/forwards/{}", created["id"]), &moved).await.expect(200);
    assert_eq!(moved["listenPort"], created["listenPort"]);
    let mut tx = panel.state.db.read().await.unwrap();
    let used = tx.ports(&[NodeId(hk_nodes[0]), NodeId(jp_nodes[0])]).await.unwrap();
    assert_eq!(used.keys().copied().collect::<Vec<_>>(), [NodeId(jp_nodes[0])]);
}

#[tokio::test]
async fn with_an_address_of_its_own_a_forward_is_reached_there() {
    let panel = Panel::new().await;
    let (tunnel, _) = panel.best_tunnel("hk").await;
    let mut input = body(&tunnel, "web");
    input["listenIp"] = json!("2001:db8::7");
    input["listenPort"] = json!(20_001);
    let created = panel.post("/forwards", &input).await.expect(201);
    assert_eq!(created["addresses"], json!(["[2001:db8::7]:20001"]));
}
