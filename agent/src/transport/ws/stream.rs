//! A websocket as a stream of bytes.
//!
//! Reading may write (answers to pings), so both directions belong to one task.

use crate::clock::Random;
use crate::stream::{Layer, Stream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// Longest message that is sent.
const MESSAGE_BYTES: usize = 64 * 1024;
/// Read at once, unless a message is read into the reader's own buffer.
const INPUT_BYTES: usize = 16 * 1024;
/// Longest payload of a control frame (RFC 6455, section 5.5).
const LONGEST_CONTROL: u64 = 125;
/// Bytes that wait for the connection beyond which pings are not answered.
const MOST_WAITING: usize = 1024;
/// Pings without any sign of life after which the connection is dead.
const MOST_UNANSWERED: u32 = 2;
/// A close frame's status: nothing went wrong.
const NORMAL: [u8; 2] = 1000u16.to_be_bytes();

/// Who asked for the websocket; clients mask what they send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

/// Our direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    Open,
    /// Ended without a word of the websocket: the connection beneath ends its direction behind what was written.
    Beneath,
    /// The close frame is sent, or waits only for the connection.
    Told,
}

/// The frame that is being read.
struct Current {
    opcode: OpCode,
    left: u64,
    mask: [u8; 4],
    /// Bytes of the payload that were read, modulo 4.
    at: usize,
}

/// A websocket as a stream of bytes.
pub(super) struct WsStream {
    inner: Stream,
    role: Role,
    random: Random,
    half_close: bool,
    input: Vec<u8>,
    /// Bytes of `input` that were used.
    used: usize,
    current: Option<Current>,
    control: Vec<u8>,
    /// The peer's direction has ended.
    ended: bool,
    out: Vec<u8>,
    written: usize,
    own: Own,
    pings: Option<Interval>,
    unanswered: u32,
}

impl WsStream {
    /// `rest` came with the handshake. Must be called inside a Tokio runtime.
    pub(super) fn new(
        inner: Stream,
        role: Role,
        random: Random,
        half_close: bool,
        ping: Option<Duration>,
        rest: Vec<u8>,
    ) -> Self {
        let pings = ping.map(|period| {
            let mut pings = tokio::time::interval(period);
            pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
            // The first one is due at once; there is no need for it.
            pings.reset();
            pings
        });
        Self {
            inner,
            role,
            random,
            half_close,
            input: rest,
            used: 0,
            current: None,
            control: Vec::new(),
            ended: false,
            out: Vec::new(),
            written: 0,
            own: Own::Open,
            pings,
            unanswered: 0,
        }
    }

    /// Puts a frame behind what waits for the connection.
    fn push(&mut self, opcode: OpCode, payload: &[u8]) {
        let mask = (self.role == Role::Client).then(|| {
            let [a, b, c, d, ..] = self.random.next().to_be_bytes();
            [a, b, c, d]
        });
        let header = FrameHeader { opcode, mask, ..FrameHeader::default() };
        // Writing to a vector cannot fail.
        let _ = header.format(payload.len() as u64, &mut self.out);
        let at = self.out.len();
        self.out.extend_from_slice(payload);
        if let Some(mask) = mask {
            apply(mask, 0, &mut self.out[at..]);
        }
    }

