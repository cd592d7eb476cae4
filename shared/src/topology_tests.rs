use super::*;
use serde_json::{Value, json};

fn world() -> World {
    let node = |name: &str| KnownNode {
        name: name.into(),
        port_range: "10000-60000".into(),
        ..KnownNode::default()
    };
    let mut world = World {
        nodes: [(1, "entry"), (2, "mid"), (3, "exit-a"), (4, "exit-b"), (5, "old")]
            .map(|(id, name)| (NodeId(id), node(name)))
            .into(),
        tunnel_names: ["taken".to_owned()].into(),
    };
    world.nodes.get_mut(&NodeId(3)).unwrap().taken_ports.insert(20001, "the forward web".into());
    world.nodes.get_mut(&NodeId(5)).unwrap().capabilities = vec!["protocol:tcp".into()];
    world
}

fn tunnel() -> Value {
    json!({
        "name": "hk-best", "type": "tunnel",
        "entry": { "nodes": [{ "nodeId": 1 }] },
        "hops": [{ "strategy": "round", "protocol": "tls", "nodes": [{ "nodeId": 2 }] }],
        "exit": { "strategy": "best", "protocol": "tls", "nodes": [{ "nodeId": 3, "port": 20443 }, { "nodeId": 4 }] }
    })
}

fn set(value: &mut Value, pointer: &str, new: Value) {
    match value.pointer_mut(pointer) {
        Some(place) => *place = new,
        None => {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            value.pointer_mut(parent).unwrap()[key] = new;
        }
    }
}

fn found(findings: &[FieldError]) -> Vec<(String, String)> {
    findings.iter().map(|e| (e.field.clone(), e.code.clone())).collect()
}

#[test]
fn a_good_tunnel_is_good() {
    let input: TunnelInput = serde_json::from_value(tunnel()).unwrap();
    assert_eq!(validate_tunnel(&input, &world()), Findings::default());
}

#[test]
fn each_wrong_field_of_a_tunnel_has_its_code() {
    let table = [
        ("/name", json!("x"), "name", "name_length"),
        ("/name", json!("界".repeat(51)), "name", "name_length"),
        ("/name", json!(" taken "), "name", "name_taken"),
        ("/entry/nodes", json!([]), "entry.nodes", "entry_missing"),
        ("/entry/nodes/0/nodeId", json!(99), "entry.nodes[0].nodeId", "node_unknown"),
        ("/hops/0/nodes/0/nodeId", json!(1), "hops[0].nodes[0].nodeId", "node_twice"),
        ("/hops/0/nodes", json!([]), "hops[0].nodes", "hop_empty"),
        ("/hops/0/strategy", json!("best"), "hops[0].strategy", "strategy_not_here"),
        ("/hops/0/strategy", json!("weighted"), "hops[0].strategy", "strategy_unknown"),
        ("/exit", Value::Null, "exit.nodes", "exit_missing"),
        ("/exit/nodes", json!([]), "exit.nodes", "exit_missing"),
        ("/exit/protocol", json!("kcp2"), "exit.protocol", "protocol_unknown"),
        ("/exit/maxFails", json!(0), "exit.maxFails", "out_of_range"),
        ("/exit/failTimeoutMs", json!(0), "exit.failTimeoutMs", "out_of_range"),
        ("/exit/nodes/0/port", json!(443), "exit.nodes[0].port", "port_outside_range"),
        ("/exit/nodes/0/port", json!(20001), "exit.nodes[0].port", "port_taken"),
        ("/exit/nodes/1/nodeId", json!(3), "exit.nodes[1].nodeId", "node_twice"),
        ("/exit/nodes/1/nodeId", json!(5), "exit.protocol", "capability_missing"),
        (
            "/exit/nodes/1/connectIp",
            json!("192.0.2.1"),
            "exit.nodes[1].connectIp",
            "connect_ip_needs_one_node",
        ),
        ("/hops/0/nodes/0/connectIp", json!("name"), "hops[0].nodes[0].connectIp", "ip_invalid"),
    ];
    for (pointer, new, field, code) in table {
        let mut value = tunnel();
        set(&mut value, pointer, new.clone());
        let input: TunnelInput = serde_json::from_value(value).unwrap();
        let findings = validate_tunnel(&input, &world());
        assert_eq!(found(&findings.errors), [(field.to_owned(), code.to_owned())], "{pointer} = {new}");
    }
}

