//! Probes find out before clients do, and live as long as what they probe.

use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use shared::link::{ChainNodeReport, ProbeReport};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// So rare that there is only the first.
const ONCE: &str = "1h";

fn probed(mut node: Value, probe: Value) -> Value {
    node["probe"] = probe;
    node
}

/// Asks only the node itself.
fn own(addr: SocketAddr, interval: &str) -> Value {
    json!({"type": "tcp", "addr": addr.to_string(), "interval": interval})
}

fn command(command: &str) -> Value {
    json!({"type": "cmd", "command": command, "interval": ONCE})
}

fn allowing() -> RuntimeOptions {
    RuntimeOptions { allow_commands: true, ..RuntimeOptions::default() }
}

async fn running(options: RuntimeOptions, selector: Value, nodes: &[Value], target: SocketAddr) -> Entry {
    let runtime = Runtime::new(options);
    let hop = json!({"name": "h", "selector": selector, "nodes": nodes});
    runtime.apply(Change::AddChain(chain(json!({"name": "c", "hops": [hop]})))).await.unwrap();
    Entry::in_runtime(runtime, target, json!({})).await
}

fn last(entry: &Entry, node: usize) -> Option<ProbeReport> {
    entry.nodes()[node].probe.clone()
}

/// Waits until every node has been probed.
async fn all_probed(entry: &Entry) {
    eventually("all are probed", || entry.nodes().iter().all(|node| node.probe.is_some())).await;
}

fn used(nodes: &[ChainNodeReport]) -> Vec<u64> {
    nodes.iter().map(|node| node.connections).collect()
}

/// A listener that can be closed and opened again at its address.
struct Port {
    addr: SocketAddr,
    task: tokio::task::JoinHandle<()>,
    /// How often somebody came since the start.
    seen: Arc<AtomicUsize>,
}

impl Port {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let seen = Arc::default();
        Self { addr, task: Self::accept(listener, &seen), seen }
    }

    fn accept(listener: TcpListener, seen: &Arc<AtomicUsize>) -> tokio::task::JoinHandle<()> {
        let seen = seen.clone();
        tokio::spawn(async move {
            loop {
                let _ = listener.accept().await;
                seen.fetch_add(1, Ordering::SeqCst);
            }
        })
    }

    async fn close(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    async fn reopen(&mut self) {
        self.task = Self::accept(TcpListener::bind(self.addr).await.unwrap(), &self.seen);
    }
}

