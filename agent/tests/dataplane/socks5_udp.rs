//! The SOCKS5 handler's datagrams.

use crate::proxy_rig::*;
use crate::rig::*;
use crate::udp_rig::*;
use agent::limit::LimitKind;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use shared::gost::LimiterConfig;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

/// A client with its connection and its socket.
struct Associated {
    connection: TcpStream,
    socket: UdpSocket,
    /// Where its datagrams go.
    proxy: SocketAddr,
}

impl Associated {
    async fn with(proxy: SocketAddr) -> Self {
        let mut connection = TcpStream::connect(proxy).await.unwrap();
        connection.write_all(b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0\0\0").await.unwrap();
        let mut answer = [0; 12];
        soon(connection.read_exact(&mut answer)).await.unwrap();
        assert_eq!(answer[..6], [5, 0, 5, 0, 0, 1], "{answer:?}");
        let ip = IpAddr::from(<[u8; 4]>::try_from(&answer[6..10]).unwrap());
        let proxy = SocketAddr::new(ip, u16::from_be_bytes([answer[10], answer[11]]));
        Self { connection, socket: UdpSocket::bind("127.0.0.1:0").await.unwrap(), proxy }
    }

    async fn send(&self, header: &[u8], payload: &[u8]) {
        self.socket.send_to(&[header, payload].concat(), self.proxy).await.unwrap();
    }

    /// A datagram goes and comes back, with the same header.
    async fn echo(&self, header: &[u8], payload: &[u8]) {
        self.send(header, payload).await;
        let mut buffer = vec![0; 65_536];
        let (len, from) = soon(self.socket.recv_from(&mut buffer)).await.unwrap();
        assert_eq!(from, self.proxy);
        assert!(buffer[..len] == [header, payload].concat(), "not what was sent");
    }
}

fn header(target: SocketAddr) -> Vec<u8> {
    let mut header = socks5_request(target);
    header[..3].fill(0);
    header
}

fn handler() -> Value {
    json!({"type": "socks5", "metadata": {"udp": true}})
}

async fn open() -> Exit {
    Exit::with(1, "tcp", handler()).await
}

async fn chained_to(nodes: &[Value]) -> Entry {
    let more = json!({"handler": handler(), "forwarder": null});
    let unused = SocketAddr::from(([127, 0, 0, 1], 1));
    Entry::with(RuntimeOptions::default(), nodes, unused, more).await
}

#[tokio::test]
async fn to_many_targets_through_one_socket() {
    let (one, two) = (UdpTarget::start().await, UdpTarget::start().await);
    let proxy = open().await;
    let client = Associated::with(proxy.addr).await;
    for _ in 0..2 {
        client.echo(&header(one.addr), b"one").await;
        client.echo(&header(two.addr), b"").await;
        client.echo(&header(two.addr), &[7; 20_000]).await;
    }
    let mut by_name = b"\0\0\0\x03\x09localhost".to_vec();
    by_name.extend(one.addr.port().to_be_bytes());
    client.echo(&by_name, b"by name").await;
    assert_eq!((one.peer_ips(), two.peer_ips()), (vec![proxy.from; 2], vec![proxy.from]));
}

#[tokio::test]
async fn through_a_chain() {
    let target = UdpTarget::start().await;
    let (dead, _held) = refusing();
    for listener in ["tcp", "tls"] {
        let exit = Exit::start(2, listener).await;
        let entry = chained_to(&[node("dead", dead, listener), exit.node("fine", listener)]).await;
        let client = Associated::with(entry.addr).await;
        for _ in 0..3 {
            client.echo(&header(target.addr), b"ping").await;
        }
        assert_eq!(target.peer_ips().last(), Some(&exit.from));
    }
    target.assert_only_exits_sent();
}

#[tokio::test]
async fn without_a_way_nothing_is_sent() {
    let target = UdpTarget::start().await;
    let (dead, _held) = refusing();
    let proxy = proxy("socks5").await;
    let no_datagrams = json!({"name": "p", "addr": proxy.addr.to_string(), "connector": {"type": "socks5"}, "dialer": {"type": "tcp"}});
    for node in [node("dead", dead, "tcp"), no_datagrams] {
        let entry = chained_to(&[node]).await;
        let client = Associated::with(entry.addr).await;
        client.send(&header(target.addr), b"ping").await;
        eventually("the refusal is counted", || entry.runtime.report().refused == 1).await;
    }
    assert!(target.seen().is_empty());
}

#[tokio::test]
async fn what_is_not_the_clients_goes_nowhere() {
    let target = UdpTarget::start().await;
    let proxy = open().await;
    let client = Associated::with(proxy.addr).await;
    // From another address, before the client has sent anything: it must not become the client.
    let stranger = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    let to_target = header(target.addr);
    stranger.send_to(&[&to_target, &b"stranger"[..]].concat(), client.proxy).await.unwrap();
    client.echo(&to_target, b"first").await;
    // From another port of the same address.
    let neighbour = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    neighbour.send_to(&[&to_target, &b"neighbour"[..]].concat(), client.proxy).await.unwrap();
    let mut fragment = to_target.clone();
    fragment[2] = 1;
    client.send(&fragment, b"fragment").await;
    client.send(b"\0\0\0\x01\x7f", b"").await;
    client.echo(&to_target, b"last").await;
    assert_eq!(target.seen(), [b"first".to_vec(), b"last".to_vec()]);
}

#[tokio::test]
async fn the_socket_lives_as_long_as_the_connection() {
    let target = UdpTarget::start().await;
    let proxy = open().await;
    let client = Associated::with(proxy.addr).await;
    client.echo(&header(target.addr), b"ping").await;
    let Associated { connection, socket, proxy: at } = client;
    drop(connection);
    socket.connect(at).await.unwrap();
    // Refused as soon as nobody listens there any more.
    soon(async {
        while socket.send(b"?").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn datagrams_beyond_the_rate_are_dropped_whatever_their_target() {
    let _time = Frozen::start();
    for (line, all_arrive) in [("$ 10KB 1GB", false), ("$ 1GB 10KB", true)] {
        let targets = [UdpTarget::start().await, UdpTarget::start().await];
        let runtime = Runtime::new(RuntimeOptions::default());
        let limiter = LimiterConfig { name: "x".into(), limits: vec![line.into()] };
        runtime.apply(Change::AddLimiter(LimitKind::Traffic, limiter)).await.unwrap();
        let config = json!({"name": "p", "addr": "127.0.0.1:0", "limiter": "x", "handler": handler(),
            "listener": {"type": "tcp"}});
        runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
        let client = Associated::with(runtime.listening("p").unwrap()).await;
        let mut answers = 0;
        for sent in 1..=30 {
            client.send(&header(targets[sent % 2].addr), &[7; 1000]).await;
            // Each is answered or dropped.
            while answers + runtime.dropped() < sent as u64 {
                tokio::task::yield_now().await;
                answers += u64::from(client.socket.try_recv(&mut [0; 2000]).is_ok());
            }
        }
        assert!((10..=11).contains(&answers), "{line}: {answers}");
        let arrived = targets.iter().map(|target| target.seen().len() as u64).sum::<u64>();
        assert_eq!(arrived, if all_arrive { 30 } else { answers });
    }
}
