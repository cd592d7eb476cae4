//! The client's side of the relay protocol.

use super::wire::{HEADER_LEN, Status, WireError, connect_request, header};
use crate::stream::{Layer, Stream};
use shared::address::HostPort;
use shared::gost::Auth;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;

/// Why a relay server did not give a connection.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// It answered so.
    #[error("answered: {0}")]
    Status(Status),
    /// Its answer is no relay answer.
    #[error("not a relay peer: {0}")]
    Wire(#[from] WireError),
    /// The connection to it failed, or it did not answer in time.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Told once, when the answer of a server is known that was not waited for.
pub type Verdict = Box<dyn FnOnce(Result<(), &RelayError>) + Send>;

/// A relay connection whose answer has not been read yet.
///
/// As a stream it passes payload on in both directions and reads the answer from the head of the returning bytes, as is
/// necessary for servers that hold their answer until the target speaks.
pub struct Unanswered {
    stream: Stream,
    header: [u8; HEADER_LEN],
    read: usize,
    /// Bytes of features still to skip, once the header is complete.
    features: Option<usize>,
    verdict: Option<Verdict>,
}

impl Unanswered {
    /// Sends the request.
    pub async fn ask(stream: Stream, target: &HostPort, auth: Option<&Auth>) -> io::Result<Self> {
        Self::send(stream, &connect_request(Some(target), auth)).await
    }

    /// Sends a request that is encoded already, with what shall follow it at once.
    pub async fn send(mut stream: Stream, request: &[u8]) -> io::Result<Self> {
        stream.write_all(request).await?;
        stream.flush().await?;
        Ok(Self { stream, header: [0; HEADER_LEN], read: 0, features: None, verdict: None })
    }

    /// Waits for the answer. Cancelling loses nothing.
    pub async fn answer(&mut self) -> Result<(), RelayError> {
        std::future::poll_fn(|cx| self.poll_answer(cx)).await
    }

    /// The bare connection. Only after [`Unanswered::answer`] has succeeded; before, the answer would be payload.
    pub fn into_answered(self) -> Stream {
        self.stream
    }

    /// Goes on without the answer, which is read from the head of the payload; `verdict` is told what it was.
    pub fn into_stream(mut self, verdict: Option<Verdict>) -> Stream {
        self.verdict = verdict;
        Stream::Layered(Box::new(self))
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RelayError>> {
        while self.features != Some(0) {
            // Never reads beyond the answer: what follows is payload.
            let mut scratch = [0; 512];
            let into = match self.features {
                None => &mut self.header[self.read..],
                Some(left) => &mut scratch[..left.min(512)],
            };
            let mut buf = ReadBuf::new(into);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf))?;
            let read = buf.filled().len();
            if read == 0 {
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, "closed without an answer");
                return Poll::Ready(Err(error.into()));
            }
            match &mut self.features {
                Some(left) => *left -= read,
                None => {
                    self.read += read;
                    if self.read == HEADER_LEN {
                        let (code, features) = header(self.header)?;
                        match Status::from_code(code) {
                            Status::Ok => self.features = Some(features),
                            status => return Poll::Ready(Err(RelayError::Status(status))),
                        }
                    }
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Layer for Unanswered {
    fn abort(self: Box<Self>) {
        self.stream.abort();
    }

    fn own_tcp(&self) -> Option<&TcpStream> {
        self.stream.own_tcp()
    }
}

impl AsyncRead for Unanswered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.features != Some(0) {
            let answer = ready!(self.poll_answer(cx));
            if let Some(verdict) = self.verdict.take() {
                verdict(answer.as_ref().map(|_| ()));
            }
            answer.map_err(io::Error::other)?;
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Unanswered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
