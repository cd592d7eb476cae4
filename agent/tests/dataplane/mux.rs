//! Many streams over few connections: shared, limited, found dead, replaced, and closed when nobody needs them.

use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Stands between an entry and an exit, counts the connections and can turn those that are there into black holes.
struct Wire {
    addr: SocketAddr,
    made: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    /// So many of the first connections are black holes.
    dead: Arc<AtomicUsize>,
}

impl Wire {
    async fn to(exit: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (made, open, dead) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let wire = Self { addr, made: made.clone(), open: open.clone(), dead: dead.clone() };
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                let number = made.fetch_add(1, Ordering::SeqCst);
                open.fetch_add(1, Ordering::SeqCst);
                let (open, dead) = (open.clone(), dead.clone());
                tokio::spawn(async move {
                    if let Ok(far) = TcpStream::connect(exit).await {
                        carry(near, far, || number < dead.load(Ordering::SeqCst)).await;
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        wire
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    /// Those that are there go on without a word; what comes passes.
    fn swallow(&self) {
        self.dead.store(self.made(), Ordering::SeqCst);
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

/// Carries until one side ends; a dead one swallows everything, both ways.
async fn carry(near: TcpStream, far: TcpStream, is_dead: impl Fn() -> bool) {
    let (mut from_near, mut to_near) = near.into_split();
    let (mut from_far, mut to_far) = far.into_split();
    let pass = async |from: &mut (dyn tokio::io::AsyncRead + Unpin + Send),
                      to: &mut (dyn tokio::io::AsyncWrite + Unpin + Send)| {
        let mut block = vec![0; 64 * 1024];
        while let Ok(n) = from.read(&mut block).await {
            if n == 0 || (!is_dead() && to.write_all(&block[..n]).await.is_err()) {
                break;
            }
        }
    };
    tokio::select! {
        () = pass(&mut from_near, &mut to_far) => {}
        () = pass(&mut from_far, &mut to_near) => {}
    }
}

fn muxed(wire: &Wire, name: &str, kind: &str, metadata: Value) -> Value {
    let mut node = node(name, wire.addr, kind);
    node["dialer"]["metadata"] = metadata;
    node
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_share_one_connection() {
    let target = Target::start(Does::Echo).await;
    for kind in ["mtcp", "mtls", "mws", "mwss"] {
        let exit = Exit::start(1, kind).await;
        let wire = Wire::to(exit.addr).await;
        let entry = Arc::new(Entry::start(&[muxed(&wire, "a", kind, json!({}))], target.addr).await);
        let mut clients = JoinSet::new();
        for _ in 0..100 {
            let entry = entry.clone();
            clients.spawn(async move { there_and_back(entry.connect().await, 256 * 1024).await });
        }
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
        assert_eq!(wire.made(), 1, "{kind}");
        assert_eq!(entry.nodes()[0].connections, 100, "{kind}");
        assert_eq!(entry.nodes()[0].failures, 0, "{kind}");
    }
    target.assert_only_exits_came();
}

#[tokio::test]
async fn more_clients_than_a_session_takes_get_another_one() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "mtcp").await;
    let wire = Wire::to(exit.addr).await;
    let entry = Entry::start(&[muxed(&wire, "a", "mtcp", json!({}))], target.addr).await;
    let mut clients = Vec::new();
    for _ in 0..300 {
        let mut stream = entry.connect().await;
        stream.write_all(b"ping").await.unwrap();
        soon(stream.read_exact(&mut [0; 4])).await.unwrap();
        clients.push(stream);
    }
    assert_eq!(wire.made(), 2);
}

#[tokio::test]
async fn every_stream_is_a_connection_of_its_own_for_the_limit() {
    let target = Target::start(Does::Echo).await;
    // One for the connection that carries the streams.
    let options = RuntimeOptions { connection_limit: Some(4), ..RuntimeOptions::default() };
    let exit = Exit::in_runtime(Runtime::new(options), 1, "mtls", json!({"type": "relay"})).await;
    let entry = Entry::start(&[exit.node("a", "mtls")], target.addr).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut stream = entry.connect().await;
        stream.write_all(b"ping").await.unwrap();
        soon(stream.read_exact(&mut [0; 4])).await.unwrap();
        clients.push(stream);
    }
    entry.echo().await.unwrap_err();
    drop(clients.pop());
    let again = async {
        while entry.echo().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(again).await;
}

#[tokio::test]
async fn a_dead_session_is_replaced_for_new_clients_and_found_for_old_ones() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "mtls").await;
    let wire = Wire::to(exit.addr).await;
    let keepalive = json!({"mux.keepaliveInterval": "1s", "mux.keepaliveTimeout": "3s"});
    let entry =
        Entry::with(impatient(), &[muxed(&wire, "a", "mtls", keepalive)], target.addr, json!({})).await;
    let mut old = entry.connect().await;
    old.write_all(b"ping").await.unwrap();
    soon(old.read_exact(&mut [0; 4])).await.unwrap();
    wire.swallow();
    old.write_all(b"lost").await.unwrap();
    let error = soon(old.read(&mut [0; 1])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "a cut transfer looked complete");
    entry.echo().await.unwrap();
    assert_eq!(wire.made(), 2);
    assert!(entry.marked().is_empty());
}

#[tokio::test]
async fn a_session_that_died_unnoticed_costs_no_client_and_no_mark() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "mtcp").await;
    let wire = Wire::to(exit.addr).await;
    let entry =
        Entry::with(impatient(), &[muxed(&wire, "a", "mtcp", json!({}))], target.addr, json!({})).await;
    entry.echo().await.unwrap();
    wire.swallow();
    entry.echo().await.unwrap();
    assert_eq!(wire.made(), 2);
    assert!(entry.marked().is_empty());
    assert_eq!(entry.nodes()[0].failures, 0);
}

#[tokio::test]
async fn an_exit_that_was_started_again_is_found_at_once() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "mtls").await;
    let entry = Entry::start(&[exit.node("a", "mtls")], target.addr).await;
    entry.echo().await.unwrap();
    exit.runtime.shutdown().await;
    entry.echo().await.unwrap_err();
    let runtime = Runtime::new(RuntimeOptions::default());
    let config = json!({"name": "exit", "addr": exit.addr.to_string(), "handler": {"type": "relay"},
        "listener": {"type": "mtls"}, "metadata": {"interface": "127.0.1.1"}});
    runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
    entry.echo().await.unwrap();
}

