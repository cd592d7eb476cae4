//! The SOCKS5 handler.

use crate::proxy_rig::*;
use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::json;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Sends all of it in one segment; what comes back until the end.
async fn exchange(proxy: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    answer
}

#[tokio::test]
async fn every_kind_of_address() {
    let target = Target::start(Does::Echo).await;
    let proxy = proxy("socks5").await;
    let (mut stream, code) = socks5(proxy.addr, &socks5_request(target.addr)).await.unwrap();
    assert_eq!(code, 0);
    ping(&mut stream).await;
    let mut by_name = b"\x05\x01\x00\x03\x09localhost".to_vec();
    by_name.extend(target.addr.port().to_be_bytes());
    let (mut stream, code) = socks5(proxy.addr, &by_name).await.unwrap();
    assert_eq!(code, 0);
    ping(&mut stream).await;
    assert_eq!(target.peers(), [proxy.from; 2]);

    let v6 = TcpListener::bind("[::1]:0").await.unwrap();
    let runtime = Runtime::new(RuntimeOptions::default());
    let config = json!({"name": "p", "addr": "127.0.0.1:0", "handler": {"type": "socks5"}, "listener": {"type": "tcp"}});
    runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
    let proxy = runtime.listening("p").unwrap();
    let (_stream, code) = socks5(proxy, &socks5_request(v6.local_addr().unwrap())).await.unwrap();
    assert_eq!(code, 0);
    assert!(soon(v6.accept()).await.unwrap().1.is_ipv6());
}

#[tokio::test]
async fn credentials() {
    let target = Target::start(Does::SpeakFirst).await;
    let strict = strict("socks5").await;
    let request = socks5_request(target.addr);
    // All in one segment, with payload behind, as an impatient client does.
    let right = [b"\x05\x02\x00\x02\x01\x04user\x04pass".as_slice(), &request, b"payload"].concat();
    let mut stream = TcpStream::connect(strict.addr).await.unwrap();
    stream.write_all(&right).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    assert_eq!(answer, b"\x05\x02\x01\x00\x05\x00\x00\x01\0\0\0\0\0\0hellopayload");
    assert_eq!(target.peers(), [strict.from]);

    let cases: [(&str, Vec<u8>, &[u8]); 4] = [
        (
            "wrong password",
            [b"\x05\x01\x02\x01\x04user\x05wrong".as_slice(), &request].concat(),
            b"\x05\x02\x01\x01",
        ),
        (
            "wrong user",
            [b"\x05\x01\x02\x01\x03use\x05rpass".as_slice(), &request].concat(),
            b"\x05\x02\x01\x01",
        ),
        ("none offered", [b"\x05\x01\x00".as_slice(), &request].concat(), b"\x05\xff"),
        ("none at all", vec![5, 0], b"\x05\xff"),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(exchange(strict.addr, &bytes).await, expected, "{name}");
    }
    assert_eq!(target.peers().len(), 1, "nobody else got through");

    // A client that can do nothing else than log in, at a proxy where nobody has to.
    let open = proxy("socks5").await;
    let bytes = [b"\x05\x01\x02\x01\x01a\x01b".as_slice(), &request].concat();
    let mut stream = TcpStream::connect(open.addr).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    let mut answer = [0; 19];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"\x05\x02\x01\x00\x05\x00\x00\x01\0\0\0\0\0\0hello");
}

