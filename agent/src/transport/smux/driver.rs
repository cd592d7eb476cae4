//! Carries a session's frames over its connection. One task does both directions, since layers below may write while they
//! read.

use super::frame::{self, HEADER_LEN, LONGEST_PAYLOAD};
use super::state::Shared;
use crate::stream::Stream;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Frames that go to the connection in one write.
const BATCH_BYTES: usize = 64 * 1024;
/// One read; also room for the longest frame.
const READ_BYTES: usize = HEADER_LEN + LONGEST_PAYLOAD;
/// How exactly time is kept.
const TICK: Duration = Duration::from_secs(1);
/// How long saying goodbye may take.
const PARTING: Duration = Duration::from_secs(5);

pub(super) struct Driver {
    shared: Arc<Shared>,
    conn: Stream,
    out: Vec<u8>,
    written: usize,
    flushed: bool,
    input: Box<[u8]>,
    /// The part of `input` that holds bytes not yet understood.
    filled: std::ops::Range<usize>,
    ticks: Interval,
}

/// Why a session is over.
enum End {
    /// It was drained: nothing is lost.
    Finished,
    /// The peer closed the connection.
    Closed,
    Failed(String),
}

impl Driver {
    /// Must be called inside a Tokio runtime.
    pub(super) fn new(shared: Arc<Shared>, conn: Stream) -> Self {
        let shortest = shared.options.keepalive.map_or(TICK, |keepalive| keepalive.interval.min(TICK));
        let mut ticks = interval(shortest.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            shared,
            conn,
            out: Vec::new(),
            written: 0,
            flushed: true,
            input: vec![0; READ_BYTES].into_boxed_slice(),
            filled: 0..0,
            ticks,
        }
    }

    /// Works until the session is over or `stop` says so.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let end = tokio::select! {
            biased;
            () = stop.cancelled() => End::Failed("stopped".to_owned()),
            end = std::future::poll_fn(|cx| self.poll(cx)) => end,
        };
        let reason = match &end {
            End::Finished => "closed here".to_owned(),
            End::Closed => "closed by the peer".to_owned(),
            End::Failed(reason) => reason.clone(),
        };
        tracing::debug!(side = ?self.shared.side, reason, "session ended");
        self.shared.with(|state, wakes| state.end(reason, wakes));
        let mut conn = self.conn;
        match end {
            End::Finished | End::Closed => {
                // Nothing is lost if the goodbye does not arrive.
                let _ = tokio::time::timeout(PARTING, conn.shutdown()).await;
            }
            End::Failed(_) => conn.abort(),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        while self.ticks.poll_tick(cx).is_ready() {
            let (shared, now) = (&self.shared, self.shared.clock.instant());
            let ticked = shared.with(|state, wakes| state.tick(now, shared.side, &shared.options, wakes));
            if let Err(reason) = ticked {
                return Poll::Ready(End::Failed(reason));
            }
        }
        loop {
            let wrote = match self.poll_send(cx) {
                Ok(wrote) => wrote,
                Err(error) => return Poll::Ready(End::Failed(error.to_string())),
            };
            let read = match self.poll_receive(cx) {
                Ok(read) => read,
                Err(end) => return Poll::Ready(end),
            };
            if !wrote && !read {
                // Only here is everything sent, or waiting for the connection.
                if self.written == self.out.len() && self.shared.lock().is_finished() {
                    return Poll::Ready(End::Finished);
                }
                return Poll::Pending;
            }
        }
    }

    /// Sends what there is; whether anything went out.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut progress = false;
        loop {
            if self.written == self.out.len() {
                self.out.clear();
                self.written = 0;
                let (shared, now) = (&self.shared, self.shared.clock.instant());
                let out = &mut self.out;
                shared.with(|state, wakes| {
                    state.fill(out, BATCH_BYTES, now, &shared.options, wakes);
                    state.driver = Some(cx.waker().clone());
                });
                if self.out.is_empty() {
                    break;
                }
            }
            match Pin::new(&mut self.conn).poll_write(cx, &self.out[self.written..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(n)) => {
                    self.written += n;
                    self.flushed = false;
                    progress = true;
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => {
                    self.shared.lock().driver = Some(cx.waker().clone());
                    return Ok(progress);
                }
            }
        }
        if !self.flushed
            && let Poll::Ready(flushed) = Pin::new(&mut self.conn).poll_flush(cx)
        {
            flushed?;
            self.flushed = true;
        }
        Ok(progress)
    }

    /// Reads once, as far as there is room; whether anything came.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if !self.understand()? {
            return Ok(false);
        }
        if self.filled.start > 0 {
            self.input.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        // There is room: a whole input without a complete frame does not exist.
        let mut buf = ReadBuf::new(&mut self.input[self.filled.end..]);
        match Pin::new(&mut self.conn).poll_read(cx, &mut buf) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(())) if buf.filled().is_empty() => Err(End::Closed),
            Poll::Ready(Ok(())) => {
                self.filled.end += buf.filled().len();
                self.understand()?;
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(End::Failed(error.to_string())),
        }
    }

    /// Takes the complete frames out of the input; whether more may be read.
    fn understand(&mut self) -> Result<bool, End> {
        let shared = &self.shared;
        let now = shared.clock.instant();
        let (input, filled) = (&self.input, &mut self.filled);
        shared.with(|state, wakes| {
            while state.may_read(&shared.options) {
                let Some(version) = state.version(&input[filled.clone()]) else { return Ok(true) };
                match frame::decode(version, &input[filled.clone()]) {
                    Ok(Some((frame, len))) => {
                        filled.start += len;
                        state.receive(frame, now, (shared.side, &shared.options), wakes);
                    }
                    Ok(None) => return Ok(true),
                    Err(error) => return Err(End::Failed(error.to_string())),
                }
            }
            Ok(false)
        })
    }
}