#[test]
fn a_port_tunnel_has_neither_hops_nor_exits() {
    let mut value = tunnel();
    value["type"] = json!("port");
    let input: TunnelInput = serde_json::from_value(value).unwrap();
    let errors = validate_tunnel(&input, &world()).errors;
    assert_eq!(
        found(&errors),
        [("hops".into(), "not_for_port_tunnel".into()), ("exit".into(), "not_for_port_tunnel".into())]
    );
    let input: TunnelInput = serde_json::from_value(
        json!({ "name": "direct", "type": "port", "entry": { "nodes": [{ "nodeId": 1 }] } }),
    )
    .unwrap();
    assert_eq!(validate_tunnel(&input, &world()), Findings::default());
}

#[test]
fn best_with_one_exit_is_a_warning() {
    let mut value = tunnel();
    value["exit"]["nodes"] = json!([{ "nodeId": 3 }]);
    let input: TunnelInput = serde_json::from_value(value).unwrap();
    let findings = validate_tunnel(&input, &world());
    assert_eq!(findings.errors, []);
    assert_eq!(found(&findings.warnings), [("exit.strategy".into(), "best_needs_two_exits".into())]);
}

#[test]
fn an_unknown_request_field_is_refused_and_read_only_ones_are_not() {
    let mut value = tunnel();
    value["stratgey"] = json!("best");
    let error = serde_json::from_value::<TunnelInput>(value).unwrap_err();
    assert!(error.to_string().contains("stratgey"), "{error}");
    let mut value = tunnel();
    value["id"] = json!(42);
    value["bestExit"] = json!({ "status": "applied" });
    value["deployment"] = json!([]);
    assert!(serde_json::from_value::<TunnelInput>(value).is_ok());
}

#[test]
fn each_wrong_field_of_a_forward_has_its_code() {
    let good = json!({ "tunnelId": 1, "name": "web", "listenPort": 20002, "targets": ["example.com:80"] });
    let entry = world().nodes[&NodeId(3)].clone();
    let check = |value: Value, entries: Option<&[KnownNode]>| {
        validate_forward(&serde_json::from_value(value).unwrap(), entries).errors
    };
    assert_eq!(check(good.clone(), Some(std::slice::from_ref(&entry))), []);
    assert_eq!(found(&check(good.clone(), None)), [("tunnelId".into(), "tunnel_unknown".into())]);
    let table = [
        ("/name", json!(" "), "name", "name_length"),
        ("/listenPort", json!(80), "listenPort", "port_outside_range"),
        ("/listenPort", json!(20001), "listenPort", "port_taken"),
        ("/listenIp", json!("x"), "listenIp", "ip_invalid"),
        ("/targets", json!([]), "targets", "target_missing"),
        ("/targets/0", json!("example.com"), "targets[0]", "port_invalid"),
        ("/strategy", json!("best"), "strategy", "strategy_not_here"),
        ("/strategy", json!("x"), "strategy", "strategy_unknown"),
    ];
    for (pointer, new, field, code) in table {
        let mut value = good.clone();
        set(&mut value, pointer, new.clone());
        let errors = check(value, Some(std::slice::from_ref(&entry)));
        assert_eq!(found(&errors), [(field.to_owned(), code.to_owned())], "{pointer} = {new}");
    }
}

#[test]
fn a_strategy_is_checked_against_its_members() {
    let table = [
        ("urltest(tolerance=20ms, interval=1m)", None),
        ("selector(default=exit-b)", None),
        ("fixed(1)", None),
        ("fixed_fallback(1, 5s)", None),
        ("fixed(2)", Some("strategy_member")),
        ("fixed_fallback(2, 5s)", Some("strategy_member")),
        ("selector(default=mid)", Some("strategy_default")),
        ("hash(host)", Some("strategy_by_host")),
        ("urltest(tolerance=soon)", Some("strategy_syntax")),
        ("urltest(", Some("strategy_syntax")),
        ("quickest(1)", Some("strategy_unknown")),
    ];
    for (text, code) in table {
        let mut value = tunnel();
        set(&mut value, "/exit/strategy", json!(text));
        let input: TunnelInput = serde_json::from_value(value).unwrap();
        let errors = found(&validate_tunnel(&input, &world()).errors);
        let expected: Vec<_> =
            code.into_iter().map(|code: &str| ("exit.strategy".to_owned(), code.to_owned())).collect();
        assert_eq!(errors, expected, "{text}");
    }
    // Hops and the targets of forwards are groups like exits.
    let mut value = tunnel();
    set(&mut value, "/hops/0/strategy", json!("fixed(1)"));
    let input: TunnelInput = serde_json::from_value(value).unwrap();
    let errors = found(&validate_tunnel(&input, &world()).errors);
    assert_eq!(errors, [("hops[0].strategy".into(), "strategy_member".into())]);
    for (strategy, code) in [
        ("selector(default=\"b.example:80\")", None),
        ("selector(default=c)", Some("strategy_default")),
        ("fixed(2)", Some("strategy_member")),
    ] {
        let forward = json!({ "tunnelId": 1, "name": "web", "strategy": strategy,
            "targets": ["a.example:80", "b.example:80"] });
        let forward: ForwardInput = serde_json::from_value(forward).unwrap();
        let errors = validate_forward(&forward, Some(&[])).errors;
        assert_eq!(errors.first().map(|error| error.code.as_str()), code, "{strategy}");
    }
}

