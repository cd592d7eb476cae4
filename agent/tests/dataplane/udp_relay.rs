//! Datagrams in the relay protocol, byte by byte, in both roles.

use crate::rig::*;
use crate::udp_rig::*;
use agent::runtime::{Deadlines, RuntimeOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

/// What GOST sends: the flag, the network as a feature, the address.
fn request(target: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![1, 0x81, 0, 15, 4, 0, 2, 0, 1, 2, 0, 7, 1, 127, 0, 0, 1];
    bytes.extend(target.port().to_be_bytes());
    bytes
}

fn frame(datagram: &[u8]) -> Vec<u8> {
    let mut bytes = (datagram.len() as u16).to_be_bytes().to_vec();
    bytes.extend(datagram);
    bytes
}

async fn read_frame(stream: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let len = soon(stream.read_u16()).await.unwrap();
    let mut datagram = vec![0; usize::from(len)];
    soon(stream.read_exact(&mut datagram)).await.unwrap();
    datagram
}

#[tokio::test]
async fn a_request_and_its_first_datagrams_may_share_a_segment() {
    let target = UdpTarget::start().await;
    let exit = Exit::start(1, "tcp").await;
    let mut stream = TcpStream::connect(exit.addr).await.unwrap();
    let bytes = [request(target.addr), frame(b"one"), frame(b""), frame(b"three")].concat();
    stream.write_all(&bytes).await.unwrap();
    let mut answer = [9; 4];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, [1, 0, 0, 0]);
    for expected in [&b"one"[..], b"", b"three"] {
        assert_eq!(read_frame(&mut stream).await, expected);
    }
    assert_eq!(target.peer_ips(), [exit.from]);
}

#[tokio::test]
async fn the_answer_does_not_wait_for_the_target() {
    let mute = UdpTarget::mute().await;
    let exit = Exit::start(1, "tcp").await;
    let mut stream = TcpStream::connect(exit.addr).await.unwrap();
    stream.write_all(&request(mute.addr)).await.unwrap();
    let mut answer = [9; 4];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, [1, 0, 0, 0]);
    // Nobody listens there any more, as far as the exit knows; the session goes on.
    stream.write_all(&frame(b"x")).await.unwrap();
    eventually("it arrives", || mute.seen().len() == 1).await;
    mute.socket.send_to(b"late", mute.peers()[0]).await.unwrap();
    assert_eq!(read_frame(&mut stream).await, b"late");
}

