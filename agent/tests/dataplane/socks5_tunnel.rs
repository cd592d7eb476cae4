//! Datagrams on SOCKS5 connections, as GOST carries them: nodes that are SOCKS5 proxies, and the handler for such clients.

use crate::proxy_rig::*;
use crate::rig::*;
use crate::udp_rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Asks for datagrams on the connection.
const TUNNEL: &[u8] = b"\x05\xf3\0\x01\0\0\0\0\0\0";
const LOGIN: [&str; 2] = ["user", "pass"];

fn auth() -> Value {
    json!({"username": LOGIN[0], "password": LOGIN[1]})
}

async fn exit(number: u8, listener: &str) -> Exit {
    Exit::with(number, listener, json!({"type": "socks5", "auth": auth(), "metadata": {"udp": true}})).await
}

fn socks5_node(name: &str, addr: SocketAddr, dialer: &str) -> Value {
    json!({"name": name, "addr": addr.to_string(), "dialer": {"type": dialer},
        "connector": {"type": "socks5", "auth": auth()}})
}

/// A frame: what a client writes, and what comes back from there.
fn addressed(target: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let mut frame = socks5_request(target);
    frame[..2].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    frame[2] = 0xff;
    frame.extend(payload);
    frame
}

#[tokio::test]
async fn a_session_through_every_kind_of_connection() {
    let target = UdpTarget::start().await;
    for transport in ["tcp", "tls", "ws", "mtls"] {
        let exit = exit(3, transport).await;
        let entry = UdpEntry::through(&[socks5_node("a", exit.addr, transport)], target.addr).await;
        let (one, two) = (entry.client().await, entry.client().await);
        for size in [1, 2, 1400, 20_000, LARGEST, 3] {
            one.echo(&vec![size as u8; size]).await;
            two.echo(&vec![!size as u8; size]).await;
        }
        assert_eq!(target.peer_ips().last(), Some(&exit.from));
        assert!(entry.runtime.report().chains[0].nodes.iter().all(|node| !node.marked), "{transport}");
    }
    target.assert_only_exits_sent();
}

#[tokio::test]
async fn the_exit_resolves_names() {
    let target = UdpTarget::start().await;
    let exit = exit(3, "tcp").await;
    let more = json!({"handler": {"chain": "c"}, "forwarder": {"nodes": [
        {"name": "n", "addr": format!("localhost:{}", target.addr.port())}]}});
    let runtime = Runtime::new(RuntimeOptions::default());
    runtime.apply(Change::AddChain(fifo(&[socks5_node("a", exit.addr, "tcp")]))).await.unwrap();
    let entry = UdpEntry::in_runtime(runtime, &[target.addr], more).await;
    entry.client().await.echo(b"by name").await;
    target.assert_only_exits_sent();
}

#[tokio::test]
async fn behind_another_hop_and_behind_a_relay() {
    let target = UdpTarget::start().await;
    let (first, last) = (Exit::start(2, "tls").await, exit(3, "tcp").await);
    let hops = [first.node("first", "tls"), socks5_node("last", last.addr, "tcp")];
    let hops = hops.map(|node| json!({"name": node["name"], "nodes": [node]}));
    let two_hops = || chain(json!({"name": "c", "hops": hops}));
    let runtime = Runtime::new(RuntimeOptions::default());
    runtime.apply(Change::AddChain(two_hops())).await.unwrap();
    let entry = UdpEntry::in_runtime(runtime, &[target.addr], json!({"handler": {"chain": "c"}})).await;
    entry.client().await.echo(b"two hops").await;
    assert_eq!(target.peer_ips(), [last.from]);

    // What a relay client sends in frames is passed on in others.
    let runtime = Runtime::new(RuntimeOptions::default());
    runtime.apply(Change::AddChain(two_hops())).await.unwrap();
    let relay = json!({"name": "r", "addr": "127.0.0.1:0", "handler": {"type": "relay", "chain": "c"},
        "listener": {"type": "tcp"}});
    runtime.apply(Change::AddServices(vec![service(relay)])).await.unwrap();
    let relay = runtime.listening("r").unwrap();
    let entry = UdpEntry::through(&[node("relay", relay, "tcp")], target.addr).await;
    let client = entry.client().await;
    for size in [1, 1400, LARGEST] {
        client.echo(&vec![7; size]).await;
    }
    assert_eq!(target.peer_ips().last(), Some(&last.from));
    target.assert_only_exits_sent();
}

#[tokio::test]
async fn a_node_that_carries_none_is_passed_over_without_blame() {
    let target = UdpTarget::start().await;
    let without = Exit::with(2, "tcp", json!({"type": "socks5", "auth": auth()})).await;
    // What GOST says while it is not configured to.
    let (forbids, _) = scripted(|stream| denying(stream, 2)).await;
    let exit = exit(3, "tcp").await;
    let nodes = [
        socks5_node("without", without.addr, "tcp"),
        socks5_node("forbids", forbids, "tcp"),
        socks5_node("fine", exit.addr, "tcp"),
    ];
    let entry = UdpEntry::through(&nodes, target.addr).await;
    entry.client().await.echo(b"ping").await;
    let report = entry.runtime.report();
    assert!(report.chains[0].nodes.iter().all(|node| !node.marked), "{report:?}");

    // Without the one that does, there is none, and the datagram goes nowhere.
    let entry = UdpEntry::through(&nodes[..2], target.addr).await;
    let client = entry.client().await;
    client.send(b"alone").await;
    eventually("the refusal is counted", || entry.runtime.report().refused == 1).await;
    assert_eq!(target.seen(), [b"ping"]);
    target.assert_only_exits_sent();
}

