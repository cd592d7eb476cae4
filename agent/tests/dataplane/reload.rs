//! A whole document in the place of another: what is the same goes on, what cannot be done changes nothing.

use crate::rig::{Does, Target, echo, soon};
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use shared::gost::GostConfig;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

fn document(services: &[Value]) -> GostConfig {
    let limiters = json!([{"name": "l", "limits": ["$ 1GB 1GB"]}]);
    serde_json::from_value(json!({"services": services, "limiters": limiters})).unwrap()
}

fn forward(name: &str, addr: SocketAddr, target: SocketAddr) -> Value {
    json!({
        "name": name, "addr": addr.to_string(), "handler": {"type": "tcp"}, "listener": {"type": "tcp"},
        "forwarder": {"nodes": [{"name": "t", "addr": target.to_string()}]}
    })
}

/// Ports that are free now.
async fn free<const N: usize>() -> [SocketAddr; N] {
    let mut held = Vec::new();
    for _ in 0..N {
        held.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
    }
    std::array::from_fn(|at| held[at].local_addr().unwrap())
}

/// A connection that has been used.
async fn open(entry: SocketAddr) -> TcpStream {
    let mut stream = soon(TcpStream::connect(entry)).await.unwrap();
    still_open(&mut stream).await;
    stream
}

async fn still_open(stream: &mut TcpStream) {
    stream.write_all(b"x").await.unwrap();
    soon(stream.read_exact(&mut [0])).await.unwrap();
}

#[tokio::test]
async fn what_is_the_same_keeps_its_listener_and_everybody_its_connection() {
    let target = Target::start(Does::Echo).await;
    let [a, b, c] = free().await;
    let runtime = Runtime::new(RuntimeOptions::default());
    let first = document(&[forward("a", a, target.addr), forward("b", b, target.addr)]);
    runtime.apply(Change::Replace(first)).await.unwrap();
    let (mut on_a, mut on_b) = (open(a).await, open(b).await);
    let mut limited = forward("a", a, target.addr);
    limited["limiter"] = json!("l");
    // `b` goes, and `d` wants its port.
    let second = document(&[limited, forward("c", c, target.addr), forward("d", b, target.addr)]);
    runtime.apply(Change::Replace(second.clone())).await.unwrap();
    still_open(&mut on_a).await;
    still_open(&mut on_b).await;
    for entry in [a, b, c] {
        echo(entry).await.unwrap();
    }
    let names: Vec<_> = runtime.config().services.iter().map(|service| service.name.clone()).collect();
    assert_eq!(names, ["a", "c", "d"]);
    assert_eq!(runtime.config(), second);
    runtime.apply(Change::Replace(GostConfig::default())).await.unwrap();
    assert_eq!(runtime.config(), GostConfig::default());
    echo(a).await.unwrap_err();
    still_open(&mut on_a).await;
}

#[tokio::test]
async fn what_cannot_be_done_changes_nothing() {
    let target = Target::start(Does::Echo).await;
    let [a, b] = free().await;
    let runtime = Runtime::new(RuntimeOptions::default());
    let first = document(&[forward("a", a, target.addr), forward("b", b, target.addr)]);
    runtime.apply(Change::Replace(first.clone())).await.unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken_addr = taken.local_addr().unwrap();
    // `b` would have made room for `c`, had `d` got its port.
    let mut port_taken = document(&[
        forward("a", a, target.addr),
        forward("c", b, target.addr),
        forward("d", taken_addr, target.addr),
    ]);
    port_taken.limiters.clear();
    let mut bad_limit = document(&[forward("a", a, target.addr)]);
    bad_limit.limiters[0].limits[0] = "$ fast".into();
    let mut bad_chain = document(&[]);
    let chain = json!({"name": "c", "hops": [{"name": "h", "nodes": [{"name": "n", "addr": "x:1",
        "connector": {"type": "coffee"}, "dialer": {"type": "tcp"}}]}]});
    bad_chain.chains.push(serde_json::from_value(chain).unwrap());
    for (wrong, reason) in
        [(port_taken, "address already in use"), (bad_limit, "limits[0]"), (bad_chain, "coffee")]
    {
        let error = runtime.apply(Change::Replace(wrong)).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!(runtime.config(), first, "{reason}");
        assert!(runtime.failed().is_empty());
        echo(a).await.unwrap();
        echo(b).await.unwrap();
    }
}