#[tokio::test]
async fn what_goes_wrong_has_a_code() {
    let target = Target::start(Does::Echo).await;
    let (down, _held) = refusing();
    let proxy = proxy("socks5").await;
    let command = |command: u8| {
        let mut request = socks5_request(target.addr);
        request[1] = command;
        request
    };
    let cases: [(&str, Vec<u8>, u8); 9] = [
        ("target down", socks5_request(down), 5),
        ("no such name", b"\x05\x01\x00\x03\x0bx.invalid.y\x00\x50".to_vec(), 4),
        ("not a name", b"\x05\x01\x00\x03\x03a b\x00\x50".to_vec(), 4),
        ("no name", b"\x05\x01\x00\x03\x00\x00\x50".to_vec(), 1),
        ("port 0", b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x00".to_vec(), 1),
        ("another kind of address", b"\x05\x01\x00\x02".to_vec(), 8),
        ("bind", command(2), 7),
        ("associate", command(3), 7),
        ("something of the future", command(0xf3), 7),
    ];
    for (name, mut request, expected) in cases {
        // Payload that is never read must not cost the client the reply.
        request.extend([0; 4096]);
        let (mut stream, code) = socks5(proxy.addr, &request).await.unwrap();
        assert_eq!(code, expected, "{name}");
        assert_eq!(soon(stream.read(&mut [0; 1])).await.unwrap(), 0, "{name}");
    }
    assert!(target.peers().is_empty());
}

#[tokio::test]
async fn what_is_no_socks5_gets_no_answer() {
    let proxy = proxy("socks5").await;
    for bytes in [&b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00"[..], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(proxy.addr).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let _ = soon(stream.read_to_end(&mut answer)).await;
        assert!(answer.is_empty(), "{answer:?}");
    }
}

#[tokio::test]
async fn a_client_that_drips_is_not_waited_for_without_end() {
    for (listener, kind) in [("tcp", "socks5"), ("tls", "socks5"), ("tcp", "auto")] {
        let handler = json!({"type": kind, "metadata": {"readTimeout": "300ms"}});
        let proxy = Exit::with(1, listener, handler).await;
        let mut stream = TcpStream::connect(proxy.addr).await.unwrap();
        let dripping = async {
            // Each byte comes in time; all together do not. The handshake of TLS is never done: it has a deadline too.
            for byte in b"\x05\x01\x00\x05\x01\x00\x03\xff".iter().cycle() {
                if stream.write_all(&[*byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        };
        soon(dripping).await;
    }
}

#[tokio::test]
async fn through_a_chain_the_next_candidate_is_used() {
    let target = Target::start(Does::Echo).await;
    let (dead, _held) = refusing();
    let exit = Exit::start(2, "tls").await;
    let entry = chained("socks5", &[node("dead", dead, "tls"), exit.node("fine", "tls")]).await;
    for _ in 0..2 {
        let (mut stream, code) = socks5(entry.addr, &socks5_request(target.addr)).await.unwrap();
        assert_eq!(code, 0);
        ping(&mut stream).await;
    }
    assert_eq!(target.peers(), [exit.from; 2]);
    assert_eq!(entry.marked(), ["dead"]);
}

#[tokio::test]
async fn without_a_way_the_target_is_not_dialled() {
    let target = Target::start(Does::Echo).await;
    let (dead, _held) = refusing();
    let entry = chained("socks5", &[node("dead", dead, "tcp")]).await;
    let request = socks5_request(target.addr);
    assert_eq!(socks5(entry.addr, &request).await.unwrap().1, 1);
    entry.runtime.apply(Change::UpsertChain(fifo(&[]))).await.unwrap();
    assert_eq!(socks5(entry.addr, &request).await.unwrap().1, 1);
    entry.runtime.apply(Change::DeleteChain("c".into())).await.unwrap();
    assert_eq!(socks5(entry.addr, &request).await.unwrap().1, 1);
    assert_eq!(entry.runtime.report().refused, 3);
    assert!(target.peers().is_empty(), "the target was reached without an exit");
}

#[tokio::test]
async fn a_target_that_is_down_is_not_blamed_on_the_exits() {
    let (down, _held) = refusing();
    let (a, b) = (Exit::start(1, "tcp").await, Exit::start(2, "tcp").await);
    let entry = chained("socks5", &[a.node("a", "tcp"), b.node("b", "tcp")]).await;
    assert_eq!(socks5(entry.addr, &socks5_request(down)).await.unwrap().1, 4);
    assert_eq!(entry.nodes().iter().map(|node| node.failures).collect::<Vec<_>>(), [1, 1], "both were asked");
    assert!(entry.marked().is_empty());
}

#[tokio::test]
async fn an_exit_that_holds_its_answer_does_not_hold_the_client() {
    let target = Target::start(Does::Echo).await;
    let holding = crate::interop::holding_exit().await;
    // The client speaks when it is told that it may, the exit answers when the target has spoken.
    let mut lazy = node("a", holding, "tcp");
    lazy["connector"] = json!({"type": "relay"});
    let entry = chained("socks5", &[lazy]).await;
    let (mut stream, code) = socks5(entry.addr, &socks5_request(target.addr)).await.unwrap();
    assert_eq!(code, 0);
    ping(&mut stream).await;
    assert!(entry.marked().is_empty());
}

#[tokio::test]
async fn the_end_of_one_direction_leaves_the_other_open() {
    let target = Target::start(Does::CountThenAnswer).await;
    let proxy = proxy("socks5").await;
    let (mut stream, _) = socks5(proxy.addr, &socks5_request(target.addr)).await.unwrap();
    stream.write_all(&[7; 100_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(answer, "100000");
}

#[tokio::test]
async fn eight_megabytes_both_ways() {
    let target = Target::start(Does::Echo).await;
    let proxy = proxy("socks5").await;
    let (stream, _) = socks5(proxy.addr, &socks5_request(target.addr)).await.unwrap();
    echo_much(stream, 8 << 20).await;
}
