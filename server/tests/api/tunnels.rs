//! Tunnels: ports, versions, forwards that follow, pins.

use crate::panel::{Panel, START_MS, best};
use serde_json::{Value, json};
use shared::ids::NodeId;

fn ports(tunnel: &Value) -> Vec<(i64, u64)> {
    let groups = tunnel["hops"].as_array().unwrap().iter().chain([&tunnel["exit"]]);
    let nodes = groups.flat_map(|group| group["nodes"].as_array().cloned().unwrap_or_default());
    nodes.map(|node| (node["nodeId"].as_i64().unwrap(), node["port"].as_u64().unwrap())).collect()
}

#[tokio::test]
async fn a_tunnel_from_create_to_delete() {
    let panel = Panel::new().await;
    let (created, nodes) = panel.best_tunnel("hk").await;
    assert_eq!((&created["version"], &created["type"]), (&json!(1), &json!("tunnel")));
    assert_eq!(created["exit"]["strategy"], "best");
    assert_eq!(created["exit"]["maxFails"], 3);
    assert_eq!(created["bestExit"]["status"], "waiting");
    assert_eq!(created["bestExit"]["owners"][0]["ownerNodeId"], nodes[0]);
    assert!(ports(&created).iter().all(|(_, port)| (10_000..=60_000).contains(port)));
    let path = format!("/tunnels/{}", created["id"]);
    let mut got = panel.get(&path).await.expect(200);
    assert_eq!(got["exit"], created["exit"]);

    let forward = json!({ "tunnelId": created["id"], "name": "web", "targets": ["a.example:80"] });
    panel.post("/forwards", &forward).await.expect(201);
    let preview = panel.get(&format!("{path}/delete-preview")).await.expect(200);
    assert_eq!(preview, json!({ "name": "hk", "forwards": ["web"], "tunnels": [] }));

    got["name"] = json!("hk-new");
    got["enabled"] = json!(false);
    let edited = panel.put(&path, &got).await.expect(200);
    assert_eq!((&edited["name"], &edited["version"]), (&json!("hk-new"), &json!(2)));
    assert_eq!(panel.put(&path, &got).await.expect(409)["type"], "stale_version");
    let mut without = got.clone();
    without.as_object_mut().unwrap().remove("version");
    assert_eq!(panel.put(&path, &without).await.errors(), [("version".into(), "missing_field".into())]);

    panel.post(&format!("{path}/redeploy"), &Value::Null).await.expect(204);
    panel.get(&format!("{path}/runtime")).await.expect(200);
    panel.delete(&path).await.expect(204);
    panel.get(&path).await.expect(404);
    assert_eq!(panel.get("/forwards").await.expect(200), json!([]));
    // All ports are free again.
    let mut tx = panel.state.db.read().await.unwrap();
    assert!(tx.ports(&nodes.map(NodeId)).await.unwrap().is_empty());
    drop(tx);
    let log = panel.get("/audit-log").await;
    assert_eq!(log.json()[0]["detail"], "with the forwards web");
}

#[tokio::test]
async fn ports_are_kept_over_edits_that_do_not_name_them() {
    let panel = Panel::new().await;
    let (created, nodes) = panel.best_tunnel("hk").await;
    let path = format!("/tunnels/{}", created["id"]);
    let before = ports(&created);
    let third = panel.node("third").await;
    // Another order, another strategy, one more exit, and no port given.
    let mut body = best("hk", nodes[0], &[nodes[2], third, nodes[1]]);
    body["version"] = json!(1);
    body["exit"]["strategy"] = json!("fifo");
    let edited = panel.put(&path, &body).await.expect(200);
    assert_eq!(edited.get("bestExit"), None);
    let after = ports(&edited);
    for (node, port) in before {
        assert!(after.contains(&(node, port)), "{node} had {port}: {after:?}");
    }
    // Even when a node changes its place.
    let mut body = best("hk", nodes[0], &[third]);
    body["version"] = json!(2);
    body["hops"] = json!([{ "nodes": [{ "nodeId": nodes[1] }] }]);
    let moved = panel.put(&path, &body).await.expect(200);
    let after_move = ports(&moved);
    assert!(after_move.iter().all(|pair| after.contains(pair)), "{after_move:?} {after:?}");
    // A port that is named is taken.
    let mut body = moved.clone();
    body["exit"]["nodes"][0]["port"] = json!(23_456);
    let edited = panel.put(&path, &body).await.expect(200);
    assert_eq!(edited["exit"]["nodes"][0]["port"], 23_456);
}

