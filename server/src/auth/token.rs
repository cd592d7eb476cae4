//! Session tokens and node secrets: random, handed out once, kept as hashes only.

use crate::clock::random_bytes;
use sha2::{Digest as _, Sha256};

/// How long a session lasts, in milliseconds: a week, so that an operator logs in once a week and a lost device stops
/// being one soon.
pub const SESSION_MS: i64 = 7 * 24 * 3600 * 1000;

/// A session token: 256 random bits in hex.
pub fn new_token() -> String {
    hex::encode(random_bytes::<32>())
}

/// A node secret: 128 random bits in hex.
pub fn new_node_secret() -> String {
    hex::encode(random_bytes::<16>())
}

/// A password for people to copy: 20 letters and digits, about 119 bits.
pub fn new_password() -> String {
    // Without characters that look alike. The small bias of the remainder costs less than a bit.
    const ALPHABET: &[u8] = b"abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    random_bytes::<20>()
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect()
}

/// What is stored of a token. A plain hash is enough: the token has more entropy than anyone can try.
pub fn hash(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_difference() {
        assert_eq!(new_token().len(), 64);
        assert_eq!(new_node_secret().len(), 32);
        assert_eq!(new_password().len(), 20);
        assert_ne!(new_token(), new_token());
        assert_ne!(hash("a"), hash("b"));
    }
}
