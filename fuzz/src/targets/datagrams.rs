//! Datagrams on a stream: frames with a length, frames with an address, and those of the first kind carried by the second.

use crate::Target;
use crate::script::{Script, Then};
use agent::datagram::frame::{self, FrameReader};
use agent::proxy::socks5::tunnel::Tunnel;
use agent::relay::tunnel::{Head, TunnelReader};
use futures_util::FutureExt as _;
use shared::address::HostPort;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(crate) const TARGET: Target = Target {
    name: "datagrams",
    run: fuzz,
    words: &[
        "\u{0}\u{0}",
        "\u{0}\x05hello",
        "\u{0}\x05\u{0}\x01",
        "\u{0}\x01\u{0}\x04",
        "\u{0}\x01\u{0}\x03\x01a",
    ],
};

fn fuzz(bytes: &[u8]) {
    with_length(bytes);
    with_address(bytes);
    through_a_tunnel(bytes);
    out_of_a_tunnel(bytes);
}

fn with_length(bytes: &[u8]) {
    let take_all = |reader: &mut FrameReader, all: &mut Vec<Vec<u8>>| {
        while let Some(datagram) = reader.take() {
            all.push(datagram.to_vec());
        }
    };
    let mut whole = Vec::new();
    take_all(&mut FrameReader::new(bytes.to_vec()), &mut whole);
    let mut again = Vec::new();
    assert!(whole.iter().all(|datagram| frame::push(&mut again, datagram)));
    assert_eq!(bytes.get(..again.len()), Some(&*again));
    // The same, however the bytes are cut.
    let (mut reader, mut cut, mut stream) = (FrameReader::default(), Vec::new(), bytes);
    loop {
        take_all(&mut reader, &mut cut);
        match reader.fill(&mut stream).now_or_never() {
            Some(Ok(true)) => {}
            Some(Ok(false)) => {
                assert_eq!(again.len(), bytes.len());
                break;
            }
            _ => break,
        }
    }
    assert_eq!(cut, whole);
}

/// A target and a payload.
type Addressed = (HostPort, Vec<u8>);

fn with_address(bytes: &[u8]) {
    let take_all = |reader: &mut TunnelReader, all: &mut Vec<Addressed>| loop {
        match reader.take() {
            Ok(Some((target, payload))) => all.push((target.clone(), payload.to_vec())),
            Ok(None) => return true,
            Err(_) => return false,
        }
    };
    let mut whole = Vec::new();
    let sound = take_all(&mut TunnelReader::new(bytes.to_vec()), &mut whole);
    for (target, payload) in &whole {
        // Zero is what peers write when they do not say the length.
        let Some(head) = Head::new(target).of(payload.len()) else {
            assert!(payload.is_empty());
            continue;
        };
        let mut reader = TunnelReader::new([head.as_bytes(), payload].concat());
        assert_eq!(reader.take(), Ok(Some((target, &**payload))));
        assert_eq!(reader.take(), Ok(None));
    }
    // After an error there is nothing to go on with.
    let (mut reader, mut cut, mut still_sound) = (TunnelReader::default(), Vec::new(), true);
    for mut piece in bytes.chunks(7) {
        while still_sound && !piece.is_empty() {
            assert!(matches!(reader.fill(&mut piece).now_or_never(), Some(Ok(true))));
            still_sound = take_all(&mut reader, &mut cut);
        }
    }
    assert_eq!(still_sound, sound);
    assert_eq!(cut, whole);
}

/// Frames that are written go out with addresses before them.
fn through_a_tunnel(bytes: &[u8]) {
    let target = HostPort::new("a.example", 53);
    let (server, heard) = Script::new(b"", 1, Then::Silence).connection();
    let mut tunnel = Tunnel::new(server, &target);
    for piece in bytes.chunks(7) {
        assert!(matches!(tunnel.write_all(piece).now_or_never(), Some(Ok(()))));
    }
    assert!(matches!(tunnel.shutdown().now_or_never(), Some(Ok(()))));
    let mut reader = TunnelReader::new(heard.bytes());
    for datagram in frame::all(bytes).filter(|datagram| !datagram.is_empty()) {
        assert_eq!(reader.take(), Ok(Some((&target, datagram))));
    }
    assert_eq!(reader.take(), Ok(None));
}

/// Whatever a server sends, whole frames come out, and no more than came in.
fn out_of_a_tunnel(bytes: &[u8]) {
    let (server, _) = Script::new(bytes, 5, Then::End).connection();
    let mut tunnel = Tunnel::new(server, &HostPort::new("a.example", 53));
    let mut frames = Vec::new();
    let ended = tunnel.read_to_end(&mut frames).now_or_never();
    assert!(ended.is_some(), "waits after the end");
    assert_eq!(frame::all(&frames).map(|datagram| datagram.len() + 2).sum::<usize>(), frames.len());
    assert!(frames.len() <= bytes.len());
}
