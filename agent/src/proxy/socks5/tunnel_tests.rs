//! Both directions of a tunnel, with the bytes cut anywhere.

use super::*;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

fn target(text: &str) -> HostPort {
    HostPort::parse(text).unwrap()
}

/// A tunnel to `to`, over a pipe that holds this much, and its other end.
fn tunnel(to: &str, room: usize) -> (Tunnel, tokio::io::DuplexStream) {
    let (ours, theirs) = duplex(room);
    (Tunnel::new(Stream::Layered(Box::new(ours)), &target(to)), theirs)
}

fn frames(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let mut frames = Vec::new();
    assert!(datagrams.iter().all(|datagram| frame::push(&mut frames, datagram)));
    frames
}

fn addressed(source: &str, payload: &[u8]) -> Vec<u8> {
    let head = Head::new(&target(source));
    [head.of(payload.len()).unwrap().as_bytes(), payload].concat()
}

#[tokio::test]
async fn each_datagram_gets_the_targets_address() {
    let (mut tunnel, mut server) = tunnel("10.0.0.1:53", 1 << 20);
    // In the middle of a length, and of a payload.
    for piece in [&b"\0"[..], b"\x03on", b"e\0", b"\x02a", b"b"] {
        tunnel.write_all(piece).await.unwrap();
    }
    tunnel.shutdown().await.unwrap();
    let mut sent = Vec::new();
    server.read_to_end(&mut sent).await.unwrap();
    assert_eq!(sent, b"\0\x03\xff\x01\x0a\0\0\x01\0\x35one\0\x02\xff\x01\x0a\0\0\x01\0\x35ab");
}

#[tokio::test]
async fn an_empty_datagram_cannot_be_written_and_stops_nothing() {
    let (mut tunnel, mut server) = tunnel("a.example:53", 1 << 20);
    tunnel.write_all(&frames(&[vec![], vec![7], vec![]])).await.unwrap();
    tunnel.shutdown().await.unwrap();
    let mut sent = Vec::new();
    server.read_to_end(&mut sent).await.unwrap();
    assert_eq!(sent, b"\0\x01\xff\x03\x09a.example\0\x35\x07");
}

#[tokio::test]
async fn only_the_targets_answers_come_back() {
    let cases: [(&str, &[&str], &[&str]); 3] = [
        ("10.0.0.1:53", &["10.0.0.1:53", "[::ffff:10.0.0.1]:53"], &["10.0.0.2:53", "10.0.0.1:54"]),
        ("[2001:db8::1]:53", &["[2001:db8::1]:53"], &["[2001:db8::2]:53", "10.0.0.1:53", "x.example:53"]),
        // Its address is known to the server alone.
        ("a.example:53", &["10.0.0.1:53", "a.example:53"], &["10.0.0.1:54"]),
    ];
    for (to, theirs, strangers) in cases {
        let (mut tunnel, mut server) = tunnel(to, 1 << 20);
        for stranger in strangers {
            server.write_all(&addressed(stranger, b"stranger")).await.unwrap();
        }
        for source in theirs {
            server.write_all(&addressed(source, source.as_bytes())).await.unwrap();
        }
        drop(server);
        let mut got = Vec::new();
        tunnel.read_to_end(&mut got).await.unwrap();
        let expected: Vec<_> = theirs.iter().map(|source| source.as_bytes().to_vec()).collect();
        assert_eq!(got, frames(&expected), "{to}");
    }
}

#[tokio::test]
async fn an_end_within_a_datagram_and_nonsense_are_errors() {
    for (bytes, kind) in [
        (&b"\0\x02\xff\x01\x0a\0\0\x01\0\x35a"[..], io::ErrorKind::UnexpectedEof),
        (b"\0\x02\xff\x09", io::ErrorKind::InvalidData),
    ] {
        let (mut tunnel, mut server) = tunnel("10.0.0.1:53", 1 << 20);
        server.write_all(bytes).await.unwrap();
        drop(server);
        let error = tunnel.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), kind);
    }
}

#[tokio::test]
async fn a_server_that_does_not_read_is_waited_for() {
    let (mut tunnel, _server) = tunnel("10.0.0.1:53", 1000);
    let much = frames(&vec![vec![7; 1000]; 1000]);
    let mut taken = 0;
    let writing = async {
        while taken < much.len() {
            taken += tunnel.write(&much[taken..]).await.unwrap();
        }
    };
    assert!(futures_util::FutureExt::now_or_never(writing).is_none());
    assert!(taken <= 2 * BATCH_BYTES, "{taken} bytes taken from the writer");
}

proptest! {
    #[test]
    fn what_goes_in_comes_out_whole_and_in_order(
        sizes in proptest::collection::vec(prop_oneof![1usize..2000, Just(65_535usize)], 1..20),
        piece in 1usize..5000,
        room in 1usize..5000,
    ) {
        let datagrams: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(n, size)| vec![n as u8; *size]).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let back = runtime.block_on(async {
            let (tunnel, server) = tunnel("10.0.0.1:53", room);
            let (mut from_server, mut to_server) = tokio::io::split(tunnel);
            // A server that answers with the same.
            tokio::spawn(async move {
                let (mut read, mut write) = tokio::io::split(server);
                tokio::io::copy(&mut read, &mut write).await.unwrap();
                write.shutdown().await.unwrap();
            });
            let sent = frames(&datagrams);
            tokio::spawn(async move {
                for piece in sent.chunks(piece) {
                    to_server.write_all(piece).await.unwrap();
                }
                to_server.shutdown().await.unwrap();
            });
            let mut back = Vec::new();
            from_server.read_to_end(&mut back).await.unwrap();
            back
        });
        prop_assert!(back == frames(&datagrams));
    }
}