#[tokio::test]
async fn what_is_no_complete_datagram_is_not_sent() {
    let target = UdpTarget::start().await;
    let exit = Exit::start(1, "tcp").await;
    let mut stream = TcpStream::connect(exit.addr).await.unwrap();
    // 65,535 bytes are more than UDP over IPv4 has room for: that one is dropped, the session goes on.
    let bytes =
        [request(target.addr), frame(&[1; 65_535]), frame(b"fits"), vec![0, 5, b'c', b'u', b't']].concat();
    stream.write_all(&bytes).await.unwrap();
    soon(stream.read_exact(&mut [0; 4])).await.unwrap();
    assert_eq!(read_frame(&mut stream).await, b"fits");
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let _ = soon(stream.read_to_end(&mut rest)).await;
    assert!(rest.is_empty());
    assert_eq!(target.seen(), [b"fits"]);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_session() {
    let target = UdpTarget::start().await;
    let exit = Exit::start(1, "tcp").await;
    let mut stream = TcpStream::connect(exit.addr).await.unwrap();
    stream.write_all(&[request(target.addr), frame(b"x")].concat()).await.unwrap();
    soon(stream.read_exact(&mut [0; 4])).await.unwrap();
    assert_eq!(read_frame(&mut stream).await, b"x");
    let source = target.peers()[0];
    drop(stream);
    eventually("the socket is closed", || std::net::UdpSocket::bind(source).is_ok()).await;
}

#[tokio::test]
async fn error_answers() {
    let auth = json!({"type": "relay", "auth": {"username": "user", "password": "pass"}});
    let exit = Exit::with(1, "tcp", auth).await;
    let user = b"\x01\x00\x0a\x04user\x04pass";
    let with = |command: u8, features: &[&[u8]]| {
        let features = features.concat();
        [&[1, command, 0, features.len() as u8][..], &features].concat()
    };
    let to = b"\x02\x00\x07\x01\x7f\x00\x00\x01\x00\x09";
    for (name, bytes, status) in [
        ("no credentials", with(0x81, &[to]), 2),
        ("no address", with(0x81, &[user]), 1),
        ("empty address", with(0x81, &[user, b"\x02\x00\x04\x03\x00\x00\x00"]), 1),
        ("no such name", with(0x81, &[user, b"\x02\x00\x0f\x03\x0bx.invalid.y\x00\x50"]), 6),
        ("associate", with(0x83, &[user]), 1),
    ] {
        let mut stream = TcpStream::connect(exit.addr).await.unwrap();
        stream.write_all(&[bytes, frame(&[0; 4096])].concat()).await.unwrap();
        let mut answer = Vec::new();
        soon(stream.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer, [1, status, 0, 0], "{name}");
    }
}

#[tokio::test]
async fn a_forwarder_decides_where_datagrams_go() {
    let target = UdpTarget::start().await;
    let runtime = agent::runtime::Runtime::new(RuntimeOptions::default());
    let config: Value = json!({
        "name": "exit", "addr": "127.0.0.1:0", "handler": {"type": "relay"}, "listener": {"type": "tcp"},
        "forwarder": {"nodes": [{"name": "node_1", "addr": target.addr.to_string()}]}
    });
    runtime.apply(agent::runtime::Change::AddServices(vec![service(config)])).await.unwrap();
    let mut stream = TcpStream::connect(runtime.listening("exit").unwrap()).await.unwrap();
    stream.write_all(&[vec![1, 0x81, 0, 0], frame(b"x")].concat()).await.unwrap();
    soon(stream.read_exact(&mut [0; 4])).await.unwrap();
    assert_eq!(read_frame(&mut stream).await, b"x");
}

/// An exit as GOST's is by default: its answer is held until the target speaks. Tells what it was sent, up to the end of
/// the first datagram.
async fn holding_exit(target: SocketAddr) -> (SocketAddr, tokio::sync::mpsc::Receiver<Vec<u8>>) {
    let (told, tell) = tokio::sync::mpsc::channel(8);
    let script = move |mut client: TcpStream| {
        let told = told.clone();
        async move {
            let mut header = [0; 4];
            client.read_exact(&mut header).await.unwrap();
            let mut features = vec![0; usize::from(header[3])];
            client.read_exact(&mut features).await.unwrap();
            let first = read_frame(&mut client).await;
            let _ = told.send([&header[..], &features, &frame(&first)].concat()).await;
            let socket = UdpSocket::bind("127.0.1.1:0").await.unwrap();
            socket.send_to(&first, target).await.unwrap();
            let mut buffer = [0; 2048];
            let mut held = vec![1, 0, 0, 0];
            loop {
                tokio::select! {
                    received = socket.recv(&mut buffer) => {
                        held.extend(frame(&buffer[..received.unwrap()]));
                        client.write_all(&held).await.unwrap();
                        held.clear();
                    }
                    len = client.read_u16() => {
                        let Ok(len) = len else { return };
                        let mut datagram = vec![0; usize::from(len)];
                        client.read_exact(&mut datagram).await.unwrap();
                        socket.send_to(&datagram, target).await.unwrap();
                    }
                }
            }
        }
    };
    (scripted(script).await.0, tell)
}

#[tokio::test]
async fn an_exit_that_holds_its_answer_blocks_nothing() {
    let target = UdpTarget::start().await;
    for connector in [json!({"type": "relay"}), json!({"type": "relay", "metadata": {"nodelay": true}})] {
        let (exit, mut told) = holding_exit(target.addr).await;
        let mut holding = node("a", exit, "tcp");
        holding["connector"] = connector;
        let entry = UdpEntry::through(&[holding], target.addr).await;
        let client = entry.client().await;
        client.echo(b"first").await;
        client.echo(b"second").await;
        assert!(!entry.runtime.report().chains[0].nodes[0].marked);
        let sent = soon(told.recv()).await.unwrap();
        assert_eq!(sent, [request(target.addr), frame(b"first")].concat());
    }
}

#[tokio::test]
async fn a_target_that_never_answers_is_served_through_an_exit_that_holds_its_answer() {
    let target = UdpTarget::mute().await;
    let (exit, _told) = holding_exit(target.addr).await;
    let mut holding = node("a", exit, "tcp");
    holding["connector"] = json!({"type": "relay"});
    let entry = UdpEntry::through(&[holding], target.addr).await;
    let client = entry.client().await;
    for round in 1..=3 {
        client.send(&[round]).await;
        eventually("it arrives", || target.seen().len() == usize::from(round)).await;
    }
    assert_eq!(target.seen(), [[1], [2], [3]]);
}

#[tokio::test]
async fn an_exit_that_refuses_is_followed_by_the_next_and_the_datagram_is_not_lost() {
    let target = UdpTarget::start().await;
    let script = |mut stream: TcpStream| async move {
        let mut all = [0; 512];
        let _ = stream.read(&mut all).await;
        let _ = stream.write_all(&[1, 6, 0, 0]).await;
        let _ = stream.shutdown().await;
        let _ = stream.read(&mut all).await;
    };
    let (refusing, _) = scripted(script).await;
    let exit = Exit::start(2, "tcp").await;
    for nodelay in [true, false] {
        let mut first = node("a", refusing, "tcp");
        first["connector"]["metadata"]["nodelay"] = json!(nodelay);
        let deadlines = Deadlines { relay_status: Duration::from_secs(10), ..Deadlines::default() };
        let options = RuntimeOptions { deadlines, ..RuntimeOptions::default() };
        let entry = UdpEntry::with(options, &[first, exit.node("b", "tcp")], target.addr).await;
        entry.client().await.echo(b"ping").await;
        assert!(entry.runtime.report().chains[0].nodes[0].marked);
    }
    assert_eq!(target.peer_ips(), [exit.from; 2]);
}

/// A datagram of an association: to or from this address.
fn addressed(address: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let mut bytes = (datagram.len() as u16).to_be_bytes().to_vec();
    bytes.extend([0xff, 1, 127, 0, 0, 1]);
    bytes.extend(address.port().to_be_bytes());
    bytes.extend(datagram);
    bytes
}

/// As GOST asks for one: bind, the flag, no address.
const ASSOCIATE: [u8; 9] = [1, 0x82, 0, 5, 4, 0, 2, 0, 1];

#[tokio::test]
async fn an_association_reaches_many_targets_through_the_chain_of_its_service() {
    let (one, two) = (UdpTarget::start().await, UdpTarget::start().await);
    let exit = Exit::start(1, "tcp").await;
    let runtime = agent::runtime::Runtime::new(RuntimeOptions::default());
    runtime.apply(agent::runtime::Change::AddChain(fifo(&[exit.node("x", "tcp")]))).await.unwrap();
    let handler = json!({"type": "relay", "chain": "c", "metadata": {"bind": true}});
    let relay = Exit::in_runtime(runtime, 2, "tcp", handler).await;
    let mut stream = TcpStream::connect(relay.addr).await.unwrap();
    let early = [&ASSOCIATE[..], &addressed(one.addr, b"early")].concat();
    stream.write_all(&early).await.unwrap();
    let mut answer = [0; 14];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, [1, 0, 0, 10, 2, 0, 7, 1, 127, 0, 0, 1, 0, 0]);
    for (target, datagram) in [(&one, &b"early"[..]), (&two, b"more"), (&one, b"again")] {
        if datagram != b"early" {
            stream.write_all(&addressed(target.addr, datagram)).await.unwrap();
        }
        let expected = addressed(target.addr, datagram);
        let mut back = vec![0; expected.len()];
        soon(stream.read_exact(&mut back)).await.unwrap();
        assert_eq!(back, expected);
    }
    assert_eq!(one.peer_ips(), [exit.from], "one flow per target");
    assert_eq!(two.peer_ips(), [exit.from]);

    // What makes no sense ends it, and its flows.
    let source = one.peers()[0];
    stream.write_all(b"\0\x01\xff\x02").await.unwrap();
    assert!(!soon(stream.read(&mut [0; 1])).await.is_ok_and(|n| n > 0));
    eventually("its sockets are closed", || std::net::UdpSocket::bind(source).is_ok()).await;
}

