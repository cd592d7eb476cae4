//! The two services of a forward, as a peer panel sends them: connections and datagrams on one port number.

use crate::panel::{Panel, patient};
use crate::rig::Agent;
use serde_json::{Value, json};
use shared::link::{Command, Frame};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// Sends everything back, on both.
async fn echo() -> SocketAddr {
    let addr = free_for_both().await;
    let (tcp, udp) = (TcpListener::bind(addr).await.unwrap(), UdpSocket::bind(addr).await.unwrap());
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        while let Ok((len, peer)) = udp.recv_from(&mut buffer).await {
            udp.send_to(&buffer[..len], peer).await.unwrap();
        }
    });
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = tcp.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    addr
}

/// A port that neither a listener nor a socket for datagrams has.
async fn free_for_both() -> SocketAddr {
    loop {
        let addr = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        if UdpSocket::bind(addr).await.is_ok() {
            return addr;
        }
    }
}

fn services(listen: SocketAddr, target: SocketAddr) -> Value {
    let of = |kind: &str, listener: Value| {
        json!({
            "name": format!("7_1_0_{kind}"), "addr": listen.to_string(), "limiter": "5", "climiter": "rule_conn_limit_7",
            "handler": {"type": kind}, "listener": listener,
            "forwarder": {
                "nodes": [{"name": "node_1", "addr": target.to_string()}],
                "selector": {"strategy": "fifo", "maxFails": 1, "failTimeout": "600s"}
            }
        })
    };
    let udp = json!({"type": "udp", "metadata": {"keepAlive": true, "ttl": "30s"}});
    json!([of("tcp", json!({"type": "tcp"})), of("udp", udp)])
}

async fn assert_serving(listen: SocketAddr) {
    let mut stream = patient("a connection", TcpStream::connect(listen)).await.unwrap();
    stream.write_all(b"tcp").await.unwrap();
    let mut back = [0; 3];
    patient("the echo", stream.read_exact(&mut back)).await.unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    client.connect(listen).await.unwrap();
    client.send(b"udp").await.unwrap();
    patient("the datagram", client.recv(&mut back)).await.unwrap();
    assert_eq!(&back, b"udp");
}

fn ok(answer: &Frame) {
    assert_eq!((answer.success, answer.message.as_deref()), (Some(true), Some("OK")), "{answer:?}");
}

#[tokio::test]
async fn a_forward_comes_survives_a_restart_pauses_and_goes() {
    let (state, target, listen) = (tempfile::tempdir().unwrap(), echo().await, free_for_both().await);
    let panel = Panel::start(false).await;
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    ok(&session.ask_raw("AddService", services(listen, target)).await);
    assert_serving(listen).await;

    agent.stop().await;
    UdpSocket::bind(listen).await.unwrap();
    drop(session);
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    assert_serving(listen).await;

    let both = || vec!["7_1_0_tcp".to_owned(), "7_1_0_udp".to_owned()];
    ok(&session.ask(&Command::PauseService(both())).await);
    UdpSocket::bind(listen).await.unwrap();
    ok(&session.ask(&Command::ResumeService(both())).await);
    ok(&session.ask_raw("UpdateService", services(listen, target)).await);
    assert_serving(listen).await;
    ok(&session.ask(&Command::DeleteService(both())).await);
    UdpSocket::bind(listen).await.unwrap();
    TcpStream::connect(listen).await.unwrap_err();
    agent.stop().await;
}
