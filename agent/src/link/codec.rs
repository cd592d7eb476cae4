//! Frames as text on the wire: sealed for the panel, opened from it.

use shared::envelope::{NONCE_BYTES, OpenError, Sealer};
use shared::link::{Frame, MAX_FRAME_BYTES};

/// Seals and opens the frames of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Codec {
    sealer: Sealer,
    /// Our own panel seals everything, so a plain frame on such a connection is somebody else's. A peer panel may send
    /// plain JSON.
    plain_allowed: bool,
}

/// Why a text was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// Answered with `DecryptError`.
    #[error("{0}")]
    Sealed(#[from] OpenError),
    /// Only logged: without a request id there is nobody to answer.
    #[error("not a frame: {0}")]
    NotAFrame(String),
}

impl Codec {
    pub(crate) fn new(sealer: Sealer, plain_allowed: bool) -> Self {
        Self { sealer, plain_allowed }
    }

    /// The text to send, or `None` when it would exceed what the other side accepts.
    pub(crate) fn seal(&self, frame: &Frame, nonce: [u8; NONCE_BYTES], unix_seconds: i64) -> Option<String> {
        let plain = serde_json::to_string(frame).ok()?;
        let sealed = self.sealer.seal(&plain, nonce, unix_seconds);
        (sealed.len() <= MAX_FRAME_BYTES).then_some(sealed)
    }

    /// Understands a received text.
    pub(crate) fn open(&self, text: &str) -> Result<Frame, Unreadable> {
        let opened = match self.sealer.open(text) {
            Err(OpenError::NotAnEnvelope) if self.plain_allowed => None,
            result => Some(result?),
        };
        serde_json::from_str(opened.as_deref().unwrap_or(text))
            .map_err(|error| Unreadable::NotAFrame(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_frames_are_for_peers_only() {
        let frame = Frame::message("x", json!({"a": 1}));
        let plain = serde_json::to_string(&frame).unwrap();
        let [ours, peer] = [false, true].map(|allowed| Codec::new(Sealer::new("s"), allowed));
        let sealed = ours.seal(&frame, [1; NONCE_BYTES], 5).unwrap();
        assert!(sealed.contains(r#""timestamp":5"#));
        assert_eq!(ours.open(&sealed), Ok(frame.clone()));
        assert_eq!(peer.open(&sealed), Ok(frame.clone()));
        assert_eq!(peer.open(&plain), Ok(frame.clone()));
        assert_eq!(ours.open(&plain), Err(Unreadable::Sealed(OpenError::NotAnEnvelope)));
        let foreign = Codec::new(Sealer::new("other"), true).seal(&frame, [1; NONCE_BYTES], 5).unwrap();
        for codec in [ours, peer] {
            assert_eq!(codec.open(&foreign), Err(Unreadable::Sealed(OpenError::WrongSecret)));
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_not_sent() {
        let frame = Frame::message("x", json!("y".repeat(MAX_FRAME_BYTES)));
        assert_eq!(Codec::new(Sealer::new("s"), false).seal(&frame, [0; NONCE_BYTES], 0), None);
    }
}
