//! Datagrams of many targets on one stream: each with its address, as SOCKS5 writes it over UDP.
//!
//! ```text
//! RSV(2) length of the payload   FRAG(1)=ff   ATYP(1) ADDRESS PORT(2)   payload
//! ```

use super::wire::{Bytes, WireError, push_address};
use shared::address::HostPort;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Says that the length is in the first two bytes. Peers send it and do not look at it.
const FRAG: u8 = 0xff;
/// RSV, FRAG, and the longest address: a name of 255 bytes.
const LONGEST_HEAD: usize = 3 + 1 + 1 + 255 + 2;
/// What is read at once while no larger frame is on its way; a TLS record holds as much.
const READ_BYTES: usize = 16 * 1024;

/// What comes before the datagrams of one source.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    bytes: [u8; LONGEST_HEAD],
    len: usize,
}

impl Head {
    /// For datagrams that come from `source`.
    pub fn new(source: &HostPort) -> Self {
        let mut head = vec![0, 0, FRAG];
        push_address(&mut head, source);
        let mut bytes = [0; LONGEST_HEAD];
        let len = head.len().min(LONGEST_HEAD);
        bytes[..len].copy_from_slice(&head[..len]);
        Self { bytes, len }
    }

    /// For a payload of this length. `None` if it is too long, or empty: peers take a length of zero for one that is not
    /// given.
    pub fn of(mut self, payload: usize) -> Option<Self> {
        let len = u16::try_from(payload).ok().filter(|len| *len > 0)?;
        self.bytes[..2].copy_from_slice(&len.to_be_bytes());
        Some(self)
    }

    /// As it is written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The first frame of some bytes: its address as it is written, its payload, and what follows. `None` if it is not
/// complete.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let mut rest = Bytes(bytes);
    let len = rest.number().ok()?;
    rest.byte().ok()?;
    let at = rest.0;
    let address_len = match *at.first()? {
        1 => 1 + 4 + 2,
        4 => 1 + 16 + 2,
        3 => 1 + 1 + usize::from(*at.get(1)?) + 2,
        // A kind that does not exist: the end, as soon as it is looked at.
        _ => return Some((&at[..1], &[], &at[1..])),
    };
    let address = rest.take(address_len).ok()?;
    let payload = rest.take(usize::from(len)).ok()?;
    Some((address, payload, rest.0))
}

/// Takes addressed datagrams out of a stream.
#[derive(Debug, Default)]
pub struct TunnelReader {
    bytes: Vec<u8>,
    /// Where the frames begin that have not been taken.
    start: usize,
    /// The address of the last one, as written and as understood: flows repeat themselves.
    last: Option<(Vec<u8>, HostPort)>,
}

impl TunnelReader {
    /// With bytes that were read already.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, start: 0, last: None }
    }

    /// The next datagram among the bytes that are there, and where it shall go. After an error the stream makes no
    /// sense any more.
    pub fn take(&mut self) -> Result<Option<(&HostPort, &[u8])>, WireError> {
        let rest = &self.bytes[self.start..];
        let Some((address, payload, following)) = split(rest) else { return Ok(None) };
        self.start += rest.len() - following.len();
        if self.last.as_ref().is_none_or(|(written, _)| written != address) {
            let target = Bytes(address).address()?.ok_or(WireError::HostName)?;
            self.last = Some((address.to_vec(), target));
        }
        Ok(self.last.as_ref().map(|(_, target)| (target, payload)))
    }

    /// Waits for more bytes; false when the stream has ended. To be called when there is nothing to take. A stream that
    /// ends in the middle of a frame is an error ([`io::ErrorKind::UnexpectedEof`]). Cancelling loses nothing.
    pub async fn fill(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> io::Result<bool> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let wanted = match self.bytes.first_chunk() {
            Some(len) => (LONGEST_HEAD + usize::from(u16::from_be_bytes(*len))).max(READ_BYTES),
            None => READ_BYTES,
        };
        self.bytes.reserve_exact(wanted.saturating_sub(self.bytes.len()));
        let read = stream.read_buf(&mut self.bytes).await?;
        if read == 0 && !self.bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "ended within a datagram"));
        }
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(text: &str) -> HostPort {
        HostPort::parse(text).unwrap()
    }

    #[tokio::test]
    async fn datagrams_and_their_addresses_are_found_however_the_bytes_are_cut() {
        let head = |source, payload| Head::new(&target(source)).of(payload).unwrap().as_bytes().to_vec();
        let mut bytes = head("127.0.0.1:53", 3);
        assert_eq!(bytes, [0, 3, 0xff, 1, 127, 0, 0, 1, 0, 53]);
        bytes.extend(b"one");
        bytes.extend(head("[::1]:54", 70));
        bytes.extend([7; 70]);
        assert_eq!(head("localhost:55", 2), b"\0\x02\xff\x03\x09localhost\0\x37");
        // GOST's own clients write 0 for the third byte when they speak over UDP.
        bytes.extend(b"\0\x02\0\x03\x09localhost\0\x37ab");
        for piece in [1, 7, 1000] {
            let (mut writer, mut stream) = tokio::io::duplex(piece);
            let sent = bytes.clone();
            tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut writer, &sent).await });
            let (mut reader, mut seen) = (TunnelReader::default(), Vec::new());
            loop {
                while let Some((target, payload)) = reader.take().unwrap() {
                    seen.push((target.clone(), payload.to_vec()));
                }
                if !reader.fill(&mut stream).await.unwrap() {
                    break;
                }
            }
            let expected = [
                (target("127.0.0.1:53"), b"one".to_vec()),
                (target("[::1]:54"), vec![7; 70]),
                (target("localhost:55"), b"ab".to_vec()),
            ];
            assert_eq!(seen, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        let take = |bytes: &[u8]| TunnelReader::new(bytes.to_vec()).take().map(|taken| taken.is_some());
        assert_eq!(take(b"\0\0\0\x02"), Err(WireError::AddressType(2)));
        assert_eq!(take(b"\0\0\0\x03\0\0\x01"), Err(WireError::HostName));
        assert_eq!(take(b"\0\0\0\x03\x01\n\0\x01"), Err(WireError::HostName));
        assert_eq!(take(b"\0\0\0\x03\x01"), Ok(false));
        let head = Head::new(&target("127.0.0.1:1"));
        assert!(head.of(65_535).is_some() && head.of(65_536).is_none() && head.of(0).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut reader = TunnelReader::new(bytes);
            while let Ok(Some(_)) = reader.take() {}
        }
    }
}