#[tokio::test]
async fn a_swap_keeps_the_sessions_of_nodes_that_stay_and_closes_the_others_after_their_last_stream() {
    let target = Target::start(Does::Echo).await;
    let (a, b) = (Exit::start(1, "mtls").await, Exit::start(2, "mtls").await);
    let (to_a, to_b) = (Wire::to(a.addr).await, Wire::to(b.addr).await);
    let node_a = || muxed(&to_a, "a", "mtls", json!({}));
    let node_b = || muxed(&to_b, "b", "mtls", json!({}));
    let entry = Entry::start(&[node_a(), node_b()], target.addr).await;
    let mut old = entry.connect().await;
    old.write_all(b"ping").await.unwrap();
    soon(old.read_exact(&mut [0; 4])).await.unwrap();
    // Reordered: a stays, and so does its connection.
    for order in [[node_b(), node_a()], [node_a(), node_b()]] {
        entry.runtime.apply(Change::UpsertChain(fifo(&order))).await.unwrap();
        entry.echo().await.unwrap();
    }
    assert_eq!((to_a.made(), to_b.made()), (1, 1));
    // a leaves; its stream goes on, and the connection with it.
    entry.runtime.apply(Change::UpsertChain(fifo(&[node_b()]))).await.unwrap();
    entry.echo().await.unwrap();
    old.write_all(b"pong").await.unwrap();
    let mut back = [0; 4];
    soon(old.read_exact(&mut back)).await.unwrap();
    assert_eq!((&back, to_a.open()), (b"pong", 1));
    drop(old);
    eventually("the connection to a is closed", || to_a.open() == 0).await;
    // And an idle one at once.
    entry.runtime.apply(Change::DeleteChain("c".into())).await.unwrap();
    eventually("the connection to b is closed", || to_b.open() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swaps_under_load_lose_nothing_and_leave_no_connections_behind() {
    let target = Target::start(Does::Echo).await;
    let (a, b) = (Exit::start(1, "mtls").await, Exit::start(2, "mtcp").await);
    let (to_a, to_b) = (Wire::to(a.addr).await, Wire::to(b.addr).await);
    let one = [muxed(&to_a, "a", "mtls", json!({}))];
    let two = [muxed(&to_b, "b", "mtcp", json!({}))];
    let entry = Arc::new(Entry::start(&one, target.addr).await);
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
    for swap in 0..100 {
        let before = served.load(Ordering::SeqCst);
        let nodes = if swap % 2 == 0 { &two } else { &one };
        entry.runtime.apply(Change::UpsertChain(fifo(nodes))).await.unwrap();
        eventually("a client is served", || served.load(Ordering::SeqCst) > before).await;
    }
    done.raise();
    for client in clients {
        client.await.unwrap();
    }
    // They may all have ended with what they had before the last swap.
    entry.echo().await.unwrap();
    assert_eq!(entry.runtime.report().refused, 0);
    assert!(to_a.made() > 10 && to_b.made() > 10);
    eventually("one connection is left", || (to_a.open(), to_b.open()) == (1, 0)).await;
}

#[tokio::test]
async fn a_service_that_is_deleted_serves_the_streams_it_has_and_no_others() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "mtls").await;
    let entry = Entry::start(&[exit.node("a", "mtls")], target.addr).await;
    let mut old = entry.connect().await;
    old.write_all(b"ping").await.unwrap();
    soon(old.read_exact(&mut [0; 4])).await.unwrap();
    exit.runtime.apply(Change::DeleteServices(vec!["exit".into()])).await.unwrap();
    entry.echo().await.unwrap_err();
    old.write_all(b"pong").await.unwrap();
    let mut back = [0; 4];
    soon(old.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"pong");
}