#[tokio::test]
async fn a_dead_node_is_left_out_before_any_client_comes() {
    let target = Target::start(Does::Echo).await;
    let (dead, _held) = refusing();
    let exit = Exit::start(1, "tls").await;
    for strategy in ["round", "fifo", "rand", "hash", "hash(consistent)", "lowestlatency", "parallel"] {
        let selector = json!({"strategy": strategy, "maxFails": 1, "failTimeout": "600s"});
        let nodes = [
            probed(node("dead", dead, "tls"), own(dead, "5s")),
            probed(exit.node("alive", "tls"), own(exit.addr, "5s")),
        ];
        let entry = running(RuntimeOptions::default(), selector, &nodes, target.addr).await;
        all_probed(&entry).await;
        assert_eq!(entry.marked(), ["dead"], "{strategy}");
        for _ in 0..10 {
            entry.echo().await.unwrap();
        }
        let nodes = entry.nodes();
        assert_eq!((used(&nodes), nodes[0].failures), (vec![0, 10], 0), "{strategy}: nobody had to find out");
    }
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_node_is_found_dead_and_found_back() {
    let mut port = Port::open().await;
    let nodes = [probed(node("a", port.addr, "tcp"), own(port.addr, "200ms"))];
    let selector = json!({"maxFails": 1, "failTimeout": "600s"});
    let entry = running(RuntimeOptions::default(), selector, &nodes, port.addr).await;
    let ok = |entry: &Entry| last(entry, 0).map(|probe| probe.ok);
    eventually("works", || ok(&entry) == Some(true)).await;
    port.close().await;
    // One that was on its way when the port was closed may have failed in another way.
    let refused = |probe: ProbeReport| {
        !probe.ok && probe.failures > 0 && probe.error.is_some_and(|error| error.contains("refused"))
    };
    eventually("fails", || last(&entry, 0).is_some_and(refused)).await;
    assert_eq!(entry.marked(), ["a"]);
    port.reopen().await;
    eventually("works again", || ok(&entry) == Some(true)).await;
    assert!(entry.marked().is_empty());
    assert_eq!(last(&entry, 0).unwrap().failures, 0);
}

#[tokio::test]
async fn an_exit_that_is_up_but_leads_nowhere_is_found() {
    let target = Target::start(Does::Echo).await;
    let (unreachable, _held) = refusing();
    let exits = [Exit::start(1, "tls").await, Exit::start(2, "tls").await];
    let through = |addr: SocketAddr| json!({"addr": addr.to_string(), "interval": ONCE});
    let nodes = [
        probed(exits[0].node("a", "tls"), through(unreachable)),
        probed(exits[1].node("b", "tls"), through(target.addr)),
    ];
    let entry = running(RuntimeOptions::default(), json!({"failTimeout": "600s"}), &nodes, target.addr).await;
    all_probed(&entry).await;
    assert_eq!(entry.marked(), ["a"]);
    assert!(last(&entry, 0).unwrap().error.unwrap().contains("answered"));
    assert_eq!(target.peers(), [exits[1].from], "the probe went through the exit");
}

#[tokio::test]
async fn a_node_that_holds_its_answer_is_not_blamed_for_a_silent_target() {
    // Answers nothing until the target speaks, which it never does; as GOST without nodelay.
    let (holding, _) = mute().await;
    let target = Target::start(Does::Echo).await;
    let mut held = node("a", holding, "tcp");
    held["connector"]["metadata"] = json!({"nodelay": false});
    let probe = json!({"addr": target.addr.to_string(), "interval": ONCE, "timeout": "6s"});
    let mut told = probed(held.clone(), probe.clone());
    told["name"] = json!("b");
    told["connector"]["metadata"] = json!({"nodelay": true});
    let nodes = [probed(held, probe), told];
    let entry = running(RuntimeOptions::default(), json!({}), &nodes, target.addr).await;
    all_probed(&entry).await;
    assert_eq!(entry.nodes().iter().map(|n| n.probe.as_ref().unwrap().ok).collect::<Vec<_>>(), [true, false]);
}

/// A web server: answers with the status that it is told.
async fn web(status: Arc<AtomicU16>) -> (SocketAddr, Arc<std::sync::Mutex<Vec<String>>>) {
    let asked: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let seen = asked.clone();
    let (addr, _) = scripted(move |mut stream| {
        let (status, seen) = (status.clone(), seen.clone());
        async move {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    return;
                }
            }
            seen.lock().unwrap().push(String::from_utf8(request).unwrap());
            let answer = format!("HTTP/1.1 {} X\r\nContent-Length: 0\r\n\r\n", status.load(Ordering::SeqCst));
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    })
    .await;
    (addr, asked)
}

#[tokio::test]
async fn a_page_is_asked_for_through_the_node() {
    let status = Arc::new(AtomicU16::new(200));
    let (page, asked) = web(status.clone()).await;
    let exit = Exit::start(1, "tls").await;
    for nodelay in [true, false] {
        status.store(200, Ordering::SeqCst);
        let mut through = exit.node("a", "tls");
        through["connector"]["metadata"] = json!({"nodelay": nodelay});
        let probe = json!({"type": "http", "addr": page.to_string(), "httpPath": "/health", "interval": "200ms",
            "httpHost": "page.example", "httpHeaders": {"X-Probe": "1"}, "expectedStatus": 200});
        let nodes = [probed(through, probe)];
        let entry = running(RuntimeOptions::default(), json!({"failTimeout": "600s"}), &nodes, page).await;
        eventually("200", || last(&entry, 0).is_some_and(|probe| probe.ok)).await;
        status.store(500, Ordering::SeqCst);
        eventually("500", || last(&entry, 0).is_some_and(|probe| !probe.ok)).await;
        assert!(last(&entry, 0).unwrap().error.unwrap().contains("status 500 instead of 200"));
        assert_eq!(entry.marked(), ["a"]);
    }
    let expected = "GET /health HTTP/1.1\r\nHost: page.example\r\nX-Probe: 1\r\nConnection: close\r\n\r\n";
    assert!(asked.lock().unwrap().iter().all(|request| request == expected));
}