    fn push_close(&mut self) {
        self.push(OpCode::Control(Control::Close), &NORMAL);
        self.own = Own::Told;
    }

    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let n = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.out[self.written..]))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += n;
        }
        self.out.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Sends what reading has caused; errors are for the writer to see.
    fn send_along(&mut self, cx: &mut Context<'_>) {
        if !self.out.is_empty() && self.poll_out(cx).is_ready() {
            let _ = Pin::new(&mut self.inner).poll_flush(cx);
        }
    }

    fn poll_pings(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while let Some(pings) = &mut self.pings
            && pings.poll_tick(cx).is_ready()
        {
            if self.unanswered >= MOST_UNANSWERED {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "pings were not answered"));
            }
            self.unanswered += 1;
            if self.own == Own::Open && self.out.len() < MOST_WAITING {
                self.push(OpCode::Control(Control::Ping), &[]);
            }
        }
        Ok(())
    }

    /// Reads more into `input`; false at the end of the connection.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.input.drain(..self.used);
        self.used = 0;
        let before = self.input.len();
        self.input.resize(before + INPUT_BYTES, 0);
        let mut buf = ReadBuf::new(&mut self.input[before..]);
        let outcome = Pin::new(&mut self.inner).poll_read(cx, &mut buf);
        let n = buf.filled().len();
        self.input.truncate(before + n);
        ready!(outcome)?;
        self.came(n > 0);
        Poll::Ready(Ok(n > 0))
    }

    fn came(&mut self, something: bool) {
        if something {
            self.unanswered = 0;
        }
    }

    /// Reads the next header, if it is there.
    fn header(&mut self) -> io::Result<bool> {
        let mut cursor = io::Cursor::new(&self.input[self.used..]);
        let parsed = FrameHeader::parse(&mut cursor).map_err(|error| malformed(&error.to_string()))?;
        let Some((header, left)) = parsed else { return Ok(false) };
        self.used += cursor.position() as usize;
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(malformed("a frame of an extension that was not agreed on"));
        }
        if header.mask.is_some() != (self.role == Role::Server) {
            return Err(malformed("a frame with the mask of the other side"));
        }
        if matches!(header.opcode, OpCode::Control(_)) && (!header.is_final || left > LONGEST_CONTROL) {
            return Err(malformed("a control frame that is too long"));
        }
        self.control.clear();
        self.current =
            Some(Current { opcode: header.opcode, left, mask: header.mask.unwrap_or_default(), at: 0 });
        Ok(true)
    }

    /// A control frame is complete.
    fn obey(&mut self, control: Control) {
        match control {
            Control::Ping if self.own == Own::Open && self.out.len() < MOST_WAITING => {
                let payload = std::mem::take(&mut self.control);
                self.push(OpCode::Control(Control::Pong), &payload);
            }
            Control::Close => {
                self.ended = true;
                if self.own == Own::Open && !self.half_close {
                    self.push_close();
                }
            }
            Control::Ping | Control::Pong | Control::Reserved(_) => {}
        }
    }

    /// The connection ended its direction between two frames.
    fn end(&mut self) -> io::Result<()> {
        if self.half_close {
            return Err(cut_off());
        }
        self.ended = true;
        Ok(())
    }

    /// Reads payload of the current frame to where it belongs; whether the reader got something.
    fn poll_payload(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<bool>> {
        let Some(current) = &mut self.current else { return Poll::Ready(Ok(false)) };
        let left = usize::try_from(current.left).unwrap_or(usize::MAX);
        let available = self.input.len() - self.used;
        let n = if let OpCode::Control(control) = current.opcode {
            let n = left.min(available);
            let at = self.control.len();
            self.control.extend_from_slice(&self.input[self.used..self.used + n]);
            self.used += n;
            apply(current.mask, current.at, &mut self.control[at..]);
            if n == left {
                self.current = None;
                self.obey(control);
                return Poll::Ready(Ok(false));
            }
            n
        } else if available > 0 || left == 0 {
            let n = left.min(available).min(buf.remaining());
            let at = buf.filled().len();
            buf.put_slice(&self.input[self.used..self.used + n]);
            self.used += n;
            apply(current.mask, current.at, &mut buf.filled_mut()[at..]);
            n
        } else {
            let limit = left.min(buf.remaining());
            let mut into = ReadBuf::new(buf.initialize_unfilled_to(limit));
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut into))?;
            let n = into.filled().len();
            if n == 0 {
                return Poll::Ready(Err(cut_in_frame()));
            }
            apply(current.mask, current.at, into.filled_mut());
            buf.advance(n);
            self.unanswered = 0;
            n
        };
        current.left -= n as u64;
        current.at = (current.at + n) % 4;
        let is_data = matches!(current.opcode, OpCode::Data(_));
        if current.left == 0 {
            self.current = None;
        }
        if is_data && n > 0 {
            return Poll::Ready(Ok(true));
        }
        if !is_data && !ready!(self.poll_more(cx))? {
            return Poll::Ready(Err(cut_in_frame()));
        }
        Poll::Ready(Ok(false))
    }
}

fn apply(mask: [u8; 4], at: usize, bytes: &mut [u8]) {
    if mask == [0; 4] {
        return;
    }
    let turned: [u8; 4] = std::array::from_fn(|i| mask[(at + i) % 4]);
    let word = u32::from_ne_bytes(turned);
    let (words, rest) = bytes.as_chunks_mut::<4>();
    for four in words {
        *four = (u32::from_ne_bytes(*four) ^ word).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(turned) {
        *byte ^= mask;
    }
}

fn malformed(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("websocket: {reason}"))
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the websocket was cut off")
}

fn cut_in_frame() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the websocket was cut off within a message")
}

impl Layer for WsStream {
    fn abort(self: Box<Self>) {
        self.inner.abort();
    }

    fn own_tcp(&self) -> Option<&TcpStream> {
        self.inner.own_tcp()
    }
}

impl AsyncRead for WsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            if this.ended {
                this.send_along(cx);
                return Poll::Ready(Ok(()));
            }
            this.poll_pings(cx)?;
            this.send_along(cx);
            let got = if this.current.is_some() {
                ready!(this.poll_payload(cx, buf))?
            } else if this.header()? || ready!(this.poll_more(cx))? {
                false
            } else if this.used < this.input.len() {
                return Poll::Ready(Err(cut_in_frame()));
            } else {
                this.end()?;
                false
            };
            if got {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for WsStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.own != Own::Open {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "written after the end")));
        }
        ready!(self.poll_out(cx))?;
        let n = buf.len().min(MESSAGE_BYTES);
        if n > 0 {
            self.push(OpCode::Data(Data::Binary), &buf[..n]);
            if let Poll::Ready(Err(error)) = self.poll_out(cx) {
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(n))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.own == Own::Open {
            if self.half_close {
                self.push_close();
            } else {
                self.own = Own::Beneath;
            }
        }
        ready!(self.as_mut().poll_flush(cx))?;
        // After a close frame the connection beneath ends when nothing comes any more either.
        if self.own == Own::Beneath || self.ended {
            return Pin::new(&mut self.inner).poll_shutdown(cx);
        }
        Poll::Ready(Ok(()))
    }
}