#[tokio::test]
async fn credentials_are_random_kept_and_never_shown() {
    let panel = Panel::new().await;
    let (created, _) = panel.best_tunnel("hk").await;
    panel.best_tunnel("jp").await;
    let path = format!("/tunnels/{}", created["id"]);
    let intent = panel.state.db.intent().await.unwrap();
    let auth: Vec<_> = intent.tunnels.values().map(|tunnel| tunnel.relay_auth.clone()).collect();
    assert_ne!(auth[0].password, auth[1].password);
    assert_eq!(auth[0].password.len(), 32);
    let got = panel.get(&path).await.expect(200);
    panel.put(&path, &got).await.expect(200);
    let intent = panel.state.db.intent().await.unwrap();
    assert_eq!(intent.tunnels.values().next().unwrap().relay_auth, auth[0]);
    for path in [path.clone(), "/tunnels".into(), format!("{path}/runtime"), "/audit-log".into()] {
        let answer = panel.get(&path).await;
        assert!(!answer.text.contains(&auth[0].password), "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn forwards_follow_the_entries_and_prevent_entries_where_their_port_is_used() {
    let panel = Panel::new().await;
    let (created, nodes) = panel.best_tunnel("hk").await;
    let path = format!("/tunnels/{}", created["id"]);
    let other = panel.node("other").await;
    let occupied = panel.node("occupied").await;
    let port_tunnel =
        json!({ "name": "direct", "type": "port", "entry": { "nodes": [{ "nodeId": occupied }] } });
    let direct = panel.post("/tunnels", &port_tunnel).await.expect(201);
    for (tunnel, name) in [(&direct, "theirs"), (&created, "ours")] {
        let body = json!({ "tunnelId": tunnel["id"], "name": name, "listenPort": 20_000, "targets": ["a.example:1"] });
        panel.post("/forwards", &body).await.expect(201);
    }
    let mut body = panel.get(&path).await.expect(200);
    body["entry"]["nodes"] = json!([{ "nodeId": nodes[0] }, { "nodeId": occupied }]);
    let answer = panel.put(&path, &body).await;
    assert_eq!(answer.errors(), [("entry.nodes[1].nodeId".into(), "port_taken".into())], "{}", answer.text);

    body["entry"]["nodes"] = json!([{ "nodeId": other }]);
    panel.put(&path, &body).await.expect(200);
    let forward = panel.get("/forwards/2").await.expect(200);
    let node = panel.get(&format!("/nodes/{other}")).await.expect(200);
    let address = format!("{}:20000", node["serverIp"].as_str().unwrap());
    assert_eq!(forward["addresses"], json!([address]));
    let mut tx = panel.state.db.read().await.unwrap();
    let used = tx.ports(&[NodeId(nodes[0]), NodeId(other)]).await.unwrap();
    assert!(!used.contains_key(&NodeId(nodes[0])));
    assert!(used[&NodeId(other)].contains_key(&20_000));
}

#[tokio::test]
async fn a_node_without_free_ports_is_said() {
    let panel = Panel::new().await;
    let (entry, exit) = (panel.node("entry").await, panel.node("exit").await);
    let mut node = panel.get(&format!("/nodes/{exit}")).await.expect(200);
    node["portRange"] = json!("7000-7001");
    panel.put(&format!("/nodes/{exit}"), &node).await.expect(200);
    for name in ["first", "second"] {
        panel.post("/tunnels", &best(name, entry, &[exit])).await.expect(201);
    }
    let answer = panel.post("/tunnels", &best("third", entry, &[exit])).await;
    assert_eq!(answer.errors(), [("exit.nodes[0].port".into(), "no_free_port".into())]);
}

#[tokio::test]
async fn one_exit_is_accepted_with_a_warning() {
    let panel = Panel::new().await;
    let (entry, exit) = (panel.node("entry").await, panel.node("exit").await);
    let created = panel.post("/tunnels", &best("single", entry, &[exit])).await.expect(201);
    assert_eq!(created["warnings"][0]["code"], "best_needs_two_exits");
    assert_eq!(created.get("bestExit"), None);
    assert_eq!(panel.get("/tunnels/1").await.expect(200).get("warnings"), None);
}

#[tokio::test]
async fn a_pin_is_set_replaced_kept_and_removed() {
    let panel = Panel::new().await;
    let (created, nodes) = panel.best_tunnel("hk").await;
    let path = format!("/tunnels/{}", created["id"]);
    let pin = format!("{path}/pin");
    let body = json!({ "exitNodeId": nodes[2], "ownerNodeId": nodes[0], "reason": " maintenance " });
    let set = panel.put(&pin, &body).await.expect(200);
    assert_eq!(set["reason"], "maintenance");
    assert_eq!((&set["author"], &set["createdAt"]), (&json!("admin"), &json!(START_MS)));
    let all = json!({ "exitNodeId": nodes[1], "until": START_MS + 1000, "reason": "all" });
    panel.put(&pin, &all).await.expect(200);
    let pins = panel.state.db.pins().await.unwrap();
    assert_eq!(pins.len(), 1, "one for all replaces the others");
    assert_eq!(pins[0].1.exit_node_id, NodeId(nodes[1]));
    panel.put(&pin, &body).await.expect(200);
    assert_eq!(panel.state.db.pins().await.unwrap().len(), 2);
    panel.delete(&format!("{pin}?ownerNodeId={}", nodes[0])).await.expect(204);
    assert_eq!(panel.state.db.pins().await.unwrap().len(), 1);

    // An edit that removes the pinned exit removes the pin.
    let third = panel.node("third").await;
    let mut tunnel = panel.get(&path).await.expect(200);
    tunnel["exit"]["nodes"] = json!([{ "nodeId": nodes[2] }, { "nodeId": third }]);
    panel.put(&path, &tunnel).await.expect(200);
    assert!(panel.state.db.pins().await.unwrap().is_empty());
    panel.delete(&pin).await.expect(204);
    let log = panel.get("/audit-log").await;
    assert!(log.text.contains("pin.set") && log.text.contains("pin.remove"));
}

#[tokio::test]
async fn of_many_creations_with_one_port_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("race.db").display());
    let db = server::store::Db::open(&url).await.unwrap();
    let panel = Panel::with(db, server::config::Config::default()).await;
    let (entry, exit) = (panel.node("entry").await, panel.node("exit").await);
    let bodies: Vec<Value> = (0..8)
        .map(|i| {
            let mut body = best(&format!("tunnel-{i}"), entry, &[exit]);
            body["exit"]["nodes"][0]["port"] = json!(12_345);
            body
        })
        .collect();
    let answers =
        futures_util::future::join_all(bodies.iter().map(|body| panel.post("/tunnels", body))).await;
    assert_eq!(answers.iter().filter(|a| a.status == 201).count(), 1);
    for answer in answers.iter().filter(|a| a.status != 201) {
        assert_eq!(answer.errors(), [("exit.nodes[0].port".to_owned(), "port_taken".to_owned())]);
    }
}
