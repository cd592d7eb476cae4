//! What is a frame, and what is none.

use super::*;
use proptest::prelude::*;

/// The bytes that version 1.5 of the library writes.
#[test]
fn frames_on_the_wire() {
    let cases: [(u8, Frame<'_>, &[u8]); 5] = [
        (1, Frame { stream: 3, body: Body::Open }, &[1, 0, 0, 0, 3, 0, 0, 0]),
        (1, Frame { stream: 0x0102_0304, body: Body::End }, &[1, 1, 0, 0, 4, 3, 2, 1]),
        (1, Frame { stream: 3, body: Body::Data(b"hi") }, &[1, 2, 2, 0, 3, 0, 0, 0, b'h', b'i']),
        (1, Frame { stream: 0, body: Body::Nothing }, &[1, 3, 0, 0, 0, 0, 0, 0]),
        (
            2,
            Frame { stream: 5, body: Body::Window { consumed: 513, window: 65536 } },
            &[2, 4, 8, 0, 5, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0],
        ),
    ];
    for (version, frame, bytes) in cases {
        let mut out = Vec::new();
        encode(version, frame, &mut out);
        assert_eq!(out, bytes);
        assert_eq!(decode(version, bytes), Ok(Some((frame, bytes.len()))));
        for cut in 0..bytes.len() {
            assert_eq!(decode(version, &bytes[..cut]), Ok(None), "{frame:?} cut at {cut}");
        }
    }
}

#[test]
fn what_is_malformed_is_named() {
    let cases: [(u8, &[u8], FrameError); 7] = [
        (1, &[2], FrameError::Version(2)),
        (1, &[2, 0, 0, 0, 3, 0, 0, 0], FrameError::Version(2)),
        (1, &[1, 4, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], FrameError::Command(4)),
        (1, &[1, 9, 0, 0, 3, 0, 0, 0], FrameError::Command(9)),
        (1, &[1, 0, 1, 0, 3, 0, 0, 0], FrameError::Length { command: 0, length: 1 }),
        (2, &[2, 4, 7, 0, 3, 0, 0, 0], FrameError::Length { command: 4, length: 7 }),
        (2, &[2, 4, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80], FrameError::Window(1 << 31)),
    ];
    for (version, bytes, expected) in cases {
        assert_eq!(decode(version, bytes), Err(expected), "{bytes:?}");
    }
}

#[test]
fn a_payload_that_is_too_long_is_cut_and_not_wrapped() {
    let mut out = Vec::new();
    encode(1, Frame { stream: 3, body: Body::Data(&[7; LONGEST_PAYLOAD + 1]) }, &mut out);
    assert_eq!(out.len(), HEADER_LEN + LONGEST_PAYLOAD);
    assert!(decode(1, &out).unwrap().is_some());
}

#[derive(Clone, Debug)]
enum Kind {
    Open,
    End,
    Data(Vec<u8>),
    Nothing,
    Window(u32, u32),
}

impl Kind {
    fn body(&self) -> Body<'_> {
        match self {
            Kind::Open => Body::Open,
            Kind::End => Body::End,
            Kind::Data(payload) => Body::Data(payload),
            Kind::Nothing => Body::Nothing,
            Kind::Window(consumed, window) => Body::Window { consumed: *consumed, window: *window },
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Open),
        Just(Kind::End),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Kind::Data),
        Just(Kind::Nothing),
        (any::<u32>(), 0..=i32::MAX as u32).prop_map(|(consumed, window)| Kind::Window(consumed, window)),
    ]
}

proptest! {
    #[test]
    fn a_sequence_of_frames_reads_back_wherever_it_is_cut(
        frames in proptest::collection::vec((any::<u32>(), kind()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut wire = Vec::new();
        for (stream, kind) in &frames {
            encode(2, Frame { stream: *stream, body: kind.body() }, &mut wire);
        }
        let cut = cut.index(wire.len() + 1);
        let (mut at, mut seen, mut available) = (0, 0, cut);
        loop {
            match decode(2, &wire[at..available]).unwrap() {
                Some((frame, len)) => {
                    let (stream, kind) = &frames[seen];
                    prop_assert_eq!(frame, Frame { stream: *stream, body: kind.body() });
                    at += len;
                    seen += 1;
                }
                None if available < wire.len() => available = wire.len(),
                None => break,
            }
        }
        prop_assert_eq!((at, seen), (wire.len(), frames.len()));
    }

    #[test]
    fn any_bytes_are_read_without_panic_and_what_is_read_writes_back_the_same(
        version in 1u8..=2,
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        if let Ok(Some((frame, len))) = decode(version, &bytes) {
            let mut out = Vec::new();
            encode(version, frame, &mut out);
            prop_assert_eq!(&out[..], &bytes[..len]);
        }
    }
}
