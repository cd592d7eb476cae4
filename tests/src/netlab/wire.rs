//! What the lab reads of a packet: the IPv4 header, nothing behind it. Pure.

use std::net::Ipv4Addr;

use thiserror::Error;

/// Length of an IPv4 header without options, in bytes (RFC 791).
const MIN_HEADER: usize = 20;

/// The fields of an IPv4 header that routing needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ipv4Header {
    pub(crate) destination: Ipv4Addr,
    /// Header and payload together, in bytes.
    pub(crate) total_len: usize,
}

/// Why bytes are not a packet the lab carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Malformed {
    #[error("{0} bytes are too short for an IPv4 header")]
    Short(usize),
    #[error("IP version {0}, the lab carries only 4")]
    Version(u8),
    #[error("header says {header} of {total} bytes, {got} are there")]
    Length { header: usize, total: usize, got: usize },
}

/// Reads the header at the start of `packet`; the payload is not looked at.
pub(crate) fn parse_ipv4(packet: &[u8]) -> Result<Ipv4Header, Malformed> {
    // An IPv6 packet is longer than an IPv4 header, so the version is worth telling before the length.
    let Some(first) = packet.first() else { return Err(Malformed::Short(0)) };
    if first >> 4 != 4 {
        return Err(Malformed::Version(first >> 4));
    }
    if packet.len() < MIN_HEADER {
        return Err(Malformed::Short(packet.len()));
    }
    let header_len = usize::from(first & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    if header_len < MIN_HEADER || total_len < header_len || packet.len() < total_len {
        return Err(Malformed::Length { header: header_len, total: total_len, got: packet.len() });
    }
    let destination = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
    Ok(Ipv4Header { destination, total_len })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(total: u16, destination: [u8; 4]) -> Vec<u8> {
        let mut bytes = vec![0; usize::from(total)];
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&total.to_be_bytes());
        bytes[16..20].copy_from_slice(&destination);
        bytes
    }

    #[test]
    fn reads_a_header() {
        let header = parse_ipv4(&packet(60, [10, 66, 0, 7])).unwrap();
        assert_eq!(header, Ipv4Header { destination: Ipv4Addr::new(10, 66, 0, 7), total_len: 60 });
    }

    #[test]
    fn refuses_what_is_not_ipv4() {
        assert_eq!(parse_ipv4(&[]), Err(Malformed::Short(0)));
        assert_eq!(parse_ipv4(&[0x45; 19]), Err(Malformed::Short(19)));
        assert_eq!(parse_ipv4(&[0x60; 40]), Err(Malformed::Version(6)));
        let mut short_header = packet(20, [0; 4]);
        short_header[0] = 0x44;
        assert!(matches!(parse_ipv4(&short_header), Err(Malformed::Length { .. })));
        let mut cut_off = packet(60, [0; 4]);
        cut_off.truncate(59);
        assert!(matches!(parse_ipv4(&cut_off), Err(Malformed::Length { got: 59, .. })));
    }

    proptest! {
        #[test]
        fn never_panics_and_never_claims_more_than_is_there(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(header) = parse_ipv4(&bytes) {
                prop_assert!(header.total_len <= bytes.len());
                prop_assert!(header.total_len >= MIN_HEADER);
            }
        }
    }
}
