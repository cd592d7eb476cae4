//! A peer that says what it was told to say, in pieces of one size, whatever it hears.

use agent::stream::{Layer, Stream};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// What is written beyond that is an error, as on a connection that broke.
const MOST_HEARD: usize = 4 * 1024 * 1024;

/// What happens when the peer has said everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It ends its direction.
    End,
    /// It says nothing any more.
    Silence,
}

/// Makes the first words of a peer that has to hear something first.
type Answer = Box<dyn FnOnce(&[u8]) -> Vec<u8> + Send>;

/// The peer's end of a connection.
pub(crate) struct Script {
    answer: Option<Answer>,
    says: Vec<u8>,
    at: usize,
    piece: usize,
    then: Then,
    heard: Heard,
}

/// What was written to a peer, also after the connection is gone.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    said: usize,
}

impl Heard {
    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Everything that was written.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.with(|state| state.bytes.clone())
    }

    /// How much of what the peer had to say was read.
    pub(crate) fn said(&self) -> usize {
        self.with(|state| state.said)
    }
}

impl Script {
    /// Says `says` in pieces of `piece` bytes.
    pub(crate) fn new(says: &[u8], piece: usize, then: Then) -> Self {
        let (says, piece, heard) = (says.to_vec(), piece.max(1), Heard::default());
        Self { answer: None, says, at: 0, piece, then, heard }
    }

    /// Begins with what `answer` makes of what was written until it is asked for the first time.
    pub(crate) fn answering(mut self, answer: impl FnOnce(&[u8]) -> Vec<u8> + Send + 'static) -> Self {
        self.answer = Some(Box::new(answer));
        self
    }

    /// The connection, and what is written to it.
    pub(crate) fn connection(self) -> (Stream, Heard) {
        let heard = self.heard.clone();
        (Stream::Layered(Box::new(self)), heard)
    }
}

impl Layer for Script {
    fn abort(self: Box<Self>) {}

    fn own_tcp(&self) -> Option<&TcpStream> {
        None
    }
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(answer) = this.answer.take() {
            this.says.splice(..0, answer(&this.heard.bytes()));
        }
        let rest = &this.says[this.at..];
        if rest.is_empty() && this.then == Then::Silence {
            return Poll::Pending;
        }
        let length = rest.len().min(this.piece).min(buf.remaining());
        buf.put_slice(&rest[..length]);
        this.at += length;
        this.heard.with(|state| state.said += length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.heard.with(|state| {
            if state.bytes.len() + buf.len() > MOST_HEARD {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            state.bytes.extend_from_slice(buf);
            Ok(buf.len())
        }))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

thread_local! {
    /// One for all: making it takes longer than most inputs.
    static RUNTIME: Runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without input and output needs nothing");
}

/// Runs `work` on a runtime whose time passes only when there is nothing else to do.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(work))
}
