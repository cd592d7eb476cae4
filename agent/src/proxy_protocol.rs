//! HAProxy's PROXY protocol, versions 1 and 2: who the client is, said before its first byte.
//!
//! Parsing and building are `ppp`'s; here is how a header is taken off a connection without a byte too many.

use crate::metadata::{ConfigError, MetadataReader};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The metadata key, of services (receive) and handlers (send).
pub const KEY: &str = "proxyProtocol";
/// `PROXY UNKNOWN\r\n`: no header of either version is shorter.
const SHORTEST: usize = 15;
/// The longest header of version 1, as the protocol says.
const LONGEST_V1: usize = 107;
/// What stands before the payload of version 2, its length included.
const HEAD_V2: usize = SHORTEST + 1;
/// The longest payload of version 2 that is read: addresses need 216 at most, the rest is extensions.
const LONGEST_V2: usize = 2048;

/// Which form a header has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    One,
    /// Bytes.
    Two,
}

/// Both ends of a client's connection, as the first proxy saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The client.
    pub source: SocketAddr,
    /// What it connected to.
    pub destination: SocketAddr,
}

/// Why a connection does not begin with a header.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// Something else comes first.
    #[error("not a PROXY header")]
    Missing,
    /// It begins like one.
    #[error("malformed PROXY header: {0}")]
    Malformed(String),
    /// The connection failed or ended before it was complete.
    #[error("no PROXY header: {0}")]
    Io(#[from] io::Error),
}

/// Reads [`KEY`]: absent or 0 is off, else a version.
pub fn version(metadata: &MetadataReader<'_>, path: &str) -> Result<Option<Version>, ConfigError> {
    match metadata.number(KEY)? {
        None | Some(0) => Ok(None),
        Some(1) => Ok(Some(Version::One)),
        Some(2) => Ok(Some(Version::Two)),
        Some(other) => Err(ConfigError::new(
            format!("{path}.{KEY}"),
            format!("{other} is not a version, expected 1 or 2"),
        )),
    }
}

/// Takes a header of either version off a connection, and nothing beyond it. `None` when the header says that there is no
/// client behind it (health checks), or none with an address. The caller sets the deadline.
pub async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Option<Ends>, HeaderError> {
    let mut header = vec![0; SHORTEST];
    stream.read_exact(&mut header).await?;
    if header.starts_with(ppp::v2::PROTOCOL_PREFIX) {
        header.push(stream.read_u8().await?);
        let length = usize::from(u16::from_be_bytes([header[14], header[15]]));
        if length > LONGEST_V2 {
            return Err(HeaderError::Malformed(format!("{length} bytes are too long")));
        }
        header.resize(HEAD_V2 + length, 0);
        stream.read_exact(&mut header[HEAD_V2..]).await?;
        return binary(&header);
    }
    if !header.starts_with(b"PROXY ") {
        return Err(HeaderError::Missing);
    }
    // Byte by byte: what follows the line is not ours. It is there already, so this costs no waiting.
    while !header.ends_with(b"\r\n") {
        if header.len() == LONGEST_V1 {
            return Err(HeaderError::Malformed("the line is too long".to_owned()));
        }
        header.push(stream.read_u8().await?);
    }
    text(&header)
}

fn text(header: &[u8]) -> Result<Option<Ends>, HeaderError> {
    let parsed =
        ppp::v1::Header::try_from(header).map_err(|error| HeaderError::Malformed(error.to_string()))?;
    if parsed.header.len() != header.len() {
        return Err(HeaderError::Malformed("a line end within the line".to_owned()));
    }
    Ok(match parsed.addresses {
        ppp::v1::Addresses::Unknown => None,
        ppp::v1::Addresses::Tcp4(ends) => Some(Ends {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        }),
        ppp::v1::Addresses::Tcp6(ends) => Some(Ends {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        }),
    })
}

