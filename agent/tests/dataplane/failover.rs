//! One client connection tries the next candidate until one is fully up.

use crate::rig::*;
use agent::clock::Clock;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpSocket;

#[tokio::test]
async fn a_dead_exit_costs_no_client_anything() {
    let target = Target::start(Does::Echo).await;
    let (dead, _held) = refusing();
    let exit = Exit::start(2, "tls").await;
    let entry = Entry::start(&[node("dead", dead, "tls"), exit.node("alive", "tls")], target.addr).await;
    for _ in 0..3 {
        entry.echo().await.unwrap();
    }
    assert_eq!(target.peers(), [exit.from; 3]);
    assert_eq!(entry.marked(), ["dead"]);
    let nodes = entry.nodes();
    assert_eq!((nodes[0].failures, nodes[0].connections), (1, 0), "marked, so not tried again");
    assert_eq!((nodes[1].failures, nodes[1].connections), (0, 3));
    eventually("connections are no longer open", || entry.nodes()[1].open == 0).await;
}

#[tokio::test]
async fn a_wrong_password_leads_to_the_next() {
    let target = Target::start(Does::Echo).await;
    let auth = json!({"username": "user", "password": "right"});
    let strict = Exit::with(1, "tls", json!({"type": "relay", "auth": auth})).await;
    let exit = Exit::with(2, "tls", json!({"type": "relay", "auth": auth})).await;
    let mut wrong = strict.node("wrong", "tls");
    wrong["connector"]["auth"] = json!({"username": "user", "password": "wrong"});
    let mut right = exit.node("right", "tls");
    right["connector"]["auth"] = auth;
    let entry = Entry::start(&[wrong, right], target.addr).await;
    entry.echo().await.unwrap();
    assert_eq!(target.peers(), [exit.from]);
    assert_eq!(entry.marked(), ["wrong"]);
}