#[tokio::test]
async fn a_page_of_the_node_itself_is_asked_for_directly() {
    let (page, asked) = web(Arc::new(AtomicU16::new(204))).await;
    let probe = json!({"type": "http", "addr": page.to_string(), "expectedStatus": 204, "interval": ONCE});
    let nodes = [probed(node("a", page, "tcp"), probe)];
    let entry = running(RuntimeOptions::default(), json!({}), &nodes, page).await;
    all_probed(&entry).await;
    assert!(last(&entry, 0).unwrap().ok);
    assert_eq!(
        *asked.lock().unwrap(),
        [format!("GET / HTTP/1.1\r\nHost: {page}\r\nConnection: close\r\n\r\n")]
    );
}

#[tokio::test]
async fn a_mute_node_does_not_hold_its_probes_up() {
    let (silent, came) = mute().await;
    for (kind, dialer) in [("tcp", "tls"), ("http", "tcp")] {
        came.store(0, Ordering::SeqCst);
        let probe =
            json!({"type": kind, "addr": silent.to_string(), "interval": "100ms", "timeout": "150ms"});
        let nodes = [probed(node("a", silent, dialer), probe)];
        let entry = running(RuntimeOptions::default(), json!({}), &nodes, silent).await;
        eventually("probes go on", || last(&entry, 0).is_some_and(|probe| probe.failures >= 3)).await;
        // A connection may wait for the target to be accepted longer than its probe waits.
        eventually("they come", || came.load(Ordering::SeqCst) >= 3).await;
    }
}

#[tokio::test]
async fn commands_run_only_where_they_are_allowed() {
    let target = Target::start(Does::Echo).await;
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let exit = Exit::start(1, "tcp").await;
    let nodes = [probed(exit.node("a", "tcp"), command(&format!("touch {}", trace.display())))];
    let refused = Runtime::new(RuntimeOptions::default());
    let error = refused.apply(Change::AddChain(fifo(&nodes))).await.unwrap_err().to_string();
    assert!(error.starts_with("chain c: hops[0].nodes[0].probe.type: cmd is refused"), "{error}");
    assert!(refused.config().chains.is_empty() && !trace.exists());

    let entry = running(allowing(), json!({}), &nodes, target.addr).await;
    all_probed(&entry).await;
    assert!(last(&entry, 0).unwrap().ok && trace.exists());
}

#[tokio::test]
async fn a_command_decides_who_is_used() {
    let target = Target::start(Does::Echo).await;
    let exits = [Exit::start(1, "tcp").await, Exit::start(2, "tcp").await];
    let nodes = [
        probed(exits[0].node("a", "tcp"), command("false")),
        probed(exits[1].node("b", "tcp"), command("true")),
    ];
    let entry =
        running(allowing(), json!({"strategy": "round", "failTimeout": "600s"}), &nodes, target.addr).await;
    all_probed(&entry).await;
    for _ in 0..10 {
        entry.echo().await.unwrap();
    }
    assert_eq!(target.peers(), [exits[1].from; 10]);
}

#[tokio::test]
async fn the_fastest_by_its_probe_is_used() {
    let target = Target::start(Does::Echo).await;
    let exits = [Exit::start(1, "tcp").await, Exit::start(2, "tcp").await, Exit::start(3, "tcp").await];
    let (dead, _held) = refusing();
    let nodes = [
        exits[0].node("bare", "tcp"),
        probed(exits[1].node("slow", "tcp"), command("sleep 4")),
        probed(node("dead", dead, "tcp"), own(dead, ONCE)),
        probed(exits[2].node("fast", "tcp"), command("true")),
    ];
    let selector = json!({"strategy": "lowestlatency", "failTimeout": "600s"});
    let entry = running(allowing(), selector, &nodes, target.addr).await;
    eventually("three are probed", || entry.nodes().iter().filter(|n| n.probe.is_some()).count() == 3).await;
    for _ in 0..5 {
        entry.echo().await.unwrap();
    }
    assert_eq!(used(&entry.nodes()), [0, 0, 0, 5]);
    exits[2].runtime.shutdown().await;
    entry.echo().await.unwrap();
    assert_eq!(used(&entry.nodes()), [0, 1, 0, 5], "slow is better than bare or dead");
    assert_eq!(entry.marked(), ["dead", "fast"]);
}

