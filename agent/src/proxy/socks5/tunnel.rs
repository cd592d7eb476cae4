//! Datagrams for one target on a SOCKS5 connection, as GOST carries them: its own command 0xf3, after which each has its
//! address before it (see [`crate::relay::tunnel`]).
//!
//! Everything else here knows datagrams on streams by a length alone (see [`crate::datagram::frame`]), which is the first
//! thing of both kinds of frames. So on the way out an address is put behind each length, and on the way back the answers
//! of this target are left.

use crate::datagram::frame;
use crate::relay::tunnel::{Head, TunnelReader};
use crate::stream::{Layer, Stream};
use shared::address::HostPort;
use std::future::Future as _;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What is made ready at once, in either direction, but for one larger datagram.
const BATCH_BYTES: usize = 32 * 1024;
/// Memory that a burst has made larger than this is given back once it is empty.
const KEPT_BYTES: usize = 64 * 1024;

/// A stream of datagrams with their lengths, carried by one on which they have addresses too.
pub struct Tunnel {
    stream: Stream,
    target: HostPort,
    /// The target's, unless it is a name.
    ip: Option<IpAddr>,
    head: Head,
    outgoing: Outgoing,
    reader: TunnelReader,
    incoming: Waiting,
}

/// Bytes on their way.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    start: usize,
}

impl Waiting {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn advance(&mut self, count: usize) {
        self.start += count;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.start = 0;
        }
    }
}

/// Where the frames are that are being written.
#[derive(Default)]
struct Outgoing {
    waiting: Waiting,
    /// The first byte of a length whose second has not come.
    half: Option<u8>,
    /// Bytes of the current payload that have not come.
    left: usize,
}

impl Outgoing {
    /// Puts the address into frames, however they are cut; returns how many bytes were taken.
    fn put(&mut self, frames: &[u8], head: Head) -> usize {
        let mut rest = frames;
        while !rest.is_empty() && self.waiting.bytes.len() < BATCH_BYTES {
            if self.left > 0 {
                let (payload, following) = rest.split_at(self.left.min(rest.len()));
                self.waiting.bytes.extend_from_slice(payload);
                self.left -= payload.len();
                rest = following;
                continue;
            }
            let byte = rest[0];
            rest = &rest[1..];
            match self.half.take() {
                None => self.half = Some(byte),
                Some(first) => {
                    self.left = usize::from(u16::from_be_bytes([first, byte]));
                    // An empty one cannot be written; it is dropped.
                    if let Some(head) = head.of(self.left) {
                        self.waiting.bytes.extend_from_slice(head.as_bytes());
                    }
                }
            }
        }
        frames.len() - rest.len()
    }
}

impl Tunnel {
    /// `stream` is one on which the server has agreed.
    pub fn new(stream: Stream, target: &HostPort) -> Self {
        Self {
            stream,
            target: target.clone(),
            ip: target.host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical()),
            head: Head::new(target),
            outgoing: Outgoing::default(),
            reader: TunnelReader::default(),
            incoming: Waiting::default(),
        }
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.waiting.rest().is_empty() {
            let rest = self.outgoing.waiting.rest();
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.waiting.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the answers that have come; what others have sent to the same port of the server is none.
    fn collect(&mut self) -> io::Result<()> {
        while self.incoming.bytes.len() < BATCH_BYTES {
            let taken = self.reader.take();
            let taken = taken.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let Some((source, payload)) = taken else { break };
            if is_answer(source, &self.target, self.ip) {
                frame::push(&mut self.incoming.bytes, payload);
            }
        }
        Ok(())
    }
}

/// Whether something from `source` answers what went to `target`. Which address a name has is known to the server alone.
fn is_answer(source: &HostPort, target: &HostPort, ip: Option<IpAddr>) -> bool {
    if source == target {
        return true;
    }
    let is_ip = |ip: IpAddr| source.host.parse::<IpAddr>().is_ok_and(|source| source.to_canonical() == ip);
    source.port == target.port && ip.is_none_or(is_ip)
}

impl Layer for Tunnel {
    fn abort(self: Box<Self>) {
        self.stream.abort();
    }

    fn own_tcp(&self) -> Option<&TcpStream> {
        self.stream.own_tcp()
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let rest = this.incoming.rest();
            if !rest.is_empty() {
                let count = rest.len().min(buf.remaining());
                buf.put_slice(&rest[..count]);
                this.incoming.advance(count);
                return Poll::Ready(Ok(()));
            }
            this.collect()?;
            // Reading on loses nothing when it is given up, so it can begin anew every time.
            if this.incoming.rest().is_empty() && !ready!(pin!(this.reader.fill(&mut this.stream)).poll(cx))?
            {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        let taken = this.outgoing.put(buf, this.head);
        // What has been taken is answered for; a failure shows with what comes next.
        match this.poll_drain(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(taken)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "tunnel_tests.rs"]
mod tests;
