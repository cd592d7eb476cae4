//! Every wrong field of every body: said with field and code, and nothing is stored.

use crate::panel::{ADMIN, Answer, Panel, START_MS, best};
use axum::http::Method;
use serde_json::{Value, json};

/// A body that works, and where it goes.
struct Good {
    method: Method,
    path: String,
    body: Value,
}

impl Good {
    async fn send(&self, panel: &Panel, body: &Value) -> Answer {
        let path = format!("/api/v1{}", self.path);
        panel.call(self.method.clone(), &path).bearer(ADMIN).json(body).send().await
    }
}

/// Good bodies for every operation that has one, each with one of everything in it.
async fn good(panel: &Panel) -> Vec<Good> {
    let (created, [entry, a, b]) = panel.best_tunnel("hk").await;
    let middle = panel.node("middle").await;
    let node = json!({
        "name": "new", "serverIp": "node.example", "serverIpV4": "192.0.2.7", "serverIpV6": "2001:db8::7",
        "portRange": "10000-60000", "interfaceName": "eth0", "tcpListenAddr": "[::]", "udpListenAddr": "0.0.0.0"
    });
    let tunnel = json!({
        "name": "new", "type": "tunnel", "enabled": true, "ipPreference": "v4",
        "entry": { "nodes": [{ "nodeId": entry }] },
        "hops": [{ "strategy": "round", "protocol": "tls", "maxFails": 3, "failTimeoutMs": 30000,
            "nodes": [{ "nodeId": middle, "port": 20001, "connectIp": "192.0.2.8" }] }],
        "exit": { "strategy": "best", "protocol": "tls", "maxFails": 3, "failTimeoutMs": 30000,
            "nodes": [{ "nodeId": a, "port": 20002, "connectIp": null }, { "nodeId": b, "port": 20003 }] }
    });
    let forward = json!({
        "tunnelId": created["id"], "name": "web", "listenPort": 20004, "listenIp": "192.0.2.9",
        "targets": ["a.example:80"], "strategy": "round", "enabled": true
    });
    panel
        .post("/forwards", &json!({ "tunnelId": created["id"], "name": "old", "targets": ["a.example:1"] }))
        .await;
    let settings = panel.get("/settings").await.expect(200);
    let pin = json!({ "exitNodeId": a, "ownerNodeId": entry, "until": START_MS + 1, "reason": "why" });
    let chosen = json!({
        "name": "chosen", "entry": { "nodes": [{ "nodeId": entry }] },
        "exit": { "strategy": "selector", "nodes": [{ "nodeId": a }, { "nodeId": b }] }
    });
    let chosen = panel.post("/tunnels", &chosen).await.expect(201)["id"].clone();
    let choice = json!({ "nodeId": a, "ownerNodeId": entry });
    let with = |body: &Value, name: &str| {
        let mut body = body.clone();
        body[name] = json!(1);
        body
    };
    let good = |method, path: &str, body| Good { method, path: path.to_owned(), body };
    vec![
        good(Method::POST, "/nodes", node.clone()),
        good(Method::PUT, "/nodes/1", with(&node, "revision")),
        good(Method::POST, "/tunnels", tunnel.clone()),
        good(Method::PUT, "/tunnels/1", with(&tunnel, "version")),
        good(Method::POST, "/forwards", forward.clone()),
        good(Method::PUT, "/forwards/1", with(&forward, "version")),
        good(Method::PUT, "/settings", settings),
        good(Method::PUT, "/tunnels/1/pin", pin),
        good(Method::PUT, &format!("/tunnels/{chosen}/choice"), choice),
        good(Method::PUT, "/auth/password", json!({ "currentPassword": "a", "newPassword": "b" })),
    ]
}