#[tokio::test]
async fn an_association_has_to_be_allowed() {
    let exit = Exit::start(1, "tcp").await;
    let mut stream = TcpStream::connect(exit.addr).await.unwrap();
    stream.write_all(&ASSOCIATE).await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    assert_eq!(answer, [1, 3, 0, 0]);
}

#[tokio::test]
async fn a_middle_node_passes_the_first_datagram_on_with_its_request() {
    let target = UdpTarget::start().await;
    let (exit, mut told) = holding_exit(target.addr).await;
    let mut holding = node("x", exit, "tcp");
    holding["connector"] = json!({"type": "relay"});
    let runtime = agent::runtime::Runtime::new(RuntimeOptions::default());
    runtime.apply(agent::runtime::Change::AddChain(fifo(&[holding]))).await.unwrap();
    let middle = Exit::in_runtime(runtime, 2, "tcp", json!({"type": "relay", "chain": "c"})).await;
    let mut stream = TcpStream::connect(middle.addr).await.unwrap();
    let sent = [request(target.addr), frame(b"first")].concat();
    stream.write_all(&sent).await.unwrap();
    assert_eq!(soon(told.recv()).await.unwrap(), sent);
    soon(stream.read_exact(&mut [0; 4])).await.unwrap();
    assert_eq!(read_frame(&mut stream).await, b"first");
    stream.write_all(&frame(b"second")).await.unwrap();
    assert_eq!(read_frame(&mut stream).await, b"second");
    assert_eq!(target.seen(), [&b"first"[..], b"second"], "nothing twice");

    // A client that waits for its answer gets it although the exit holds its own.
    let mut patient = TcpStream::connect(middle.addr).await.unwrap();
    patient.write_all(&request(target.addr)).await.unwrap();
    soon(patient.read_exact(&mut [0; 4])).await.unwrap();
    patient.write_all(&frame(b"third")).await.unwrap();
    assert_eq!(read_frame(&mut patient).await, b"third");
}
