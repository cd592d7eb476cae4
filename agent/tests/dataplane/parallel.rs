//! Several ways at once: the first that is fully up is used, the others are closed.

use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncReadExt;

fn parallel(nodes: &[Value]) -> Value {
    let selector = json!({"strategy": "parallel", "maxFails": 1, "failTimeout": "600s"});
    json!({"name": "c", "hops": [{"name": "h", "selector": selector, "nodes": nodes}]})
}

async fn entry(options: RuntimeOptions, config: Value, target: SocketAddr, more: Value) -> Entry {
    let runtime = Runtime::new(options);
    runtime.apply(Change::AddChain(chain(config))).await.unwrap();
    Entry::in_runtime(runtime, target, more).await
}

/// A mute server that tells how many have come and how many of these are gone.
async fn patient() -> (SocketAddr, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let gone: Arc<AtomicUsize> = Arc::default();
    let counter = gone.clone();
    let (addr, came) = scripted(move |mut stream| {
        let gone = counter.clone();
        async move {
            let mut sink = [0; 1024];
            while stream.read(&mut sink).await.is_ok_and(|n| n > 0) {}
            gone.fetch_add(1, Ordering::SeqCst);
        }
    })
    .await;
    (addr, came, gone)
}

fn held(mut node: Value) -> Value {
    node["connector"]["metadata"] = json!({"nodelay": false});
    node
}

#[tokio::test]
async fn a_silent_node_delays_nobody_and_is_let_go() {
    let target = Target::start(Does::Echo).await;
    let (silent, came, gone) = patient().await;
    let exit = Exit::start(1, "tls").await;
    let nodes = [node("silent", silent, "tls"), exit.node("alive", "tls")];
    let entry = entry(RuntimeOptions::default(), parallel(&nodes), target.addr, json!({})).await;
    for turn in 1..=3 {
        entry.echo().await.unwrap();
        eventually("the loser is closed", || gone.load(Ordering::SeqCst) == turn).await;
    }
    assert_eq!(came.load(Ordering::SeqCst), 3);
    assert!(entry.marked().is_empty(), "a loser has not failed");
    let nodes = entry.nodes();
    assert_eq!((nodes[0].connections, nodes[1].connections), (0, 3));
    target.assert_only_exits_came();
}

#[tokio::test]
async fn up_means_that_the_node_has_answered_for_the_target() {
    let target = Target::start(Does::Echo).await;
    // Both accept and shake hands at once; one of them cannot reach the target, the other cannot be used at all.
    let ((cut_off, _), (broken, _)) = (answering(6).await, answering(5).await);
    let exit = Exit::start(1, "tls").await;
    let nodes = [node("cut_off", cut_off, "tcp"), node("broken", broken, "tcp"), exit.node("fine", "tls")];
    let entry = entry(RuntimeOptions::default(), parallel(&nodes), target.addr, json!({})).await;
    for _ in 0..3 {
        entry.echo().await.unwrap();
    }
    assert_eq!(target.peers(), [exit.from; 3]);
}

