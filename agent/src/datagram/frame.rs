//! Datagrams on a stream, as the relay protocol carries them: LEN(2, big endian) and payload, one after another.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes before the payload.
const LEN_BYTES: usize = 2;
/// What is read at once while no larger frame is on its way; a TLS record holds as much.
const READ_BYTES: usize = 16 * 1024;

/// Appends a datagram. False, with nothing appended, if it is longer than its length field can say: 65,535 bytes.
pub fn push(out: &mut Vec<u8>, datagram: &[u8]) -> bool {
    let Ok(len) = u16::try_from(datagram.len()) else { return false };
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(datagram);
    true
}

/// The first frame of some bytes: its payload, and what follows. `None` if it is not complete.
pub fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<LEN_BYTES>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))
}

/// The payloads of all frames of some bytes.
pub fn all(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (datagram, following) = split(rest)?;
        rest = following;
        Some(datagram)
    })
}

/// Takes datagrams out of a stream, however its bytes are cut.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    /// Where the frames begin that have not been taken.
    start: usize,
}

impl FrameReader {
    /// With bytes that were read already.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, start: 0 }
    }

    /// The next datagram among the bytes that are there.
    pub fn take(&mut self) -> Option<&[u8]> {
        let (datagram, _) = split(&self.bytes[self.start..])?;
        self.start += LEN_BYTES + datagram.len();
        Some(datagram)
    }

    /// Waits for more bytes; false when the stream has ended. To be called when there is nothing to take. A stream that
    /// ends in the middle of a frame is an error ([`io::ErrorKind::UnexpectedEof`]). Cancelling loses nothing.
    pub async fn fill(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> io::Result<bool> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let wanted = match self.bytes.first_chunk::<LEN_BYTES>() {
            Some(len) => (LEN_BYTES + usize::from(u16::from_be_bytes(*len))).max(READ_BYTES),
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

    async fn read_all(mut stream: impl AsyncRead + Unpin) -> (Vec<Vec<u8>>, io::Result<()>) {
        let (mut reader, mut all) = (FrameReader::default(), Vec::new());
        loop {
            while let Some(datagram) = reader.take() {
                all.push(datagram.to_vec());
            }
            match reader.fill(&mut stream).await {
                Ok(true) => {}
                Ok(false) => return (all, Ok(())),
                Err(error) => return (all, Err(error)),
            }
        }
    }

    #[test]
    fn a_datagram_that_does_not_fit_its_length_is_refused() {
        let mut out = Vec::new();
        assert!(push(&mut out, &[7; 65_535]));
        assert!(!push(&mut out, &[7; 65_536]));
        assert_eq!((out.len(), &out[..3]), (65_537, &[0xff, 0xff, 7][..]));
    }

    #[tokio::test]
    async fn frames_are_found_however_the_bytes_are_cut() {
        let sent: Vec<Vec<u8>> = [0, 1, 64, 1400, 16_383, 65_535, 2].map(|len| vec![len as u8; len]).into();
        let mut bytes = Vec::new();
        assert!(sent.iter().all(|datagram| push(&mut bytes, datagram)));
        for piece in [1, 3, 1000, 70_000, usize::MAX] {
            let pieces = bytes.chunks(piece.min(bytes.len())).map(<[u8]>::to_vec);
            let mut script = tokio_test_stream(pieces.collect());
            assert_eq!(read_all(&mut script).await.0, sent, "in pieces of {piece}");
        }
    }

    /// A stream that gives one piece per read.
    fn tokio_test_stream(pieces: Vec<Vec<u8>>) -> impl AsyncRead + Unpin {
        let (mut writer, reader) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            for piece in pieces {
                tokio::io::AsyncWriteExt::write_all(&mut writer, &piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        reader
    }

    #[tokio::test]
    async fn a_stream_that_ends_within_a_frame_says_so() {
        for bytes in [&[0][..], &[0, 1], &[0, 2, 7], &[0, 1, 9, 0xff, 0xff, 1]] {
            let (_, end) = read_all(bytes).await;
            assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{bytes:?}");
        }
        let (all, end) = read_all(&[0, 1, 9, 0, 0][..]).await;
        assert_eq!(all, [vec![9], vec![]]);
        end.unwrap();
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut reader = FrameReader::new(bytes.clone());
            let mut taken = 0;
            while let Some(datagram) = reader.take() {
                taken += LEN_BYTES + datagram.len();
            }
            prop_assert!(taken <= bytes.len());
        }
    }
}