fn binary(header: &[u8]) -> Result<Option<Ends>, HeaderError> {
    use ppp::v2::{Addresses, Command, Header, Protocol};
    let parsed = Header::try_from(header).map_err(|error| HeaderError::Malformed(error.to_string()))?;
    if parsed.command == Command::Local {
        return Ok(None);
    }
    if parsed.protocol == Protocol::Datagram {
        return Err(HeaderError::Malformed("it is about datagrams".to_owned()));
    }
    Ok(match parsed.addresses {
        Addresses::Unspecified | Addresses::Unix(_) => None,
        Addresses::IPv4(ends) => Some(Ends {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        }),
        Addresses::IPv6(ends) => Some(Ends {
            source: (ends.source_address, ends.source_port).into(),
            destination: (ends.destination_address, ends.destination_port).into(),
        }),
    })
}

/// The header that tells a target about a client who sends datagrams, as a datagram of its own. Only version 2 has words
/// for that.
pub fn datagram_header(ends: Ends) -> io::Result<Vec<u8>> {
    binary_header(ppp::v2::Protocol::Datagram, of_one_family(ends))
}

/// The header that tells a target about a client.
pub fn header(version: Version, ends: Ends) -> io::Result<Vec<u8>> {
    let ends = of_one_family(ends);
    match version {
        Version::One => Ok(ppp::v1::Addresses::from(ends).to_string().into_bytes()),
        Version::Two => binary_header(ppp::v2::Protocol::Stream, ends),
    }
}

fn binary_header(protocol: ppp::v2::Protocol, ends: (SocketAddr, SocketAddr)) -> io::Result<Vec<u8>> {
    let command = ppp::v2::Version::Two | ppp::v2::Command::Proxy;
    ppp::v2::Builder::with_addresses(command, protocol, ends).build()
}

/// A header has one family.
fn of_one_family(ends: Ends) -> (SocketAddr, SocketAddr) {
    match (plain(ends.source), plain(ends.destination)) {
        (v4 @ SocketAddr::V4(_), v6 @ SocketAddr::V6(_)) => (mapped(v4), v6),
        (v6 @ SocketAddr::V6(_), v4 @ SocketAddr::V4(_)) => (v6, mapped(v4)),
        same => same,
    }
}