#[tokio::test]
async fn who_is_too_slow_waits_until_nobody_else_is_left() {
    let target = Target::start(Does::Echo).await;
    let exits = [Exit::start(1, "tcp").await, Exit::start(2, "tcp").await, Exit::start(3, "tcp").await];
    let nodes = [
        // The others have to start a process, which takes its time on a busy machine.
        probed(exits[0].node("slow", "tcp"), command("sleep 5")),
        exits[1].node("bare", "tcp"),
        probed(exits[2].node("fast", "tcp"), command("true")),
    ];
    let selector = json!({"strategy": "round", "maxLatency": "4500ms", "failTimeout": "600s"});
    let entry = running(allowing(), selector, &nodes, target.addr).await;
    eventually("two are probed", || entry.nodes().iter().filter(|n| n.probe.is_some()).count() == 2).await;
    for _ in 0..4 {
        entry.echo().await.unwrap();
    }
    assert_eq!(used(&entry.nodes()), [0, 2, 2]);
    exits[1].runtime.shutdown().await;
    exits[2].runtime.shutdown().await;
    for _ in 0..2 {
        entry.echo().await.unwrap();
    }
    assert_eq!(used(&entry.nodes())[0], 2, "the limit does not refuse clients");
}

#[tokio::test]
async fn nodes_of_a_later_hop_are_probed_through_the_earlier_ones() {
    let target = Target::start(Does::Echo).await;
    // Only the middle comes from this address: the exit would not be reached from elsewhere.
    let (exit, came_from) = {
        let seen: Arc<std::sync::Mutex<Vec<SocketAddr>>> = Arc::default();
        let from = seen.clone();
        let (addr, _) = scripted(move |stream| {
            from.lock().unwrap().push(stream.peer_addr().unwrap());
            async {}
        })
        .await;
        (addr, seen)
    };
    let middle = Exit::start(1, "tls").await;
    let (dead, _held) = refusing();
    let hops = json!([
        {"name": "h1", "selector": {"strategy": "fifo"}, "nodes": [middle.node("m", "tls")]},
        {"name": "h2", "nodes": [
            probed(node("x", exit, "tcp"), own(exit, ONCE)), probed(node("y", dead, "tcp"), own(dead, ONCE))
        ]}
    ]);
    let entry = Entry::in_runtime(Runtime::new(RuntimeOptions::default()), target.addr, json!({})).await;
    let two = chain(json!({"name": "c", "hops": hops}));
    entry.runtime.apply(Change::UpsertChain(two)).await.unwrap();
    all_probed(&entry).await;
    assert_eq!(entry.nodes().iter().map(|n| n.probe.as_ref().unwrap().ok).collect::<Vec<_>>(), [true, false]);
    assert!(came_from.lock().unwrap().iter().all(|peer| peer.ip() == middle.from));

    // A dead middle is no news about the exits.
    let (gone, _held) = refusing();
    let mut broken = hops.clone();
    broken[0]["nodes"] = json!([node("m", gone, "tls")]);
    broken[1]["nodes"] = json!([probed(node("x", exit, "tcp"), own(exit, "100ms"))]);
    let broken = chain(json!({"name": "c", "hops": broken}));
    entry.runtime.apply(Change::UpsertChain(broken)).await.unwrap();
    // Another probed node tells that time goes by.
    let mut witness = fifo(&[probed(node("w", exit, "tcp"), own(exit, "100ms"))]);
    witness.name = "w".into();
    entry.runtime.apply(Change::AddChain(witness)).await.unwrap();
    let chains = || entry.runtime.report().chains;
    let probes = |name: &str| {
        let chain = chains().into_iter().find(|chain| chain.name == name).unwrap();
        chain.nodes[0].probe.as_ref().map_or(0, |probe| probe.probes)
    };
    eventually("time goes by", || probes("w") >= 4).await;
    assert_eq!(probes("c"), 0);
    assert!(entry.marked().is_empty());
}

