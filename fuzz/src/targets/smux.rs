//! Frames of the multiplexer, in both versions.

use crate::Target;
use agent::transport::smux::frame::{HEADER_LEN, LONGEST_PAYLOAD, decode, encode};

pub(crate) const TARGET: Target = Target {
    name: "smux",
    run: fuzz,
    words: &["\x01\u{0}\u{0}\u{0}", "\x01\x02\x05\u{0}", "\x02\x04\x08\u{0}"],
};

fn fuzz(bytes: &[u8]) {
    for version in [1, 2] {
        let mut rest = bytes;
        while let Ok(Some((frame, length))) = decode(version, rest) {
            assert!((HEADER_LEN..=HEADER_LEN + LONGEST_PAYLOAD).contains(&length));
            let mut again = Vec::new();
            encode(version, frame, &mut again);
            assert_eq!(again, &rest[..length]);
            // What is cut is waited for, and not mistaken for something else.
            for cut in [1, length / 2, length - 1] {
                assert_eq!(decode(version, &again[..cut]), Ok(None));
            }
            rest = &rest[length..];
        }
    }
}
