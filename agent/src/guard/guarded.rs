//! A client's connection whose first bytes are looked at before anybody gets them.

use super::blocked::Blocked;
use super::recognise::{Opening, Protocol, opening};
use crate::stream::{Layer, Stream};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

/// How long first bytes are held back that may be the beginning of something. The rest of one message follows sooner,
/// unless it was lost on its way. Whoever is slower is looked at as it goes on, and cut off then.
const PATIENCE: Duration = Duration::from_millis(500);
/// More than ever are unclear.
const MOST: usize = 512;

/// Watches over one connection. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Guard {
    blocked: Blocked,
    caught: Arc<OnceLock<Protocol>>,
    stop: CancellationToken,
}

impl Guard {
    /// `None` if nothing is blocked. `stop` is what ends the connection otherwise.
    pub fn new(blocked: Blocked, stop: &CancellationToken) -> Option<Self> {
        let guard = || Self { blocked, caught: Arc::default(), stop: stop.child_token() };
        (!blocked.is_empty()).then(guard)
    }

    /// What ends the connection.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// What the client has spoken that is blocked.
    pub fn caught(&self) -> Option<Protocol> {
        self.caught.get().copied()
    }

    /// The same connection, watched.
    pub fn around(&self, stream: Stream) -> Stream {
        let first = First { bytes: Vec::new(), given: 0, is_clear: false, patience: None, waited: false };
        Stream::Layered(Box::new(Guarded { stream: Some(stream), guard: self.clone(), first: Some(first) }))
    }
}

struct Guarded {
    /// `None` once the client is cut off.
    stream: Option<Stream>,
    guard: Guard,
    /// `None` once it is clear that nothing is spoken that is blocked.
    first: Option<First>,
}

/// The first bytes.
struct First {
    bytes: Vec<u8>,
    /// How many of them somebody has read.
    given: usize,
    /// Nothing of what is blocked begins so.
    is_clear: bool,
    patience: Option<Pin<Box<Sleep>>>,
    /// No patience is left.
    waited: bool,
}

impl Guarded {
    fn poll_first(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (Some(stream), Some(first)) = (&mut self.stream, &mut self.first) else {
            return Poll::Ready(Ok(()));
        };
        loop {
            let rest = &first.bytes[first.given..];
            if !rest.is_empty() && (first.is_clear || first.waited) {
                let count = rest.len().min(buf.remaining());
                buf.put_slice(&rest[..count]);
                first.given += count;
                return Poll::Ready(Ok(()));
            }
            if first.is_clear {
                self.first = None;
                return Poll::Ready(Ok(()));
            }
            let mut space = [0; MOST];
            let mut more = ReadBuf::new(&mut space[first.bytes.len()..]);
            if Pin::new(&mut *stream).poll_read(cx, &mut more)?.is_pending() {
                let Some(patience) = first.patience.as_mut().filter(|_| first.given < first.bytes.len())
                else {
                    return Poll::Pending;
                };
                ready!(patience.as_mut().poll(cx));
                first.waited = true;
                continue;
            }
            if more.filled().is_empty() {
                // It says no more than that.
                first.is_clear = true;
                continue;
            }
            first.bytes.extend_from_slice(more.filled());
            match opening(&first.bytes, self.guard.blocked) {
                Opening::Unclear if first.bytes.len() < MOST => {
                    first.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep(PATIENCE)));
                }
                Opening::Free | Opening::Unclear => first.is_clear = true,
                Opening::Blocked(protocol) => {
                    let _ = self.guard.caught.set(protocol);
                    if let Some(stream) = self.stream.take() {
                        stream.abort();
                    }
                    self.guard.stop.cancel();
                    return Poll::Pending;
                }
            }
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut Stream>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl AsyncRead for Guarded {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.stream.is_none() {
            // Whoever reads ends with the guard's token.
            return Poll::Pending;
        }
        if this.first.is_some() {
            let before = buf.filled().len();
            ready!(this.poll_first(cx, buf))?;
            if this.first.is_some() || buf.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
        this.stream()?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().stream()?.poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream()?.poll_shutdown(cx)
    }
}

impl Layer for Guarded {
    fn abort(self: Box<Self>) {
        if let Some(stream) = self.stream {
            stream.abort();
        }
    }

    fn own_tcp(&self) -> Option<&TcpStream> {
        self.stream.as_ref().and_then(Stream::own_tcp)
    }
}

#[cfg(test)]
#[path = "guarded_tests.rs"]
mod tests;