/// An IPv4 client of a listener for both families is an IPv4 client.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn mapped(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) => IpAddr::V6(ip.to_ipv6_mapped()),
        v6 @ IpAddr::V6(_) => v6,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(source: &str, destination: &str) -> Ends {
        Ends { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
    }

    /// Reads from memory; what is left over, too.
    fn take(mut bytes: &[u8]) -> (Result<Option<Ends>, HeaderError>, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome = runtime.block_on(read(&mut bytes));
        (outcome, bytes.to_vec())
    }

    fn v2(command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
        let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
        header.extend([command, family]);
        header.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        header.extend(payload);
        header
    }

    const V4: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 2, 0x30, 0x39, 0x01, 0xbb];

    #[test]
    fn headers_are_taken_off_and_nothing_else() {
        let v4 = ends("192.0.2.1:12345", "198.51.100.2:443");
        let mut v6_payload = vec![0; 36];
        (v6_payload[15], v6_payload[31], v6_payload[33], v6_payload[35]) = (1, 2, 80, 90);
        let mut extended = V4.to_vec();
        extended.extend([0x04, 0, 3, 1, 2, 3]);
        let cases = [
            (b"PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\n".to_vec(), Some(v4)),
            (b"PROXY TCP6 ::1 ::2 80 90\r\n".to_vec(), Some(ends("[::1]:80", "[::2]:90"))),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n".to_vec(), None),
            (v2(0x21, 0x11, &V4), Some(v4)),
            (v2(0x21, 0x11, &extended), Some(v4)),
            (v2(0x21, 0x21, &v6_payload), Some(ends("[::1]:80", "[::2]:90"))),
            (v2(0x20, 0x00, &[]), None),
            (v2(0x20, 0x11, &V4), None),
            (v2(0x21, 0x00, &[]), None),
            (v2(0x21, 0x31, &[7; 216]), None),
        ];
        for (header, expected) in cases {
            let shown = String::from_utf8_lossy(&header).into_owned();
            for payload in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", b"\r\n"] {
                let (outcome, rest) = take(&[&header, payload].concat());
                assert_eq!(outcome.unwrap(), expected, "{shown}");
                assert_eq!(rest, payload, "{shown}");
            }
        }
    }

    #[test]
    fn garbage_is_refused() {
        let long = format!("PROXY TCP4 192.0.2.1 198.51.100.2 12345 443{}\r\n", " ".repeat(80));
        let malformed: Vec<Vec<u8>> = vec![
            b"PROXY TCP4 192.0.2.1 198.51.100.2 12345 70000\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 198.51.100.2 012345 443\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.256 198.51.100.2 12345 443\r\n".to_vec(),
            b"PROXY TCP4 ::1 ::2 12345 443\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 198.51.100.2 12345\r\n".to_vec(),
            b"PROXY UDP4 192.0.2.1 198.51.100.2 12345 443\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1\r198.51.100.2 12345 443\r\n".to_vec(),
            b"PROXY TCP4 \xff\xfe.0.2.1 198.51.100.2 12345 443\r\n".to_vec(),
            long.into_bytes(),
            v2(0x31, 0x11, &V4),
            v2(0x22, 0x11, &V4),
            v2(0x21, 0x12, &V4),
            v2(0x21, 0x41, &V4),
            v2(0x21, 0x11, &V4[..11]),
            v2(0x21, 0x21, &V4),
            v2(0x21, 0x11, &[0; LONGEST_V2 + 1]),
        ];
        for header in malformed {
            let (outcome, _) = take(&header);
            let shown = String::from_utf8_lossy(&header[..header.len().min(60)]).into_owned();
            assert!(matches!(outcome, Err(HeaderError::Malformed(_))), "{shown}: {outcome:?}");
        }
        for missing in ["GET / HTTP/1.1\r\n\r\n", "proxy TCP4 192.0.2.1 \r\n", "PROXY\tTCP4 192.0.2.1 \r\n"] {
            assert!(matches!(take(missing.as_bytes()).0, Err(HeaderError::Missing)), "{missing}");
        }
        for cut in ["", "PROXY ", "PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r"] {
            assert!(matches!(take(cut.as_bytes()).0, Err(HeaderError::Io(_))), "{cut}");
        }
    }

    #[test]
    fn headers_have_one_family() {
        let text = |source: &str, destination: &str| {
            String::from_utf8(header(Version::One, ends(source, destination)).unwrap()).unwrap()
        };
        assert_eq!(text("192.0.2.1:5", "127.0.0.1:6"), "PROXY TCP4 192.0.2.1 127.0.0.1 5 6\r\n");
        assert_eq!(text("[::ffff:192.0.2.1]:5", "127.0.0.1:6"), "PROXY TCP4 192.0.2.1 127.0.0.1 5 6\r\n");
        assert_eq!(text("[::1]:5", "[::2]:6"), "PROXY TCP6 ::1 ::2 5 6\r\n");
        assert_eq!(text("[::1]:5", "192.0.2.1:6"), "PROXY TCP6 ::1 ::ffff:192.0.2.1 5 6\r\n");
        let bytes = header(Version::Two, ends("192.0.2.1:12345", "198.51.100.2:443")).unwrap();
        assert_eq!(bytes, v2(0x21, 0x11, &V4));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(source: SocketAddr, destination: SocketAddr, two: bool) {
            let ends = Ends { source, destination };
            let version = if two { Version::Two } else { Version::One };
            let (outcome, rest) = take(&header(version, ends).unwrap());
            let back = outcome.unwrap().unwrap();
            prop_assert!(rest.is_empty());
            prop_assert_eq!(plain(back.source), plain(source));
            prop_assert_eq!(plain(back.destination), plain(destination));
        }

        #[test]
        fn no_bytes_make_it_panic(start in 0usize..3, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let prefix = [&b""[..], b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"][start];
            let _ = take(&[prefix, &bytes].concat());
        }
    }
}
