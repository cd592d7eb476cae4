//! The HTTP handler: requests that are passed on.

use crate::proxy_rig::*;
use crate::rig::*;
use serde_json::json;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const OK: &str =
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\nhi";
const OK_PASSED_ON: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";

#[tokio::test]
async fn a_request_is_passed_on_without_what_was_meant_for_the_proxy() {
    // The origin does not hang up: the end of the body ends the exchange.
    let origin = Origin::start(OK, false).await;
    let strict = strict("http").await;
    let request = format!(
        "GET http://{}/a?b=c HTTP/1.1\r\nHost: forged.example\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n\
         Proxy-Connection: keep-alive\r\nConnection: X-Own\r\nX-Own: 1\r\nAccept: */*\r\n\r\n",
        origin.addr
    );
    assert_eq!(http_all(strict.addr, &request).await.unwrap(), OK_PASSED_ON);
    let expected =
        format!("GET /a?b=c HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\nConnection: close\r\n\r\n", origin.addr);
    assert_eq!(origin.got(), [expected]);
}

#[tokio::test]
async fn a_second_request_does_not_reach_the_first_target() {
    let origin = Origin::start(OK, false).await;
    let proxy = proxy("http").await;
    let second = "GET http://secret.example/ HTTP/1.1\r\nCookie: secret\r\n\r\n";
    let bodies =
        ["Content-Length: 4\r\n\r\nbody", "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", "\r\n"];
    for (i, body) in bodies.iter().enumerate() {
        let request = format!("POST http://{}/ HTTP/1.1\r\n{body}{second}", origin.addr);
        assert_eq!(http_all(proxy.addr, &request).await.unwrap(), OK_PASSED_ON, "{body}");
        eventually("the body has come", || {
            let got = origin.got();
            body.split_once("\r\n\r\n").is_none_or(|(_, payload)| got[i].ends_with(payload))
        })
        .await;
        assert!(!origin.got()[i].contains("secret"), "{:?}", origin.got()[i]);
    }
}

#[tokio::test]
async fn a_long_body_arrives_whole() {
    let (target, _) = scripted(|mut stream| async move {
        let head = read_head(&mut stream).await.unwrap();
        assert!(head.contains("Content-Length: 300000\r\n"));
        let mut body = vec![0; 300_000];
        stream.read_exact(&mut body).await.unwrap();
        assert!(body.iter().all(|byte| *byte == b'x'));
        stream.write_all(OK.as_bytes()).await.unwrap();
        let _ = stream.read(&mut [0; 1]).await;
    })
    .await;
    let proxy = proxy("http").await;
    let body = "x".repeat(300_000);
    let request = format!("POST http://{target}/ HTTP/1.1\r\nContent-Length: 300000\r\n\r\n{body}");
    assert_eq!(http_all(proxy.addr, &request).await.unwrap(), OK_PASSED_ON);
}

#[tokio::test]
async fn answers_of_every_length() {
    let proxy = proxy("http").await;
    let cases = [
        // Until the end of the connection.
        (
            "GET",
            "HTTP/1.1 200 OK\r\n\r\nuntil the end",
            true,
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end",
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nmore than was asked",
            false,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        ),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            false,
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
        ),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            false,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
        ),
        (
            "POST",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            false,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n\
             HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        ),
    ];
    for (method, answer, hangs_up, expected) in cases {
        let origin = Origin::start(answer, hangs_up).await;
        let request = format!("{method} http://{}/ HTTP/1.1\r\n\r\n", origin.addr);
        assert_eq!(http_all(proxy.addr, &request).await.unwrap(), expected, "{answer}");
    }
}

#[tokio::test]
async fn an_answer_that_is_none() {
    let proxy = proxy("http").await;
    let answers = [
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "502"),
        ("", "502"),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "502"),
        ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "502"),
    ];
    for (answer, expected) in answers {
        let origin = Origin::start(answer, true).await;
        let request = format!("GET http://{}/ HTTP/1.1\r\n\r\n", origin.addr);
        let told = http_all(proxy.addr, &request).await.unwrap();
        assert!(told.starts_with(&format!("HTTP/1.1 {expected} ")), "{answer}: {told}");
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_off_does_not_look_complete() {
    let proxy = proxy("http").await;
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhi",
    ] {
        let origin = Origin::start(answer, true).await;
        let request = format!("GET http://{}/ HTTP/1.1\r\n\r\n", origin.addr);
        let error = http_all(proxy.addr, &request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{answer}");
    }
}

#[tokio::test]
async fn an_early_answer_ends_a_long_request() {
    let origin = Origin::start("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n", false).await;
    let proxy = proxy("http").await;
    // The body is never sent.
    let request = format!("POST http://{}/ HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n", origin.addr);
    let (_stream, head) = http(proxy.addr, &request).await.unwrap();
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
}

#[tokio::test]
async fn a_websocket_through_a_chain() {
    // Speaks its new protocol in the same segment as its answer.
    let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst";
    let origin = Origin::start(answer, false).await;
    let exit = Exit::start(2, "tls").await;
    let entry = chained("http", &[exit.node("a", "tls")]).await;
    let request = format!(
        "GET http://{}/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        origin.addr
    );
    let (mut stream, head) = http(entry.addr, &request).await.unwrap();
    assert_eq!(head, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    let mut first = [0; 5];
    soon(stream.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"first");
    stream.write_all(b"frames, and no HTTP any more").await.unwrap();
    eventually("frames arrive", || origin.got()[0].ends_with("frames, and no HTTP any more")).await;
    assert!(origin.got()[0].contains("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"));
}

#[tokio::test]
async fn a_large_answer_through_a_listener_with_tls() {
    let body = "0123456789abcdef".repeat(1 << 19);
    let answer: &'static str = Box::leak(
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_boxed_str(),
    );
    let origin = Origin::start(answer, false).await;
    let proxy = Exit::with(1, "tls", json!({"type": "http"})).await;
    // A forward that speaks TLS to the proxy for us.
    let tls = json!({"name": "p", "addr": proxy.addr.to_string(), "connector": {"type": "tcp"}, "dialer": {"type": "tls"}});
    let entry = Entry::start(&[tls], origin.addr).await;
    let request = format!("GET http://{}/ HTTP/1.1\r\n\r\n", origin.addr);
    let all = http_all(entry.addr, &request).await.unwrap();
    let (head, got) = all.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(got == body, "8 MiB, unchanged");
    let (mut stream, head) =
        http(entry.addr, &format!("CONNECT {} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", origin.addr))
            .await
            .unwrap();
    assert!(head.starts_with("HTTP/1.1 200 Connection established"));
    let mut first = [0; 8];
    soon(stream.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1");
}

#[tokio::test]
async fn a_service_that_stops_cuts_the_exchange() {
    let origin = Origin::start("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", false).await;
    let proxy = proxy("http").await;
    let (mut stream, _) =
        http(proxy.addr, &format!("GET http://{}/ HTTP/1.1\r\n\r\n", origin.addr)).await.unwrap();
    let mut hi = [0; 2];
    soon(stream.read_exact(&mut hi)).await.unwrap();
    proxy.runtime.shutdown().await;
    let error = soon(stream.read(&mut hi)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}
