//! One stream, as its session sees it.

use super::FIRST_WINDOW;
use std::collections::VecDeque;
use std::io;
use std::task::Waker;
use tokio::time::Instant;

/// Why a stream cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport::smux) enum Cut {
    Peer,
    Slow,
    Cramped,
    Deaf,
}

impl Cut {
    pub(super) fn error(self) -> io::Error {
        let text = match self {
            Cut::Peer => "the peer aborted the stream",
            Cut::Slow => "the stream was not read, and others had to wait for it",
            Cut::Cramped => "the peer sent more than it may",
            Cut::Deaf => "the peer ended the stream before it was complete",
        };
        io::Error::new(io::ErrorKind::ConnectionReset, text)
    }
}

/// Our direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    Open,
    /// Ended, but the peer must not know yet.
    Held,
    /// Ended; the peer is told after the outbox.
    Ending,
    /// Aborted; the peer is told at once.
    Cutting,
    /// The peer has been told.
    Told,
}

pub(in crate::transport::smux) struct Channel {
    pub(super) inbox: VecDeque<u8>,
    pub(super) outbox: VecDeque<u8>,
    pub(in crate::transport::smux) reader: Option<Waker>,
    pub(in crate::transport::smux) writer: Option<Waker>,
    pub(super) own: Own,
    pub(super) peer_ended: bool,
    pub(super) cut: Option<Cut>,
    /// Nobody holds the stream any more.
    pub(super) released: bool,
    pub(super) open_due: bool,
    pub(super) window_due: bool,
    pub(super) queued: bool,
    /// Since when the peer has sent no payload, or, after its end, since that.
    pub(super) quiet_since: Instant,
    /// The last word is ours: nothing has come since the last payload was handed over.
    pub(super) asking: bool,
    /// Our end was told late, while the last word was ours, and nothing has come since.
    pub(super) unanswered: bool,
    /// Bytes that the stream's reader took.
    pub(super) taken: u64,
    // Version 2, modulo 2³².
    pub(super) consumed: u32,
    pub(super) reported: u32,
    pub(super) sent: u32,
    pub(super) peer_consumed: u32,
    pub(super) peer_window: u32,
}

impl Channel {
    pub(super) fn new(now: Instant, open_due: bool) -> Self {
        Self {
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            reader: None,
            writer: None,
            own: Own::Open,
            peer_ended: false,
            cut: None,
            released: false,
            open_due,
            window_due: false,
            queued: false,
            quiet_since: now,
            asking: false,
            unanswered: false,
            taken: 0,
            consumed: 0,
            reported: 0,
            sent: 0,
            peer_consumed: 0,
            peer_window: FIRST_WINDOW,
        }
    }

    /// What may be sent now.
    pub(super) fn window(&self, version: u8) -> usize {
        if version == 1 {
            return usize::MAX;
        }
        let under_way = self.sent.wrapping_sub(self.peer_consumed);
        self.peer_window.saturating_sub(under_way) as usize
    }

    pub(super) fn wake(&mut self, wakes: &mut Vec<Waker>) {
        wakes.extend(self.reader.take());
        wakes.extend(self.writer.take());
    }
}
