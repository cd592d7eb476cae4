//! A connection whose bytes keep to limits. Only connections under a limit are wrapped in it.

use super::traffic::{Direction, Paces, Place, TrafficLimiter};
use crate::clock::Clock;
use crate::stream::{Layer, Stream};
use std::future::Future as _;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// A client's connection under limits: reading is the limiters' input, writing their output.
#[derive(Debug)]
pub struct Limited<S> {
    inner: S,
    input: Gate,
    output: Gate,
}

/// Lets bytes of one direction through, when they may.
#[derive(Debug)]
struct Gate {
    paces: Paces,
    clock: Clock,
    sleep: Option<Pin<Box<Sleep>>>,
    /// While it waits.
    place: Option<Place>,
}

impl<S> Limited<S> {
    /// `ip` is the client's.
    pub fn new(inner: S, limiters: &[Arc<TrafficLimiter>], ip: IpAddr, clock: &Clock) -> Self {
        let gate = |direction| Gate {
            paces: Paces::new(limiters, ip, direction),
            clock: clock.clone(),
            sleep: None,
            place: None,
        };
        Self { inner, input: gate(Direction::Input), output: gate(Direction::Output) }
    }
}

impl Gate {
    /// Permission for up to `most` bytes, at least one. Whoever has it uses it at once and gives the rest back.
    fn poll_take(&mut self, cx: &mut Context<'_>, most: u64) -> Poll<u64> {
        let mut in_turn = false;
        loop {
            if self.place.is_some() {
                if let Some(sleep) = &mut self.sleep {
                    ready!(sleep.as_mut().poll(cx));
                }
                self.place = None;
                in_turn = true;
            }
            match self.paces.take(self.clock.now_ns(), most, in_turn) {
                Ok(bytes) => return Poll::Ready(bytes),
                Err((place, wait)) => {
                    let due = self.clock.instant() + wait;
                    match &mut self.sleep {
                        Some(sleep) => sleep.as_mut().reset(due),
                        None => self.sleep = Some(Box::pin(tokio::time::sleep_until(due))),
                    }
                    self.place = Some(place);
                }
            }
        }
    }
}

fn length(bytes: usize) -> u64 {
    bytes as u64
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let granted = ready!(this.input.poll_take(cx, length(buf.remaining())));
        let room = usize::try_from(granted).unwrap_or(usize::MAX);
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(room.min(buf.remaining())));
        let outcome = Pin::new(&mut this.inner).poll_read(cx, &mut part);
        let read = part.filled().len();
        buf.advance(read);
        this.input.paces.give_back(granted - length(read));
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if buf.is_empty() {
            return Pin::new(&mut this.inner).poll_write(cx, buf);
        }
        let granted = ready!(this.output.poll_take(cx, length(buf.len())));
        let part = &buf[..usize::try_from(granted).unwrap_or(usize::MAX).min(buf.len())];
        let outcome = Pin::new(&mut this.inner).poll_write(cx, part);
        let written = match &outcome {
            Poll::Ready(Ok(written)) => length(*written),
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        this.output.paces.give_back(granted - written);
        outcome
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

impl Layer for Limited<Stream> {
    fn abort(self: Box<Self>) {
        self.inner.abort();
    }

    fn own_tcp(&self) -> Option<&TcpStream> {
        self.inner.own_tcp()
    }
}
