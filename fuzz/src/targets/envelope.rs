//! The envelope around every frame between panel and agent.

use crate::Target;
use shared::envelope::{NONCE_BYTES, Sealer};
use shared::link::Frame;

pub(crate) const TARGET: Target = Target {
    name: "envelope",
    run: fuzz,
    words: &[
        "{\"encrypted\":true,\"data\":\"",
        "\",\"timestamp\":",
        "\"type\":\"",
        "\"requestId\":\"",
        "\"success\":",
        "\"data\":",
        "null",
        "true",
        "\"}",
        "1e999",
        "==",
    ],
};

fn fuzz(bytes: &[u8]) {
    let sealer = Sealer::new("a secret of a node");
    let text = String::from_utf8_lossy(bytes);
    let _ = sealer.open(&text);
    let sealed = sealer.seal(&text, [7; NONCE_BYTES], 0);
    assert_eq!(sealer.open(&sealed).as_deref(), Ok(&*text));
    // A single bit makes it another one's.
    let at = bytes.first().map_or(0, |byte| usize::from(*byte));
    let data = "{\"encrypted\":true,\"data\":\"".len();
    let mut changed = sealed.clone().into_bytes();
    let place = data + at % 16;
    changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
    assert!(sealer.open(&String::from_utf8_lossy(&changed)).is_err());
    if let Ok(frame) = serde_json::from_str::<Frame>(&text) {
        let written = serde_json::to_string(&frame).expect("a frame can be written");
        let again: Frame = serde_json::from_str(&written).expect("what we write we can read");
        assert_eq!(again.kind, frame.kind);
        assert_eq!(
            (again.success, again.message, again.request_id),
            (frame.success, frame.message, frame.request_id)
        );
    }
}