#[tokio::test]
async fn a_probe_lives_as_long_as_its_node() {
    let (kept, other) = (Port::open().await, Port::open().await);
    let seen = |port: &Port| port.seen.load(Ordering::SeqCst);
    let first = probed(node("a", kept.addr, "tcp"), own(kept.addr, ONCE));
    let second = probed(node("b", other.addr, "tcp"), own(other.addr, ONCE));
    let entry =
        running(RuntimeOptions::default(), json!({}), &[first.clone(), second.clone()], kept.addr).await;
    all_probed(&entry).await;
    let before = last(&entry, 0).unwrap();

    // Reordered, renamed, another strategy: the same nodes, so no new probe, and what was found is still known.
    let mut renamed = first.clone();
    renamed["name"] = json!("z");
    let swapped = json!({"name": "c", "hops": [
        {"name": "h", "selector": {"strategy": "lowestlatency"}, "nodes": [second, renamed]}]});
    entry.runtime.apply(Change::UpsertChain(chain(swapped))).await.unwrap();
    let after = last(&entry, 1).unwrap();
    assert_eq!((after.probes, after.latency_ms), (1, before.latency_ms));
    assert_eq!((seen(&kept), seen(&other)), (1, 1));

    // Another probe of the same node: the old result is no answer to the new question.
    let mut asked_otherwise = first.clone();
    asked_otherwise["probe"]["timeout"] = json!("9s");
    entry.runtime.apply(Change::UpsertChain(fifo(&[asked_otherwise]))).await.unwrap();
    eventually("probed anew", || seen(&kept) == 2 && last(&entry, 0).is_some_and(|p| p.probes == 1)).await;
    assert_eq!(seen(&other), 1);

    // Without a probe, nothing is known.
    let bare = node("a", kept.addr, "tcp");
    entry.runtime.apply(Change::UpsertChain(fifo(&[bare]))).await.unwrap();
    assert_eq!(last(&entry, 0), None);
}

#[tokio::test]
async fn a_probe_ends_with_its_node() {
    let (gone, stays) = (Port::open().await, Port::open().await);
    let seen = |port: &Port| port.seen.load(Ordering::SeqCst);
    let entry = running(
        RuntimeOptions::default(),
        json!({}),
        &[probed(node("a", gone.addr, "tcp"), own(gone.addr, "100ms"))],
        gone.addr,
    )
    .await;
    let mut other = fifo(&[probed(node("b", stays.addr, "tcp"), own(stays.addr, "100ms"))]);
    other.name = "d".into();
    entry.runtime.apply(Change::AddChain(other)).await.unwrap();
    eventually("both are probed", || seen(&gone) >= 2 && seen(&stays) >= 2).await;
    entry.runtime.apply(Change::DeleteChain("c".into())).await.unwrap();
    // One may have been on its way.
    let (ended, going) = (seen(&gone) + 1, seen(&stays));
    eventually("the other goes on", || seen(&stays) >= going + 5).await;
    assert!(seen(&gone) <= ended);
    let shut_down = tokio::time::timeout(LONG, entry.runtime.shutdown());
    shut_down.await.unwrap();
    // One may have been on its way.
    let ended = seen(&stays) + 1;
    let witness = running(
        RuntimeOptions::default(),
        json!({}),
        &[probed(node("a", gone.addr, "tcp"), own(gone.addr, "100ms"))],
        gone.addr,
    )
    .await;
    eventually("time goes by", || last(&witness, 0).is_some_and(|probe| probe.probes >= 5)).await;
    assert!(seen(&stays) <= ended, "nothing outlives its runtime");
}

#[tokio::test]
async fn many_probes_wait_for_their_turn() {
    let (silent, came) = mute().await;
    let probe = || json!({"addr": silent.to_string(), "interval": ONCE, "timeout": "60s"});
    let nodes: Vec<_> = (0..40).map(|i| probed(node(&format!("n{i}"), silent, "tls"), probe())).collect();
    let mut options = RuntimeOptions::default();
    options.deadlines.handshake = Duration::from_secs(60);
    let entry = running(options, json!({}), &nodes, silent).await;
    eventually("as many as may", || came.load(Ordering::SeqCst) == 32).await;
    // A connection of its own is served meanwhile, and no further probe has begun.
    let _ = entry.connect().await;
    assert!(came.load(Ordering::SeqCst) <= 33);
    tokio::time::timeout(LONG, entry.runtime.shutdown()).await.unwrap();
}
