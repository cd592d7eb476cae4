//! One stream of a session.

use super::state::{Read, Shared};
use crate::stream::Layer;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// One stream of a session. Dropped before both directions have ended, it is aborted.
pub(super) struct MuxStream {
    shared: Arc<Shared>,
    id: u32,
}

impl MuxStream {
    /// `id` must be the number of a stream that nobody holds.
    pub(super) fn new(shared: Arc<Shared>, id: u32) -> Self {
        Self { shared, id }
    }
}

impl Drop for MuxStream {
    fn drop(&mut self) {
        self.shared.with(|state, wakes| state.release(self.id, wakes));
    }
}

impl Layer for MuxStream {
    /// The other streams of the session go on. A peer of another make takes it for an end: the protocol has no other word.
    fn abort(self: Box<Self>) {
        self.shared.with(|state, wakes| state.abort(self.id, wakes));
    }

    fn own_tcp(&self) -> Option<&TcpStream> {
        None
    }
}

impl AsyncRead for MuxStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.shared.with(|state, wakes| match state.read(self.id, buf, &self.shared.options, wakes) {
            Ok(Read::Some | Read::End) => Poll::Ready(Ok(())),
            Ok(Read::Nothing) => {
                if let Some(channel) = state.channel(self.id) {
                    channel.reader = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        })
    }
}

impl AsyncWrite for MuxStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.shared.with(|state, wakes| match state.write(self.id, buf, wakes) {
            Ok(0) if !buf.is_empty() => {
                if let Some(channel) = state.channel(self.id) {
                    channel.writer = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            outcome => Poll::Ready(outcome),
        })
    }

    /// The session sends what it has as soon as the connection takes it; there is nothing to add.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (side, now) = (self.shared.side, self.shared.clock.instant());
        Poll::Ready(self.shared.with(|state, wakes| state.finish(self.id, side, now, wakes)))
    }
}
