//! Groups around groups, datagrams, and the API, where choices are decided ahead of connections.

use crate::api_rig::{TOKEN, api, json as get_json};
use crate::policies::{Page, exits, now};
use crate::rig::*;
use crate::udp_rig::{UdpEntry, UdpTarget};
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use shared::link::ConnectThrough;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test]
async fn when_a_group_inside_moves_the_one_around_tests_that_chain_anew() {
    let (target, page, exits) = (Target::start(Does::Echo).await, Page::start().await, exits::<3>().await);
    let runtime = Runtime::new(RuntimeOptions::default());
    let nodes = [exits[0].node("a", "tcp"), exits[1].node("b", "tcp")];
    let inside = json!({"name": "h", "selector": {"strategy": "selector"}, "nodes": nodes});
    let lone = json!({"name": "h", "nodes": [exits[2].node("c", "tcp")]});
    for (name, hop) in [("inside", inside), ("lone", lone)] {
        runtime.apply(Change::AddChain(chain(json!({"name": name, "hops": [hop]})))).await.unwrap();
    }
    page.answer(exits[2].from, 204, 1000);
    let strategy = format!("urltest(url={}, interval=1h, interrupt=on_switch)", page.url());
    let group = json!({"chains": ["inside", "lone"], "selector": {"strategy": strategy}});
    let service = service(json!({
        "name": "f", "addr": "127.0.0.1:0", "listener": {"type": "tcp"},
        "handler": {"type": "tcp", "chainGroup": group},
        "forwarder": {"nodes": [{"name": "t", "addr": target.addr.to_string()}]}
    }));
    runtime.apply(Change::AddServices(vec![service])).await.unwrap();
    let (addr, around) = (runtime.listening("f").unwrap(), "service/f/chains");
    eventually("both chains are tested", || {
        runtime.group(around).unwrap().members.iter().all(|member| member.latency_ms.is_some())
    })
    .await;
    assert_eq!(now(&runtime, around).as_deref(), Some("inside"));
    let mut through_a = TcpStream::connect(addr).await.unwrap();
    through_a.write_all(b"ping").await.unwrap();
    soon(through_a.read_exact(&mut [0; 4])).await.unwrap();

    // Through the other node inside, the page is not there.
    page.answer(exits[1].from, 503, 0);
    runtime.choose("chain/inside/h", Some("b".into())).await.unwrap();
    eventually("the group around leaves it", || now(&runtime, around).as_deref() == Some("lone")).await;
    // It went through the group around on what was left, though the group inside closes nothing.
    let ended = soon(through_a.read(&mut [0; 4])).await;
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    echo(addr).await.unwrap();
    assert_eq!(target.peers(), [exits[0].from, exits[2].from]);
    target.assert_only_exits_came();
}

#[tokio::test]
async fn sessions_of_datagrams_end_with_the_member_that_was_left() {
    let (target, exits) = (UdpTarget::start().await, exits::<2>().await);
    let runtime = Runtime::new(RuntimeOptions::default());
    let nodes = [
        json!({"name": "proxy", "addr": "192.0.2.1:1080", "connector": {"type": "socks5"}}),
        exits[0].node("a", "tcp"),
        exits[1].node("b", "tcp"),
    ];
    let metadata = json!({"default": "a", "interruptExistConnections": true});
    let hop =
        json!({"name": "h", "selector": {"strategy": "selector", "metadata": metadata}, "nodes": nodes});
    runtime.apply(Change::AddChain(chain(json!({"name": "c", "hops": [hop]})))).await.unwrap();
    let entry = UdpEntry::in_runtime(runtime, &[target.addr], json!({"handler": {"chain": "c"}})).await;
    let client = entry.client().await;
    client.echo(b"one").await;
    client.echo(b"two").await;
    entry.runtime.choose("chain/c/h", Some("b".into())).await.unwrap();
    // The end of the old session and a datagram may cross; clients repeat themselves.
    soon(async {
        loop {
            client.send(b"three").await;
            let answer = tokio::time::timeout(std::time::Duration::from_millis(200), client.receive()).await;
            if answer.is_ok() && target.peer_ips().last() == Some(&exits[1].from) {
                break;
            }
        }
    })
    .await;
    target.assert_only_exits_sent();
    // A member that carries no datagrams is none for them: nobody, and not somebody else.
    entry.runtime.choose("chain/c/h", Some("proxy".into())).await.unwrap();
    let used = entry.runtime.group("chain/c/h").unwrap().now;
    assert_eq!((used.get("tcp4").map(String::as_str), used.get("udp4")), (Some("proxy"), None));
}

