//! Protocols that are blocked on a node.

use crate::rig::*;
use agent::guard::blocked::Blocked;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
const HELLO: &[u8] = b"\x16\x03\x01\x02\0\x01\0\x01\xfc";
const SOCKS5: &[u8] = b"\x05\x01\0";
const SOCKS4: &[u8] = b"\x04\x01\0\x50\x7f\0\0\x01\0";
const OTHER: &[u8] = b"SSH-2.0-OpenSSH_9.9\r\n";

fn blocked(http: bool, tls: bool, socks: bool) -> Blocked {
    Blocked { http, tls, socks }
}

/// Sends this and returns what comes back of as many bytes; an error if the connection is cut before.
async fn said_back(addr: SocketAddr, words: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = soon(TcpStream::connect(addr)).await?;
    stream.write_all(words).await?;
    let mut back = vec![0; words.len()];
    soon(stream.read_exact(&mut back)).await?;
    Ok(back)
}

/// Refused so often for this reason, and for no other.
async fn refused(runtime: &Runtime, times: u64) {
    let by_reason = || runtime.tally().refused.by_reason();
    eventually("the refusal is counted", || by_reason().get("blocked_protocol") == Some(&times)).await;
    assert_eq!(by_reason().len(), 1, "{:?}", by_reason());
}

#[tokio::test]
async fn clients_are_cut_off_by_their_first_bytes_and_others_pass() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tls").await;
    let entry = Entry::start(&[exit.node("a", "tls")], target.addr).await;
    let mut times = 0;
    for (set, words, others) in [
        (blocked(true, false, false), &[GET][..], &[HELLO, SOCKS5, SOCKS4, OTHER][..]),
        (blocked(false, true, false), &[HELLO], &[GET, SOCKS5, SOCKS4, OTHER]),
        (blocked(false, false, true), &[SOCKS5, SOCKS4], &[GET, HELLO, OTHER]),
        (blocked(true, true, true), &[GET, HELLO, SOCKS5, SOCKS4], &[OTHER]),
        (blocked(false, false, false), &[], &[GET, HELLO, SOCKS5, SOCKS4, OTHER]),
    ] {
        entry.runtime.blocked().set(set).await.unwrap();
        for words in words {
            assert!(said_back(entry.addr, words).await.is_err(), "{words:?} under {set:?}");
            times += 1;
            refused(&entry.runtime, times).await;
        }
        for words in others {
            assert_eq!(said_back(entry.addr, words).await.unwrap(), *words, "under {set:?}");
        }
    }
    assert!(entry.marked().is_empty());
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_server_that_speaks_first_is_heard_and_the_answer_is_looked_at() {
    let target = Target::start(Does::SpeakFirst).await;
    for nodes in [vec![], vec![Exit::start(1, "tcp").await]] {
        let entry = match &nodes[..] {
            [] => {
                let runtime = Runtime::new(RuntimeOptions::default());
                let more = json!({"handler": {"chain": null}});
                Entry::in_runtime(runtime, target.addr, more).await
            }
            [exit, ..] => Entry::start(&[exit.node("a", "tcp")], target.addr).await,
        };
        entry.runtime.blocked().set(blocked(true, true, true)).await.unwrap();
        for (words, passes) in [(OTHER, true), (GET, false)] {
            let mut stream = entry.connect().await;
            let mut greeting = [0; 5];
            soon(stream.read_exact(&mut greeting)).await.unwrap();
            assert_eq!(&greeting, b"hello");
            // In two segments, the first of which could be anything.
            stream.write_all(&words[..1]).await.unwrap();
            stream.write_all(&words[1..]).await.unwrap();
            let mut back = vec![0; words.len()];
            let came = soon(stream.read_exact(&mut back)).await;
            assert_eq!(came.is_ok(), passes, "{words:?}");
        }
        refused(&entry.runtime, 1).await;
    }
}

#[tokio::test]
async fn nodes_that_relay_see_the_relay_protocol() {
    let target = Target::start(Does::Echo).await;
    for listener in ["tcp", "tls", "mtls"] {
        let exit = Exit::start(1, listener).await;
        exit.runtime.blocked().set(blocked(true, true, true)).await.unwrap();
        let entry = Entry::start(&[exit.node("a", listener)], target.addr).await;
        for words in [GET, HELLO, SOCKS5, OTHER] {
            assert_eq!(said_back(entry.addr, words).await.unwrap(), words, "{listener}");
        }
        assert!(exit.runtime.tally().refused.by_reason().is_empty());
    }
}

#[tokio::test]
async fn inside_of_a_listeners_own_layers_and_for_every_handler() {
    for (handler, words) in [("socks5", SOCKS5), ("http", GET), ("auto", GET)] {
        let proxy = Exit::with(1, "tcp", json!({"type": handler})).await;
        proxy.runtime.blocked().set(blocked(true, false, true)).await.unwrap();
        assert!(said_back(proxy.addr, words).await.is_err(), "{handler}");
        refused(&proxy.runtime, 1).await;
    }
    // HTTP over many streams of one connection: each is a client of its own.
    let target = Target::start(Does::Echo).await;
    let inner = Entry::start(&[], target.addr).await;
    let config = json!({"name": "m", "addr": "127.0.0.1:0", "handler": {"type": "tcp"},
        "listener": {"type": "mtls"},
        "forwarder": {"nodes": [{"name": "n", "addr": target.addr.to_string()}]}});
    inner.runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
    inner.runtime.blocked().set(blocked(true, false, false)).await.unwrap();
    let node = json!({"name": "n", "addr": inner.runtime.listening("m").unwrap().to_string(),
        "connector": {"type": "forward"}, "dialer": {"type": "mtls"}});
    let outer = Entry::start(&[node], target.addr).await;
    assert_eq!(said_back(outer.addr, OTHER).await.unwrap(), OTHER);
    assert!(said_back(outer.addr, GET).await.is_err());
    refused(&inner.runtime, 1).await;
    assert_eq!(said_back(outer.addr, OTHER).await.unwrap(), OTHER);
}

#[tokio::test]
async fn connections_that_are_open_go_on() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tcp").await;
    let entry = Entry::start(&[exit.node("a", "tcp")], target.addr).await;
    let mut stream = entry.connect().await;
    stream.write_all(b"x").await.unwrap();
    assert_eq!(soon(stream.read_u8()).await.unwrap(), b'x');
    entry.runtime.blocked().set(blocked(true, true, true)).await.unwrap();
    stream.write_all(GET).await.unwrap();
    let mut back = vec![0; GET.len()];
    soon(stream.read_exact(&mut back)).await.unwrap();
    assert_eq!(back, GET);
    // And large payload of what passes, both ways.
    let stream = entry.connect().await;
    crate::proxy_rig::echo_much(stream, 8 << 20).await;
}