#[tokio::test]
async fn a_node_that_fails_is_held_to_it() {
    let target = UdpTarget::start().await;
    let exit = exit(3, "tcp").await;
    let (fails, _) = scripted(|stream| denying(stream, 1)).await;
    let nodes = [socks5_node("fails", fails, "tcp"), socks5_node("fine", exit.addr, "tcp")];
    let entry = UdpEntry::through(&nodes, target.addr).await;
    entry.client().await.echo(b"ping").await;
    let report = entry.runtime.report();
    let marked: Vec<_> = report.chains[0].nodes.iter().map(|node| node.marked).collect();
    assert_eq!(marked, [true, false]);
    target.assert_only_exits_sent();
}

/// Takes the login, and answers the request so.
async fn denying(mut stream: TcpStream, reply: u8) {
    let _ = stream.read_exact(&mut [0; 4]).await;
    let _ = stream.write_all(&[5, 2]).await;
    let _ = stream.read_exact(&mut [0; 11]).await;
    let _ = stream.write_all(&[1, 0]).await;
    let _ = stream.read_exact(&mut [0; 10]).await;
    let _ = stream.write_all(&[5, reply, 0, 1, 0, 0, 0, 0, 0, 0]).await;
    let _ = stream.read(&mut [0; 1]).await;
}

#[tokio::test]
async fn what_others_send_to_the_exits_port_does_not_come_back() {
    let asked: Arc<Mutex<Vec<u8>>> = Arc::default();
    let log = asked.clone();
    let (addr, _) = scripted(move |mut stream| {
        let log = log.clone();
        async move {
            stream.read_exact(&mut [0; 3]).await.unwrap();
            stream.write_all(&[5, 0]).await.unwrap();
            let mut request = [0; 10];
            stream.read_exact(&mut request).await.unwrap();
            log.lock().unwrap().extend(request);
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
            let mut frame = vec![0; addressed(([192, 0, 2, 1], 53).into(), b"ask").len()];
            stream.read_exact(&mut frame).await.unwrap();
            log.lock().unwrap().extend(frame);
            for (source, payload) in [([192, 0, 2, 2], b"forged"), ([192, 0, 2, 1], b"answer")] {
                stream.write_all(&addressed((source, 53).into(), payload)).await.unwrap();
            }
            let _ = stream.read(&mut [0; 1]).await;
        }
    })
    .await;
    let node = json!({"name": "n", "addr": addr.to_string(), "connector": {"type": "socks5"},
        "dialer": {"type": "tcp"}});
    let target = SocketAddr::from(([192, 0, 2, 1], 53));
    let entry = UdpEntry::through(&[node], target).await;
    let client = entry.client().await;
    client.send(b"ask").await;
    assert_eq!(client.receive().await, b"answer");
    assert_eq!(*asked.lock().unwrap(), [TUNNEL, &addressed(target, b"ask")].concat());
}

#[tokio::test]
async fn the_handler_serves_many_targets_on_one_connection() {
    let (one, two) = (UdpTarget::start().await, UdpTarget::start().await);
    let direct = Exit::with(1, "tcp", json!({"type": "socks5", "metadata": {"udp": true}})).await;
    let exit = exit(3, "tcp").await;
    let more = json!({"handler": {"type": "socks5", "metadata": {"udp": true}}, "forwarder": null});
    let nodes = [socks5_node("a", exit.addr, "tcp")];
    let chained = Entry::with(RuntimeOptions::default(), &nodes, one.addr, more).await;
    for (proxy, from) in [(direct.addr, direct.from), (chained.addr, exit.from)] {
        let (mut stream, reply) = socks5_with_address(proxy, TUNNEL).await;
        assert_eq!(reply, 0);
        for target in [&one, &two, &one] {
            // Cut anywhere.
            for byte in addressed(target.addr, b"ping") {
                stream.write_all(&[byte]).await.unwrap();
            }
            let expected = addressed(target.addr, b"ping");
            let mut answer = vec![0; expected.len()];
            soon(stream.read_exact(&mut answer)).await.unwrap();
            assert_eq!(answer, expected);
        }
        assert_eq!((one.peer_ips().last(), two.peer_ips().last()), (Some(&from), Some(&from)));
    }
    one.assert_only_exits_sent();
    two.assert_only_exits_sent();
}

/// As [`socks5`], but the reply may have any address of version 4.
async fn socks5_with_address(proxy: SocketAddr, request: &[u8]) -> (TcpStream, u8) {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(&[5, 1, 0]).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut reply = [0; 12];
    soon(stream.read_exact(&mut reply)).await.unwrap();
    assert_eq!((&reply[..3], &reply[4..6]), (&[5, 0, 5][..], &[0, 1][..]));
    (stream, reply[3])
}

#[tokio::test]
async fn the_handler_does_neither_listen_nor_carry_what_it_is_not_told_to() {
    let open = Exit::with(1, "tcp", json!({"type": "socks5", "metadata": {"udp": true}})).await;
    let closed = proxy("socks5").await;
    let listening = b"\x05\xf3\0\x01\x7f\0\0\x01\x1f\x90";
    for (proxy, request) in [(open.addr, &listening[..]), (closed.addr, TUNNEL)] {
        let (mut stream, reply) = socks5(proxy, request).await.unwrap();
        assert_eq!(reply, 7);
        assert_eq!(soon(stream.read(&mut [0; 1])).await.unwrap(), 0);
    }
}