#[tokio::test]
async fn an_exit_that_cannot_reach_the_target_is_marked_once_another_can() {
    let target = Target::start(Does::Echo).await;
    let (cut_off, asked) = answering(6).await;
    let exit = Exit::start(2, "tcp").await;
    let entry = Entry::start(&[node("cut_off", cut_off, "tcp"), exit.node("fine", "tcp")], target.addr).await;
    for _ in 0..2 {
        entry.echo().await.unwrap();
    }
    assert_eq!(entry.marked(), ["cut_off"]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_target_that_is_down_is_not_blamed_on_the_exits() {
    let (down, _held) = refusing();
    let (a, b) = (Exit::start(1, "tcp").await, Exit::start(2, "tcp").await);
    let entry = Entry::start(&[a.node("a", "tcp"), b.node("b", "tcp")], down).await;
    assert!(entry.echo().await.is_err());
    let nodes = entry.nodes();
    assert_eq!(nodes.iter().map(|node| node.failures).collect::<Vec<_>>(), [1, 1], "both were asked");
    assert!(entry.marked().is_empty());
    assert_eq!(entry.runtime.report().refused, 1);
}

#[tokio::test]
async fn the_next_target_is_used_when_no_exit_reaches_the_first() {
    let (down, _held) = refusing();
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tcp").await;
    let targets = json!({"forwarder": {
        "nodes": [{"name": "node_1", "addr": down.to_string()}, {"name": "node_2", "addr": target.addr.to_string()}],
        "selector": {"strategy": "fifo", "maxFails": 1, "failTimeout": "600s"}
    }});
    let entry = Entry::with(RuntimeOptions::default(), &[exit.node("a", "tcp")], target.addr, targets).await;
    for _ in 0..3 {
        entry.echo().await.unwrap();
    }
    assert_eq!(entry.nodes()[0].failures, 1, "the first target is left out after one failure");
    assert!(entry.marked().is_empty());
}

#[tokio::test]
async fn when_all_are_marked_they_are_tried_all_the_same_and_recover() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(2, "tcp").await;
    let (dead, _held) = refusing();
    let relay = json!({"name": "exit", "addr": exit.addr.to_string(), "handler": {"type": "relay"},
        "listener": {"type": "tcp"}, "metadata": {"interface": exit.from.to_string()}});
    exit.runtime.apply(Change::DeleteServices(vec!["exit".into()])).await.unwrap();
    let entry = Entry::start(&[node("dead", dead, "tcp"), exit.node("back", "tcp")], target.addr).await;
    assert!(entry.echo().await.is_err());
    assert_eq!(entry.marked(), ["dead", "back"]);
    exit.runtime.apply(Change::AddServices(vec![service(relay)])).await.unwrap();
    entry.echo().await.unwrap();
    assert_eq!(entry.marked(), ["dead"], "a success clears the mark");
    assert_eq!(target.peers(), [exit.from]);
}

#[tokio::test]
async fn an_expired_mark_lets_the_first_exit_come_back() {
    let target = Target::start(Does::Echo).await;
    let (first, second) = (Exit::start(1, "tcp").await, Exit::start(2, "tcp").await);
    let options = RuntimeOptions::default();
    let entry = Entry::with(
        options.clone(),
        &[first.node("first", "tcp"), second.node("second", "tcp")],
        target.addr,
        json!({}),
    )
    .await;
    first.runtime.apply(Change::PauseServices(vec!["exit".into()])).await.unwrap();
    entry.echo().await.unwrap();
    first.runtime.apply(Change::DeleteServices(vec!["exit".into()])).await.unwrap();
    let relay = json!({"name": "exit", "addr": first.addr.to_string(), "handler": {"type": "relay"},
        "listener": {"type": "tcp"}, "metadata": {"interface": first.from.to_string()}});
    first.runtime.apply(Change::AddServices(vec![service(relay)])).await.unwrap();
    entry.echo().await.unwrap();
    options.clock.advance(Duration::from_secs(600));
    entry.echo().await.unwrap();
    assert_eq!(target.peers(), [second.from, second.from, first.from]);
    assert!(entry.marked().is_empty());
}

/// How long one echo takes, in stages of the impatient deadlines (500 ms).
async fn stages_of_echo(entry: &Entry) -> f64 {
    let clock = Clock::system();
    entry.echo().await.unwrap();
    clock.now_ms() as f64 / 500.0
}

#[tokio::test]
async fn a_mute_exit_costs_one_deadline_once() {
    let target = Target::start(Does::Echo).await;
    for dialer in ["tcp", "tls"] {
        let (mute, _) = mute().await;
        let exit = Exit::start(2, dialer).await;
        let nodes = [node("mute", mute, dialer), exit.node("alive", dialer)];
        let entry = Entry::with(impatient(), &nodes, target.addr, json!({})).await;
        let stages = stages_of_echo(&entry).await;
        assert!((1.0..3.0).contains(&stages), "{dialer}: {stages} stages");
        assert_eq!(entry.marked(), ["mute"]);
        let again = stages_of_echo(&entry).await;
        assert!(again < 1.0, "{dialer}: the mute one is left out, yet it took {again} stages");
    }
}

#[tokio::test]
async fn a_black_hole_costs_one_deadline_once() {
    let target = Target::start(Does::Echo).await;
    // A listener whose queue is full drops further SYNs.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let hole = socket.listen(1).unwrap();
    let addr = hole.local_addr().unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) =
        tokio::time::timeout(Duration::from_millis(300), tokio::net::TcpStream::connect(addr)).await
    {
        filling.push(stream.unwrap());
    }
    let exit = Exit::start(2, "tcp").await;
    let nodes = [node("hole", addr, "tcp"), exit.node("alive", "tcp")];
    let entry = Entry::with(impatient(), &nodes, target.addr, json!({})).await;
    let stages = stages_of_echo(&entry).await;
    assert!((1.0..3.0).contains(&stages), "{stages} stages");
    assert_eq!(entry.marked(), ["hole"]);
}

