//! A connection in memory between two ends, which cuts and delays as it is told.

use agent::stream::{Layer, Stream};
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes on their way in one direction, at most.
const CAPACITY: usize = 8 * 1024;
/// Polls of both ends after which they seem to go on for ever: far more than the bytes that are carried.
const MOST_POLLS: usize = 2_000_000;

/// What is done to the bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// All arrive.
    Arrive,
    /// These bits of this byte are turned.
    Turn { at: usize, bits: u8 },
    /// It ends after so many bytes.
    End { after: usize },
}

/// One direction.
struct Pipe {
    bytes: VecDeque<u8>,
    /// How many were written.
    written: usize,
    ended: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    fate: Fate,
}

impl Pipe {
    fn new(fate: Fate) -> Self {
        Self { bytes: VecDeque::new(), written: 0, ended: false, reader: None, writer: None, fate }
    }

    fn put(&mut self, byte: u8) {
        match self.fate {
            Fate::End { after } if self.written >= after => self.ended = true,
            Fate::Turn { at, bits } if self.written == at => self.bytes.push_back(byte ^ bits),
            _ => self.bytes.push_back(byte),
        }
        self.written += 1;
    }

    fn end(&mut self) {
        self.ended = true;
        self.reader.take().into_iter().for_each(Waker::wake);
    }
}

/// How many bytes pass at once, again and again: each byte of it below 128 is such a number, each other one a pause.
#[derive(Clone)]
struct Pace {
    steps: Vec<u8>,
    at: usize,
    polls: usize,
}

impl Pace {
    /// `None`: not now.
    fn next(&mut self, cx: &mut Context<'_>) -> Option<usize> {
        self.polls += 1;
        assert!(self.polls < MOST_POLLS, "polled without end");
        let step = self.steps.get(self.at % self.steps.len().max(1)).copied().unwrap_or(127);
        self.at += 1;
        match step {
            // Every other time, so that nothing stands still.
            128.. if self.at.is_multiple_of(2) => {
                cx.waker().wake_by_ref();
                None
            }
            128.. => Some(1),
            127 => Some(CAPACITY),
            step => Some(usize::from(step) + 1),
        }
    }
}

/// One end.
pub(crate) struct End {
    incoming: Arc<Mutex<Pipe>>,
    outgoing: Arc<Mutex<Pipe>>,
    reads: Pace,
    writes: Pace,
}

/// A connection; what happens to the bytes of the first and of the second end.
pub(crate) fn connection(pace: &[u8], fates: [Fate; 2]) -> [Stream; 2] {
    let [a, b] = fates.map(|fate| Arc::new(Mutex::new(Pipe::new(fate))));
    let from = |at: usize| Pace { steps: pace.to_vec(), at, polls: 0 };
    let first = End { incoming: b.clone(), outgoing: a.clone(), reads: from(0), writes: from(1) };
    let second = End { incoming: a, outgoing: b, reads: from(2), writes: from(3) };
    [Stream::Layered(Box::new(first)), Stream::Layered(Box::new(second))]
}

fn locked(pipe: &Mutex<Pipe>) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AsyncRead for End {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let End { incoming, reads, .. } = &mut *self;
        let mut pipe = locked(incoming);
        // First: a pause where nothing can go on would wake the other end, whose pause would wake this one, for ever.
        if pipe.bytes.is_empty() && !pipe.ended {
            pipe.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let Some(most) = reads.next(cx) else { return Poll::Pending };
        let count = most.min(pipe.bytes.len()).min(buf.remaining());
        let bytes: Vec<u8> = pipe.bytes.drain(..count).collect();
        buf.put_slice(&bytes);
        pipe.writer.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for End {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let End { outgoing, writes, .. } = &mut *self;
        let mut pipe = locked(outgoing);
        let room = CAPACITY - pipe.bytes.len();
        if room == 0 {
            pipe.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let Some(most) = writes.next(cx) else { return Poll::Pending };
        let count = most.min(room).min(buf.len());
        buf[..count].iter().for_each(|byte| pipe.put(*byte));
        pipe.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        locked(&self.outgoing).end();
        Poll::Ready(Ok(()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        locked(&self.outgoing).end();
        // Nobody reads any more: what is written has room.
        let mut incoming = locked(&self.incoming);
        (incoming.fate, incoming.written) = (Fate::End { after: 0 }, 0);
        incoming.bytes.clear();
        incoming.writer.take().into_iter().for_each(Waker::wake);
    }
}

impl Layer for End {
    fn abort(self: Box<Self>) {}

    fn own_tcp(&self) -> Option<&TcpStream> {
        None
    }
}
