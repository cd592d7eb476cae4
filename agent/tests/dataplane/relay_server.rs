//! The relay handler, byte by byte.

use crate::rig::*;
use agent::runtime::{Deadlines, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const USER_PASS: &[u8] = b"\x01\x00\x0a\x04user\x04pass";
const USER_WRONG: &[u8] = b"\x01\x00\x0b\x04user\x05wrong";

fn address(to: SocketAddr) -> Vec<u8> {
    let mut feature = vec![2, 0, 7, 1, 127, 0, 0, 1];
    feature.extend(to.port().to_be_bytes());
    feature
}

fn request(command: u8, features: &[&[u8]]) -> Vec<u8> {
    let features = features.concat();
    let mut request = vec![1, command];
    request.extend((features.len() as u16).to_be_bytes());
    request.extend(features);
    request
}

/// Sends all of it in one segment; what comes back until the end, or an error.
async fn exchange(exit: &Exit, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(exit.addr).await?;
    stream.write_all(bytes).await?;
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.map(|_| answer)
}

async fn strict() -> Exit {
    let auth = json!({"username": "user", "password": "pass"});
    Exit::with(1, "tcp", json!({"type": "relay", "auth": auth})).await
}

#[tokio::test]
async fn a_request_and_its_payload_may_share_a_segment() {
    let target = Target::start(Does::SpeakFirst).await;
    let exit = strict().await;
    let mut bytes = request(1, &[USER_PASS, &address(target.addr)]);
    bytes.extend(b"payload");
    let mut stream = TcpStream::connect(exit.addr).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    assert_eq!(answer, b"\x01\x00\x00\x00hellopayload");
    assert_eq!(target.peers(), [exit.from]);
}

#[tokio::test]
async fn the_answer_comes_before_the_target_speaks() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tcp").await;
    let mut stream = TcpStream::connect(exit.addr).await.unwrap();
    stream.write_all(&request(1, &[&address(target.addr)])).await.unwrap();
    let mut answer = [9; 4];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, [1, 0, 0, 0]);
}

#[tokio::test]
async fn error_answers() {
    let target = Target::start(Does::Echo).await;
    let (down, _held) = refusing();
    let exit = strict().await;
    let to_target = address(target.addr);
    let cases: [(&str, Vec<u8>, u8); 7] = [
        ("no credentials", request(1, &[&to_target]), 2),
        ("wrong credentials", request(1, &[USER_WRONG, &to_target]), 2),
        ("no address", request(1, &[USER_PASS]), 1),
        ("empty address", request(1, &[USER_PASS, b"\x02\x00\x04\x03\x00\x00\x00"]), 1),
        ("bind", request(2, &[USER_PASS, &to_target]), 1),
        ("target down", request(1, &[USER_PASS, &address(down)]), 6),
        ("no such name", request(1, &[USER_PASS, b"\x02\x00\x0f\x03\x0bx.invalid.y\x00\x50"]), 6),
    ];
    for (name, mut bytes, status) in cases {
        // Payload that is never read must not cost the client the answer.
        bytes.extend(vec![b'x'; 4096]);
        assert_eq!(exchange(&exit, &bytes).await.unwrap(), [1, status, 0, 0], "{name}");
    }
    assert!(target.peers().is_empty());
}

#[tokio::test]
async fn what_is_no_request_gets_no_answer() {
    let exit = Exit::start(1, "tcp").await;
    let cases: [(&str, &[u8]); 3] = [
        ("version 2", b"\x02\x01\x00\x00"),
        ("http", b"GET / HTTP/1.1\r\n\r\n"),
        ("cut feature", b"\x01\x01\x00\x03\x02\x00\x07"),
    ];
    for (name, bytes) in cases {
        let answer = exchange(&exit, bytes).await.unwrap_or_default();
        assert!(answer.is_empty(), "{name}: {answer:?}");
    }
}

#[tokio::test]
async fn a_silent_client_is_not_waited_for_without_end() {
    let stage = Duration::from_millis(100);
    let deadlines = Deadlines { relay_request: stage, handshake: stage, ..Deadlines::default() };
    for listener in ["tcp", "tls"] {
        let runtime = Runtime::new(RuntimeOptions { deadlines, ..RuntimeOptions::default() });
        let exit = Exit::in_runtime(runtime, 1, listener, json!({"type": "relay"})).await;
        assert_eq!(exchange(&exit, b"").await.unwrap_or_default(), b"", "{listener}");
    }
}

#[tokio::test]
async fn a_forwarder_decides_where_to_go() {
    let target = Target::start(Does::SpeakFirst).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    let config: Value = json!({
        "name": "exit", "addr": "127.0.0.1:0", "handler": {"type": "relay"}, "listener": {"type": "tcp"},
        "forwarder": {"nodes": [{"name": "node_1", "addr": target.addr.to_string()}]}
    });
    runtime.apply(agent::runtime::Change::AddServices(vec![service(config)])).await.unwrap();
    let mut stream = TcpStream::connect(runtime.listening("exit").unwrap()).await.unwrap();
    stream.write_all(&request(1, &[])).await.unwrap();
    let mut answer = [0; 9];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"\x01\x00\x00\x00hello");
}
