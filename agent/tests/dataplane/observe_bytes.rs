//! Bytes that services count where no connection is simply carried.

use crate::proxy_rig::*;
use crate::rig::*;
use crate::udp_rig::*;
use agent::runtime::Runtime;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

/// Waits until a service has counted exactly this much.
async fn counts(runtime: &Runtime, service: &str, up: u64, down: u64) {
    let traffic = runtime.traffic(service).unwrap();
    let waited = async {
        while (traffic.up(), traffic.down()) != (up, down) {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    let done = tokio::time::timeout(LONG, waited).await;
    assert!(done.is_ok(), "{service}: {} up, {} down instead of {up}, {down}", traffic.up(), traffic.down());
}

#[tokio::test]
async fn of_datagrams_with_and_without_a_chain() {
    let target = UdpTarget::start().await;
    let direct = UdpEntry::direct(&[target.addr], json!({})).await;
    let exit = Exit::start(1, "tcp").await;
    let through = UdpEntry::through(&[exit.node("a", "tcp")], target.addr).await;
    for entry in [&direct, &through] {
        let clients = [entry.client().await, entry.client().await];
        for client in &clients {
            client.echo(b"four").await;
            client.echo(&[7; 1000]).await;
        }
        counts(&entry.runtime, "u", 2 * 1004, 2 * 1004).await;
    }
    // The exit counts what it takes out of its client's frames.
    counts(&exit.runtime, "exit", 2 * 1004, 2 * 1004).await;
}

#[tokio::test]
async fn of_datagrams_that_arrive_nowhere_none() {
    let target = UdpTarget::mute().await;
    let (dead, _held) = refusing();
    let entry = UdpEntry::through(&[node("a", dead, "tcp")], target.addr).await;
    let client = entry.client().await;
    client.send(b"lost").await;
    eventually("it is refused", || entry.runtime.report().refused == 1).await;
    counts(&entry.runtime, "u", 0, 0).await;
}

#[tokio::test]
async fn of_a_socks5_clients_datagrams() {
    let target = UdpTarget::start().await;
    let proxy = Exit::with(1, "tcp", json!({"type": "socks5", "metadata": {"udp": true}})).await;
    let mut connection = TcpStream::connect(proxy.addr).await.unwrap();
    connection.write_all(b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0\0\0").await.unwrap();
    let mut answer = [0; 12];
    soon(connection.read_exact(&mut answer)).await.unwrap();
    let relay = std::net::SocketAddr::from(([127, 0, 0, 1], u16::from_be_bytes([answer[10], answer[11]])));
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut datagram = socks5_request(target.addr);
    datagram[..3].fill(0);
    datagram.extend_from_slice(b"hello");
    for _ in 0..2 {
        socket.send_to(&datagram, relay).await.unwrap();
        soon(socket.recv_from(&mut [0; 64])).await.unwrap();
    }
    counts(&proxy.runtime, "exit", 10, 10).await;
}

#[tokio::test]
async fn of_an_exchange_over_http() {
    const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
    let origin = Origin::start(ANSWER, false).await;
    let proxy = proxy("http").await;
    let request = format!("POST http://{}/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", origin.addr);
    let answer = http_all(proxy.addr, &request).await.unwrap();
    eventually("the body has come", || origin.got()[0].ends_with("body")).await;
    counts(&proxy.runtime, "exit", origin.got()[0].len() as u64, answer.len() as u64).await;
}
