//! Chains change under load, and no client notices.

use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_swaps_under_load_lose_nothing_and_leak_nothing() {
    let target = Target::start(Does::Echo).await;
    let (a, b) = (Exit::start(1, "tls").await, Exit::start(2, "tcp").await);
    let orders = [[a.node("a", "tls"), b.node("b", "tcp")], [b.node("b", "tcp"), a.node("a", "tls")]];
    let entry = Arc::new(Entry::start(&orders[0], target.addr).await);
    let (done, served) = (Flag::default(), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (entry, done, served) = (entry.clone(), done.clone(), served.clone());
            tokio::spawn(async move {
                while !done.is_up() {
                    entry.echo().await.unwrap();
                    served.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for swap in 0..500 {
        // Each swap meets traffic: it waits until a client has been served since the one before.
        let before = served.load(Ordering::SeqCst);
        entry.runtime.apply(Change::UpsertChain(fifo(&orders[(swap + 1) % 2]))).await.unwrap();
        eventually("a client is served", || served.load(Ordering::SeqCst) > before).await;
    }
    done.raise();
    for client in clients {
        client.await.unwrap();
    }
    let report = entry.runtime.report();
    assert_eq!(report.refused, 0);
    target.assert_only_exits_came();
    let connections: u64 = entry.nodes().iter().map(|node| node.connections).sum();
    assert_eq!(connections, served.load(Ordering::SeqCst) as u64, "the counters outlive the swaps");
    assert_eq!(connections, target.peers().len() as u64);
    assert!(entry.nodes().iter().all(|node| node.failures == 0 && node.connections > 0));
}

#[tokio::test]
async fn live_connections_keep_the_chain_they_began_with() {
    let target = Target::start(Does::Echo).await;
    let (a, b) = (Exit::start(1, "tls").await, Exit::start(2, "tls").await);
    let entry = Entry::start(&[a.node("a", "tls")], target.addr).await;
    let mut old = entry.connect().await;
    old.write_all(b"ping").await.unwrap();
    soon(old.read_exact(&mut [0; 4])).await.unwrap();
    entry.runtime.apply(Change::UpsertChain(fifo(&[b.node("b", "tls")]))).await.unwrap();
    entry.echo().await.unwrap();
    old.write_all(b"pong").await.unwrap();
    let mut back = [0; 4];
    soon(old.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"pong");
    assert_eq!(target.peers(), [a.from, b.from]);
}

#[tokio::test]
async fn a_chain_that_cannot_be_built_leaves_the_old_one_serving() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tls").await;
    let entry = Entry::start(&[exit.node("a", "tls")], target.addr).await;
    let before = entry.runtime.config();
    let error = entry
        .runtime
        .apply(Change::UpsertChain(fifo(&[exit.node("a", "tls"), exit.node("b", "kcp")])))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "chain c: hops[0].nodes[1].dialer.type: kcp is not supported");
    assert_eq!(entry.runtime.config(), before);
    entry.echo().await.unwrap();

    let error = entry.runtime.apply(Change::AddChain(fifo(&[]))).await.unwrap_err();
    assert_eq!(error.to_string(), "chain c already exists");
    entry.echo().await.unwrap();
}

#[tokio::test]
async fn a_swap_keeps_the_marks_of_the_nodes_that_stay() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tcp").await;
    let (dead, _held) = refusing();
    let entry = Entry::start(&[node("dead", dead, "tcp"), exit.node("a", "tcp")], target.addr).await;
    entry.echo().await.unwrap();
    let reordered = fifo(&[exit.node("a", "tcp"), node("dead", dead, "tcp")]);
    entry.runtime.apply(Change::UpsertChain(reordered)).await.unwrap();
    assert_eq!(entry.marked(), ["dead"]);
    assert_eq!(entry.nodes()[0].connections, 1);
}

#[tokio::test]
async fn strategies_spread_and_stick_as_they_say() {
    let target = Target::start(Does::Echo).await;
    let exits = [Exit::start(1, "tcp").await, Exit::start(2, "tcp").await, Exit::start(3, "tcp").await];
    let runtime = Runtime::new(RuntimeOptions::default());
    let entry = Entry::in_runtime(runtime, target.addr, json!({})).await;
    let with = |strategy: &str| {
        let nodes: Vec<_> =
            exits.iter().enumerate().map(|(i, exit)| exit.node(&format!("n{i}"), "tcp")).collect();
        chain(
            json!({"name": "c", "hops": [{"name": "h", "selector": {"strategy": strategy}, "nodes": nodes}]}),
        )
    };
    for (strategy, expected) in [("round", [2, 2, 2]), ("fifo", [6, 0, 0]), ("hash", [0, 0, 6])] {
        entry.runtime.apply(Change::DeleteChain("c".into())).await.unwrap();
        entry.runtime.apply(Change::UpsertChain(with(strategy))).await.unwrap();
        for _ in 0..6 {
            entry.echo().await.unwrap();
        }
        let used: Vec<_> = entry.nodes().iter().map(|node| node.connections).collect();
        assert_eq!(used, expected, "{strategy}");
    }
}