#[tokio::test]
async fn who_fails_is_marked_and_not_raced_again() {
    let target = Target::start(Does::Echo).await;
    let (dead, _held) = refusing();
    let (broken, asked) = answering(5).await;
    let nodes = [node("dead", dead, "tcp"), node("broken", broken, "tcp")];
    let entry = entry(RuntimeOptions::default(), parallel(&nodes), target.addr, json!({})).await;
    assert!(entry.echo().await.is_err());
    assert_eq!(entry.marked(), ["dead", "broken"]);
    assert_eq!(entry.runtime.report().refused, 1);
    let exit = Exit::start(1, "tcp").await;
    let more = [nodes[0].clone(), nodes[1].clone(), exit.node("alive", "tcp")];
    entry.runtime.apply(Change::UpsertChain(chain(parallel(&more)))).await.unwrap();
    entry.echo().await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_backup_runs_only_when_the_others_have_failed() {
    let target = Target::start(Does::Echo).await;
    let (backup, primary) = (Exit::start(1, "tcp").await, Exit::start(2, "tcp").await);
    let mut second = backup.node("backup", "tcp");
    second["metadata"] = json!({"backup": true});
    let nodes = [second, primary.node("primary", "tcp")];
    let entry = entry(RuntimeOptions::default(), parallel(&nodes), target.addr, json!({})).await;
    entry.echo().await.unwrap();
    primary.runtime.shutdown().await;
    entry.echo().await.unwrap();
    assert_eq!(target.peers(), [primary.from, backup.from]);
    assert_eq!(entry.marked(), ["primary"]);
}

#[tokio::test]
async fn nodes_that_hold_their_answer_take_part() {
    let exit = Exit::start(1, "tcp").await;
    let (silent, _, gone) = patient().await;
    for does in [Does::Echo, Does::SpeakFirst] {
        let target = Target::start(does).await;
        let nodes = [held(node("silent", silent, "tcp")), held(exit.node("alive", "tcp"))];
        let entry = entry(RuntimeOptions::default(), parallel(&nodes), target.addr, json!({})).await;
        let before = gone.load(Ordering::SeqCst);
        let mut stream = entry.connect().await;
        if matches!(does, Does::SpeakFirst) {
            let mut hello = [0; 5];
            soon(stream.read_exact(&mut hello)).await.unwrap();
            assert_eq!(&hello, b"hello");
        } else {
            entry.echo().await.unwrap();
        }
        eventually("the loser is closed", || gone.load(Ordering::SeqCst) > before).await;
    }
    // When all hold their answer and the client has spoken, one of them is used without it.
    let target = Target::start(Does::Echo).await;
    let only = [held(node("silent", silent, "tcp")), held(node("silent too", silent, "tcp"))];
    let entry = entry(RuntimeOptions::default(), parallel(&only), target.addr, json!({})).await;
    let mut stream = entry.connect().await;
    let before = gone.load(Ordering::SeqCst);
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"ping").await.unwrap();
    eventually("one is closed, one is used", || gone.load(Ordering::SeqCst) == before + 1).await;
    eventually("open", || entry.nodes().iter().map(|node| node.open).sum::<u64>() == 1).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_race() {
    let target = Target::start(Does::Echo).await;
    let (silent, came, gone) = patient().await;
    let nodes = [node("a", silent, "tls"), node("b", silent, "tls")];
    let entry = entry(RuntimeOptions::default(), parallel(&nodes), target.addr, json!({})).await;
    let stream = entry.connect().await;
    eventually("both are tried", || came.load(Ordering::SeqCst) == 2).await;
    stream.set_zero_linger().unwrap();
    drop(stream);
    eventually("both are let go", || gone.load(Ordering::SeqCst) == 2).await;
    assert_eq!((entry.marked().len(), entry.runtime.report().refused), (0, 0));
}

#[tokio::test]
async fn not_more_than_eight_run_at_once() {
    let target = Target::start(Does::Echo).await;
    let (silent, came, gone) = patient().await;
    let nodes: Vec<_> = (0..10).map(|i| node(&format!("n{i}"), silent, "tls")).collect();
    let mut options = impatient();
    options.deadlines.handshake = std::time::Duration::from_secs(1);
    let entry = entry(options, parallel(&nodes), target.addr, json!({})).await;
    let _stream = entry.connect().await;
    eventually("eight are tried", || came.load(Ordering::SeqCst) >= 8).await;
    assert!(came.load(Ordering::SeqCst) <= 8 + gone.load(Ordering::SeqCst));
    eventually("the others follow", || came.load(Ordering::SeqCst) == 10).await;
    assert!(gone.load(Ordering::SeqCst) >= 2);
}

#[tokio::test]
async fn a_race_is_one_attempt() {
    let target = Target::start(Does::Echo).await;
    let ((a, asked_a), (b, asked_b)) = (answering(5).await, answering(5).await);
    let nodes = [node("a", a, "tcp"), node("b", b, "tcp")];
    let twice = json!({"handler": {"retries": 1}});
    let entry = entry(RuntimeOptions::default(), parallel(&nodes), target.addr, twice).await;
    assert!(entry.echo().await.is_err());
    assert_eq!((asked_a.load(Ordering::SeqCst), asked_b.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test]
async fn a_later_hop_may_race() {
    let target = Target::start(Does::Echo).await;
    let (silent, _, _) = patient().await;
    let (middle, exit) = (Exit::start(1, "tls").await, Exit::start(2, "tls").await);
    let (dead, _held) = refusing();
    let mut config = parallel(&[node("silent", silent, "tls"), exit.node("alive", "tls")]);
    let first = json!({"name": "h0", "selector": {"strategy": "fifo", "failTimeout": "600s"},
        "nodes": [node("dead", dead, "tls"), middle.node("m", "tls")]});
    config["hops"].as_array_mut().unwrap().insert(0, first);
    let entry = entry(RuntimeOptions::default(), config, target.addr, json!({})).await;
    for _ in 0..2 {
        entry.echo().await.unwrap();
    }
    assert_eq!(target.peers(), [exit.from; 2]);
    assert!(entry.marked().is_empty());
}

#[tokio::test]
async fn targets_may_race() {
    let (silent, _, gone) = patient().await;
    let target = Target::start(Does::SpeakFirst).await;
    let (down, _held) = refusing();
    let exit = Exit::start(1, "tcp").await;
    let targets = json!({"forwarder": {
        "nodes": [{"name": "down", "addr": down.to_string()}, {"name": "up", "addr": target.addr.to_string()},
            {"name": "spare", "addr": silent.to_string(), "metadata": {"backup": true}}],
        "selector": {"strategy": "parallel", "failTimeout": "600s"}
    }});
    let entry =
        entry(RuntimeOptions::default(), parallel(&[exit.node("a", "tcp")]), target.addr, targets).await;
    for _ in 0..3 {
        let mut hello = [0; 5];
        soon(entry.connect().await.read_exact(&mut hello)).await.unwrap();
        assert_eq!(&hello, b"hello");
    }
    assert_eq!(target.peers(), [exit.from; 3]);
    assert_eq!(gone.load(Ordering::SeqCst), 0, "the backup is not raced");
    assert!(entry.nodes()[0].failures <= 1, "the target that is down is left out");
}
