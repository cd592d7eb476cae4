//! Building chains and keeping what is remembered of their nodes.

use super::*;
use crate::clock::{Clock, Random};
use serde_json::{Value, json};

fn node(name: &str, addr: &str) -> Value {
    json!({"name": name, "addr": addr, "connector": {"type": "relay"}, "dialer": {"type": "tls"}})
}

fn config(nodes: &[Value]) -> ChainConfig {
    let hop = json!({"name": "hop_1", "selector": {"strategy": "fifo"}, "nodes": nodes});
    serde_json::from_value(json!({"name": "c", "hops": [hop]})).unwrap()
}

fn build(nodes: &[Value], previous: Option<&Chain>) -> Chain {
    Chain::build(&config(nodes), previous).unwrap()
}

fn mark(chain: &Chain, index: usize, clock: &Clock) {
    let group = &chain.hops[0].group;
    let draw =
        group.draw(std::net::IpAddr::from([127, 0, 0, 1]), shared::policy::Network::Tcp4, &Random::seeded(1));
    let attempt = group.pick(|i| i != index, &draw, clock).unwrap();
    attempt.count_failure(failure::FailureKind::Lost);
    attempt.mark();
}

#[tokio::test]
async fn unchanged_nodes_keep_marks_and_counters_over_a_swap() {
    let clock = Clock::system();
    let old = build(&[node("node_1", "a.example:1"), node("node_2", "b.example:1")], None);
    mark(&old, 0, &clock);
    // Reordered, renamed and reweighted, with one newcomer in front.
    let mut kept = node("node_3", "a.example:1");
    kept["metadata"] = json!({"weight": 2});
    let new = build(&[node("node_1", "c.example:1"), node("node_2", "b.example:1"), kept], Some(&old));
    let report = new.report(clock.now_ms());
    let marks: Vec<_> = report.nodes.iter().map(|n| (n.addr.as_str(), n.marked, n.failures)).collect();
    assert_eq!(marks, [("c.example:1", false, 0), ("b.example:1", false, 0), ("a.example:1", true, 1)]);

    let mut changed = node("node_1", "a.example:1");
    changed["dialer"]["type"] = json!("tcp");
    let new = build(&[changed], Some(&new));
    assert!(!new.report(clock.now_ms()).nodes[0].marked, "another dialer makes another node");
}

#[tokio::test]
async fn two_nodes_alike_share_nothing() {
    let clock = Clock::system();
    let old = build(&[node("x", "a.example:1"), node("y", "a.example:1")], None);
    mark(&old, 1, &clock);
    let new = build(&[node("x", "a.example:1"), node("y", "a.example:1")], Some(&old));
    let report = new.report(clock.now_ms());
    assert_eq!(report.nodes.iter().map(|n| n.marked).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn an_empty_chain_is_a_chain() {
    assert!(build(&[], None).hops[0].nodes.is_empty());
    let none: ChainConfig = serde_json::from_value(json!({"name": "c", "hops": []})).unwrap();
    assert!(Chain::build(&none, None).unwrap().report(0).nodes.is_empty());
}

#[test]
fn what_a_peer_panel_sends_is_understood() {
    let node = json!({"name": "node_1", "addr": "[2001:db8::7]:20443", "connector": {"type": "relay", "metadata":
        {"nodelay": true, "mux.keepaliveInterval": "15s", "mux.maxFrameSize": 32768}},
        "dialer": {"type": "tls", "metadata": {"mux.keepaliveTimeout": "45s"}}});
    build(&[node], None);
}

#[test]
fn errors_name_the_place() {
    let change = |pointer: &str, value: Value| {
        let mut chain = json!(config(&[node("node_1", "a.example:1"), node("node_2", "b.example:1")]));
        // Creates the last member of the pointer if it is not there.
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        chain.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(key.into(), value);
        let chain: ChainConfig = serde_json::from_value(chain).unwrap();
        Chain::build(&chain, None).err().unwrap().to_string()
    };
    let cases = [
        (
            "/hops/0/nodes/1/dialer/type",
            json!("kcp"),
            "chain c: hops[0].nodes[1].dialer.type: kcp is not supported",
        ),
        (
            "/hops/0/nodes/1/connector/type",
            json!("vless"),
            "chain c: hops[0].nodes[1].connector.type: vless is not supported",
        ),
        ("/hops/0/nodes/0/addr", json!("a.example"), "chain c: hops[0].nodes[0].addr: the port must be"),
        ("/hops/0/nodes/1/name", json!("node_1"), "chain c: hops[0].nodes[1].name: node_1 is there twice"),
        (
            "/hops/0/nodes/0/metadata",
            json!({"prio": 1}),
            "chain c: hops[0].nodes[0].metadata.prio: is not supported",
        ),
        (
            "/hops/0/nodes/0/connector/auth",
            json!({"username": "u".repeat(256)}),
            "chain c: hops[0].nodes[0].connector.auth.username: must not be longer",
        ),
        (
            "/hops/0/nodes/0/dialer/tls",
            json!({"caFile": "/nonexistent"}),
            "chain c: hops[0].nodes[0].dialer.tls: /nonexistent",
        ),
        ("/hops/0/selector", json!({"strategy": "best"}), "chain c: hops[0].selector.strategy: `best`"),
        ("/hops/0/interface", json!("no such if"), "chain c: hops[0].interface: `no such if`"),
        ("/metadata", json!({"failover": true}), "chain c: metadata.failover: is not supported"),
        ("/name", json!(" "), "chain: name: is empty"),
    ];
    for (pointer, value, expected) in cases {
        let error = change(pointer, value);
        assert!(error.starts_with(expected), "{error} instead of {expected}");
    }
}

#[test]
fn rules_that_are_not_known_are_refused() {
    let error = |hop: Value| {
        serde_json::from_value::<ChainConfig>(json!({"name": "c", "hops": [hop]})).unwrap_err().to_string()
    };
    for key in ["bypass", "bypasses", "matcher", "filter", "resolver", "network"] {
        let mut ruled = node("node_1", "a.example:1");
        ruled[key] = json!({});
        let error = error(json!({"name": "h", "nodes": [ruled]}));
        assert!(error.contains(key), "{error}");
    }
    for key in ["bypass", "reload", "file", "redis", "http", "plugin"] {
        let error = error(json!({"name": "h", "nodes": [], key: {}}));
        assert!(error.contains(key), "{error}");
    }
    assert!(error(json!({"name": "h", "nodes": [null]})).contains("null"));
    let unplaced = serde_json::from_value(json!({"name": "c", "hops": [{"name": "h"}]})).unwrap();
    let error = Chain::build(&unplaced, None).err().unwrap().to_string();
    assert_eq!(error, "chain c: hops[0].nodes: is missing");
}
