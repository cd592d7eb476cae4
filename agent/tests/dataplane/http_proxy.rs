//! The HTTP handler: connections.

use crate::proxy_rig::*;
use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ESTABLISHED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

fn connect(target: impl std::fmt::Display) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

#[tokio::test]
async fn every_kind_of_address() {
    let target = Target::start(Does::Echo).await;
    let proxy = proxy("http").await;
    for authority in [target.addr.to_string(), format!("localhost:{}", target.addr.port())] {
        let (mut stream, head) = http(proxy.addr, &connect(authority)).await.unwrap();
        assert_eq!(head, ESTABLISHED);
        ping(&mut stream).await;
    }
    assert_eq!(target.peers(), [proxy.from; 2]);

    let v6 = TcpListener::bind("[::1]:0").await.unwrap();
    let runtime = Runtime::new(RuntimeOptions::default());
    let config =
        json!({"name": "p", "addr": "127.0.0.1:0", "handler": {"type": "http"}, "listener": {"type": "tcp"}});
    runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
    let request = connect(v6.local_addr().unwrap());
    assert!(request.contains("[::1]:"));
    assert_eq!(http(runtime.listening("p").unwrap(), &request).await.unwrap().1, ESTABLISHED);
}

#[tokio::test]
async fn payload_may_follow_at_once() {
    let target = Target::start(Does::SpeakFirst).await;
    let proxy = proxy("http").await;
    let request = connect(target.addr) + "payload";
    let mut stream = TcpStream::connect(proxy.addr).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut all = String::new();
    soon(stream.read_to_string(&mut all)).await.unwrap();
    assert_eq!(all, format!("{ESTABLISHED}hellopayload"));
}