#[tokio::test]
async fn a_node_behind_which_others_are_tried_gets_the_time_for_it() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(2, "tcp").await;
    // Two stages of the middle node end before its third exit answers; the entry's own stage is as short, and there is
    // no other way.
    let exits = [
        node("mute", mute().await.0, "tcp"),
        node("mute too", mute().await.0, "tcp"),
        exit.node("alive", "tcp"),
    ];
    let middle = Runtime::new(impatient());
    middle.apply(Change::AddChain(fifo(&exits))).await.unwrap();
    let relay = json!({"name": "middle", "addr": "127.0.0.1:0", "listener": {"type": "tcp"},
        "handler": {"type": "relay", "chain": "c"}});
    middle.apply(Change::AddServices(vec![service(relay)])).await.unwrap();
    let only = node("middle", middle.listening("middle").unwrap(), "tcp");
    let entry = Entry::with(impatient(), std::slice::from_ref(&only), target.addr, json!({})).await;
    entry.echo().await.unwrap();
    assert!(entry.marked().is_empty());
    target.assert_only_exits_came();

    // With another way, the middle node gets its stage and no more.
    middle.apply(Change::DeleteChain("c".into())).await.unwrap();
    let slow = [
        node("mute", mute().await.0, "tcp"),
        node("mute too", mute().await.0, "tcp"),
        exit.node("alive", "tcp"),
    ];
    middle.apply(Change::AddChain(fifo(&slow))).await.unwrap();
    let entry = Entry::with(impatient(), &[only, exit.node("direct", "tcp")], target.addr, json!({})).await;
    entry.echo().await.unwrap();
    assert_eq!(entry.marked(), ["middle"]);
}

#[tokio::test]
async fn retries_limit_the_attempts() {
    let target = Target::start(Does::Echo).await;
    let ((a, asked_a), (b, asked_b)) = (answering(5).await, answering(5).await);
    let exit = Exit::start(3, "tcp").await;
    let nodes = [node("a", a, "tcp"), node("b", b, "tcp"), exit.node("c", "tcp")];
    let limited = json!({"handler": {"retries": 1}});
    let entry = Entry::with(RuntimeOptions::default(), &nodes, target.addr, limited).await;
    assert!(entry.echo().await.is_err(), "two attempts, both at broken exits");
    assert_eq!((asked_a.load(Ordering::SeqCst), asked_b.load(Ordering::SeqCst)), (1, 1));
    entry.echo().await.unwrap();
}

#[tokio::test]
async fn more_retries_than_candidates_begin_another_round() {
    let target = Target::start(Does::Echo).await;
    let (broken, asked) = answering(5).await;
    let more = json!({"handler": {"retries": 3}});
    let entry = Entry::with(RuntimeOptions::default(), &[node("a", broken, "tcp")], target.addr, more).await;
    assert!(entry.echo().await.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn an_exit_that_could_take_all_the_time_leaves_some_for_the_next() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(2, "tcp").await;
    let nodes = [node("mute", mute().await.0, "tcp"), exit.node("alive", "tcp")];
    let mut options = impatient();
    options.deadlines.relay_status = LONG;
    // Its stage alone would be longer than all of this.
    let entry = Entry::with(options, &nodes, target.addr, json!({"metadata": {"dialTimeout": "3s"}})).await;
    entry.echo().await.unwrap();
    target.assert_only_exits_came();
}

#[tokio::test]
async fn dial_timeout_bounds_everything() {
    let target = Target::start(Does::Echo).await;
    let (a, b, c) = (mute().await.0, mute().await.0, mute().await.0);
    let nodes = [node("a", a, "tcp"), node("b", b, "tcp"), node("c", c, "tcp")];
    // Four fifths of a second for stages of half a second: the first has its stage, the others share what is left.
    let bounded = json!({"metadata": {"dialTimeout": "800ms"}});
    let entry = Entry::with(impatient(), &nodes, target.addr, bounded).await;
    let mut stream = entry.connect().await;
    let clock = Clock::system();
    assert!(soon(stream.read(&mut [0; 1])).await.is_err());
    let took_ms = clock.now_ms();
    assert!((700..2500).contains(&took_ms), "{took_ms} ms");
    let failures: Vec<_> = entry.nodes().iter().map(|node| node.failures).collect();
    assert_eq!(failures, [1, 1, 1], "each was asked");
    assert_eq!(entry.marked(), ["a"], "the others had too little time to be blamed");
}

#[tokio::test]
async fn a_backup_is_used_only_when_the_others_are_left_out() {
    let target = Target::start(Does::Echo).await;
    let (backup, primary) = (Exit::start(1, "tcp").await, Exit::start(2, "tcp").await);
    let mut first = backup.node("backup", "tcp");
    first["metadata"] = json!({"backup": true});
    let entry = Entry::start(&[first, primary.node("primary", "tcp")], target.addr).await;
    entry.echo().await.unwrap();
    primary.runtime.shutdown().await;
    entry.echo().await.unwrap();
    assert_eq!(target.peers(), [primary.from, backup.from]);
}
