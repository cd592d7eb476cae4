//! Connections over a pipe. Time is Tokio's, paused.

use super::*;
use futures_util::FutureExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

const ALL: Blocked = Blocked { http: true, tls: true, socks: true };

fn guarded() -> (Guard, Stream, DuplexStream) {
    let (ours, client) = duplex(1 << 16);
    let guard = Guard::new(ALL, &CancellationToken::new()).unwrap();
    let stream = guard.around(Stream::Layered(Box::new(ours)));
    (guard, stream, client)
}

async fn read(stream: &mut Stream) -> Vec<u8> {
    let mut buffer = vec![0; 1000];
    let read = stream.read(&mut buffer).await.unwrap();
    buffer.truncate(read);
    buffer
}

#[tokio::test(start_paused = true)]
async fn what_is_free_passes_at_once_and_whole() {
    let (guard, mut stream, mut client) = guarded();
    let much: Vec<u8> = (0..10_000u32).flat_map(u32::to_be_bytes).collect();
    client.write_all(b"SSH-2.0-x\r\n").await.unwrap();
    assert_eq!(stream.read_u8().now_or_never().unwrap().unwrap(), b'S');
    client.write_all(&much).await.unwrap();
    client.shutdown().await.unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).now_or_never().unwrap().unwrap();
    assert_eq!(all, [b"SH-2.0-x\r\n", &much[..]].concat());
    assert_eq!(guard.caught(), None);
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_the_first_bytes_of_what_is_blocked() {
    for (pieces, protocol) in [
        (&[&b"GET / HTTP/1.1\r\n"[..]][..], Protocol::Http),
        (&[b"\x16", b"\x03", b"\x01"], Protocol::Tls),
        (&[b"\x05\x02\x01", b"\0"], Protocol::Socks),
    ] {
        let (guard, mut stream, mut client) = guarded();
        for piece in pieces {
            client.write_all(piece).await.unwrap();
            assert!(read(&mut stream).now_or_never().is_none());
        }
        assert_eq!(guard.caught(), Some(protocol));
        assert!(guard.stop().is_cancelled());
        // It hangs up, and nothing can be written.
        assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
        assert!(stream.write_all(b"x").await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_may_speak_first_and_the_client_never() {
    let (guard, mut stream, mut client) = guarded();
    stream.write_all(b"220 hello\r\n").now_or_never().unwrap().unwrap();
    let mut greeting = [0; 11];
    client.read_exact(&mut greeting).await.unwrap();
    assert!(read(&mut stream).now_or_never().is_none());
    tokio::time::advance(PATIENCE * 100).await;
    assert!(read(&mut stream).now_or_never().is_none());
    // Its first bytes are looked at whenever they come.
    client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    assert!(read(&mut stream).now_or_never().is_none());
    assert_eq!(guard.caught(), Some(Protocol::Http));
}

#[tokio::test(start_paused = true)]
async fn what_stays_unclear_is_passed_on_late_and_looked_at_all_the_same() {
    let (guard, mut stream, mut client) = guarded();
    client.write_all(b"GE").await.unwrap();
    assert!(read(&mut stream).now_or_never().is_none());
    assert_eq!(read(&mut stream).await, b"GE");
    assert_eq!(guard.caught(), None);
    client.write_all(b"T").await.unwrap();
    // Not held back once more.
    assert_eq!(read(&mut stream).now_or_never().unwrap(), b"T");
    client.write_all(b" / HTTP/1.1").await.unwrap();
    assert!(read(&mut stream).now_or_never().is_none());
    assert_eq!(guard.caught(), Some(Protocol::Http));

    let (guard, mut stream, mut client) = guarded();
    client.write_all(b"GE").await.unwrap();
    assert_eq!(read(&mut stream).await, b"GE");
    client.write_all(b"OMETRY").await.unwrap();
    assert_eq!(read(&mut stream).now_or_never().unwrap(), b"OMETRY");
    drop(client);
    assert_eq!(read(&mut stream).await, b"");
    assert_eq!(guard.caught(), None);
}

#[tokio::test(start_paused = true)]
async fn an_end_makes_what_was_unclear_free() {
    let (guard, mut stream, mut client) = guarded();
    client.write_all(b"P").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read(&mut stream).now_or_never().unwrap(), b"P");
    assert_eq!(read(&mut stream).now_or_never().unwrap(), b"");
    assert_eq!(guard.caught(), None);
}

#[test]
fn without_anything_blocked_there_is_no_guard() {
    assert!(Guard::new(Blocked::default(), &CancellationToken::new()).is_none());
}