#[tokio::test]
async fn credentials() {
    let target = Target::start(Does::Echo).await;
    let strict = strict("http").await;
    let with = |line: &str| format!("CONNECT {} HTTP/1.1\r\n{line}\r\n", target.addr);
    // `user:pass`
    let right = with("Proxy-Authorization: Basic dXNlcjpwYXNz\r\n");
    let (mut stream, head) = http(strict.addr, &right).await.unwrap();
    assert_eq!(head, ESTABLISHED);
    ping(&mut stream).await;
    for line in [
        "",
        // `user:wrong`, `user`, not base64, another scheme, another field
        "Proxy-Authorization: Basic dXNlcjp3cm9uZw==\r\n",
        "Proxy-Authorization: Basic dXNlcg==\r\n",
        "Proxy-Authorization: Basic ?\r\n",
        "Proxy-Authorization: Bearer dXNlcjpwYXNz\r\n",
        "Authorization: Basic dXNlcjpwYXNz\r\n",
    ] {
        let answer = http_all(strict.addr, &with(line)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 407 Proxy Authentication Required\r\n"), "{line}: {answer}");
        assert!(answer.contains("\r\nProxy-Authenticate: Basic realm=\"proxy\"\r\n"), "{answer}");
    }
    assert_eq!(target.peers().len(), 1);
}

#[tokio::test]
async fn what_goes_wrong_has_a_status() {
    let target = Target::start(Does::Echo).await;
    let (down, _held) = refusing();
    let proxy = proxy("http").await;
    let long = format!("GET http://{}/ HTTP/1.1\r\nCookie: {}\r\n\r\n", target.addr, "c".repeat(70_000));
    let many = format!("GET http://{}/ HTTP/1.1\r\n{}\r\n", target.addr, "A: b\r\n".repeat(200));
    let plain = |line: &str| format!("POST http://{}/ HTTP/1.1\r\n{line}\r\n\r\n", target.addr);
    let cases = [
        ("target down", connect(down), "502 Bad Gateway"),
        ("target down, plain", format!("GET http://{down}/ HTTP/1.1\r\n\r\n"), "502 Bad Gateway"),
        ("no such name", connect("x.invalid.y:80"), "502 Bad Gateway"),
        ("no port", connect("example.com"), "400 Bad Request"),
        ("asks the proxy itself", "GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "400 Bad Request"),
        ("another scheme", "GET https://a/ HTTP/1.1\r\n\r\n".to_owned(), "400 Bad Request"),
        ("a broken head", "GET http://a/ HTTP/1.1\r\nA b\r\n\r\n".to_owned(), "400 Bad Request"),
        ("another version", "GET http://a/ HTTP/3.1\r\n\r\n".to_owned(), "400 Bad Request"),
        ("two lengths", plain("Content-Length: 1\r\nContent-Length: 2"), "400 Bad Request"),
        ("length and chunks", plain("Content-Length: 1\r\nTransfer-Encoding: chunked"), "400 Bad Request"),
        ("too long", long, "431 Request Header Fields Too Large"),
        ("too many fields", many, "431 Request Header Fields Too Large"),
    ];
    for (name, request, expected) in cases {
        let answer = http_all(proxy.addr, &request).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "{name}: {answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{name}");
    }
    assert!(target.peers().is_empty());
}

#[tokio::test]
async fn a_client_that_drips_is_told_so() {
    let handler = json!({"type": "http", "metadata": {"readTimeout": "300ms"}});
    let proxy = Exit::with(1, "tcp", handler).await;
    let (mut read, mut write) = TcpStream::connect(proxy.addr).await.unwrap().into_split();
    let dripping = tokio::spawn(async move {
        // Each byte comes in time; all together do not.
        for byte in b"GET http://a/ HTTP/1.1\r\nA: ".iter().chain(std::iter::repeat(&b'b')) {
            if write.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
    let mut answer = Vec::new();
    // What is still on its way when the proxy closes may turn the end into a reset.
    let _ = soon(read.read_to_end(&mut answer)).await;
    assert!(answer.starts_with(b"HTTP/1.1 408 Request Timeout\r\n"), "{answer:?}");
    soon(dripping).await.unwrap();
}

#[tokio::test]
async fn through_a_chain_the_next_candidate_is_used() {
    let target = Target::start(Does::Echo).await;
    let (dead, _held) = refusing();
    let exit = Exit::start(2, "tls").await;
    let entry = chained("http", &[node("dead", dead, "tls"), exit.node("fine", "tls")]).await;
    for _ in 0..2 {
        let (mut stream, head) = http(entry.addr, &connect(target.addr)).await.unwrap();
        assert_eq!(head, ESTABLISHED);
        ping(&mut stream).await;
    }
    assert_eq!(target.peers(), [exit.from; 2]);
    assert_eq!(entry.marked(), ["dead"]);
}

#[tokio::test]
async fn without_a_way_the_target_is_not_dialled() {
    let target = Target::start(Does::Echo).await;
    let (dead, _held) = refusing();
    let entry = chained("http", &[node("dead", dead, "tcp")]).await;
    let requests = [connect(target.addr), format!("GET http://{}/ HTTP/1.1\r\n\r\n", target.addr)];
    for request in &requests {
        let answer = http_all(entry.addr, request).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
        assert!(!answer.contains("dead"), "names of nodes are nobody's business");
    }
    entry.runtime.apply(Change::DeleteChain("c".into())).await.unwrap();
    for request in &requests {
        let answer = http_all(entry.addr, request).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
    }
    assert_eq!(entry.runtime.report().refused, 4);
    assert!(target.peers().is_empty(), "the target was reached without an exit");
}

#[tokio::test]
async fn what_exits_say_of_the_target_is_passed_on() {
    for (status, expected) in [(3, "403 Forbidden"), (4, "504 Gateway Timeout"), (6, "502 Bad Gateway")] {
        let ((a, _), (b, _)) = (answering(status).await, answering(status).await);
        let entry = chained("http", &[node("a", a, "tcp"), node("b", b, "tcp")]).await;
        let answer = http_all(entry.addr, &connect("192.0.2.1:80")).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "{status}: {answer}");
        assert!(entry.marked().is_empty());
    }
}

#[tokio::test]
async fn the_end_of_one_direction_leaves_the_other_open() {
    let target = Target::start(Does::CountThenAnswer).await;
    let proxy = proxy("http").await;
    let (mut stream, _) = http(proxy.addr, &connect(target.addr)).await.unwrap();
    stream.write_all(&[7; 100_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(answer, "100000");
}

#[tokio::test]
async fn eight_megabytes_both_ways() {
    let target = Target::start(Does::Echo).await;
    let proxy = proxy("http").await;
    let (stream, _) = http(proxy.addr, &connect(target.addr)).await.unwrap();
    echo_much(stream, 8 << 20).await;
}

#[tokio::test]
async fn the_first_byte_decides_what_is_spoken() {
    let target = Target::start(Does::Echo).await;
    let auto = proxy("auto").await;
    let (mut stream, head) = http(auto.addr, &connect(target.addr)).await.unwrap();
    assert_eq!(head, ESTABLISHED);
    ping(&mut stream).await;
    let (mut stream, code) = socks5(auto.addr, &socks5_request(target.addr)).await.unwrap();
    assert_eq!(code, 0);
    ping(&mut stream).await;
}
