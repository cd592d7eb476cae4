//! Test connections through a chain.

use crate::rig::*;
use agent::runtime::RuntimeOptions;
use serde_json::json;
use shared::link::ConnectThrough;
use std::net::SocketAddr;

fn ask(via: Option<SocketAddr>, target: SocketAddr, timeout_ms: u64) -> ConnectThrough {
    ConnectThrough {
        chain: "c".into(),
        via: via.map(|addr| addr.to_string()),
        target: target.to_string(),
        timeout_ms,
    }
}

#[tokio::test]
async fn each_exit_can_be_tried_by_itself_and_nothing_remembers_it() {
    let target = Target::start(Does::Echo).await;
    let (good, other) = (Exit::start(1, "tls").await, Exit::start(2, "tcp").await);
    let (broken, _) = answering(5).await;
    let nodes = [node("broken", broken, "tcp"), good.node("good", "tls"), other.node("other", "tcp")];
    let entry = Entry::with(RuntimeOptions::default(), &nodes, target.addr, json!({})).await;
    let trial = async |via| soon(entry.runtime.connect_through(&ask(via, target.addr, 20_000))).await;

    for exit in [&good, &other] {
        assert!(trial(Some(exit.addr)).await.unwrap().ms > 0.0);
    }
    assert_eq!(target.peers(), [good.from, other.from]);
    let error = trial(Some(broken)).await.unwrap_err();
    assert!(error.starts_with("chain c: ") && error.contains("broken"), "{error}");
    assert_eq!(target.peers().len(), 2, "only the one that was asked for was used");
    assert!(trial(None).await.is_ok(), "any will do, as for a client");

    assert!(entry.marked().is_empty());
    assert!(entry.nodes().iter().all(|node| (node.connections, node.failures, node.open) == (0, 0, 0)));
    assert_eq!(entry.runtime.report().refused, 0);
}

#[tokio::test]
async fn what_is_in_the_way_is_said() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tcp").await;
    let (silent, _) = mute().await;
    let nodes = [exit.node("exit", "tcp"), node("mute", silent, "tcp")];
    let entry = Entry::with(RuntimeOptions::default(), &nodes, target.addr, json!({})).await;
    let (closed, _socket) = refusing();
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], 1));
    for (asked, words) in [
        (ask(Some(exit.addr), closed, 20_000), "the target cannot be reached"),
        (ask(Some(elsewhere), target.addr, 20_000), "does not lead through 192.0.2.1:1"),
        (ask(Some(silent), target.addr, 300), "in time"),
        (ConnectThrough { chain: "d".into(), ..ask(None, target.addr, 1000) }, "chain d does not exist"),
        (ConnectThrough { target: "x".into(), ..ask(None, target.addr, 1000) }, "target x: "),
    ] {
        let error = soon(entry.runtime.connect_through(&asked)).await.unwrap_err();
        assert!(error.contains(words), "{error} instead of {words}");
    }
    assert!(target.peers().is_empty());
}
