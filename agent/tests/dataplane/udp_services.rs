//! Services for datagrams come, change and go; next to services for connections on the same ports.

use crate::rig::*;
use crate::udp_rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// A port that is free for both, on 127.0.0.1.
async fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        if UdpSocket::bind(addr).await.is_ok() {
            return addr.port();
        }
    }
}

/// What a peer panel sends for one forward: two services on one port.
fn pair(port: u16, tcp: SocketAddr, udp: SocketAddr) -> Vec<Value> {
    let selector = json!({"strategy": "fifo", "maxFails": 1, "failTimeout": "600s"});
    let service = |kind: &str, target: SocketAddr, metadata: Value| {
        json!({
            "name": format!("7_1_0_{kind}"), "addr": format!("127.0.0.1:{port}"),
            "handler": {"type": kind}, "listener": {"type": kind, "metadata": metadata},
            "forwarder": {"nodes": [{"name": "node_1", "addr": target.to_string()}], "selector": selector}
        })
    };
    vec![service("tcp", tcp, json!({})), service("udp", udp, json!({"keepAlive": true, "ttl": "30s"}))]
}

fn names() -> Vec<String> {
    ["7_1_0_tcp", "7_1_0_udp"].map(str::to_owned).into()
}

async fn assert_serving(port: u16) {
    echo(SocketAddr::from(([127, 0, 0, 1], port))).await.unwrap();
    UdpClient::of(SocketAddr::from(([127, 0, 0, 1], port))).await.echo(b"ping").await;
}

/// Both ports are free.
async fn assert_gone(port: u16) {
    let addr = SocketAddr::from(([127, 0, 0, 1], port));
    assert_eq!(TcpStream::connect(addr).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    UdpSocket::bind(addr).await.unwrap();
}

#[tokio::test]
async fn both_services_of_a_forward_live_on_one_port_number() {
    let (tcp, udp) = (Target::start(Does::Echo).await, UdpTarget::start().await);
    let port = free_port().await;
    let runtime = Runtime::new(RuntimeOptions::default());
    let services = || pair(port, tcp.addr, udp.addr).into_iter().map(service).collect::<Vec<_>>();
    runtime.apply(Change::AddServices(services())).await.unwrap();
    assert_serving(port).await;
    let error = runtime.apply(Change::AddServices(services())).await.unwrap_err();
    assert_eq!(error.to_string(), "service 7_1_0_tcp already exists");

    runtime.apply(Change::PauseServices(names())).await.unwrap();
    assert_gone(port).await;
    runtime.apply(Change::ResumeServices(names())).await.unwrap();
    assert_serving(port).await;
    runtime.apply(Change::UpsertServices(services())).await.unwrap();
    assert_serving(port).await;
    runtime.apply(Change::DeleteServices(names())).await.unwrap();
    assert_gone(port).await;
    assert!(runtime.config().services.is_empty());
}

#[tokio::test]
async fn a_taken_port_of_either_kind_leaves_nothing_of_the_pair() {
    let target: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let port = free_port().await;
    let addr = SocketAddr::from(([127, 0, 0, 1], port));
    let _taken = UdpSocket::bind(addr).await.unwrap();
    let runtime = Runtime::new(RuntimeOptions::default());
    let services = pair(port, target, target).into_iter().map(service).collect();
    let error = runtime.apply(Change::AddServices(services)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("service 7_1_0_udp: listen on {addr}: address already in use"));
    assert_eq!(TcpStream::connect(addr).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert!(runtime.config().services.is_empty());
}

#[tokio::test]
async fn a_stored_pair_runs_again() {
    let (tcp, udp) = (Target::start(Does::Echo).await, UdpTarget::start().await);
    let port = free_port().await;
    let runtime = loaded(&pair(port, tcp.addr, udp.addr)).await;
    assert!(runtime.failed().is_empty(), "{:?}", runtime.failed());
    assert_serving(port).await;
    // What it would store is what it was given.
    let stored = serde_json::to_value(runtime.config()).unwrap();
    soon(runtime.shutdown()).await;
    assert_gone(port).await;
    let again = loaded(stored["services"].as_array().unwrap()).await;
    assert_serving(port).await;
    drop(again);
}

#[tokio::test]
async fn an_update_keeps_the_socket_and_the_sessions() {
    let (one, two) = (UdpTarget::start().await, UdpTarget::start().await);
    let entry = UdpEntry::direct(&[one.addr], json!({})).await;
    let old = entry.client().await;
    old.echo(b"old").await;
    let update = udp_forward("u", &[two.addr], json!({"listener": {"metadata": {"ttl": "60s"}}}));
    entry.runtime.apply(Change::UpsertServices(vec![service(update)])).await.unwrap();
    assert_eq!(
        entry.runtime.listening("u"),
        Some(entry.addr),
        "port 0 would be another one, had it been bound anew"
    );
    old.echo(b"old").await;
    entry.client().await.echo(b"new").await;
    assert_eq!((one.seen().len(), two.seen().len()), (2, 1));
    assert_eq!(one.peers().len(), 1);
}

#[tokio::test]
async fn moving_pausing_and_deleting_end_the_sessions() {
    let target = UdpTarget::start().await;
    let entry = UdpEntry::direct(&[target.addr], json!({})).await;
    let client = entry.client().await;
    client.echo(b"1").await;
    let moved = udp_forward("u", &[target.addr], json!({"addr": "127.0.0.2:0"}));
    entry.runtime.apply(Change::UpsertServices(vec![service(moved)])).await.unwrap();
    let addr = entry.runtime.listening("u").unwrap();
    assert_ne!(addr, entry.addr);
    UdpSocket::bind(entry.addr).await.unwrap();
    UdpClient::of(addr).await.echo(b"2").await;
    entry.runtime.apply(Change::PauseServices(vec!["u".into()])).await.unwrap();
    UdpSocket::bind(addr).await.unwrap();
    entry.runtime.apply(Change::ResumeServices(vec!["u".into()])).await.unwrap();
    let addr = entry.runtime.listening("u").unwrap();
    UdpClient::of(addr).await.echo(b"3").await;
    entry.runtime.apply(Change::DeleteServices(vec!["u".into()])).await.unwrap();
    UdpSocket::bind(addr).await.unwrap();
}

#[tokio::test]
async fn a_service_changes_from_connections_to_datagrams_and_back() {
    let (tcp, udp) = (Target::start(Does::Echo).await, UdpTarget::start().await);
    let port = free_port().await;
    let [mut as_tcp, mut as_udp] = <[Value; 2]>::try_from(pair(port, tcp.addr, udp.addr)).unwrap();
    (as_tcp["name"], as_udp["name"]) = (json!("f"), json!("f"));
    let runtime = Runtime::new(RuntimeOptions::default());
    let addr = SocketAddr::from(([127, 0, 0, 1], port));
    for _ in 0..2 {
        runtime.apply(Change::UpsertServices(vec![service(as_tcp.clone())])).await.unwrap();
        echo(addr).await.unwrap();
        UdpSocket::bind(addr).await.unwrap();
        runtime.apply(Change::UpsertServices(vec![service(as_udp.clone())])).await.unwrap();
        UdpClient::of(addr).await.echo(b"ping").await;
        assert_eq!(TcpStream::connect(addr).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}
