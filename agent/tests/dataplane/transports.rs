//! Every transport carries every kind of conversation.

use crate::rig::*;
use agent::runtime::{Change, RuntimeOptions};
use serde_json::json;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// All but those that have tests of their own.
const LAYERED: [&str; 6] = ["ws", "wss", "mtcp", "mtls", "mws", "mwss"];

#[tokio::test]
async fn a_client_that_speaks_first_and_a_server_that_does() {
    let (echo, first) = (Target::start(Does::Echo).await, Target::start(Does::SpeakFirst).await);
    for kind in LAYERED {
        let exit = Exit::start(1, kind).await;
        for nodelay in [true, false] {
            let mut node = exit.node("a", kind);
            node["connector"]["metadata"] = json!({"nodelay": nodelay});
            Entry::start(std::slice::from_ref(&node), echo.addr).await.echo().await.unwrap();

            let entry = Entry::start(&[node], first.addr).await;
            let mut stream = entry.connect().await;
            let mut hello = [0; 5];
            soon(stream.read_exact(&mut hello)).await.unwrap();
            assert_eq!(&hello, b"hello", "{kind}");
            stream.write_all(b"bye").await.unwrap();
            soon(stream.read_exact(&mut hello[..3])).await.unwrap();
            assert_eq!(&hello[..3], b"bye", "{kind}");
        }
    }
    echo.assert_only_exits_came();
    first.assert_only_exits_came();
}

#[tokio::test]
async fn the_end_of_one_direction_leaves_the_other_open() {
    let target = Target::start(Does::CountThenAnswer).await;
    for kind in LAYERED {
        let exit = Exit::start(1, kind).await;
        let entry = Entry::start(&[exit.node("a", kind)], target.addr).await;
        // The second one finds the multiplexed session as it is when it has been used.
        for _ in 0..2 {
            let mut stream = entry.connect().await;
            stream.write_all(&[7; 100_000]).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = String::new();
            soon(stream.read_to_string(&mut answer)).await.unwrap();
            assert_eq!(answer, "100000", "{kind}");
        }
    }
}

#[tokio::test]
async fn a_reset_arrives_as_a_reset() {
    let target = Target::start(Does::Reset).await;
    for kind in LAYERED {
        let exit = Exit::start(1, kind).await;
        let entry = Entry::start(&[exit.node("a", kind)], target.addr).await;
        let mut stream = entry.connect().await;
        stream.write_all(b"x").await.unwrap();
        let error = soon(stream.read(&mut [0; 1])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{kind}: a cut transfer looked complete");
    }
}

#[tokio::test]
async fn a_client_that_resets_is_heard_by_the_target() {
    for kind in LAYERED {
        let (saw_error, looked) = (Flag::default(), Flag::default());
        let (error, done) = (saw_error.clone(), looked.clone());
        let (target, _) = scripted(move |mut stream| {
            let (error, done) = (error.clone(), done.clone());
            async move {
                let mut all = Vec::new();
                if stream.read_to_end(&mut all).await.is_err() {
                    error.raise();
                }
                done.raise();
            }
        })
        .await;
        let exit = Exit::start(1, kind).await;
        let entry = Entry::start(&[exit.node("a", kind)], target).await;
        let mut stream = entry.connect().await;
        stream.write_all(b"half of it").await.unwrap();
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        drop(stream);
        eventually("the target looks", || looked.is_up()).await;
        assert!(saw_error.is_up(), "{kind}: a cut upload looked complete");
    }
}

#[tokio::test]
async fn an_exit_that_dies_does_not_make_a_transfer_look_complete() {
    let target = Target::start(Does::Echo).await;
    for kind in LAYERED {
        let exit = Exit::start(1, kind).await;
        let entry = Entry::start(&[exit.node("a", kind)], target.addr).await;
        let mut stream = entry.connect().await;
        stream.write_all(b"ping").await.unwrap();
        soon(stream.read_exact(&mut [0; 4])).await.unwrap();
        exit.runtime.shutdown().await;
        let error = soon(stream.read(&mut [0; 1])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_megabytes_both_ways_at_once() {
    let target = Target::start(Does::Echo).await;
    for kind in LAYERED {
        let exit = Exit::start(1, kind).await;
        let entry = Entry::start(&[exit.node("a", kind)], target.addr).await;
        there_and_back(entry.connect().await, 8 * 1024 * 1024).await;
    }
}

#[tokio::test]
async fn a_second_hop_over_what_the_first_carries() {
    let target = Target::start(Does::Echo).await;
    let pairs = [
        ("mtls", "mtls"),
        ("mwss", "tcp"),
        ("tls", "wss"),
        ("wss", "mwss"),
        ("mtcp", "ws"),
        ("tcp", "mtcp"),
        ("ws", "tls"),
    ];
    for (first, second) in pairs {
        let (middle, exit) = (Exit::start(1, first).await, Exit::start(2, second).await);
        let entry = Entry::start(&[], target.addr).await;
        let two = chain(json!({"name": "c", "hops": [
            {"name": "hop_1", "nodes": [middle.node("m", first)]},
            {"name": "hop_2", "nodes": [exit.node("x", second)]}
        ]}));
        entry.runtime.apply(Change::UpsertChain(two)).await.unwrap();
        for _ in 0..3 {
            entry.echo().await.unwrap();
        }
        assert_eq!(target.peers().last(), Some(&exit.from), "{first} {second}");
        assert_eq!(entry.nodes()[0].failures, 0, "{first} {second}");
    }
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_wrong_path_is_named_and_the_next_node_is_tried() {
    let target = Target::start(Does::Echo).await;
    for kind in ["ws", "wss", "mws", "mwss"] {
        let (wrong, right) = (Exit::start(1, kind).await, Exit::start(2, kind).await);
        let mut node = wrong.node("wrong", kind);
        node["dialer"]["metadata"] = json!({"path": "/elsewhere"});
        let entry = Entry::start(&[node, right.node("right", kind)], target.addr).await;
        entry.echo().await.unwrap();
        assert_eq!(entry.marked(), ["wrong"], "{kind}");
        assert_eq!(target.peers().last(), Some(&right.from), "{kind}");
    }
}

#[tokio::test]
async fn a_path_a_host_and_headers_of_ones_own() {
    let target = Target::start(Does::Echo).await;
    let runtime = agent::runtime::Runtime::new(RuntimeOptions::default());
    let listener = json!({"type": "ws", "metadata": {"path": "/tunnel", "header": {"Server": "nginx"}}});
    let config = json!({"name": "exit", "addr": "127.0.0.1:0", "handler": {"type": "relay"}, "listener": listener,
        "metadata": {"interface": "127.0.1.1"}});
    runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
    let mut node = node("a", runtime.listening("exit").unwrap(), "ws");
    node["dialer"]["metadata"] = json!({"path": "/tunnel?x=1", "host": "cdn.example", "header": {"User-Agent": "x"},
        "keepalive": true, "ttl": "5s"});
    let entry = Entry::start(&[node], target.addr).await;
    entry.echo().await.unwrap();
    target.assert_only_exits_came();
}
