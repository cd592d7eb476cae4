//! A service that has several chains uses one of them, and another when that one fails.

use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use shared::link::ChainNodeReport;
use std::net::SocketAddr;
use std::time::Duration;

/// A chain of one hop with one node.
fn one(name: &str, node: Value, metadata: Value) -> Value {
    let selector = json!({"strategy": "fifo", "failTimeout": "600s"});
    json!({"name": name, "metadata": metadata, "hops": [{"name": "h", "selector": selector, "nodes": [node]}]})
}

async fn entry(options: RuntimeOptions, chains: &[Value], target: SocketAddr, handler: Value) -> Entry {
    let runtime = Runtime::new(options);
    for config in chains {
        runtime.apply(Change::AddChain(chain(config.clone()))).await.unwrap();
    }
    Entry::in_runtime(runtime, target, json!({"handler": handler})).await
}

fn group(chains: Value, selector: Value) -> Value {
    json!({"chain": null, "chainGroup": {"chains": chains, "selector": selector}})
}

/// The only node of a chain.
fn only(entry: &Entry, name: &str) -> ChainNodeReport {
    let chains = entry.runtime.report().chains;
    chains.into_iter().find(|chain| chain.name == name).unwrap().nodes.remove(0)
}

#[tokio::test]
async fn a_chain_that_fails_is_left_out_and_the_next_is_used() {
    let target = Target::start(Does::Echo).await;
    let (dead, _held) = refusing();
    let exit = Exit::start(1, "tls").await;
    let chains = [one("a", node("x", dead, "tls"), json!({})), one("b", exit.node("y", "tls"), json!({}))];
    let fifo = json!({"strategy": "fifo", "maxFails": 1, "failTimeout": "600s"});
    let entry = entry(RuntimeOptions::default(), &chains, target.addr, group(json!(["a", "b"]), fifo)).await;
    for _ in 0..3 {
        entry.echo().await.unwrap();
    }
    assert_eq!(only(&entry, "a").failures, 1, "the chain is not tried again");
    assert_eq!(target.peers(), [exit.from; 3]);
    // A swapped chain is the same entry of the group: what is remembered of it stays.
    let back = Exit::start(2, "tls").await;
    let swapped = chain(one("a", back.node("x", "tls"), json!({})));
    entry.runtime.apply(Change::UpsertChain(swapped)).await.unwrap();
    entry.echo().await.unwrap();
    assert_eq!(target.peers()[3], exit.from);
}

#[tokio::test]
async fn a_target_that_is_down_is_not_blamed_on_the_chains() {
    let (down, _held) = refusing();
    let exits = [Exit::start(1, "tcp").await, Exit::start(2, "tcp").await];
    let chains =
        [one("a", exits[0].node("x", "tcp"), json!({})), one("b", exits[1].node("y", "tcp"), json!({}))];
    let fifo = json!({"strategy": "fifo", "failTimeout": "600s"});
    let entry = entry(RuntimeOptions::default(), &chains, down, group(json!(["a", "b"]), fifo)).await;
    for turn in 1..=2 {
        assert!(entry.echo().await.is_err());
        assert_eq!(only(&entry, "a").failures + only(&entry, "b").failures, turn * 2, "both are asked again");
    }
    assert_eq!(entry.runtime.report().refused, 2);
}

#[tokio::test]
async fn strategies_weights_and_backups_hold_for_chains() {
    let target = Target::start(Does::Echo).await;
    let exits = [Exit::start(1, "tcp").await, Exit::start(2, "tcp").await, Exit::start(3, "tcp").await];
    let three = |metadata: [Value; 3]| {
        let names = ["a", "b", "c"].iter().zip(&exits).zip(metadata);
        names.map(|((name, exit), metadata)| one(name, exit.node("x", "tcp"), metadata)).collect::<Vec<_>>()
    };
    let none = || json!({});
    let cases = [
        ("round", [none(), none(), none()], [2, 2, 2]),
        ("fifo", [json!({"backup": true}), none(), none()], [0, 6, 0]),
        ("hash", [none(), none(), none()], [0, 0, 6]),
        ("", [none(), json!({"backup": true}), none()], [3, 0, 3]),
    ];
    for (strategy, metadata, expected) in cases {
        let selector = json!({"strategy": strategy});
        // The handler's own chain stands in front.
        let mut handler = group(json!(["b", {"chain": "c"}]), selector);
        handler["chain"] = json!("a");
        let entry = entry(RuntimeOptions::default(), &three(metadata), target.addr, handler).await;
        for _ in 0..6 {
            entry.echo().await.unwrap();
        }
        assert_eq!(["a", "b", "c"].map(|name| only(&entry, name).connections), expected, "{strategy}");
    }
}

