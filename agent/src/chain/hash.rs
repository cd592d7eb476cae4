//! What ties a client to a node: GOST's CRC-32 keys, and hashing that moves only whom it must.

use std::fmt::Write as _;
use std::net::IpAddr;

/// What the hash strategies know a client by. Cheap to copy; the checksum is made when it is needed.
#[derive(Clone, Copy, Debug)]
pub struct ClientKey {
    ip: IpAddr,
    named: Option<u32>,
}

impl ClientKey {
    /// By a text instead of the address: a user, or the target it asks for.
    pub fn named(self, text: &str) -> Self {
        Self { named: Some(crc32fast::hash(text.as_bytes())), ..self }
    }

    /// The address of the client.
    pub fn ip(self) -> IpAddr {
        self.ip
    }

    /// CRC-32 (IEEE) of the text, or of the address as text, without port: GOST's hash sources.
    pub fn checksum(self) -> u32 {
        self.named.unwrap_or_else(|| client_hash(self.ip))
    }
}

impl From<IpAddr> for ClientKey {
    fn from(ip: IpAddr) -> Self {
        Self { ip, named: None }
    }
}

/// CRC-32 (IEEE) of an address as text.
pub fn client_hash(client: IpAddr) -> u32 {
    struct Checksum(crc32fast::Hasher);
    impl std::fmt::Write for Checksum {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut checksum = Checksum(crc32fast::Hasher::new());
    // Writing into a checksum cannot fail, and an address is always writable.
    let _ = write!(checksum, "{}", client.to_canonical());
    checksum.0.finalize()
}

/// How much a client wants a node: the usable node with the highest value is its own. Since each node's value stands for
/// itself, one that goes loses its own clients only, and one that comes takes its share from all others alike.
pub fn affinity(client: u32, node: u32) -> u64 {
    // The finalizer of splitmix64, which makes neighbouring inputs unrelated.
    let mut x = (u64::from(client) << 32 | u64::from(node)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gosts_checksums() {
        let address = |text: &str| ClientKey::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(address("127.0.0.1").checksum(), 3_619_153_832);
        assert_eq!(address("10.0.0.1").checksum(), 654_229_907);
        assert_eq!(address("::ffff:10.0.0.1").checksum(), 654_229_907);
        assert_eq!(address("10.0.0.1").named("test-client").checksum(), 728_416_889);
    }
}