#[test]
fn a_syntax_error_says_where_and_what_was_expected() {
    let mut value = tunnel();
    set(&mut value, "/exit/strategy", json!("urltest(tolerance=soon)"));
    let input: TunnelInput = serde_json::from_value(value).unwrap();
    let errors = validate_tunnel(&input, &world()).errors;
    assert_eq!(
        errors[0].message,
        "at character 19: expected milliseconds such as 50 or 50ms, at most 30 days, found `soon`"
    );
    let params = ["at", "expected", "found"].map(|name| errors[0].params[name].as_str());
    assert_eq!(params, ["19", "millis", "soon"]);
}

#[test]
fn what_an_agent_cannot_carry_out_is_refused_and_who_is_unknown_is_not() {
    let agent = |seen: bool, capabilities: &[&str]| KnownNode {
        name: "entry".into(),
        seen,
        capabilities: capabilities.iter().map(ToString::to_string).collect(),
        ..KnownNode::default()
    };
    let ours = agent(true, &["strategy:fifo", "strategy:urltest"]);
    let table = [
        (&ours, "urltest", false),
        (&ours, "best", false),
        (&ours, "min", true),
        (&ours, "round", true),
        // Another panel's agent.
        (&agent(true, &[]), "round", false),
        (&agent(true, &[]), "best", false),
        (&agent(true, &[]), "urltest", true),
        (&agent(true, &[]), "hash(consistent)", true),
        (&agent(true, &[]), "parallel", true),
        // Never here, or one that tells other things.
        (&agent(false, &[]), "urltest", false),
        (&agent(true, &["protocol:tls"]), "urltest", false),
    ];
    for (node, text, refused) in table {
        assert_eq!(
            cannot_carry_out(&node.capabilities, node.seen, &Strategy::from(text)),
            refused,
            "{text} at {node:?}"
        );
    }

    // It is those who choose that are asked, not those who are chosen.
    let mut world = world();
    world.nodes.get_mut(&NodeId(2)).unwrap().capabilities =
        vec!["protocol:tls".into(), "strategy:fifo".into()];
    let mut value = tunnel();
    set(&mut value, "/hops/0/strategy", json!("min"));
    set(&mut value, "/exit/strategy", json!("min"));
    let input: TunnelInput = serde_json::from_value(value).unwrap();
    let errors = validate_tunnel(&input, &world).errors;
    assert_eq!(found(&errors), [("exit.strategy".into(), "strategy_unsupported".into())]);
    assert_eq!(errors[0].params["nodes"], "mid");

    let forward = json!({ "tunnelId": 1, "name": "web", "targets": ["a.example:80"], "strategy": "min" });
    let forward: ForwardInput = serde_json::from_value(forward).unwrap();
    let errors = validate_forward(&forward, Some(&[agent(true, &[])])).errors;
    assert_eq!(found(&errors), [("strategy".into(), "strategy_unsupported".into())]);
}

#[test]
fn what_is_changed_or_not_used_is_said() {
    let mut value = tunnel();
    set(&mut value, "/exit/strategy", json!("fixed_fallback(0, 500ms)"));
    set(&mut value, "/exit/maxFails", json!(5));
    let input: TunnelInput = serde_json::from_value(value).unwrap();
    let findings = validate_tunnel(&input, &world());
    assert_eq!(findings.errors, []);
    assert_eq!(
        found(&findings.warnings),
        [
            ("exit.strategy".into(), "timeout_raised".into()),
            ("exit.maxFails".into(), "fail_filter_unused".into())
        ]
    );
}
