//! Strategies of groups: what is stored, what is rendered, what is refused.

use crate::panel::{Panel, START_MS, best};
use serde_json::{Value, json};
use shared::ids::NodeId;

/// The entry's chain as it would be sent.
async fn hop(panel: &Panel, tunnel: &Value) -> Value {
    let runtime = panel.get(&format!("/tunnels/{}/runtime", tunnel["id"])).await.expect(200);
    runtime[0]["config"]["chains"][0]["hops"][0].clone()
}

#[tokio::test]
async fn a_policy_is_stored_as_it_was_written_and_rendered_for_agents() {
    let panel = Panel::new().await;
    let nodes = [panel.node("entry").await, panel.node("hk").await, panel.node("jp").await];
    let mut body = best("tunnel", nodes[0], &nodes[1..]);
    let text = "urltest( tolerance = 20ms )";
    body["exit"]["strategy"] = json!(text);
    let created = panel.post("/tunnels", &body).await.expect(201);
    assert_eq!((&created["exit"]["strategy"], created.get("bestExit")), (&json!(text), None));
    assert_eq!(hop(&panel, &created).await["selector"], json!({ "strategy": text }), "no fail filter");

    let mut edited = created.clone();
    edited["exit"]["strategy"] = json!("lowestlatency(tolerance=5ms)");
    edited["exit"]["maxFails"] = json!(2);
    let edited = panel.put(&format!("/tunnels/{}", created["id"]), &edited).await.expect(200);
    let rendered = hop(&panel, &edited).await;
    assert_eq!(rendered["selector"]["strategy"], "lowestlatency");
    assert_eq!(
        (&rendered["selector"]["maxFails"], &rendered["nodes"][1]["probe"]["addr"]),
        (&json!(2), &rendered["nodes"][1]["addr"])
    );
}

#[tokio::test]
async fn a_default_follows_the_name_of_its_node() {
    let panel = Panel::new().await;
    let nodes = [panel.node("entry").await, panel.node("hk").await, panel.node("jp").await];
    let mut body = best("tunnel", nodes[0], &nodes[1..]);
    body["exit"]["strategy"] = json!("selector(default=jp)");
    let created = panel.post("/tunnels", &body).await.expect(201);
    let selector = hop(&panel, &created).await["selector"]["strategy"].clone();
    assert_eq!(selector, "selector(default=node_2, interrupt=never, drain=0ms)");

    let mut node = panel.get(&format!("/nodes/{}", nodes[2])).await.expect(200);
    node["name"] = json!("Tokyo 2");
    panel.put(&format!("/nodes/{}", nodes[2]), &node).await.expect(200);
    let renamed = panel.get(&format!("/tunnels/{}", created["id"])).await.expect(200);
    let strategy = "selector(default=\"Tokyo 2\", interrupt=never, drain=0ms)";
    assert_eq!(renamed["exit"]["strategy"], strategy);
    assert_eq!(hop(&panel, &created).await["selector"]["strategy"], selector);
}

#[tokio::test]
async fn what_is_wrong_about_a_strategy_is_said_and_nothing_is_stored() {
    let panel = Panel::new().await;
    let nodes = [panel.node("entry").await, panel.node("hk").await, panel.node("jp").await];
    for (text, code) in [
        ("urltest(tolerance=soon)", "strategy_syntax"),
        ("quickest", "strategy_unknown"),
        ("fixed(2)", "strategy_member"),
        ("selector(default=us)", "strategy_default"),
        ("hash(host)", "strategy_by_host"),
    ] {
        let mut body = best("tunnel", nodes[0], &nodes[1..]);
        body["exit"]["strategy"] = json!(text);
        let answer = panel.post("/tunnels", &body).await;
        assert_eq!(answer.errors(), [("exit.strategy".into(), code.into())], "{text}: {}", answer.text);
    }
    assert_eq!(panel.get("/tunnels").await.expect(200), json!([]));
}

