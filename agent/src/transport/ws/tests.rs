//! Websockets over a pipe, against each other and against peers that know nothing but the RFC. Time is Tokio's, paused.

use super::*;
use crate::clock::Random;
use crate::stream::Stream;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const LONG: Duration = Duration::from_secs(5);

fn stream(pipe: DuplexStream) -> Stream {
    Stream::Layered(Box::new(pipe))
}

fn client(path: &str, ping: Option<Duration>) -> WsClient {
    WsClient {
        path: path.into(),
        host: "exit.example:443".into(),
        headers: vec![("X-A".into(), "b".into())],
        ping,
    }
}

fn server() -> WsServer {
    WsServer { path: "/ws".into(), headers: Vec::new() }
}

async fn pair() -> (Stream, Stream) {
    let (a, b) = duplex(64 * 1024);
    let (random, client, server) = (Random::seeded(1), client("/ws", None), server());
    let (ours, theirs) =
        tokio::join!(client.handshake(stream(a), &random, LONG), server.handshake(stream(b), &random, LONG));
    (ours.unwrap(), theirs.unwrap())
}

/// A server's side that answers as GOST's library does, and then speaks in bytes.
async fn bare_server(ping: Option<Duration>, first: &[u8]) -> (Stream, DuplexStream) {
    let (a, mut b) = duplex(64 * 1024);
    let (client, random) = (client("/ws", ping), Random::seeded(1));
    let answer = async {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            b.read_buf(&mut request).await.unwrap();
        }
        let text = String::from_utf8(request).unwrap();
        assert!(text.starts_with("GET /ws HTTP/1.1\r\nHost: exit.example:443\r\n"), "{text}");
        assert!(text.contains("\r\nX-A: b\r\n"), "{text}");
        let key = text.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
        let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        // What follows in the same segment belongs to the websocket.
        b.write_all(&[head.as_bytes(), first].concat()).await.unwrap();
    };
    let (ours, ()) = tokio::join!(client.handshake(stream(a), &random, LONG), answer);
    (ours.unwrap(), b)
}

/// Reads one masked frame: its first byte and its payload.
async fn frame(pipe: &mut DuplexStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    pipe.read_exact(&mut head).await?;
    assert!(head[1] & 0x80 != 0 && head[1] & 0x7f < 126, "a short masked frame");
    let mut mask = [0; 4];
    pipe.read_exact(&mut mask).await?;
    let mut payload = vec![0; usize::from(head[1] & 0x7f)];
    pipe.read_exact(&mut payload).await?;
    payload.iter_mut().enumerate().for_each(|(i, byte)| *byte ^= mask[i % 4]);
    Ok((head[0], payload))
}

#[tokio::test(start_paused = true)]
async fn bytes_of_any_length_arrive_and_each_direction_ends_on_its_own() {
    let (mut ours, mut theirs) = pair().await;
    for len in [1, 125, 126, 65_535, 65_536, 200_000] {
        let sent: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let (mut got, mut back) = (vec![0; len], vec![0; len]);
        let there = async {
            ours.write_all(&sent).await.unwrap();
            ours.flush().await.unwrap();
            ours.read_exact(&mut back).await.unwrap();
        };
        let answer = async {
            theirs.read_exact(&mut got).await.unwrap();
            theirs.write_all(&got).await.unwrap();
            theirs.flush().await.unwrap();
        };
        tokio::join!(there, answer);
        assert_eq!(back, sent, "{len}");
    }
    ours.shutdown().await.unwrap();
    assert_eq!(theirs.read(&mut [0; 1]).await.unwrap(), 0);
    theirs.write_all(b"late").await.unwrap();
    theirs.shutdown().await.unwrap();
    let mut late = Vec::new();
    ours.read_to_end(&mut late).await.unwrap();
    assert_eq!(late, b"late");
    assert!(ours.write_all(b"x").await.is_err(), "after the end");
}

