//! What is counted when something fails: at nodes, chains and targets by kind, at clients by reason.

use crate::api_rig::*;
use crate::proxy_rig::{http, socks5};
use crate::rig::*;
use agent::limit::LimitKind;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What the metrics say, until they say it.
async fn says(api: SocketAddr, lines: &[String]) {
    let waited = async {
        loop {
            let metrics = get(api, "/metrics").await;
            let missing = lines.iter().find(|line| !metrics.lines().any(|there| there == **line));
            match missing {
                None => return,
                Some(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        }
    };
    if tokio::time::timeout(LONG, waited).await.is_err() {
        panic!("{lines:?} not in:\n{}", get(api, "/metrics").await);
    }
}

#[tokio::test]
async fn failures_of_nodes_by_kind() {
    let target = Target::start(Does::Echo).await;
    let (refuses, _held) = refusing();
    let exit = Exit::start(1, "tls").await;
    let plain = Exit::start(2, "tcp").await;
    let (mute, _) = mute().await;
    let (closes, _) = scripted(|mut stream| async move {
        let _ = read_relay_request(&mut stream).await;
    })
    .await;
    let verified = |mut node: Value| {
        node["dialer"]["tls"] = json!({"secure": true});
        node
    };
    let (http_only, _) = scripted(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read(&mut [0; 512]).await;
    })
    .await;
    let expected = [
        (node("a", refuses, "tcp"), "connect_refused"),
        (node("b", answering(2).await.0, "tcp"), "credentials"),
        (node("c", answering(5).await.0, "tcp"), "unavailable"),
        (node("d", answering(8).await.0, "tcp"), "internal_error"),
        (node("e", answering(77).await.0, "tcp"), "refused"),
        (node("f", answering(6).await.0, "tcp"), "target_unreachable"),
        (node("g", mute, "tcp"), "answer_timeout"),
        (node("h", mute, "tls"), "handshake_timeout"),
        (node("i", http_only, "tls"), "tls"),
        (verified(node("j", exit.addr, "tls")), "certificate"),
        (node("k", plain.addr, "ws"), "handshake"),
        (node("k2", plain.addr, "tls"), "handshake"),
        (node("l", closes, "tcp"), "lost"),
        (node("m", http_only, "tcp"), "protocol"),
    ];
    let mut nodes: Vec<_> = expected.iter().map(|(node, _)| node.clone()).collect();
    nodes.push(exit.node("z", "tls"));
    let entry = Entry::with(impatient(), &nodes, target.addr, json!({})).await;
    entry.echo().await.unwrap();
    target.assert_only_exits_came();

    let api = api(&entry.runtime, None).await;
    let chains = json(api, "/v1/chains").await;
    for (i, (node, kind)) in expected.iter().enumerate() {
        let there = &chains[0]["nodes"][i];
        assert_eq!(there["failuresByKind"], json!({*kind: 1}), "{}", node["name"]);
        assert_eq!((&there["failures"], &there["hop"]), (&json!(1), &json!(0)));
        let labels =
            format!(r#"chain="c",hop="0",node={},addr={},kind="{kind}""#, node["name"], node["addr"]);
        says(api, &[format!("exitpilot_agent_exit_failures_total{{{labels}}} 1")]).await;
    }
    assert_eq!(chains[0]["nodes"][expected.len()]["failuresByKind"], json!({}));
}

#[tokio::test]
async fn marks_and_probes_of_chains_in_groups_and_of_targets() {
    let target = Target::start(Does::Echo).await;
    let (down, _held) = refusing();
    let (dead, _held) = refusing();
    let exit = Exit::start(1, "tcp").await;
    let runtime = Runtime::new(RuntimeOptions::default());
    for (name, node) in [("a", node("x", dead, "tcp")), ("b", exit.node("y", "tcp"))] {
        let config = json!({"name": name, "hops": [{"name": "h", "nodes": [node]}]});
        runtime.apply(Change::AddChain(chain(config))).await.unwrap();
    }
    let probe = |addr: SocketAddr| json!({"type": "tcp", "addr": addr.to_string(), "interval": "1h"});
    let entries: Vec<_> =
        ["a", "b"].map(|name| json!({"chain": name, "probe": probe(target.addr)})).into_iter().collect();
    let fifo = json!({"strategy": "fifo", "failTimeout": "600s"});
    let nodes = json!([
        {"name": "one", "addr": down.to_string(), "probe": probe(down)},
        {"name": "two", "addr": target.addr.to_string()}
    ]);
    let more = json!({
        "handler": {"chain": null, "chainGroup": {"chains": entries, "selector": fifo}},
        "forwarder": {"nodes": nodes, "selector": fifo}
    });
    let entry = Entry::in_runtime(runtime, target.addr, more).await;
    let api = api(&entry.runtime, None).await;
    // Each was probed once, and nobody has come yet.
    let chain = |name| format!(r#"service="f",chain="{name}""#);
    let one = format!(r#"service="f",target="one",addr="{down}""#);
    says(
        api,
        &[
            format!("exitpilot_agent_service_chain_probe_ok{{{}}} 0.0", chain("a")),
            format!("exitpilot_agent_service_chain_probe_ok{{{}}} 1.0", chain("b")),
            format!("exitpilot_agent_service_chain_probes_total{{{}}} 1", chain("b")),
            format!("exitpilot_agent_service_chain_marked{{{}}} 1.0", chain("a")),
            format!("exitpilot_agent_service_chain_marked{{{}}} 0.0", chain("b")),
            format!("exitpilot_agent_target_probe_ok{{{one}}} 0.0"),
            format!("exitpilot_agent_target_marked{{{one}}} 1.0"),
        ],
    )
    .await;
    let services = json(api, "/v1/services").await;
    let error = services[0]["chains"][0]["probe"]["error"].as_str().unwrap();
    assert!(error.contains("refused"), "{error}");
    assert!(services[0]["chains"][1]["probe"]["averageMs"].as_f64().unwrap() > 0.0);
    assert_eq!(services[0]["chains"][1]["probe"]["ok"], true);
    assert_eq!(services[0]["targets"][0]["probe"]["ok"], false);

    entry.echo().await.unwrap();
    let services = json(api, "/v1/services").await;
    let counts = |member: &Value| (member["connections"].clone(), member["failures"].clone());
    assert_eq!(counts(&services[0]["chains"][1]), (json!(1), json!(0)));
    assert_eq!(counts(&services[0]["targets"][1]), (json!(1), json!(0)));
    assert_eq!(counts(&services[0]["targets"][0]), (json!(0), json!(0)), "left out by its probe");
}

#[tokio::test]
async fn failures_of_targets_and_of_chains_in_groups() {
    let target = Target::start(Does::Echo).await;
    let (down, _held) = refusing();
    let (dead, _held) = refusing();
    let nodes =
        json!([{"name": "one", "addr": down.to_string()}, {"name": "two", "addr": target.addr.to_string()}]);
    let fifo = json!({"strategy": "fifo", "failTimeout": "600s"});
    let forwarder = json!({"nodes": nodes, "selector": fifo});
    let direct = json!({"handler": {"chain": ""}, "forwarder": forwarder});
    let entry = Entry::in_runtime(Runtime::new(RuntimeOptions::default()), target.addr, direct).await;
    entry.echo().await.unwrap();
    let report = entry.runtime.service_report("f").unwrap();
    assert_eq!(
        serde_json::to_value(&report.targets[0].failures_by_kind).unwrap(),
        json!({"connect_refused": 1})
    );
    assert!(report.targets[0].marked && !report.targets[1].marked);

    let (target, exit) = (Target::start(Does::Echo).await, Exit::start(1, "tcp").await);
    let runtime = Runtime::new(RuntimeOptions::default());
    for (name, node) in [("a", node("x", dead, "tcp")), ("b", exit.node("y", "tcp"))] {
        let config = json!({"name": name, "hops": [{"name": "h", "nodes": [node]}]});
        runtime.apply(Change::AddChain(chain(config))).await.unwrap();
    }
    let nodes =
        json!([{"name": "one", "addr": down.to_string()}, {"name": "two", "addr": target.addr.to_string()}]);
    let forwarder = json!({"nodes": nodes, "selector": fifo});
    let more = json!({
        "handler": {"chain": null, "chainGroup": {"chains": ["a", "none", "b"], "selector": fifo}},
        "forwarder": forwarder
    });
    let entry = Entry::in_runtime(runtime, target.addr, more).await;
    entry.echo().await.unwrap();
    let report = serde_json::to_value(entry.runtime.service_report("f").unwrap()).unwrap();
    assert_eq!(report["chains"][0]["failuresByKind"], json!({"connect_refused": 1}));
    assert_eq!(report["chains"][0]["marked"], true);
    assert_eq!(report["chains"][1]["failuresByKind"], json!({}), "it does not exist, so it is not tried");
    assert_eq!(report["chains"][2]["failuresByKind"], json!({"target_unreachable": 1}), "the first target");
    assert_eq!(report["targets"][0]["failuresByKind"], json!({"target_unreachable": 1}));
    target.assert_only_exits_came();
}

/// Sends this, and reads until the service is done with the client.
async fn refused(service: SocketAddr, bytes: &[u8]) {
    let mut stream = soon(TcpStream::connect(service)).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let _ = soon(stream.read_to_end(&mut Vec::new())).await;
}

#[tokio::test]
async fn refused_clients_by_reason_and_service() {
    let auth = json!({"username": "user", "password": "pass"});
    let relay = json!({"type": "relay", "auth": auth});
    let (dead, _held) = refusing();
    let runtime = Runtime::new(impatient());
    runtime.apply(Change::AddChain(fifo(&[node("a", dead, "tcp")]))).await.unwrap();
    let served = |name: &str, handler: Value, listener: &str, metadata: Value| {
        service(
            json!({"name": name, "addr": "127.0.0.1:0", "handler": handler, "listener": {"type": listener},
            "metadata": metadata}),
        )
    };
    let timeout = json!({"type": "relay", "metadata": {"readTimeout": "1ms"}});
    let services = vec![
        served("relay", relay.clone(), "tcp", json!({})),
        served("tls", relay, "tls", json!({})),
        served("ws", json!({"type": "relay"}), "ws", json!({})),
        served("socks", json!({"type": "socks5", "auth": auth}), "tcp", json!({})),
        served("open", json!({"type": "socks5"}), "tcp", json!({})),
        served("http", json!({"type": "http", "auth": auth}), "tcp", json!({})),
        served("auto", json!({"type": "auto"}), "tcp", json!({})),
        served("proxied", json!({"type": "relay"}), "tcp", json!({"proxyProtocol": 1})),
        served("chained", json!({"type": "socks5", "chain": "c"}), "tcp", json!({})),
        served("nowhere", json!({"type": "socks5", "chain": "none"}), "tcp", json!({})),
        served("late", timeout, "tcp", json!({})),
    ];
    runtime.apply(Change::AddServices(services)).await.unwrap();
    let at = |name: &str| runtime.listening(name).unwrap();
    let ask = socks5_to(dead);

    refused(at("relay"), &[9, 1, 0, 0]).await;
    let unknown = [&[1, 1, 0, 10, 2, 0, 7, 1, 127, 0, 0, 1, 0, 9][..]].concat();
    refused(at("relay"), &unknown).await;
    drop(TcpStream::connect(at("relay")).await.unwrap());
    refused(at("tls"), b"GET / HTTP/1.1\r\n\r\n").await;
    refused(at("ws"), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    refused(at("socks"), b"\x05\x01\x02\x01\x04user\x03not").await;
    refused(at("socks"), b"GET / HTTP/1.1\r\n\r\n").await;
    http(at("http"), "CONNECT x.example:1 HTTP/1.1\r\n\r\n").await.unwrap();
    http(at("http"), "GET / HTTP/1.1\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n").await.unwrap();
    refused(at("auto"), b"\0\0\0\0").await;
    refused(at("proxied"), b"hello, this is no header of any version").await;
    refused(at("open"), b"\x05\x01\x00\x05\x02\x00\x01\x7f\0\0\x01\0\x01").await;
    assert_eq!(socks5(at("open"), &ask).await.unwrap().1, 5);
    assert_eq!(socks5(at("chained"), &ask).await.unwrap().1, 1);
    assert_eq!(socks5(at("nowhere"), &ask).await.unwrap().1, 1);
    let mut late = TcpStream::connect(at("late")).await.unwrap();
    let _ = soon(late.read(&mut [0])).await;

    let expected = [
        ("relay", json!({"request": 1, "credentials": 1, "client_left": 1})),
        ("tls", json!({"tls": 1})),
        ("ws", json!({"handshake": 1})),
        ("socks", json!({"credentials": 1, "request": 1})),
        ("http", json!({"credentials": 1, "request": 1})),
        ("auto", json!({"request": 1})),
        ("proxied", json!({"proxy_header": 1})),
        ("open", json!({"unsupported": 1, "target": 1})),
        ("chained", json!({"no_exit": 1})),
        ("nowhere", json!({"no_chain": 1})),
        ("late", json!({"request_timeout": 1})),
    ];
    let api = api(&runtime, None).await;
    for (name, reasons) in &expected {
        let lines: Vec<_> = reasons
            .as_object()
            .unwrap()
            .iter()
            .map(|(reason, count)| {
                format!(
                    r#"exitpilot_agent_service_refused_total{{service="{name}",reason="{reason}"}} {count}"#
                )
            })
            .collect();
        says(api, &lines).await;
        let report = serde_json::to_value(runtime.service_report(name).unwrap()).unwrap();
        assert_eq!(report["refused"], *reasons, "{name}: and for no other reason");
    }
    says(api, &[r#"exitpilot_agent_connections_refused_total{reason="request"} 4"#.to_owned()]).await;
    assert_eq!(runtime.report().refused, 2, "of the services with chains");
}

fn socks5_to(target: SocketAddr) -> Vec<u8> {
    crate::proxy_rig::socks5_request(target)
}

#[tokio::test]
async fn a_service_that_names_no_limiter_there_is_says_so() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    let more = json!({"handler": {"chain": ""}, "limiter": "5", "climiter": "5, 6"});
    let entry = Entry::in_runtime(runtime, target.addr, more).await;
    let api = api(&entry.runtime, None).await;
    let missing = async || json(api, "/v1/services").await[0]["missingLimiters"].clone();
    let metric = |count| [format!(r#"exitpilot_agent_service_missing_limiters{{service="f"}} {count}.0"#)];
    assert_eq!(missing().await, json!(["limiter 5", "climiter 5", "climiter 6"]));
    says(api, &metric(3)).await;
    // A panel may send them later; a limiter of another kind is another limiter.
    let limiter = |name: &str| serde_json::from_value(json!({"name": name, "limits": ["$ 1"]})).unwrap();
    let add = |kind, name| entry.runtime.apply(Change::AddLimiter(kind, limiter(name)));
    add(LimitKind::Rate, "6").await.unwrap();
    assert_eq!(missing().await.as_array().unwrap().len(), 3);
    add(LimitKind::Connections, "6").await.unwrap();
    assert_eq!(missing().await, json!(["limiter 5", "climiter 5"]));
    entry.runtime.apply(Change::DeleteLimiter(LimitKind::Connections, "6".into())).await.unwrap();
    says(api, &metric(3)).await;
}

#[test]
fn the_documentation_has_every_word() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/agent-metrics.md");
    let text = std::fs::read_to_string(path).unwrap();
    let kinds = agent::chain::failure::FailureKind::ALL.map(|kind| kind.as_str());
    let reasons = agent::service::refused::RefusedBy::ALL.map(|by| by.as_str());
    for word in kinds.iter().chain(&reasons) {
        assert!(text.contains(&format!("`{word}`")), "{word} is missing");
    }
}

#[tokio::test]
async fn how_many_clients_each_service_has_and_had() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "mtls").await;
    let entry = Entry::start(&[exit.node("a", "mtls")], target.addr).await;
    let (api, exit_api) = (api(&entry.runtime, None).await, api(&exit.runtime, None).await);
    let metrics = |service: &str, total: u32, open: u32| {
        [
            format!(r#"exitpilot_agent_service_connections_total{{service="{service}"}} {total}"#),
            format!(r#"exitpilot_agent_service_connections_open{{service="{service}"}} {open}.0"#),
        ]
    };
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = entry.connect().await;
        client.write_all(b"x").await.unwrap();
        soon(client.read_u8()).await.unwrap();
        clients.push(client);
    }
    says(api, &metrics("f", 3, 3)).await;
    // Each stream of the one connection between them.
    says(exit_api, &metrics("exit", 3, 3)).await;
    let services = json(api, "/v1/services").await;
    assert_eq!((&services[0]["connections"], &services[0]["open"]), (&json!(3), &json!(3)));
    // A changed service is still the same one to those who count.
    let changed =
        merged_forward(target.addr, json!({"handler": {"retries": 2}, "addr": entry.addr.to_string()}));
    entry.runtime.apply(Change::UpsertServices(vec![service(changed)])).await.unwrap();
    drop(clients);
    says(api, &metrics("f", 3, 0)).await;
    says(exit_api, &metrics("exit", 3, 0)).await;
    entry.echo().await.unwrap();
    says(api, &metrics("f", 4, 0)).await;
}

#[tokio::test]
async fn the_documentation_has_every_metric() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/agent-metrics.md");
    let text = std::fs::read_to_string(path).unwrap();
    let target = Target::start(Does::Echo).await;
    let entry = Entry::start(&[], target.addr).await;
    let metrics = get(api(&entry.runtime, None).await, "/metrics").await;
    let types = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE exitpilot_agent_"));
    let mut names = 0;
    for (name, kind) in types.filter_map(|line| line.split_once(' ')) {
        let total = if kind == "counter" { "_total" } else { "" };
        // Those of nodes, targets and chains have the same names behind their prefixes.
        let member =
            ["exit_", "target_", "service_chain_"].iter().find_map(|prefix| name.strip_prefix(prefix));
        let word = format!("`{}{total}`", member.unwrap_or(name));
        assert!(text.contains(&word), "{word} is missing");
        names += 1;
    }
    assert!(names > 10, "{metrics}");
}
