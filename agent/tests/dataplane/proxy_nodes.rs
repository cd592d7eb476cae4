//! Nodes of a chain that are SOCKS5 and HTTP proxies.

use crate::proxy_rig::*;
use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const KINDS: [&str; 2] = ["socks5", "http"];

/// A node that is a proxy of this kind.
fn proxy_node(name: &str, addr: SocketAddr, kind: &str, dialer: &str) -> Value {
    json!({"name": name, "addr": addr.to_string(), "connector": {"type": kind}, "dialer": {"type": dialer}})
}

async fn exit(number: u8, kind: &str, listener: &str) -> Exit {
    Exit::with(number, listener, json!({"type": kind})).await
}

/// A chain of these nodes, one per hop.
async fn entry_with_hops(nodes: &[Value], target: SocketAddr) -> Entry {
    let entry = Entry::start(&[], target).await;
    let hops: Vec<_> = nodes.iter().map(|node| json!({"name": node["name"], "nodes": [node]})).collect();
    entry.runtime.apply(Change::UpsertChain(chain(json!({"name": "c", "hops": hops})))).await.unwrap();
    entry
}

/// A server that answers a SOCKS5 request with this reply, or a request for a connection with this status.
async fn denying(kind: &str, code: u16) -> SocketAddr {
    let http = kind == "http";
    let script = move |mut stream: tokio::net::TcpStream| async move {
        if http {
            let _ = read_head(&mut stream).await;
            let _ =
                stream.write_all(format!("HTTP/1.1 {code} X\r\nContent-Length: 0\r\n\r\n").as_bytes()).await;
        } else {
            let _ = stream.read_exact(&mut [0; 3]).await;
            let _ = stream.write_all(&[5, 0]).await;
            let _ = stream.read_exact(&mut [0; 10]).await;
            let _ = stream.write_all(&[5, code as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await;
        }
        let _ = stream.read(&mut [0; 1]).await;
    };
    scripted(script).await.0
}

#[tokio::test]
async fn every_kind_of_target_through_every_dialer() {
    let target = Target::start(Does::Echo).await;
    let v6 = TcpListener::bind("[::1]:0").await.unwrap();
    for kind in KINDS {
        for dialer in ["tcp", "tls"] {
            let exit = exit(2, kind, dialer).await;
            let entry = Entry::start(&[proxy_node("a", exit.addr, kind, dialer)], target.addr).await;
            entry.echo().await.unwrap();
            assert_eq!(target.peers().last(), Some(&exit.from));
            let by_name = json!({"forwarder": {"nodes": [
                {"name": "n", "addr": format!("localhost:{}", target.addr.port())}]}});
            let nodes = [proxy_node("a", exit.addr, kind, dialer)];
            let entry = Entry::with(RuntimeOptions::default(), &nodes, target.addr, by_name).await;
            entry.echo().await.unwrap();
        }
        // The address that exits dial from is of the other family.
        let runtime = Runtime::new(RuntimeOptions::default());
        let config = json!({"name": "p", "addr": "127.0.0.1:0", "handler": {"type": kind}, "listener": {"type": "tcp"}});
        runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
        let node = proxy_node("a", runtime.listening("p").unwrap(), kind, "tcp");
        let entry = Entry::start(&[node], v6.local_addr().unwrap()).await;
        let _client = entry.connect().await;
        soon(v6.accept()).await.unwrap();
    }
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_wrong_password_leads_to_the_next() {
    let target = Target::start(Does::Echo).await;
    for kind in KINDS {
        let strict = strict(kind).await;
        let with = |name: &str, auth: Option<Value>| {
            let mut node = proxy_node(name, strict.addr, kind, "tcp");
            if let Some(auth) = auth {
                node["connector"]["auth"] = auth;
            }
            node
        };
        let wrong = with("wrong", Some(json!({"username": "user", "password": "wrong"})));
        let right = with("right", Some(json!({"username": "user", "password": "pass"})));
        let entry = Entry::start(&[with("none", None), wrong, right], target.addr).await;
        for _ in 0..2 {
            entry.echo().await.unwrap();
        }
        assert_eq!(entry.marked(), ["none", "wrong"], "{kind}");
        assert_eq!(entry.nodes()[2].connections, 2);
    }
    assert_eq!(target.peers().len(), 4);
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_target_that_is_down_is_not_blamed_on_the_exits() {
    let (down, _held) = refusing();
    for kind in KINDS {
        let (a, b) = (exit(1, kind, "tcp").await, exit(2, kind, "tls").await);
        let nodes = [proxy_node("a", a.addr, kind, "tcp"), proxy_node("b", b.addr, kind, "tls")];
        let entry = Entry::start(&nodes, down).await;
        assert!(entry.echo().await.is_err());
        let failures: Vec<_> = entry.nodes().iter().map(|node| node.failures).collect();
        assert_eq!(failures, [1, 1], "{kind}: both were asked");
        assert!(entry.marked().is_empty(), "{kind}");
        // What the exit said comes through to who asked: a proxy that has this chain tells it in its own words.
        let proxy = chained("socks5", &nodes).await;
        let expected = if kind == "socks5" { 5 } else { 4 };
        assert_eq!(socks5(proxy.addr, &socks5_request(down)).await.unwrap().1, expected, "{kind}");
    }
}

#[tokio::test]
async fn who_is_to_blame_depends_on_the_answer() {
    let target = Target::start(Does::Echo).await;
    let cases: [(&str, &[u16], bool); 4] = [
        ("socks5", &[2, 3, 4, 5, 6], false),
        ("socks5", &[1, 7, 8, 9], true),
        ("http", &[403, 502, 503, 504], false),
        ("http", &[301, 400, 404, 405, 407, 429, 500], true),
    ];
    for (kind, codes, blames_node) in cases {
        for code in codes {
            let denying = proxy_node("denying", denying(kind, *code).await, kind, "tcp");
            // Alone, nobody can say more than it does.
            let entry = Entry::start(std::slice::from_ref(&denying), target.addr).await;
            assert!(entry.echo().await.is_err());
            assert_eq!(entry.marked() == ["denying"], blames_node, "{kind} {code}");
            // Another one reaches the target, so it was the node in any case.
            let fine = exit(2, kind, "tcp").await;
            let nodes = [denying, proxy_node("fine", fine.addr, kind, "tcp")];
            let entry = Entry::start(&nodes, target.addr).await;
            entry.echo().await.unwrap();
            assert_eq!(entry.marked(), ["denying"], "{kind} {code}");
        }
    }
    target.assert_only_exits_came();
}

#[tokio::test]
async fn what_is_no_proxy_is_marked_at_once_or_after_one_deadline() {
    let target = Target::start(Does::Echo).await;
    for kind in KINDS {
        let script = |mut stream: tokio::net::TcpStream| async move {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await;
            while stream.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {}
        };
        let (ssh, _) = scripted(script).await;
        let (mute, asked) = mute().await;
        let fine = exit(2, kind, "tcp").await;
        let nodes = [
            proxy_node("ssh", ssh, kind, "tcp"),
            proxy_node("mute", mute, kind, "tcp"),
            proxy_node("fine", fine.addr, kind, "tcp"),
        ];
        let entry = Entry::with(impatient(), &nodes, target.addr, json!({})).await;
        for _ in 0..2 {
            entry.echo().await.unwrap();
        }
        assert_eq!(entry.marked(), ["ssh", "mute"], "{kind}");
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn every_protocol_carries_every_other() {
    let target = Target::start(Does::SpeakFirst).await;
    let kinds = ["relay", "socks5", "http"];
    for first in kinds {
        for second in kinds {
            let (middle, last) = (exit(1, first, "tls").await, exit(2, second, "tls").await);
            let nodes =
                [proxy_node("m", middle.addr, first, "tls"), proxy_node("x", last.addr, second, "tls")];
            let entry = entry_with_hops(&nodes, target.addr).await;
            let mut stream = entry.connect().await;
            let mut hello = [0; 5];
            soon(stream.read_exact(&mut hello)).await.unwrap();
            assert_eq!(&hello, b"hello", "{first} {second}");
            ping(&mut stream).await;
            assert_eq!(target.peers().last(), Some(&last.from), "{first} {second}");
        }
    }
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_failure_at_the_second_hop_is_blamed_there_and_one_at_the_first_here() {
    let target = Target::start(Does::Echo).await;
    let (dead, _held) = refusing();
    for kind in KINDS {
        let (middle, last) = (exit(1, kind, "tcp").await, exit(2, kind, "tcp").await);
        let strict = strict(kind).await;
        let fifo = json!({"strategy": "fifo", "failTimeout": "600s"});
        let two = chain(json!({"name": "c", "hops": [
            {"name": "hop_1", "selector": fifo, "nodes": [
                proxy_node("strict", strict.addr, kind, "tcp"), proxy_node("m", middle.addr, kind, "tcp")]},
            {"name": "hop_2", "selector": fifo, "nodes": [
                proxy_node("dead", dead, kind, "tcp"), proxy_node("x", last.addr, kind, "tcp")]}
        ]}));
        let entry = Entry::start(&[], target.addr).await;
        entry.runtime.apply(Change::UpsertChain(two)).await.unwrap();
        entry.echo().await.unwrap();
        let nodes = entry.nodes();
        // The first hop wants credentials: that says nothing about the node behind it.
        assert!(nodes[0].marked && nodes[0].failures == 1, "{kind}");
        assert_eq!((nodes[1].failures, nodes[1].connections), (0, 1), "{kind}");
    }
    target.assert_only_exits_came();
}

#[tokio::test]
async fn payload_that_is_glued_to_an_answer_in_pieces_is_kept() {
    let pieces: [(&str, [&'static [u8]; 4]); 2] = [
        ("socks5", [b"\x05", b"\x00", b"\x05\x00\x00\x03\x04na", b"me\x00\x50payload"]),
        (
            "http",
            [
                b"HTTP/1.1 100 Continue\r",
                b"\n\r\nHTTP/1.1 2",
                b"00 OK\r\nContent-Length: 7\r\n\r",
                b"\npayload",
            ],
        ),
    ];
    for (kind, pieces) in pieces {
        let script = move |mut stream: tokio::net::TcpStream| async move {
            let _ = stream.set_nodelay(true);
            for piece in pieces {
                // What the client says is not waited for: whatever comes first must do.
                let _ = stream.write_all(piece).await;
                tokio::task::yield_now().await;
            }
            let _ = stream.shutdown().await;
            while stream.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {}
        };
        let (exit, _) = scripted(script).await;
        let entry = Entry::start(&[proxy_node("a", exit, kind, "tcp")], exit).await;
        let mut stream = entry.connect().await;
        let mut payload = Vec::new();
        soon(stream.read_to_end(&mut payload)).await.unwrap();
        assert_eq!(payload, b"payload", "{kind}");
    }
}

#[tokio::test]
async fn the_end_of_one_direction_leaves_the_other_open() {
    let target = Target::start(Does::CountThenAnswer).await;
    for kind in KINDS {
        let exit = exit(1, kind, "tls").await;
        let entry = Entry::start(&[proxy_node("a", exit.addr, kind, "tls")], target.addr).await;
        let mut stream = entry.connect().await;
        // Sent before there is a way.
        stream.write_all(&[7; 100_000]).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert_eq!(answer, "100000", "{kind}");
    }
}

#[tokio::test]
async fn eight_megabytes_both_ways() {
    let target = Target::start(Does::Echo).await;
    for (kind, dialer) in [("socks5", "tcp"), ("http", "tls")] {
        let exit = exit(1, kind, dialer).await;
        let entry = Entry::start(&[proxy_node("a", exit.addr, kind, dialer)], target.addr).await;
        echo_much(entry.connect().await, 8 << 20).await;
    }
}

#[tokio::test]
async fn without_a_way_the_target_is_not_dialled() {
    let target = Target::start(Does::Echo).await;
    let (dead, _held) = refusing();
    for kind in KINDS {
        let entry = Entry::start(&[proxy_node("dead", dead, kind, "tcp")], target.addr).await;
        assert!(entry.echo().await.is_err());
        assert_eq!(entry.runtime.report().refused, 1);
    }
    assert!(target.peers().is_empty());
}
