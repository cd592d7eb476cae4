//! Reads a head from a connection, and nothing beyond it: what follows in the same segment is payload.

use super::head::MAX_HEAD;
use crate::stream::Stream;
use std::io;
use tokio::io::AsyncReadExt as _;

/// Bytes looked at in one go.
const WINDOW: usize = 2048;

/// Why there is no head.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It does not begin like one.
    #[error("not HTTP")]
    NotHttp,
    /// It does not end within the bytes that are taken.
    #[error("the head is too large")]
    TooLarge,
    /// The connection failed, or ended before the head did.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Whose head is read.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A client's. Its first byte is the first of a method.
    Request,
    /// A server's.
    Response,
}

impl Kind {
    /// Whether a head may begin so. Peers that speak something else would otherwise be waited for.
    fn may_begin_with(self, bytes: &[u8]) -> bool {
        const RESPONSE: &[u8] = b"HTTP/1.";
        match self {
            Kind::Request => {
                bytes.first().is_none_or(|byte| byte.is_ascii_alphabetic() || b"\r\n".contains(byte))
            }
            Kind::Response => bytes.iter().zip(RESPONSE).all(|(a, b)| a == b),
        }
    }
}

/// Finds the end of a head: the first empty line that something stands before.
#[derive(Default)]
struct End {
    begun: bool,
    in_line: bool,
}

impl End {
    /// Where the head ends in the bytes that come next, if it does.
    fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' if self.begun && !self.in_line => return Some(at + 1),
                b'\n' => self.in_line = false,
                b'\r' => {}
                _ => (self.begun, self.in_line) = (true, true),
            }
        }
        None
    }
}

/// Reads a head. `first` was read already. The caller sets the deadline.
pub async fn head(stream: &mut Stream, kind: Kind, first: Option<u8>) -> Result<Vec<u8>, ReadError> {
    let mut head: Vec<u8> = first.into_iter().collect();
    let mut end = End::default();
    end.find(&head);
    loop {
        let before = head.len();
        let found = match stream {
            // The kernel lets us look before we take.
            Stream::Tcp(tcp) => {
                head.resize(before + WINDOW, 0);
                let there = tcp.peek(&mut head[before..]).await?;
                head.truncate(before + there);
                let found = end.find(&head[before..]);
                head.truncate(before + found.unwrap_or(there));
                tcp.read_exact(&mut head[before..]).await?;
                found
            }
            // One by one; the layer has a buffer.
            Stream::Layered(layer) => {
                layer.take(1).read_buf(&mut head).await?;
                end.find(&head[before..])
            }
        };
        if head.len() == before {
            return Err(ReadError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        if !kind.may_begin_with(&head) {
            return Err(ReadError::NotHttp);
        }
        if head.len() > MAX_HEAD {
            return Err(ReadError::TooLarge);
        }
        if found.is_some() {
            return Ok(head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    async fn pair() -> (TcpStream, Stream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let writer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (writer, Stream::Tcp(listener.accept().await.unwrap().0))
    }

    #[tokio::test]
    async fn nothing_is_taken_beyond_the_head() {
        let heads: [&[u8]; 4] = [
            b"GET / HTTP/1.1\r\na: b\r\n\r\n",
            b"GET / HTTP/1.1\na: b\n\n",
            b"\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            &[b"GET / HTTP/1.1\r\na: ".as_slice(), &[b'b'; 3 * WINDOW], b"\r\n\r\n"].concat(),
        ];
        for expected in heads {
            let (mut writer, mut stream) = pair().await;
            writer.write_all(expected).await.unwrap();
            writer.write_all(b"payload\n\n").await.unwrap();
            writer.shutdown().await.unwrap();
            assert_eq!(head(&mut stream, Kind::Request, None).await.unwrap(), expected);
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, b"payload\n\n");
        }
    }

    #[tokio::test]
    async fn what_is_no_head_is_known_before_its_end() {
        let cases: [(Kind, &[u8]); 4] = [
            // TLS, and something else.
            (Kind::Request, b"\x16\x03\x01"),
            (Kind::Request, b"\x7f\x01"),
            (Kind::Response, b"SSH-2.0-OpenSSH_9.2\r\n"),
            (Kind::Response, b"HTTP/2 200\r\n"),
        ];
        for (kind, bytes) in cases {
            let (mut writer, mut stream) = pair().await;
            writer.write_all(bytes).await.unwrap();
            let error = head(&mut stream, kind, None).await.unwrap_err();
            assert!(matches!(error, ReadError::NotHttp), "{error}");
        }
    }

    #[tokio::test]
    async fn a_head_has_a_largest_size_and_an_end() {
        let (mut writer, mut stream) = pair().await;
        let writing = tokio::spawn(async move {
            // Fails when the reader has had enough.
            let _ = writer.write_all(&vec![b'a'; 2 * MAX_HEAD]).await;
        });
        let error = head(&mut stream, Kind::Request, None).await.unwrap_err();
        assert!(matches!(error, ReadError::TooLarge), "{error}");
        drop(stream);
        writing.await.unwrap();

        let (mut writer, mut stream) = pair().await;
        writer.write_all(b"ET / HTTP/1.1\r\n").await.unwrap();
        writer.shutdown().await.unwrap();
        let error = head(&mut stream, Kind::Request, Some(b'G')).await.unwrap_err();
        assert!(matches!(error, ReadError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof));
    }
}
