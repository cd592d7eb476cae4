//! Datagrams on a stream: frames with a length, and frames with an address.

use crate::Target;
use agent::datagram::frame::{self, FrameReader};
use agent::relay::tunnel::{Head, TunnelReader};
use futures_util::FutureExt as _;
use shared::address::HostPort;

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
