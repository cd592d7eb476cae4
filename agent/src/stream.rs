//! Connections of any kind, plain or layered.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A protocol on top of a connection.
pub trait Layer: AsyncRead + AsyncWrite + Send + Unpin {
    /// Ends the connection in such a way that the peer does not take what it got for the whole, as far as the protocol
    /// can say that. Others that share the same TCP connection go on.
    fn abort(self: Box<Self>);

    /// The TCP connection at the bottom, unless others share it.
    fn own_tcp(&self) -> Option<&TcpStream>;
}

/// A connection. Plain TCP is kept apart, since the kernel can do more for it.
pub enum Stream {
    /// Nothing on top.
    Tcp(TcpStream),
    /// Something on top.
    Layered(Box<dyn Layer>),
}

impl Stream {
    /// Ends the connection so that the peer does not take what it got for the whole: TCP, and what has one of its own,
    /// by a reset; a multiplexed stream as its protocol allows.
    pub fn abort(self) {
        match self {
            Stream::Tcp(tcp) => crate::net::reset_on_close(&tcp),
            Stream::Layered(layer) => layer.abort(),
        }
    }

    /// It may last: from now on it is noticed when the peer is gone without a word. What is shared does that for itself.
    pub fn keep_alive(&self) {
        self.own_tcp().into_iter().for_each(crate::net::keep_alive);
    }

    /// The TCP connection at the bottom, unless others share it.
    pub fn own_tcp(&self) -> Option<&TcpStream> {
        match self {
            Stream::Tcp(tcp) => Some(tcp),
            Stream::Layered(layer) => layer.own_tcp(),
        }
    }
}

macro_rules! inner {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Tcp($inner) => {
                let $inner = Pin::new($inner);
                $call
            }
            Stream::Layered($inner) => {
                let $inner = Pin::new($inner);
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        inner!(self, inner => inner.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        inner!(self, inner => inner.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, inner => inner.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, inner => inner.poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inner!(self, inner => inner.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Tcp(tcp) => tcp.is_write_vectored(),
            Stream::Layered(layer) => layer.is_write_vectored(),
        }
    }
}
