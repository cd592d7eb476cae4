//! Websocket peers that behave as GOST's do: an end of one direction is the end of the connection's beneath.

use crate::rig::*;
use agent::stream::Stream;
use agent::transport::tls::{TlsClient, TlsServer};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: exit\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// A client at our exit: it has its websocket and has asked for this target.
async fn client(exit: &Exit, kind: &str, target: SocketAddr) -> Stream {
    let mut stream = Stream::Tcp(TcpStream::connect(exit.addr).await.unwrap());
    if kind == "wss" {
        stream = TlsClient::new(None, "exit").unwrap().handshake(stream, LONG).await.unwrap();
    }
    stream.write_all(UPGRADE.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(soon(stream.read_u8()).await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    let mut request = vec![1, 1, 0, 10, 2, 0, 7, 1, 127, 0, 0, 1];
    request.extend(target.port().to_be_bytes());
    say(&mut stream, &request).await;
    assert_eq!(soon(hear(&mut stream)).await.unwrap(), [1, 0, 0, 0], "the answer of the exit");
    stream
}

/// A short message of a client, with a mask that changes nothing.
async fn say(stream: &mut Stream, payload: &[u8]) {
    let mut message = vec![0x82, 0x80 | payload.len() as u8, 0, 0, 0, 0];
    message.extend(payload);
    stream.write_all(&message).await.unwrap();
    stream.flush().await.unwrap();
}

/// A short message of a server.
async fn hear(stream: &mut Stream) -> io::Result<Vec<u8>> {
    assert_eq!(stream.read_u8().await?, 0x82, "nothing but data");
    let mut payload = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut payload).await?;
    Ok(payload)
}

/// The end of the server's direction, with no frame before it.
async fn hear_end(stream: &mut Stream) {
    assert_eq!(soon(stream.read(&mut [0; 1])).await.unwrap(), 0);
}

#[tokio::test]
async fn an_answer_that_waits_for_the_clients_end_arrives_at_a_client_that_ends_beneath() {
    let target = Target::start(Does::CountThenAnswer).await;
    for kind in ["ws", "wss"] {
        let exit = Exit::start(1, kind).await;
        let mut stream = client(&exit, kind, target.addr).await;
        say(&mut stream, b"four").await;
        stream.shutdown().await.unwrap();
        assert_eq!(soon(hear(&mut stream)).await.unwrap(), b"4", "{kind}");
        hear_end(&mut stream).await;
    }
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_server_that_ends_its_direction_still_hears_a_client_that_saw_the_end_beneath() {
    for kind in ["ws", "wss"] {
        let heard = Flag::default();
        let raised = heard.clone();
        let (target, _) = scripted(move |mut stream| {
            let raised = raised.clone();
            async move {
                stream.write_all(b"bye").await.unwrap();
                stream.shutdown().await.unwrap();
                let mut rest = Vec::new();
                if stream.read_to_end(&mut rest).await.is_ok() && rest == b"late" {
                    raised.raise();
                }
            }
        })
        .await;
        let exit = Exit::start(1, kind).await;
        let mut stream = client(&exit, kind, target).await;
        assert_eq!(soon(hear(&mut stream)).await.unwrap(), b"bye", "{kind}");
        hear_end(&mut stream).await;
        say(&mut stream, b"late").await;
        stream.shutdown().await.unwrap();
        eventually("what was said after the end arrives", || heard.is_up()).await;
    }
}

#[tokio::test]
async fn a_client_whose_connection_is_cut_does_not_look_complete() {
    // What cuts it: a reset, a message that is not whole, and under TLS an end without close_notify.
    for (kind, cut) in [("ws", "reset"), ("wss", "reset"), ("ws", "half"), ("wss", "half"), ("wss", "silent")]
    {
        let (saw_error, looked) = (Flag::default(), Flag::default());
        let (error, done) = (saw_error.clone(), looked.clone());
        let (target, _) = scripted(move |mut stream| {
            let (error, done) = (error.clone(), done.clone());
            async move {
                if stream.read_to_end(&mut Vec::new()).await.is_err() {
                    error.raise();
                }
                done.raise();
            }
        })
        .await;
        let exit = Exit::start(1, kind).await;
        let mut stream = client(&exit, kind, target).await;
        say(&mut stream, b"part").await;
        match cut {
            "reset" => stream.abort(),
            "half" => {
                stream.write_all(b"\x82\x85\0\0\0\0ab").await.unwrap();
                stream.shutdown().await.unwrap();
                hear_cut(stream).await;
            }
            // TLS is dropped without a word, and the kernel ends the connection.
            _ => drop(stream),
        }
        eventually("the target looks", || looked.is_up()).await;
        assert!(saw_error.is_up(), "{kind} {cut}: a cut upload looked complete");
    }
}

/// Stays until the exit has let go.
async fn hear_cut(mut stream: Stream) {
    let _ = soon(stream.read(&mut [0; 1])).await;
}

/// An exit that answers the relay request, tells the count of what came once its client's direction has ended beneath,
/// and ends its own in the same way.
async fn counting_exit(kind: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let tls = (kind == "wss").then(|| TlsServer::new(None).unwrap());
    tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        let mut stream = Stream::Tcp(tcp);
        if let Some(tls) = tls {
            stream = tls.handshake(stream, LONG).await.unwrap();
        }
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
        let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        let (mut came, mut messages) = (0, 0);
        // To the end beneath; a close frame would be no data.
        while let Ok(first) = stream.read_u8().await {
            assert_eq!(first, 0x82);
            let len = stream.read_u8().await.unwrap() & 0x7f;
            assert!(len < 126, "short messages only");
            stream.read_exact(&mut vec![0; 4 + usize::from(len)]).await.unwrap();
            messages += 1;
            if messages == 1 {
                stream.write_all(&[0x82, 4, 1, 0, 0, 0]).await.unwrap();
            } else {
                came += len;
            }
        }
        stream.write_all(&[0x82, 1, b'0' + came]).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    addr
}

#[tokio::test]
async fn an_exit_of_another_make_sees_our_clients_end_and_its_answer_arrives() {
    let target = Target::start(Does::Echo).await;
    for kind in ["ws", "wss"] {
        let entry = Entry::start(&[node("a", counting_exit(kind).await, kind)], target.addr).await;
        let mut stream = entry.connect().await;
        stream.write_all(b"four").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert_eq!(answer, "4", "{kind}");
    }
    assert!(target.peers().is_empty());
}