#[tokio::test]
async fn a_changed_service_serves_later_streams_of_an_old_connection() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "mtls").await;
    let entry = Entry::start(&[exit.node("a", "mtls")], target.addr).await;
    entry.echo().await.unwrap();
    let locked = json!({"name": "exit", "addr": "127.0.0.1:0", "listener": {"type": "mtls"},
        "handler": {"type": "relay", "auth": {"username": "u", "password": "p"}}, "metadata": {"interface": "127.0.1.1"}});
    exit.runtime.apply(Change::UpsertServices(vec![service(locked)])).await.unwrap();
    entry.echo().await.unwrap_err();
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_stop_the_others() {
    // In version 2 not at all; version 1 is told in the tests of the multiplexer, where time is not real.
    let (talker, _) = scripted(|mut stream| async move {
        let _ = stream.read_u8().await;
        let mut endless = tokio::io::repeat(7);
        let _ = copy(&mut endless, &mut stream).await;
    })
    .await;
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "mtcp").await;
    let entry = Entry::start(&[exit.node("a", "mtcp")], talker).await;
    let more = forward("g", target.addr);
    entry.runtime.apply(Change::AddServices(vec![service(more)])).await.unwrap();
    let other = entry.runtime.listening("g").unwrap();
    let mut slow = entry.connect().await;
    slow.write_all(b"x").await.unwrap();
    soon(slow.read_exact(&mut [0; 1])).await.unwrap();
    for _ in 0..20 {
        echo(other).await.unwrap();
    }
    there_and_back(soon(TcpStream::connect(other)).await.unwrap(), 4 * 1024 * 1024).await;
    soon(slow.read_exact(&mut [0; 1])).await.unwrap();
}

#[tokio::test]
async fn options_are_checked_with_their_path() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let mut refused = Vec::new();
    for (kind, metadata) in [
        ("mtls", json!({"mux.version": 3})),
        ("mws", json!({"mux.maxFrameSize": 70000})),
        ("ws", json!({"path": "ws"})),
        ("wss", json!({"header": {"Host": "x"}})),
        ("ws", json!({"enableCompression": true})),
        ("tls", json!({"path": "/ws"})),
    ] {
        let mut node = node("a", "192.0.2.1:1".parse().unwrap(), kind);
        node["dialer"]["metadata"] = metadata;
        let error = runtime.apply(Change::UpsertChain(fifo(&[node]))).await.unwrap_err();
        refused.push(error.to_string());
    }
    let path = "chain c: hops[0].nodes[0].dialer.metadata";
    let expected = [
        "mux.version: 3 is neither 1 nor 2",
        "mux.maxFrameSize: must not exceed 65535",
        "path: \"ws\" is no path such as /ws",
        "header.Host: is set by the handshake",
        "enableCompression: is not supported yet",
        "path: is not supported",
    ];
    let expected: Vec<_> = expected.iter().map(|reason| format!("{path}.{reason}")).collect();
    assert_eq!(refused, expected);
}
