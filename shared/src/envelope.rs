//! The encrypted envelope around every frame between panel and agent, as the peer defines it.
//!
//! AES-256-GCM, key = SHA-256 of the node secret, 12 byte nonce, no associated data; on the wire
//! `{"encrypted":true,"data":"<base64 of nonce ‖ ciphertext ‖ tag>","timestamp":<number>}`.

use aes_gcm::aead::Aead as _;
use aes_gcm::{Aes256Gcm, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// Length of the nonce that [`Sealer::seal`] takes; it must never repeat under one secret, so it is random.
pub const NONCE_BYTES: usize = 12;

/// Seals and opens the frames of one node.
#[derive(Clone)]
pub struct Sealer {
    cipher: Aes256Gcm,
}

/// Why an envelope was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The text is not JSON with `encrypted: true`.
    #[error("not an envelope")]
    NotAnEnvelope,
    /// The data is not base64 of nonce, ciphertext and tag.
    #[error("the envelope is malformed")]
    Malformed,
    /// The tag does not fit: another secret, or changed on the way.
    #[error("the envelope was sealed with another secret")]
    WrongSecret,
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    encrypted: bool,
    data: String,
    #[serde(default)]
    timestamp: i64,
}

/// The key of a node's link: SHA-256 of its secret. A panel that stores this can speak with the agent, and yet nobody
/// who reads its database can log in as the agent.
pub fn link_key(secret: &str) -> [u8; 32] {
    sha2::Sha256::digest(secret.as_bytes()).into()
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer")
    }
}

impl Sealer {
    /// `secret` is the node secret's text.
    pub fn new(secret: &str) -> Self {
        Self::from_key(&link_key(secret))
    }

    /// From [`link_key`] of the secret: the panel keeps only that.
    pub fn from_key(key: &[u8; 32]) -> Self {
        Self { cipher: Aes256Gcm::new(key.into()) }
    }

    /// Seals `plaintext`. `timestamp` is informative only (panel: milliseconds, agent: seconds).
    pub fn seal(&self, plaintext: &str, nonce: [u8; NONCE_BYTES], timestamp: i64) -> String {
        // Encryption fails only above 64 GiB; frames are limited to megabytes.
        let sealed = self.cipher.encrypt(Nonce::from_slice(&nonce), plaintext.as_bytes()).unwrap_or_default();
        let mut bytes = nonce.to_vec();
        bytes.extend_from_slice(&sealed);
        let envelope = Envelope { encrypted: true, data: STANDARD.encode(bytes), timestamp };
        serde_json::to_string(&envelope).unwrap_or_default()
    }

    /// Opens an envelope and returns the text inside.
    pub fn open(&self, text: &str) -> Result<String, OpenError> {
        let envelope: Envelope = serde_json::from_str(text).map_err(|_| OpenError::NotAnEnvelope)?;
        if !envelope.encrypted {
            return Err(OpenError::NotAnEnvelope);
        }
        let bytes = STANDARD.decode(envelope.data).map_err(|_| OpenError::Malformed)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES).ok_or(OpenError::Malformed)?;
        let plain =
            self.cipher.decrypt(Nonce::from_slice(nonce), sealed).map_err(|_| OpenError::WrongSecret)?;
        String::from_utf8(plain).map_err(|_| OpenError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let sealer = Sealer::new("0123456789abcdef0123456789abcdef");
        let text = r#"{"type":"TcpPing"}"#;
        let envelope = sealer.seal(text, [7; NONCE_BYTES], 1);
        assert_eq!(sealer.open(&envelope).unwrap(), text);
        assert_eq!(Sealer::new("other").open(&envelope), Err(OpenError::WrongSecret));
        assert_eq!(sealer.open(text), Err(OpenError::NotAnEnvelope));
        assert_eq!(sealer.open("nonsense"), Err(OpenError::NotAnEnvelope));
        assert_eq!(sealer.open(r#"{"encrypted":true,"data":"AAAA"}"#), Err(OpenError::Malformed));
        assert_eq!(sealer.open(r#"{"encrypted":true,"data":"%"}"#), Err(OpenError::Malformed));
    }

    /// Computed independently with Python's `cryptography` 48 (AESGCM, SHA-256 of the secret).
    #[test]
    fn agrees_with_an_independent_implementation() {
        let sealer = Sealer::new("secret");
        let envelope = sealer.seal("hello", [0; NONCE_BYTES], 0);
        assert_eq!(envelope, VECTOR);
    }

    const VECTOR: &str =
        r#"{"encrypted":true,"data":"AAAAAAAAAAAAAAAAOaJcJEnpf7uu6YL3Xw6EWfrnmHWp","timestamp":0}"#;
}
