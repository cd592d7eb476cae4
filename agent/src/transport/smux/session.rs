//! A session and its two ends: one opens streams, the other accepts them.

use super::driver::Driver;
use super::options::MuxOptions;
use super::state::{Shared, Side};
use super::stream::MuxStream;
use crate::clock::Clock;
use crate::stream::Stream;
use crate::tasks::Tasks;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Streams that a client puts into one session; with more, another one serves better.
const MOST_STREAMS: usize = 256;
/// A session that has been quiet for so many intervals of keepalives gets no new streams: it may be dead.
const QUIET_INTERVALS: u32 = 2;

/// The side that opens streams; clones share it. The connection stays open until [`Session::drain`] and the end of the last
/// stream, or until it is dead.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

/// The session takes no further stream: it is full, leaving or dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session takes no further stream")]
pub struct OpenError;

/// How much had been heard of a peer at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard(u64);

impl Session {
    /// Begins a session as its client over a connection that is up. Must be called inside a Tokio runtime.
    pub fn start(conn: Stream, options: MuxOptions, clock: &Clock, tasks: &Tasks) -> Self {
        Self(start(conn, options, Side::Client, clock, tasks))
    }

    /// Opens a stream. Nothing is waited for: the peer may still refuse it.
    pub fn open(&self) -> Result<Stream, OpenError> {
        let now = self.0.clock.instant();
        let id = self.0.with(|state, wakes| state.open(now, MOST_STREAMS, wakes)).ok_or(OpenError)?;
        Ok(Stream::Layered(Box::new(MuxStream::new(self.0.clone(), id))))
    }

    /// Whether it takes streams now, or may later.
    pub fn is_alive(&self) -> bool {
        self.0.lock().takes_streams()
    }

    /// Whether it is likely that the peer is there.
    pub fn is_fresh(&self) -> bool {
        let Some(keepalive) = self.0.options.keepalive else { return true };
        let (_, last) = self.0.lock().heard();
        let quiet = self.0.clock.instant().duration_since(last);
        quiet < (keepalive.interval * QUIET_INTERVALS).max(Duration::from_millis(1)).min(keepalive.timeout)
    }

    /// For comparing with a later moment.
    pub fn heard(&self) -> Heard {
        Heard(self.0.lock().heard().0)
    }

    /// Open streams.
    pub fn streams(&self) -> usize {
        self.0.lock().streams()
    }

    /// Takes no new streams; the connection is closed with the last one.
    pub fn drain(&self) {
        self.0.with(|state, wakes| state.drain(false, wakes));
    }
}

/// The side that accepts streams. Dropped, it accepts no more, and the session ends with the last stream.
pub struct Accepting(Arc<Shared>);

impl Accepting {
    /// Begins a session as its server over a connection that is up. Must be called inside a Tokio runtime.
    pub fn start(conn: Stream, options: MuxOptions, clock: &Clock, tasks: &Tasks) -> Self {
        Self(start(conn, options, Side::Server, clock, tasks))
    }

    /// The next stream; `None` when the session is over. Cancelling loses nothing.
    pub async fn accept(&mut self) -> Option<Stream> {
        std::future::poll_fn(|cx| {
            let accepted = self.0.with(|state, wakes| match state.accept(wakes) {
                Some(id) => Poll::Ready(Some(id)),
                None if state.ended().is_some() => Poll::Ready(None),
                None => {
                    state.acceptor = Some(cx.waker().clone());
                    Poll::Pending
                }
            });
            let stream = |id| Stream::Layered(Box::new(MuxStream::new(self.0.clone(), id)));
            accepted.map(|id| id.map(stream))
        })
        .await
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.with(|state, wakes| {
            while let Some(id) = state.accept(wakes) {
                state.release(id, wakes);
            }
            state.drain(true, wakes);
        });
    }
}

fn start(conn: Stream, options: MuxOptions, side: Side, clock: &Clock, tasks: &Tasks) -> Arc<Shared> {
    let shared = Shared::new(options, side, clock.clone());
    conn.keep_alive();
    let driver = Driver::new(shared.clone(), conn);
    tasks.tracker.spawn(driver.run(tasks.stop.clone()));
    shared
}
