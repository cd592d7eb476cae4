//! What is carried arrives whole, in both directions, and an end is told from an abort.

use crate::rig::*;
use agent::runtime::{Change, RuntimeOptions};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use serde_json::json;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

#[tokio::test]
async fn a_server_that_speaks_first_is_heard() {
    let target = Target::start(Does::SpeakFirst).await;
    let exit = Exit::start(1, "tls").await;
    for nodelay in [true, false] {
        let mut node = exit.node("a", "tls");
        node["connector"]["metadata"] = json!({"nodelay": nodelay});
        let entry = Entry::start(&[node], target.addr).await;
        let mut stream = entry.connect().await;
        let mut hello = [0; 5];
        soon(stream.read_exact(&mut hello)).await.unwrap();
        assert_eq!(&hello, b"hello");
        stream.write_all(b"bye").await.unwrap();
        soon(stream.read_exact(&mut hello[..3])).await.unwrap();
        assert_eq!(&hello[..3], b"bye");
    }
}

#[tokio::test]
async fn the_end_of_one_direction_leaves_the_other_open() {
    let target = Target::start(Does::CountThenAnswer).await;
    for listener in ["tcp", "tls"] {
        let exit = Exit::start(1, listener).await;
        let entry = Entry::start(&[exit.node("a", listener)], target.addr).await;
        let mut stream = entry.connect().await;
        stream.write_all(&[7; 100_000]).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert_eq!(answer, "100000", "{listener}");
    }
}

#[tokio::test]
async fn a_reset_arrives_as_a_reset() {
    let target = Target::start(Does::Reset).await;
    for listener in ["tcp", "tls"] {
        let exit = Exit::start(1, listener).await;
        let entry = Entry::start(&[exit.node("a", listener)], target.addr).await;
        let mut stream = entry.connect().await;
        stream.write_all(b"x").await.unwrap();
        let error = soon(stream.read(&mut [0; 1])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{listener}: a cut transfer looked complete");
    }
}

/// A TLS server that says something and ends its connection; with the end that TLS has, or only with that of TCP.
async fn tls_server(says_the_end: bool) -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(vec!["exit.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (addr, _) = scripted(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let mut tls = acceptor.accept(stream).await.unwrap();
            tls.write_all(b"half").await.unwrap();
            tls.flush().await.unwrap();
            if says_the_end {
                tls.shutdown().await.unwrap();
            }
            let (mut tcp, _) = tls.into_inner();
            tcp.shutdown().await.unwrap();
            // What is left unread would make a reset of it.
            while tcp.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
        }
    })
    .await;
    addr
}

#[tokio::test]
async fn an_end_that_tls_does_not_know_of_is_told_as_none() {
    for says_the_end in [true, false] {
        let node = json!({"name": "n", "addr": tls_server(says_the_end).await.to_string(),
            "connector": {"type": "forward"}, "dialer": {"type": "tls"}});
        let entry = Entry::start(&[node], SocketAddr::from(([127, 0, 0, 1], 1))).await;
        let mut stream = entry.connect().await;
        let mut half = [0; 4];
        soon(stream.read_exact(&mut half)).await.unwrap();
        assert_eq!(&half, b"half");
        let end = soon(stream.read(&mut half)).await;
        match says_the_end {
            true => assert_eq!(end.unwrap(), 0),
            false => assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset),
        }
    }
}

#[tokio::test]
async fn an_exit_that_dies_does_not_make_a_transfer_look_complete() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tls").await;
    let entry = Entry::start(&[exit.node("a", "tls")], target.addr).await;
    let mut stream = entry.connect().await;
    stream.write_all(b"ping").await.unwrap();
    soon(stream.read_exact(&mut [0; 4])).await.unwrap();
    exit.runtime.shutdown().await;
    let error = soon(stream.read(&mut [0; 1])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn two_hops_in_one_chain() {
    let target = Target::start(Does::Echo).await;
    for (first, second) in [("tls", "tls"), ("tcp", "tls"), ("tls", "tcp")] {
        let (middle, exit) = (Exit::start(1, first).await, Exit::start(2, second).await);
        for nodelay in [true, false] {
            let mut nodes = [middle.node("m", first), exit.node("x", second)];
            for node in &mut nodes {
                node["connector"]["metadata"] = json!({"nodelay": nodelay});
            }
            let [m, x] = nodes;
            let entry = Entry::start(&[], target.addr).await;
            let two = chain(json!({"name": "c", "hops": [
                {"name": "hop_1", "nodes": [m]}, {"name": "hop_2", "nodes": [x]}
            ]}));
            entry.runtime.apply(Change::UpsertChain(two)).await.unwrap();
            entry.echo().await.unwrap();
            assert_eq!(target.peers().last(), Some(&exit.from));
            assert_eq!(entry.nodes()[0].name, "x", "the report is about the last hop");
        }
    }
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_failure_at_the_second_hop_is_blamed_there() {
    let target = Target::start(Does::Echo).await;
    let (middle, exit) = (Exit::start(1, "tls").await, Exit::start(2, "tls").await);
    let (dead, _held) = refusing();
    let entry = Entry::start(&[], target.addr).await;
    let fifo = json!({"strategy": "fifo", "failTimeout": "600s"});
    let two = chain(json!({"name": "c", "hops": [
        {"name": "hop_1", "nodes": [middle.node("m", "tls")]},
        {"name": "hop_2", "selector": fifo, "nodes": [node("dead", dead, "tls"), exit.node("x", "tls")]}
    ]}));
    entry.runtime.apply(Change::UpsertChain(two)).await.unwrap();
    for _ in 0..2 {
        entry.echo().await.unwrap();
    }
    let nodes = entry.nodes();
    assert!(nodes[0].marked && nodes[0].failures == 1);
    assert_eq!(nodes[1].connections, 2);
}

#[tokio::test]
async fn a_middle_hop_with_its_own_chain() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(2, "tls").await;
    let (dead, _held) = refusing();
    let middle = Exit::with(1, "tls", json!({"type": "relay", "chain": "c", "retries": 1})).await;
    let onward = fifo(&[node("dead", dead, "tls"), exit.node("x", "tls")]);
    middle.runtime.apply(Change::AddChain(onward)).await.unwrap();
    let entry = Entry::start(&[middle.node("m", "tls")], target.addr).await;
    entry.echo().await.unwrap();
    assert_eq!(target.peers(), [exit.from]);
    assert!(entry.marked().is_empty());
}

#[tokio::test]
async fn a_node_without_protocol_is_used_as_it_is() {
    let target = Target::start(Does::Echo).await;
    // The exit has its own target; what the client asked for does not matter.
    let runtime = agent::runtime::Runtime::new(RuntimeOptions::default());
    let exit = Entry::in_runtime(
        runtime,
        target.addr,
        json!({"handler": {"chain": null}, "listener": {"type": "tls"}, "metadata": {"interface": "127.0.1.5"}}),
    )
    .await;
    let node = json!({"name": "a", "addr": exit.addr.to_string(), "connector": {"type": "forward"},
        "dialer": {"type": "tls"}});
    let (elsewhere, _held) = refusing();
    let entry = Entry::start(&[node], elsewhere).await;
    entry.echo().await.unwrap();
    target.assert_only_exits_came();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_megabytes_both_ways_at_once_through_tls() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tls").await;
    let entry = Entry::start(&[exit.node("a", "tls")], target.addr).await;
    there_and_back(entry.connect().await, 64 * 1024 * 1024).await;
}