#[tokio::test(start_paused = true)]
async fn what_ends_without_a_close_frame_was_cut_off_between_our_own() {
    let (ours, mut theirs) = pair().await;
    drop(ours);
    assert_eq!(theirs.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[tokio::test(start_paused = true)]
async fn frames_of_another_make_are_one_stream_whatever_their_cut() {
    // Text, its continuation, a ping between them; the first ones came with the handshake.
    let (mut ours, mut pipe) = bare_server(None, b"\x01\x03hel").await;
    pipe.write_all(b"\x89\x02hi\x80\x02lo\x82\x00").await.unwrap();
    let mut got = [0; 5];
    ours.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"hello");
    ours.write_all(b"yes").await.unwrap();
    ours.flush().await.unwrap();
    assert_eq!(frame(&mut pipe).await.unwrap(), (0x8a, b"hi".to_vec()), "the pong");
    assert_eq!(frame(&mut pipe).await.unwrap(), (0x82, b"yes".to_vec()));
    // GOST ends so.
    drop(pipe);
    assert_eq!(ours.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_peer_of_another_make_sees_the_end_of_our_direction_beneath_and_answers_after_it() {
    let (mut ours, mut pipe) = bare_server(None, b"").await;
    ours.write_all(b"ask").await.unwrap();
    ours.shutdown().await.unwrap();
    assert_eq!(frame(&mut pipe).await.unwrap(), (0x82, b"ask".to_vec()));
    let end = tokio::time::timeout(Duration::from_secs(1), pipe.read(&mut [0; 1])).await;
    assert_eq!(end.unwrap().unwrap(), 0, "no frame tells the end");
    // Much later than anybody's patience; a ping is not answered any more.
    tokio::time::sleep(Duration::from_secs(100)).await;
    pipe.write_all(b"\x89\x00\x82\x06answer").await.unwrap();
    drop(pipe);
    let mut answer = Vec::new();
    ours.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"answer");
    assert!(ours.write_all(b"x").await.is_err(), "after the end");
}

#[tokio::test(start_paused = true)]
async fn a_peer_of_another_make_that_ends_its_direction_beneath_still_hears_ours() {
    let (mut ours, mut pipe) = bare_server(None, b"").await;
    pipe.write_all(b"\x82\x03bye").await.unwrap();
    pipe.shutdown().await.unwrap();
    let mut bye = Vec::new();
    ours.read_to_end(&mut bye).await.unwrap();
    assert_eq!(bye, b"bye");
    tokio::time::sleep(Duration::from_secs(100)).await;
    ours.write_all(b"late").await.unwrap();
    ours.shutdown().await.unwrap();
    assert_eq!(frame(&mut pipe).await.unwrap(), (0x82, b"late".to_vec()));
    assert_eq!(pipe.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_close_frame_of_another_make_ends_both_directions() {
    let (mut ours, mut pipe) = bare_server(None, b"\x88\x02\x03\xe8").await;
    assert_eq!(ours.read(&mut [0; 1]).await.unwrap(), 0);
    assert!(ours.write_all(b"x").await.is_err());
    ours.shutdown().await.unwrap();
    assert_eq!(frame(&mut pipe).await.unwrap(), (0x88, vec![3, 0xe8]));
    assert_eq!(pipe.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_malformed_is_an_error() {
    let cases: [(&str, &[u8]); 6] = [
        ("a mask of the wrong side", b"\x82\x81\0\0\0\0x"),
        ("a reserved bit", b"\xc2\x01x"),
        ("a reserved opcode", b"\x83\x01x"),
        ("a ping in parts", b"\x09\x01x"),
        ("a ping that is too long", b"\x89\x7e\x00\x7e"),
        ("an end within a message", b"\x82\x05ab"),
    ];
    for (what, bytes) in cases {
        let (mut ours, mut pipe) = bare_server(None, b"").await;
        pipe.write_all(bytes).await.unwrap();
        drop(pipe);
        let mut all = Vec::new();
        assert!(ours.read_to_end(&mut all).await.is_err(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_no_pings_is_dead() {
    let (mut ours, mut pipe) = bare_server(Some(Duration::from_secs(5)), b"").await;
    let reading = tokio::spawn(async move { ours.read(&mut [0; 1]).await });
    for _ in 0..3 {
        assert_eq!(frame(&mut pipe).await.unwrap(), (0x89, Vec::new()));
        pipe.write_all(b"\x8a\x00").await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(frame(&mut pipe).await.unwrap().0, 0x89);
    }
    assert_eq!(reading.await.unwrap().unwrap_err().kind(), ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_none_is_answered_and_named() {
    let upgrade = "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: k\r\n";
    let cases = [
        (format!("GET /other HTTP/1.1\r\n{upgrade}Sec-WebSocket-Version: 13\r\n\r\n"), "404 Not Found"),
        ("GET /ws HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "400 Bad Request"),
        (format!("POST /ws HTTP/1.1\r\n{upgrade}Sec-WebSocket-Version: 13\r\n\r\n"), "400 Bad Request"),
        (format!("GET /ws HTTP/1.1\r\n{upgrade}Sec-WebSocket-Version: 8\r\n\r\n"), "426 Upgrade Required"),
    ];
    for (request, status) in cases {
        let (a, mut b) = duplex(64 * 1024);
        b.write_all(request.as_bytes()).await.unwrap();
        let error = server().handshake(stream(a), &Random::seeded(1), LONG).await.err().unwrap();
        assert!(error.to_string().contains(status), "{error}");
        let mut answer = String::new();
        b.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
    }
    for request in [format!("GET /ws HTTP/1.1\r\nX: {}", "y".repeat(9000)), "SSH-2.0-x\r\n\r\n".to_owned()] {
        let (a, mut b) = duplex(64 * 1024);
        b.write_all(request.as_bytes()).await.unwrap();
        assert!(server().handshake(stream(a), &Random::seeded(1), LONG).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_and_a_silence_are_named() {
    for (answer, reason) in [
        ("HTTP/1.1 404 Not Found\r\n\r\n", "HTTP 404 Not Found"),
        ("HTTP/1.1 101 Yes\r\nUpgrade: h2c\r\n\r\n", "upgrades to something else"),
        ("HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n", "to another request"),
        ("\x01\x00\x00\x00", "not a websocket peer"),
        ("", "no answer within"),
    ] {
        let (a, mut b) = duplex(64 * 1024);
        b.write_all(answer.as_bytes()).await.unwrap();
        let error = client("/ws", None).handshake(stream(a), &Random::seeded(1), LONG).await.err().unwrap();
        assert!(error.to_string().contains(reason), "{error}");
    }
}