#[tokio::test]
async fn without_any_chain_nobody_gets_through() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tcp").await;
    let chains = [one("a", exit.node("x", "tcp"), json!({}))];
    let handler = group(json!(["gone", "a"]), json!({"strategy": "fifo"}));
    let entry = entry(RuntimeOptions::default(), &chains, target.addr, handler).await;
    entry.echo().await.unwrap();
    entry.runtime.apply(Change::DeleteChain("a".into())).await.unwrap();
    assert!(entry.echo().await.is_err());
    entry.runtime.apply(Change::AddChain(chain(json!({"name": "gone", "hops": []})))).await.unwrap();
    assert!(entry.echo().await.is_err());
    assert_eq!(target.peers(), [exit.from]);
    assert_eq!(entry.runtime.report().refused, 2);
}

#[tokio::test]
async fn a_dead_chain_is_found_by_its_probe() {
    let target = Target::start(Does::Echo).await;
    let (unreachable, _held) = refusing();
    let exits = [Exit::start(1, "tls").await, Exit::start(2, "tls").await];
    let chains =
        [one("a", exits[0].node("x", "tls"), json!({})), one("b", exits[1].node("y", "tls"), json!({}))];
    let options = || RuntimeOptions { allow_commands: true, ..RuntimeOptions::default() };
    let fails = [
        json!({"type": "tcp", "addr": unreachable.to_string(), "interval": "1h"}),
        json!({"type": "cmd", "command": "false", "interval": "1h"}),
    ];
    for probe in fails {
        let listed = json!([{"chain": "a", "probe": probe}, "b"]);
        let fifo = json!({"strategy": "fifo", "failTimeout": "600s"});
        let entry = entry(options(), &chains, target.addr, group(listed, fifo)).await;
        // Works for clients, so only its probe can have it left out, and those on their way meanwhile leave it at that.
        soon(async {
            while only(&entry, "b").connections == 0 {
                entry.echo().await.unwrap();
            }
        })
        .await;
        let before = only(&entry, "a").connections;
        for _ in 0..5 {
            entry.echo().await.unwrap();
        }
        assert_eq!(only(&entry, "a").connections, before, "{probe}");
        entry.runtime.shutdown().await;
    }
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_dead_target_is_found_by_its_probe_through_the_chain() {
    let target = Target::start(Does::Echo).await;
    let (down, _held) = refusing();
    let exit = Exit::start(1, "tls").await;
    let probe = |addr: SocketAddr| json!({"addr": addr.to_string(), "interval": "200ms"});
    let targets = json!({"forwarder": {
        "nodes": [{"name": "down", "addr": down.to_string(), "probe": probe(down)},
            {"name": "up", "addr": target.addr.to_string(), "probe": probe(target.addr)}],
        "selector": {"strategy": "fifo", "failTimeout": "600s"}
    }});
    let nodes = [exit.node("a", "tls")];
    let entry = Entry::with(RuntimeOptions::default(), &nodes, target.addr, targets).await;
    let targets = || entry.runtime.service_report("f").unwrap().targets;
    eventually("both are probed", || targets().iter().all(|target| target.probe.is_some())).await;
    entry.echo().await.unwrap();
    // Of clients alone: however many probes there were meanwhile, they are not among these.
    let asked: Vec<_> = targets().iter().map(|target| (target.connections, target.failures)).collect();
    assert_eq!(asked, [(0, 0), (1, 0)], "the target was left out before the client came");
    assert!(entry.marked().is_empty());
    target.assert_only_exits_came();

    // Without a chain that works, nothing is found out about a target, and nothing goes there past the exits.
    exit.runtime.shutdown().await;
    eventually("the exit is found dead", || entry.marked() == ["a"]).await;
    entry.runtime.apply(Change::DeleteChain("c".into())).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), entry.runtime.shutdown()).await.unwrap();
    target.assert_only_exits_came();
}

