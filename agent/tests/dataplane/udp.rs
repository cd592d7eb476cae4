//! Datagrams from clients to targets: sessions, ways, limits.

use crate::rig::*;
use crate::udp_rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::UdpSocket;

/// Datagrams of different lengths, each recognisable.
fn sizes() -> Vec<Vec<u8>> {
    [64, 0, 1, 1472, 4097, 16_384, 65_000, LARGEST, 64].map(|len| vec![len as u8; len]).into()
}

#[tokio::test]
async fn datagrams_of_all_sizes_go_and_come_back_directly() {
    let target = UdpTarget::start().await;
    let entry = UdpEntry::direct(&[target.addr], json!({})).await;
    let client = entry.client().await;
    for datagram in sizes() {
        client.echo(&datagram).await;
    }
    assert_eq!(target.peers().len(), 1, "one session, one source port");
}

#[tokio::test]
async fn datagrams_of_all_sizes_go_and_come_back_through_an_exit() {
    for transport in ["tcp", "tls"] {
        let target = UdpTarget::start().await;
        let exit = Exit::start(1, transport).await;
        let entry = UdpEntry::through(&[exit.node("a", transport)], target.addr).await;
        let client = entry.client().await;
        for datagram in sizes() {
            client.echo(&datagram).await;
        }
        assert_eq!(target.peer_ips(), [exit.from], "{transport}: one session, through the exit");
    }
}

#[tokio::test]
async fn two_hops_and_a_relay_with_a_chain_of_its_own() {
    let target = UdpTarget::start().await;
    let (middle, exit) = (Exit::start(1, "tls").await, Exit::start(2, "tcp").await);
    let runtime = Runtime::new(RuntimeOptions::default());
    let hop = |name: &str, node| json!({"name": name, "nodes": [node]});
    let hops = [hop("h1", middle.node("m", "tls")), hop("h2", exit.node("x", "tcp"))];
    runtime.apply(Change::AddChain(chain(json!({"name": "c", "hops": hops})))).await.unwrap();
    let entry = UdpEntry::in_runtime(runtime, &[target.addr], json!({"handler": {"chain": "c"}})).await;
    entry.client().await.echo(&[7; 65_000]).await;

    let relay = Runtime::new(RuntimeOptions::default());
    relay.apply(Change::AddChain(fifo(&[exit.node("x", "tcp")]))).await.unwrap();
    let relay = Exit::in_runtime(relay, 3, "tls", json!({"type": "relay", "chain": "c"})).await;
    let entry = UdpEntry::through(&[relay.node("r", "tls")], target.addr).await;
    entry.client().await.echo(&[8; 65_000]).await;
    assert_eq!(target.peer_ips(), [exit.from; 2]);
}

#[tokio::test]
async fn many_clients_each_get_their_own_answers() {
    let target = UdpTarget::start().await;
    let exit = Exit::start(1, "tcp").await;
    let entry = UdpEntry::through(&[exit.node("a", "tcp")], target.addr).await;
    let mut clients = Vec::new();
    for _ in 0..200 {
        clients.push(entry.client().await);
    }
    for round in 0..3 {
        for (i, client) in clients.iter().enumerate() {
            client.send(format!("{round} {i}").as_bytes()).await;
        }
        for (i, client) in clients.iter().enumerate() {
            assert_eq!(client.receive().await, format!("{round} {i}").as_bytes());
        }
    }
    assert_eq!(target.peers().len(), clients.len());
    target.assert_only_exits_sent();
}

