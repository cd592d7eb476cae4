//! A service that names a chain never dials directly. The targets here are reachable directly, and must not notice.

use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::json;
use std::io::ErrorKind;
use tokio::io::AsyncReadExt;

/// The client sees its connection reset, not an empty answer.
async fn assert_refused(entry: &Entry, target: &Target) {
    let before = entry.runtime.report().refused;
    let mut stream = entry.connect().await;
    let error = soon(stream.read(&mut [0; 1])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(entry.runtime.report().refused, before + 1, "refusals are counted");
    assert!(target.peers().is_empty(), "the target was reached without an exit");
}

#[tokio::test]
async fn without_a_chain() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    let entry = Entry::in_runtime(runtime, target.addr, json!({})).await;
    assert_refused(&entry, &target).await;
}

#[tokio::test]
async fn with_an_empty_chain_or_an_empty_hop() {
    let target = Target::start(Does::Echo).await;
    let entry = Entry::start(&[], target.addr).await;
    assert_refused(&entry, &target).await;
    let empty = chain(json!({"name": "c", "hops": []}));
    entry.runtime.apply(Change::UpsertChain(empty)).await.unwrap();
    assert_refused(&entry, &target).await;
    let exit = Exit::start(1, "tcp").await;
    let half = chain(json!({"name": "c", "hops": [
        {"name": "hop_1", "nodes": [exit.node("a", "tcp")]}, {"name": "hop_2", "nodes": []}
    ]}));
    entry.runtime.apply(Change::UpsertChain(half)).await.unwrap();
    assert_refused(&entry, &target).await;
}

#[tokio::test]
async fn with_all_exits_down_again_and_again() {
    let target = Target::start(Does::Echo).await;
    let ((a, _a), (b, _b)) = (refusing(), refusing());
    let entry = Entry::start(&[node("a", a, "tls"), node("b", b, "tcp")], target.addr).await;
    for _ in 0..3 {
        assert_refused(&entry, &target).await;
    }
    assert_eq!(entry.marked(), ["a", "b"]);
    assert_eq!(entry.nodes()[1].failures, 3, "the last resort tries each");
}

#[tokio::test]
async fn from_the_moment_the_chain_is_deleted() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tcp").await;
    let entry = Entry::start(&[exit.node("a", "tcp")], target.addr).await;
    entry.echo().await.unwrap();
    assert_eq!(target.peers(), [exit.from]);
    entry.runtime.apply(Change::DeleteChain("c".into())).await.unwrap();
    assert!(entry.echo().await.is_err());
    assert_eq!(target.peers().len(), 1);
}

#[tokio::test]
async fn on_a_middle_hop() {
    let target = Target::start(Does::Echo).await;
    // The middle hop's own chain does not exist: it must say so, and not connect from where it stands.
    let middle = Exit::with(9, "tcp", json!({"type": "relay", "chain": "c"})).await;
    let entry = Entry::start(&[middle.node("m", "tcp")], target.addr).await;
    assert_refused(&entry, &target).await;
    assert_eq!(middle.runtime.report().refused, 1);
    assert_eq!(entry.marked(), ["m"], "a middle hop without a way on is useless");
}

#[tokio::test]
async fn a_service_without_a_chain_goes_directly_as_configured() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    let direct = json!({"handler": {"chain": null}, "metadata": {"interface": "127.0.0.9"}});
    let entry = Entry::in_runtime(runtime, target.addr, direct).await;
    entry.echo().await.unwrap();
    assert_eq!(target.peers(), [std::net::IpAddr::from([127, 0, 0, 9])]);
    assert_eq!(entry.runtime.report().refused, 0);
}
