//! Limits of real connections. What is asserted holds on any machine: never too many bytes for the time that passed.

use crate::rig::{Does, Target, echo, eventually, service, soon};
use agent::limit::LimitKind;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use shared::gost::LimiterConfig;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

fn limiter(name: &str, limits: &[&str]) -> LimiterConfig {
    serde_json::from_value(json!({"name": name, "limits": limits})).unwrap()
}

/// A forward without a chain, with `more` in its service.
async fn forward(runtime: &Runtime, target: SocketAddr, more: Value) -> SocketAddr {
    let mut config = json!({
        "name": "f", "addr": "127.0.0.1:0", "handler": {"type": "tcp"}, "listener": {"type": "tcp"},
        "forwarder": {"nodes": [{"name": "node_1", "addr": target.to_string()}]}
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    runtime.apply(Change::UpsertServices(vec![service(config)])).await.unwrap();
    runtime.listening("f").unwrap()
}

/// A target that counts what it gets.
async fn counting() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let counter = count.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let counter = counter.clone();
            tokio::spawn(async move {
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(n @ 1..) = stream.read(&mut buffer).await {
                    counter.fetch_add(n as u64, Ordering::SeqCst);
                }
            });
        }
    });
    (address, count)
}

#[tokio::test]
async fn a_slow_limit_holds_and_a_new_one_frees_the_live_connection() {
    const KB: u64 = 1024;
    let options = RuntimeOptions::default();
    let clock = options.clock.clone();
    let runtime = Runtime::new(options);
    let (target, arrived) = counting().await;
    let slow = limiter("5", &["$ 40KB"]);
    runtime.apply(Change::AddLimiter(LimitKind::Traffic, slow)).await.unwrap();
    let entry = forward(&runtime, target, json!({"limiter": "5"})).await;
    let began = clock.now_ns();
    let mut stream = soon(TcpStream::connect(entry)).await.unwrap();
    let sending = tokio::spawn(async move {
        stream.write_all(&vec![1; 8 * 1024 * 1024]).await.unwrap();
        stream
    });
    eventually("more than the burst arrives", || arrived.load(Ordering::SeqCst) > 40 * KB).await;
    let arrived_now = arrived.load(Ordering::SeqCst);
    // Read after the bytes: a slow machine makes this larger, never too small.
    let passed = (clock.now_ns() - began) as f64 / 1e9;
    let allowed = 16.0 * KB as f64 + passed * 40.0 * KB as f64;
    assert!(arrived_now as f64 <= allowed, "{arrived_now} bytes after {passed} s");

    // At the old rate the rest takes more than three minutes.
    let fast = limiter("5", &["$ 1GB"]);
    runtime.apply(Change::UpsertLimiter(LimitKind::Traffic, fast)).await.unwrap();
    let _stream = soon(sending).await.unwrap();
    eventually("all arrives", || arrived.load(Ordering::SeqCst) == 8 * 1024 * KB).await;
}

#[tokio::test]
async fn open_connections_are_limited_and_the_end_of_one_makes_room() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let target = Target::start(Does::Echo).await;
    let two = limiter("c", &["$ 2"]);
    runtime.apply(Change::AddLimiter(LimitKind::Connections, two)).await.unwrap();
    let entry = forward(&runtime, target.addr, json!({"climiter": "c"})).await;
    let open = async || {
        let mut stream = TcpStream::connect(entry).await?;
        stream.write_all(b"x").await?;
        stream.read_exact(&mut [0]).await?;
        io::Result::Ok(stream)
    };
    let first = soon(open()).await.unwrap();
    let _second = soon(open()).await.unwrap();
    soon(open()).await.unwrap_err();
    drop(first);
    let again = async {
        while open().await.is_err() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    soon(again).await;
    assert_eq!(target.peers().len(), 3, "who was refused never reached the target");
    // Without the limiter nobody is refused.
    runtime.apply(Change::DeleteLimiter(LimitKind::Connections, "c".into())).await.unwrap();
    let mut more = Vec::new();
    for _ in 0..5 {
        more.push(soon(open()).await.unwrap());
    }
}

#[tokio::test]
async fn new_connections_are_limited_per_second() {
    let options = RuntimeOptions::default();
    let clock = options.clock.clone();
    let runtime = Runtime::new(options);
    let target = Target::start(Does::Echo).await;
    // One in 17 minutes: real time is no matter.
    let rare = limiter("r", &["$$ 0.001"]);
    runtime.apply(Change::AddLimiter(LimitKind::Rate, rare)).await.unwrap();
    let entry = forward(&runtime, target.addr, json!({"rlimiter": "r"})).await;
    echo(entry).await.unwrap();
    echo(entry).await.unwrap_err();
    clock.advance(Duration::from_secs(1000));
    echo(entry).await.unwrap();
    echo(entry).await.unwrap_err();
    let often = limiter("r", &["$$ 1000"]);
    runtime.apply(Change::UpsertLimiter(LimitKind::Rate, often)).await.unwrap();
    clock.advance(Duration::from_secs(1));
    echo(entry).await.unwrap();
}

#[tokio::test]
async fn a_service_may_name_a_limiter_that_comes_later() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let target = Target::start(Does::Echo).await;
    let entry = forward(&runtime, target.addr, json!({"climiter": "a, b"})).await;
    let _first = {
        let mut stream = soon(TcpStream::connect(entry)).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        soon(stream.read_exact(&mut [0])).await.unwrap();
        stream
    };
    let none = limiter("b", &["127.0.0.0/8 1"]);
    runtime.apply(Change::AddLimiter(LimitKind::Connections, none)).await.unwrap();
    // The first came before the limiter, so one more has room.
    let _second = soon(TcpStream::connect(entry)).await.unwrap();
    eventually("the second has come", || target.peers().len() == 2).await;
    echo(entry).await.unwrap_err();
}