/// All places in a value: pointer and path of the field as errors name it.
fn places(value: &Value, pointer: &str, field: &str, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let field = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
                let pointer = format!("{pointer}/{name}");
                out.push((pointer.clone(), field.clone()));
                places(inner, &pointer, &field, out);
            }
        }
        Value::Array(items) => {
            for (i, inner) in items.iter().enumerate() {
                let (pointer, field) = (format!("{pointer}/{i}"), format!("{field}[{i}]"));
                out.push((pointer.clone(), field.clone()));
                places(inner, &pointer, &field, out);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn the_good_bodies_are_good() {
    let count = good(&Panel::new().await).await.len();
    for i in 0..count {
        let panel = Panel::new().await;
        let good = &good(&panel).await[i];
        if good.path != "/auth/password" {
            let answer = good.send(&panel, &good.body).await;
            assert!(answer.status.is_success(), "{} {}: {}", good.method, good.path, answer.text);
        }
    }
}

#[tokio::test]
async fn a_wrong_type_anywhere_is_named() {
    let panel = Panel::new().await;
    let all = good(&panel).await;
    let before = panel.everything().await;
    for good in &all {
        let mut found = Vec::new();
        places(&good.body, "", "", &mut found);
        for (pointer, field) in found {
            let mut body = good.body.clone();
            let place = body.pointer_mut(&pointer).unwrap();
            // A type that is not the right one; booleans stand for numbers and texts, texts for the rest.
            *place = if place.is_boolean() || place.is_object() || place.is_array() {
                json!("x")
            } else {
                json!(true)
            };
            let answer = good.send(&panel, &body).await;
            assert_eq!(
                answer.errors(),
                [(field.clone(), "invalid_type".to_owned())],
                "{} {} {pointer}",
                good.method,
                good.path
            );
            answer.expect(422);
        }
    }
    assert_eq!(panel.everything().await, before);
}

#[tokio::test]
async fn an_unknown_field_anywhere_is_named() {
    let panel = Panel::new().await;
    let all = good(&panel).await;
    let before = panel.everything().await;
    for good in &all {
        let mut found = vec![(String::new(), String::new())];
        places(&good.body, "", "", &mut found);
        for (pointer, field) in found {
            let mut body = good.body.clone();
            let Some(Value::Object(fields)) = body.pointer_mut(&pointer) else { continue };
            fields.insert("surprise".into(), json!(1));
            let answer = good.send(&panel, &body).await;
            let field = if field.is_empty() { "surprise".to_owned() } else { format!("{field}.surprise") };
            assert_eq!(
                answer.errors(),
                [(field, "unknown_field".to_owned())],
                "{} {}",
                good.method,
                good.path
            );
            answer.expect(422);
        }
    }
    assert_eq!(panel.everything().await, before);
}

#[tokio::test]
async fn a_missing_field_is_named_and_text_that_is_no_json_is_refused() {
    let panel = Panel::new().await;
    let all = good(&panel).await;
    let before = panel.everything().await;
    for good in &all {
        let required: &[&str] = match good.path.trim_end_matches("/1") {
            "/nodes" => &["name", "serverIp"],
            "/tunnels" => &["name", "entry"],
            "/forwards" => &["tunnelId", "name", "targets"],
            "/settings" => &[],
            "/tunnels/1/pin" => &["exitNodeId", "reason"],
            path if path.ends_with("/choice") => &["nodeId"],
            _ => &["currentPassword", "newPassword"],
        };
        let version = match (good.method.as_str(), good.path.as_str()) {
            ("PUT", "/nodes/1") => Some("revision"),
            ("PUT", "/tunnels/1" | "/forwards/1") => Some("version"),
            _ => None,
        };
        for name in required.iter().copied().chain(version) {
            let mut body = good.body.clone();
            body.as_object_mut().unwrap().remove(name);
            let answer = good.send(&panel, &body).await;
            assert_eq!(answer.errors(), [(name.to_owned(), "missing_field".to_owned())], "{}", good.path);
            answer.expect(422);
        }
        let path = format!("/api/v1{}", good.path);
        for text in ["", "{", "nonsense", "{\"name\":\"a\",}", "{} {}"] {
            let answer = panel.call(good.method.clone(), &path).bearer(ADMIN).text(text).send().await;
            assert_eq!(answer.expect(400)["type"], "malformed_json", "{path} {text}");
        }
        for text in ["null", "[]", "7", "\"x\""] {
            panel.call(good.method.clone(), &path).bearer(ADMIN).text(text).send().await.expect(422);
        }
    }
    assert_eq!(panel.everything().await, before);
}

#[tokio::test]
async fn a_value_that_makes_no_sense_is_named() {
    let panel = Panel::new().await;
    let all = good(&panel).await;
    let before = panel.everything().await;
    let long = "界".repeat(51);
    let table: Vec<(&str, &str, Value, &str, &str)> = vec![
        ("/nodes", "/name", json!(""), "name", "name_length"),
        ("/nodes", "/name", json!(long), "name", "name_length"),
        ("/nodes", "/name", json!("hk-1"), "name", "name_taken"),
        ("/nodes", "/name", json!("a\u{0}b"), "name", "control_character"),
        ("/nodes", "/serverIp", json!(""), "serverIp", "host_missing"),
        ("/nodes", "/serverIp", json!("a b"), "serverIp", "host_invalid"),
        ("/nodes", "/serverIpV4", json!("2001:db8::1"), "serverIpV4", "ip_v4_invalid"),
        ("/nodes", "/serverIpV6", json!("192.0.2.1"), "serverIpV6", "ip_v6_invalid"),
        ("/nodes", "/portRange", json!("60000-10000"), "portRange", "port_range_invalid"),
        ("/nodes", "/portRange", json!("1,".repeat(300) + "1"), "portRange", "too_long"),
        ("/nodes", "/interfaceName", json!("a/b"), "interfaceName", "interface_invalid"),
        ("/nodes", "/interfaceName", json!("a\u{7}"), "interfaceName", "control_character"),
        ("/nodes", "/tcpListenAddr", json!("host"), "tcpListenAddr", "listen_addr_invalid"),
        ("/nodes", "/udpListenAddr", json!(""), "udpListenAddr", "listen_addr_invalid"),
        ("/tunnels", "/name", json!("x"), "name", "name_length"),
        ("/tunnels", "/name", json!("a\nb"), "name", "control_character"),
        ("/tunnels", "/type", json!("bridge"), "type", "unknown_value"),
        ("/tunnels", "/type", json!("port"), "hops", "not_for_port_tunnel"),
        ("/tunnels", "/ipPreference", json!("v5"), "ipPreference", "unknown_value"),
        ("/tunnels", "/entry/nodes", json!([]), "entry.nodes", "entry_missing"),
        ("/tunnels", "/entry/nodes/0/nodeId", json!(99), "entry.nodes[0].nodeId", "node_unknown"),
        ("/tunnels", "/entry/nodes/0/nodeId", json!(1e30), "entry.nodes[0].nodeId", "invalid_type"),
        ("/tunnels", "/hops/0/nodes", json!([]), "hops[0].nodes", "hop_empty"),
        ("/tunnels", "/hops/0/strategy", json!("best"), "hops[0].strategy", "strategy_not_here"),
        ("/tunnels", "/hops/0/protocol", json!("kcp"), "hops[0].protocol", "protocol_unknown"),
        ("/tunnels", "/hops/0/nodes/0/nodeId", json!(2), "exit.nodes[0].nodeId", "node_twice"),
        ("/tunnels", "/hops/0/nodes/0/connectIp", json!("x"), "hops[0].nodes[0].connectIp", "ip_invalid"),
        ("/tunnels", "/exit", Value::Null, "exit.nodes", "exit_missing"),
        ("/tunnels", "/exit/strategy", json!("luck"), "exit.strategy", "strategy_unknown"),
        ("/tunnels", "/exit/maxFails", json!(0), "exit.maxFails", "out_of_range"),
        ("/tunnels", "/exit/maxFails", json!(-1), "exit.maxFails", "out_of_range"),
        ("/tunnels", "/exit/failTimeoutMs", json!(0), "exit.failTimeoutMs", "out_of_range"),
        ("/tunnels", "/exit/nodes/0/port", json!(0), "exit.nodes[0].port", "port_outside_range"),
        ("/tunnels", "/exit/nodes/0/port", json!(70_000), "exit.nodes[0].port", "out_of_range"),
        (
            "/tunnels",
            "/exit/nodes/0/connectIp",
            json!("192.0.2.1"),
            "exit.nodes[0].connectIp",
            "connect_ip_needs_one_node",
        ),
        ("/forwards", "/tunnelId", json!(99), "tunnelId", "tunnel_unknown"),
        ("/forwards", "/name", json!(" "), "name", "name_length"),
        ("/forwards", "/name", json!("a\u{202e}\u{1b}b"), "name", "control_character"),
        ("/forwards", "/listenPort", json!(80), "listenPort", "port_outside_range"),
        ("/forwards", "/listenPort", json!(65_536), "listenPort", "out_of_range"),
        ("/forwards", "/listenIp", json!("host"), "listenIp", "ip_invalid"),
        ("/forwards", "/targets", json!([]), "targets", "target_missing"),
        ("/forwards", "/targets/0", json!("a.example"), "targets[0]", "port_invalid"),
        ("/forwards", "/targets/0", json!("http://a.example:1"), "targets[0]", "address_malformed"),
        ("/forwards", "/strategy", json!("best"), "strategy", "strategy_not_here"),
        ("/settings", "/pingCount", json!(0), "pingCount", "out_of_range"),
        ("/settings", "/pingCount", json!(-1), "pingCount", "out_of_range"),
        ("/settings", "/minAdvantageRatio", json!(1.5), "minAdvantageRatio", "out_of_range"),
        ("/settings", "/roundIntervalMs", json!(499), "roundIntervalMs", "out_of_range"),
        ("/settings", "/probeTarget", json!("https://x"), "probeTarget", "address_malformed"),
        ("/settings", "/decisionRules", json!("magic"), "decisionRules", "unknown_value"),
        ("/tunnels/1/pin", "/exitNodeId", json!(1), "exitNodeId", "not_an_exit"),
        ("/tunnels/1/pin", "/ownerNodeId", json!(2), "ownerNodeId", "not_an_owner"),
        ("/tunnels/1/pin", "/until", json!(START_MS), "until", "in_the_past"),
        ("/tunnels/1/pin", "/reason", json!(" "), "reason", "reason_length"),
        ("/tunnels/1/pin", "/reason", json!("x".repeat(201)), "reason", "reason_length"),
        ("/tunnels/1/pin", "/reason", json!("a\u{0}"), "reason", "control_character"),
    ];
    for (path, pointer, value, field, code) in table {
        let goods: Vec<&Good> = all.iter().filter(|good| good.path.trim_end_matches("/1") == path).collect();
        assert!(!goods.is_empty(), "{path}");
        for good in goods {
            let mut body = good.body.clone();
            let place = body.pointer_mut(pointer);
            *place.unwrap_or_else(|| panic!("{path} {pointer}")) = value.clone();
            let answer = good.send(&panel, &body).await;
            let expected = (field.to_owned(), code.to_owned());
            assert!(
                answer.status == 422 && answer.errors().contains(&expected),
                "{} {} {pointer} = {value}: {}",
                good.method,
                good.path,
                answer.text
            );
        }
    }
    assert_eq!(panel.everything().await, before);
}

#[tokio::test]
async fn a_pin_needs_something_to_choose_from() {
    let panel = Panel::new().await;
    let (entry, exit) = (panel.node("entry").await, panel.node("exit").await);
    panel.post("/tunnels", &best("one", entry, &[exit])).await.expect(201);
    let answer = panel.put("/tunnels/1/pin", &json!({ "exitNodeId": exit, "reason": "x" })).await;
    assert_eq!(answer.errors(), [("exitNodeId".into(), "nothing_to_pin".into())]);
}