#[tokio::test]
async fn what_is_wrong_with_a_group_is_named() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let target = "127.0.0.1:9".parse().unwrap();
    let cases = [
        (group(json!([]), json!({})), "handler.chainGroup.chains: is empty"),
        (group(json!(["a", "a"]), json!({})), "handler.chainGroup.chains[1].chain: a is there twice"),
        (group(json!([""]), json!({})), "handler.chainGroup.chains[0].chain: is empty"),
        (
            group(json!(["a"]), json!({"strategy": "parallel"})),
            "handler.chainGroup.selector.strategy: parallel",
        ),
        (group(json!(["a"]), json!({"strategy": "best"})), "handler.chainGroup.selector.strategy: `best`"),
        (group(json!([{"chain": "a", "probe": {}}]), json!({})), "handler.chainGroup.chains[0].probe.addr: "),
        (
            group(json!([{"chain": "a", "probe": {"type": "cmd", "command": "true"}}]), json!({})),
            "handler.chainGroup.chains[0].probe.type: cmd is refused",
        ),
    ];
    for (handler, expected) in cases {
        let mut config = forward("f", target);
        config["handler"] = json!({"type": "tcp", "chainGroup": handler["chainGroup"]});
        let error = runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap_err().to_string();
        let expected = format!("service f: {expected}");
        assert!(error.starts_with(&expected), "{error} instead of {expected}");
    }
    let mut config = forward("f", target);
    config["forwarder"]["nodes"][0]["probe"] = json!({"addr": "127.0.0.1:10"});
    let error = runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap_err().to_string();
    assert_eq!(error, "service f: forwarder.nodes[0].probe.addr: must be that of the target, 127.0.0.1:9");
}

#[tokio::test]
async fn a_probe_of_a_chain_ends_with_its_service() {
    let (gone, stays) = (Target::start(Does::Echo).await, Target::start(Does::Echo).await);
    let exit = Exit::start(1, "tcp").await;
    let chains = [one("a", exit.node("x", "tcp"), json!({}))];
    let probed = |target: SocketAddr| {
        let probe = json!({"addr": target.to_string(), "interval": "100ms"});
        group(json!([{"chain": "a", "probe": probe}]), json!({}))
    };
    let entry = entry(RuntimeOptions::default(), &chains, gone.addr, probed(gone.addr)).await;
    let other = Entry::in_runtime(
        Runtime::new(RuntimeOptions::default()),
        stays.addr,
        json!({"handler": probed(stays.addr)}),
    );
    let other = other.await;
    other.runtime.apply(Change::AddChain(chain(chains[0].clone()))).await.unwrap();
    eventually("both are probed", || gone.peers().len() >= 2 && stays.peers().len() >= 2).await;
    entry.runtime.apply(Change::PauseServices(vec!["f".into()])).await.unwrap();
    // One may have been on its way.
    let (ended, going) = (gone.peers().len() + 1, stays.peers().len());
    eventually("the other goes on", || stays.peers().len() >= going + 5).await;
    assert!(gone.peers().len() <= ended);
    entry.runtime.apply(Change::ResumeServices(vec!["f".into()])).await.unwrap();
    eventually("probed again", || gone.peers().len() >= ended + 2).await;
    entry.runtime.apply(Change::DeleteServices(vec!["f".into()])).await.unwrap();
    let (ended, going) = (gone.peers().len() + 1, stays.peers().len());
    eventually("the other goes on", || stays.peers().len() >= going + 5).await;
    assert!(gone.peers().len() <= ended);
}