#[tokio::test]
async fn who_cannot_carry_it_out_is_named_and_who_was_never_here_is_given_a_chance() {
    let panel = Panel::new().await;
    let nodes = [panel.node("entry").await, panel.node("hk").await, panel.node("jp").await];
    let mut body = best("tunnel", nodes[0], &nodes[1..]);
    body["exit"]["strategy"] = json!("min_avg10");
    let created = panel.post("/tunnels", &body).await.expect(201);
    let path = format!("/tunnels/{}", created["id"]);

    let connected = async |capabilities: &[&str]| {
        let capabilities: Vec<String> = capabilities.iter().map(ToString::to_string).collect();
        panel.state.db.node_connected(NodeId(nodes[0]), "1", &capabilities, START_MS).await.unwrap();
        panel.put(&path, &panel.get(&path).await.expect(200)).await
    };
    // Another panel's agent tells nothing.
    let refused = [("exit.strategy".to_owned(), "strategy_unsupported".to_owned())];
    let answer = connected(&[]).await;
    assert_eq!(answer.errors(), refused);
    assert!(answer.text.contains("the agent of entry cannot carry out `min_avg10`"), "{}", answer.text);
    assert_eq!(connected(&["strategy:fifo"]).await.errors(), refused);
    connected(&["strategy:fifo", "strategy:min_avg10"]).await.expect(200);
}

#[tokio::test]
async fn a_choice_is_stored_per_owner_and_goes_with_what_it_is_about() {
    let panel = Panel::new().await;
    let nodes = [panel.node("entry").await, panel.node("hk").await, panel.node("jp").await];
    let mut body = best("tunnel", nodes[0], &nodes[1..]);
    body["exit"]["strategy"] = json!("selector");
    let created = panel.post("/tunnels", &body).await.expect(201);
    let path = format!("/tunnels/{}", created["id"]);
    let (choice, groups) = (format!("{path}/choice"), format!("{path}/groups"));

    let made = panel.put(&choice, &json!({ "nodeId": nodes[2] })).await.expect(200);
    assert_eq!(made[0]["wanted"], json!({ "nodeId": nodes[2], "author": "admin", "createdAt": START_MS }));
    assert_eq!((&made[0]["group"], &made[0]["strategy"]), (&json!("exit"), &json!("selector")));
    assert_eq!(panel.get(&groups).await.expect(200), made);
    for (body, error) in [
        (json!({ "nodeId": nodes[0] }), ("nodeId", "nothing_to_choose")),
        (json!({ "nodeId": 99 }), ("nodeId", "nothing_to_choose")),
        (json!({ "nodeId": nodes[1], "ownerNodeId": nodes[2] }), ("ownerNodeId", "not_an_owner")),
    ] {
        assert_eq!(panel.put(&choice, &body).await.errors(), [(error.0.into(), error.1.into())]);
    }
    panel.get("/tunnels/99/groups").await.expect(404);

    // Taken back; the owner's agent was never here to hear of it.
    panel.delete(&format!("{choice}?ownerNodeId={}", nodes[0])).await.expect(204);
    assert_eq!(panel.get(&groups).await.expect(200)[0]["wanted"]["nodeId"], Value::Null);
    let log = panel.get("/audit-log").await.expect(200);
    assert_eq!((&log[0]["action"], &log[1]["action"]), (&json!("choice.clear"), &json!("choice.set")));

    // The chosen node leaves the tunnel.
    panel.put(&choice, &json!({ "nodeId": nodes[2] })).await.expect(200);
    let mut edited = panel.get(&path).await.expect(200);
    edited["exit"]["nodes"].as_array_mut().unwrap().pop();
    panel.put(&path, &edited).await.expect(200);
    assert_eq!(panel.get(&groups).await.expect(200)[0].get("wanted"), None);
    // And the strategy leaves nothing to persons any more.
    panel.put(&choice, &json!({ "nodeId": nodes[1] })).await.expect(200);
    let mut edited = panel.get(&path).await.expect(200);
    edited["exit"]["strategy"] = json!("fifo");
    panel.put(&path, &edited).await.expect(200);
    assert_eq!(panel.get(&groups).await.expect(200), json!([]));
    assert!(panel.state.db.read().await.unwrap().choices().await.unwrap().is_empty());
}