/// Status and body.
async fn ask(api: SocketAddr, line: &str, body: &str) -> (u16, Value) {
    soon(async {
        let mut stream = TcpStream::connect(api).await.unwrap();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    })
    .await
}

#[tokio::test]
async fn the_api_lists_chooses_clears_and_tries() {
    let (page, exits) = (Page::start().await, exits::<2>().await);
    page.answer(exits[1].from, 500, 0);
    let runtime = Runtime::new(RuntimeOptions::default());
    let nodes = [exits[0].node("a", "tcp"), exits[1].node("b", "tcp")];
    let hop = json!({"name": "h", "selector": {"strategy": "selector"}, "nodes": nodes});
    let tested =
        json!({"name": "t", "selector": {"strategy": format!("min(url={})", page.url())}, "nodes": nodes});
    runtime.apply(Change::AddChain(chain(json!({"name": "c", "hops": [hop]})))).await.unwrap();
    runtime.apply(Change::AddChain(chain(json!({"name": "d", "hops": [tested]})))).await.unwrap();
    let api = api(&runtime, None).await;
    let all = get_json(api, "/v1/groups").await;
    assert_eq!((&all[0]["name"], &all[1]["name"]), (&json!("chain/c/h"), &json!("chain/d/t")));
    assert_eq!(all[0]["policy"], "selector(interrupt=never, drain=0ms)");

    let group = "/v1/groups/chain/c/h";
    let (status, chosen) = ask(api, &format!("PUT {group}"), r#"{"member": "b"}"#).await;
    assert_eq!((status, &chosen["choice"], &chosen["now"]["udp6"]), (200, &json!("b"), &json!("b")));
    for (line, body, expected) in [
        (format!("PUT {group}"), r#"{"member": "x"}"#, 422),
        (format!("PUT {group}"), r#"{"name": "a"}"#, 422),
        ("PUT /v1/groups/chain/d/t".into(), r#"{"member": "a"}"#, 409),
        ("PUT /v1/groups/chain/x".into(), r#"{"member": "a"}"#, 404),
        ("GET /v1/groups/x".into(), "", 404),
        ("POST /v1/groups/x".into(), "{}", 404),
        (format!("POST {group}"), r#"{"url": "ftp://x"}"#, 422),
        (format!("POST {group}"), r#"{"timeoutMs": 0}"#, 422),
    ] {
        let (status, answer) = ask(api, &line, body).await;
        assert_eq!(status, expected, "{line}: {answer}");
    }
    assert_eq!(get_json(api, group).await["choice"], "b", "what was refused changed nothing");

    let trial = json!({"url": page.url(), "timeoutMs": 20_000}).to_string();
    let (status, tried) = ask(api, &format!("POST {group}"), &trial).await;
    assert_eq!((status, &tried["b"]), (200, &json!({"error": "status 500"})));
    assert!(tried["a"]["latencyMs"].is_number(), "{tried}");
    let seen = get_json(api, group).await;
    assert_eq!((&seen["choice"], &seen["members"][0]["state"]), (&json!("b"), &json!("no_data")));

    let (status, cleared) = ask(api, &format!("DELETE {group}"), "").await;
    assert_eq!((status, &cleared["now"]["tcp4"], cleared.get("choice")), (200, &json!("a"), None));
}

#[tokio::test]
async fn a_trial_goes_the_way_that_connections_go() {
    let (target, exits) = (Target::start(Does::Echo).await, exits::<1>().await);
    let runtime = Runtime::new(RuntimeOptions::default());
    let (refused, _held) = refusing();
    let mut works = exits[0].node("works", "tcp");
    works["metadata"] = json!({"addLatency": "5ms"});
    let nodes = [node("dead", refused, "tcp"), works];
    let hop = json!({"name": "h", "selector": {"strategy": "selector"}, "nodes": nodes});
    runtime.apply(Change::AddChain(chain(json!({"name": "c", "hops": [hop]})))).await.unwrap();
    let trial = async |via: Option<SocketAddr>| {
        let ask = ConnectThrough {
            chain: "c".into(),
            target: target.addr.to_string(),
            via: via.map(|addr| addr.to_string()),
            timeout_ms: 30_000,
        };
        soon(runtime.connect_through(&ask)).await.is_ok()
    };
    assert!(!trial(None).await, "nobody chose the other");
    assert!(trial(Some(exits[0].addr)).await, "this one was asked for");
    runtime.choose("chain/c/h", Some("works".into())).await.unwrap();
    assert!(trial(None).await);
    assert_eq!(target.peers(), [exits[0].from, exits[0].from]);
}