#[tokio::test(start_paused = true)]
async fn a_session_lives_while_datagrams_flow_in_either_direction() {
    let time = Frozen::start();
    let target = UdpTarget::start().await;
    let exit = Exit::start(1, "tcp").await;
    for through_exit in [false, true] {
        let before = target.peers().len();
        let entry = if through_exit {
            UdpEntry::through(&[exit.node("a", "tcp")], target.addr).await
        } else {
            UdpEntry::direct(&[target.addr], json!({})).await
        };
        let client = entry.client().await;
        client.echo(b"begin").await;
        let source = target.peers()[before];
        for _ in 0..4 {
            time.pass(Duration::from_secs(20)).await;
            client.echo(b"both directions").await;
        }
        for _ in 0..4 {
            time.pass(Duration::from_secs(20)).await;
            target.socket.send_to(b"down", source).await.unwrap();
            assert_eq!(client.receive().await, b"down");
        }
        let mute = UdpTarget::mute().await;
        assert_eq!(target.peers().len(), before + 1, "160 s, one session of 30 s");
        let config = udp_forward("u", &[mute.addr], json!({"addr": entry.addr.to_string()}));
        entry.runtime.apply(Change::UpsertServices(vec![service(config)])).await.unwrap();
        let upward = entry.client().await;
        for round in 1..=4 {
            upward.send(b"up").await;
            while mute.seen().len() < round {
                tokio::task::yield_now().await;
            }
            time.pass(Duration::from_secs(20)).await;
        }
        assert_eq!(mute.peers().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_session_and_frees_its_place() {
    let time = Frozen::start();
    let target = UdpTarget::start().await;
    let exit = Exit::start(1, "tcp").await;
    let options = RuntimeOptions { session_limit: Some(1), ..RuntimeOptions::default() };
    let entry = UdpEntry::with(options, &[exit.node("a", "tcp")], target.addr).await;
    let (one, two) = (entry.client().await, entry.client().await);
    one.echo(b"one").await;
    time.pass(Duration::from_secs(29)).await;
    two.send(b"no room").await;
    while entry.runtime.dropped() == 0 {
        tokio::task::yield_now().await;
    }
    time.pass(Duration::from_secs(2)).await;
    two.echo(b"two").await;
    assert_eq!(target.seen(), [b"one", b"two"]);
    assert_eq!(target.peers().len(), 2);
    // The exit has let go too: its answer would come to nobody.
    assert_eq!(entry.runtime.report().chains[0].nodes[0].open, 1);
}

#[tokio::test(start_paused = true)]
async fn the_default_lifetime_is_five_seconds_and_one_answer_ends_a_session_only_if_that_is_asked_for() {
    let time = Frozen::start();
    let target = UdpTarget::start().await;
    let entry = UdpEntry::direct(&[target.addr], json!({"listener": {"metadata": null}})).await;
    let client = entry.client().await;
    client.echo(b"1").await;
    time.pass(Duration::from_secs(4)).await;
    client.echo(b"2").await;
    assert_eq!(target.peers().len(), 1);
    time.pass(Duration::from_secs(5)).await;
    client.echo(b"3").await;
    assert_eq!(target.peers().len(), 2);

    let once = json!({"listener": {"metadata": {"keepAlive": false}}});
    let entry = UdpEntry::direct(&[target.addr], once).await;
    let client = entry.client().await;
    client.echo(b"4").await;
    time.pass(Duration::ZERO).await;
    client.echo(b"5").await;
    assert_eq!(target.peers().len(), 4);
}

#[tokio::test]
async fn a_session_keeps_its_exit_when_the_chain_changes() {
    let target = UdpTarget::start().await;
    let (a, b) = (Exit::start(1, "tcp").await, Exit::start(2, "tcp").await);
    let entry = UdpEntry::through(&[a.node("a", "tcp")], target.addr).await;
    let old = entry.client().await;
    old.echo(b"before").await;
    entry.runtime.apply(Change::UpsertChain(fifo(&[b.node("b", "tcp")]))).await.unwrap();
    old.echo(b"after").await;
    entry.client().await.echo(b"new").await;
    assert_eq!(target.peer_ips(), [a.from, b.from]);
}

#[tokio::test]
async fn a_dead_exit_costs_a_new_session_nothing_but_time() {
    let target = UdpTarget::start().await;
    let (dead, _held) = refusing();
    let (hung, _) = mute().await;
    let exit = Exit::start(3, "tcp").await;
    let nodes = [node("dead", dead, "tcp"), node("hung", hung, "tcp"), exit.node("alive", "tcp")];
    let entry = UdpEntry::with(impatient(), &nodes, target.addr).await;
    entry.client().await.echo(b"first").await;
    entry.client().await.echo(b"second").await;
    assert_eq!(target.peer_ips(), [exit.from; 2]);
    let nodes = &entry.runtime.report().chains[0].nodes;
    assert_eq!(nodes.iter().map(|node| node.marked).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(target.seen(), [&b"first"[..], b"second"]);
}

#[tokio::test]
async fn a_session_whose_exit_dies_is_followed_by_one_through_the_next() {
    let target = UdpTarget::start().await;
    let (a, b) = (Exit::start(1, "tcp").await, Exit::start(2, "tcp").await);
    let entry = UdpEntry::through(&[a.node("a", "tcp"), b.node("b", "tcp")], target.addr).await;
    let client = entry.client().await;
    client.echo(b"before").await;
    a.runtime.shutdown().await;
    eventually("the session is over", || entry.runtime.report().chains[0].nodes[0].open == 0).await;
    // What the entry has from the client while it lets go of the session may be lost; the next is not.
    soon(async {
        let mut buffer = [0; 16];
        loop {
            client.send(b"after").await;
            let answer = tokio::time::timeout(Duration::from_millis(200), client.0.recv(&mut buffer)).await;
            if answer.is_ok() {
                break;
            }
        }
    })
    .await;
    assert_eq!(target.peer_ips()[..2], [a.from, b.from]);
}

#[tokio::test]
async fn without_a_usable_chain_nothing_leaves() {
    let target = UdpTarget::start().await;
    let (dead, _held) = refusing();
    let through_chain = json!({"handler": {"chain": "c"}});
    for nodes in [None, Some(vec![]), Some(vec![node("dead", dead, "tcp")])] {
        let runtime = Runtime::new(RuntimeOptions::default());
        if let Some(nodes) = &nodes {
            runtime.apply(Change::AddChain(fifo(nodes))).await.unwrap();
        }
        let entry = UdpEntry::in_runtime(runtime, &[target.addr], through_chain.clone()).await;
        let client = entry.client().await;
        for _ in 0..5 {
            client.send(b"secret").await;
        }
        eventually("the flow is refused", || entry.runtime.report().refused == 1).await;
        assert!(target.seen().is_empty(), "{nodes:?}");
    }
    // A node that carries no datagrams is no reason to go around it, and is not blamed.
    let runtime = Runtime::new(RuntimeOptions::default());
    let plain = json!({"name": "n", "addr": dead.to_string(), "dialer": {"type": "tcp"},
        "connector": {"type": "tcp"}});
    let listening = Target::start(Does::Echo).await;
    let mut plain = plain;
    plain["addr"] = json!(listening.addr.to_string());
    runtime.apply(Change::AddChain(fifo(&[plain]))).await.unwrap();
    let entry = UdpEntry::in_runtime(runtime, &[target.addr], through_chain).await;
    entry.client().await.send(b"secret").await;
    eventually("the flow is refused", || entry.runtime.report().refused == 1).await;
    assert!(!entry.runtime.report().chains[0].nodes[0].marked);
    assert!(target.seen().is_empty());
}

#[tokio::test]
async fn a_target_that_refuses_is_left_out_by_new_sessions() {
    let target = UdpTarget::start().await;
    let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let nobody = closed.local_addr().unwrap();
    drop(closed);
    let entry = UdpEntry::direct(&[nobody, target.addr], json!({})).await;
    let client = entry.client().await;
    soon(async {
        let mut buffer = [0; 16];
        loop {
            client.send(b"anybody").await;
            let answer = tokio::time::timeout(Duration::from_millis(200), client.0.recv(&mut buffer)).await;
            if answer.is_ok() {
                break;
            }
        }
    })
    .await;
    entry.client().await.echo(b"straight").await;
}

#[tokio::test]
async fn options_of_the_listener() {
    let target: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let build = |metadata| {
        let config = udp_forward("u", &[target], json!({"listener": {"metadata": metadata}}));
        Runtime::validate(&serde_json::from_value(json!({"services": [config]})).unwrap())
    };
    let all = json!({"keepalive": "true", "ttl": "10s", "backlog": 16, "readQueueSize": 10, "readBufferSize": 1500});
    build(all).unwrap();
    let path = "service u: listener.metadata";
    for (metadata, expected) in [
        (json!({"stateless": true}), format!("{path}.stateless: is not supported yet")),
        (json!({"ttl": "soon"}), format!("{path}.ttl: \"soon\" is not a duration")),
        (json!({"keepAlive": "maybe"}), format!("{path}.keepAlive: \"maybe\" is not true or false")),
        (json!({"readQueueSize": -1}), format!("{path}.readQueueSize: -1 is not a whole number")),
        (json!({"speed": 1}), format!("{path}.speed: is not supported")),
    ] {
        let problems = build(metadata).unwrap_err();
        assert!(problems[0].starts_with(&expected), "{problems:?}");
    }
    let config = |handler, listener| {
        let more = json!({"handler": {"type": handler}, "listener": {"type": listener, "metadata": null}});
        let config = udp_forward("u", &[target], more);
        Runtime::validate(&serde_json::from_value(json!({"services": [config]})).unwrap())
    };
    config("forward", "udp").unwrap();
    for (handler, listener, reason) in
        [("udp", "tcp", "udp needs the listener udp"), ("relay", "udp", "relay cannot listen for datagrams")]
    {
        assert_eq!(config(handler, listener).unwrap_err(), [format!("service u: handler.type: {reason}")]);
    }
}

#[tokio::test]
async fn answers_come_from_the_address_that_was_asked() {
    let target = UdpTarget::start().await;
    let entry = UdpEntry::direct(&[target.addr], json!({"addr": "[::]:0"})).await;
    let port = entry.addr.port();
    // A connected socket hears nobody else.
    for ip in ["127.0.0.1", "127.0.0.5", "::1"] {
        let client = if ip == "::1" {
            UdpSocket::bind("[::1]:0").await.unwrap()
        } else {
            UdpSocket::bind("127.0.0.1:0").await.unwrap()
        };
        client.connect((ip, port)).await.unwrap();
        UdpClient(client).echo(ip.as_bytes()).await;
    }
}
