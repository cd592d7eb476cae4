//! What the streams of a session and its one driver share.

mod channel;
mod exchange;
mod time;

use super::frame::{Body, GO_AWAY, GREETING};
use super::options::MuxOptions;
use crate::clock::Clock;
use channel::{Channel, Cut, Own};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes that a stream hands over before the connection has taken them.
pub(super) const OUTBOX_BYTES: usize = 64 * 1024;
/// Streams that nobody has accepted yet (GOST's `backlog`). With so many nothing more is read: to refuse further ones would
/// fail those who come in a crowd, as all do whose exit has died.
const BACKLOG: usize = 128;
/// Frames without payload that wait for the connection; more are not provoked by reading on.
const MOST_CONTROL: usize = 1024;
/// What a version 2 peer may be sent before it has said anything (the library's value).
const FIRST_WINDOW: u32 = 262_144;
/// GOST's patience after the end of one direction.
const HALF_CLOSE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a stream that is not read may hold up the others of its session.
pub(super) const STALL_PATIENCE: Duration = Duration::from_secs(15);
/// Share of the receive buffer that the reader of a stream must take within [`STALL_PATIENCE`] while others wait for it.
const STALL_SHARE: usize = 8;
/// A client's session without streams is closed after that time.
const IDLE: Duration = Duration::from_secs(300);
/// An inbox that has grown gives memory back above this.
const INBOX_KEPT: usize = 64 * 1024;

/// Who opened the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// What the streams of a session and its driver share.
pub(super) struct Shared {
    pub(super) options: MuxOptions,
    pub(super) side: Side,
    pub(super) clock: Clock,
    state: Mutex<State>,
}

pub(super) struct State {
    channels: BTreeMap<u32, Channel>,
    /// Streams with something to send, in turn.
    ready: VecDeque<u32>,
    /// Frames that belong to no channel.
    control: VecDeque<(u32, Body<'static>)>,
    /// Streams that the peer opened and nobody has taken.
    accepted: VecDeque<u32>,
    pub(super) acceptor: Option<Waker>,
    pub(super) driver: Option<Waker>,
    /// Bytes in all inboxes.
    buffered: usize,
    next: u32,
    /// `None` until the client's first frame tells.
    version: Option<u8>,
    /// The peer is one of ours.
    greeted: bool,
    /// No new streams; the session ends with the last one.
    draining: bool,
    ended: Option<String>,
    heard: u64,
    last_heard: Instant,
    last_spoken: Instant,
    empty_since: Instant,
    pressure: Option<Pressure>,
}

/// The receive buffer is full, mostly of one stream.
struct Pressure {
    since: Instant,
    stream: u32,
    taken: u64,
}

/// What a stream's reader gets.
pub(super) enum Read {
    Some,
    End,
    Nothing,
}

impl Shared {
    pub(super) fn new(options: MuxOptions, side: Side, clock: Clock) -> Arc<Self> {
        let now = clock.instant();
        let mut state = State {
            channels: BTreeMap::new(),
            ready: VecDeque::new(),
            control: VecDeque::new(),
            accepted: VecDeque::new(),
            acceptor: None,
            driver: None,
            buffered: 0,
            // The first numbers are 3 and 2, as the library's.
            next: if side == Side::Client { 3 } else { 2 },
            version: match side {
                Side::Client => Some(options.version.unwrap_or(1)),
                Side::Server => options.version,
            },
            greeted: false,
            draining: false,
            ended: None,
            heard: 0,
            last_heard: now,
            last_spoken: now,
            empty_since: now,
            pressure: None,
        };
        if side == Side::Client {
            state.control.push_back((GREETING, Body::Nothing));
        }
        Arc::new(Self { options, side, clock, state: Mutex::new(state) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in this module panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state; whom that concerns is woken afterwards, outside the lock.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State, &mut Vec<Waker>) -> T) -> T {
        let mut wakes = Vec::new();
        let outcome = change(&mut self.lock(), &mut wakes);
        wakes.into_iter().for_each(Waker::wake);
        outcome
    }
}

impl State {
    fn enqueue(&mut self, id: u32, wakes: &mut Vec<Waker>) {
        if let Some(channel) = self.channels.get_mut(&id)
            && !std::mem::replace(&mut channel.queued, true)
        {
            self.ready.push_back(id);
        }
        wakes.extend(self.driver.take());
    }

    pub(super) fn channel(&mut self, id: u32) -> Option<&mut Channel> {
        self.channels.get_mut(&id)
    }

    pub(super) fn streams(&self) -> usize {
        self.channels.len()
    }

    pub(super) fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    pub(super) fn takes_streams(&self) -> bool {
        !self.draining && self.ended.is_none()
    }

    pub(super) fn heard(&self) -> (u64, Instant) {
        (self.heard, self.last_heard)
    }

    fn session_error(&self) -> io::Error {
        let reason = self.ended.as_deref().unwrap_or("the stream is gone");
        io::Error::new(io::ErrorKind::ConnectionReset, format!("the session ended: {reason}"))
    }

    /// A new stream of this side; `None` when the session takes none.
    pub(super) fn open(&mut self, now: Instant, most: usize, wakes: &mut Vec<Waker>) -> Option<u32> {
        if !self.takes_streams() || self.channels.len() >= most || self.next >= GO_AWAY - 1 {
            return None;
        }
        let id = self.next;
        self.next += 2;
        self.channels.insert(id, Channel::new(now, true));
        self.enqueue(id, wakes);
        Some(id)
    }

    /// A stream of the peer that nobody has taken yet.
    pub(super) fn accept(&mut self, wakes: &mut Vec<Waker>) -> Option<u32> {
        if self.accepted.len() == BACKLOG {
            wakes.extend(self.driver.take());
        }
        self.accepted.pop_front()
    }

    pub(super) fn drain(&mut self, tell: bool, wakes: &mut Vec<Waker>) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        if tell && self.greeted {
            self.control.push_back((GO_AWAY, Body::Nothing));
        }
        wakes.extend(self.driver.take());
    }

    // What streams do

    pub(super) fn read(
        &mut self,
        id: u32,
        into: &mut tokio::io::ReadBuf<'_>,
        options: &MuxOptions,
        wakes: &mut Vec<Waker>,
    ) -> io::Result<Read> {
        let Some(channel) = self.channels.get_mut(&id) else { return Err(self.session_error()) };
        if channel.inbox.is_empty() {
            return match (channel.cut, channel.peer_ended) {
                (Some(cut), _) => Err(cut.error()),
                (None, true) => Ok(Read::End),
                (None, false) if self.ended.is_some() => Err(self.session_error()),
                (None, false) => Ok(Read::Nothing),
            };
        }
        let before = into.remaining();
        let (front, back) = channel.inbox.as_slices();
        for part in [front, back] {
            into.put_slice(&part[..part.len().min(into.remaining())]);
        }
        let n = before - into.remaining();
        channel.inbox.drain(..n);
        if channel.inbox.is_empty() && channel.inbox.capacity() > INBOX_KEPT {
            channel.inbox = VecDeque::new();
        }
        channel.taken += n as u64;
        let was_full = self.buffered >= options.max_receive_buffer;
        self.buffered -= n;
        if was_full && self.buffered < options.max_receive_buffer {
            wakes.extend(self.driver.take());
        }
        if self.version == Some(2) {
            channel.consumed = channel.consumed.wrapping_add(n as u32);
            let unreported = channel.consumed.wrapping_sub(channel.reported) as usize;
            if unreported >= options.max_stream_buffer / 2 || channel.reported == 0 {
                channel.reported = channel.consumed;
                channel.window_due = true;
                self.enqueue(id, wakes);
            }
        }
        Ok(Read::Some)
    }

    /// How many bytes were taken; 0 when the outbox is full.
    pub(super) fn write(&mut self, id: u32, bytes: &[u8], wakes: &mut Vec<Waker>) -> io::Result<usize> {
        if self.ended.is_some() {
            return Err(self.session_error());
        }
        let Some(channel) = self.channels.get_mut(&id) else { return Err(self.session_error()) };
        if let Some(cut) = channel.cut {
            return Err(cut.error());
        }
        if channel.own != Own::Open {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "written after the end"));
        }
        let n = bytes.len().min(OUTBOX_BYTES - channel.outbox.len());
        channel.outbox.extend(&bytes[..n]);
        if n > 0 {
            channel.asking = true;
            self.enqueue(id, wakes);
        }
        Ok(n)
    }

    /// Ends our direction.
    pub(super) fn finish(
        &mut self,
        id: u32,
        side: Side,
        now: Instant,
        wakes: &mut Vec<Waker>,
    ) -> io::Result<()> {
        if self.ended.is_some() {
            return Err(self.session_error());
        }
        let greeted = self.greeted;
        let Some(channel) = self.channels.get_mut(&id) else { return Err(self.session_error()) };
        if let Some(cut) = channel.cut {
            return Err(cut.error());
        }
        if channel.own == Own::Open {
            // Whoever was asked and ends is done; whoever asked and ends waits for the answer.
            let at_once = greeted || channel.peer_ended || side == Side::Server;
            channel.own = if at_once { Own::Ending } else { Own::Held };
            channel.quiet_since = now;
            self.enqueue(id, wakes);
        }
        Ok(())
    }

    /// Nobody holds the stream any more. One that was not brought to its end is aborted.
    pub(super) fn release(&mut self, id: u32, wakes: &mut Vec<Waker>) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.released = true;
        channel.reader = None;
        channel.writer = None;
        let unread = std::mem::take(&mut channel.inbox).len();
        self.buffered -= unread;
        let complete = channel.peer_ended && unread == 0 && channel.cut.is_none();
        match channel.own {
            Own::Open => channel.own = Own::Cutting,
            Own::Held | Own::Ending if complete => channel.own = Own::Ending,
            Own::Held | Own::Ending => channel.own = Own::Cutting,
            // The peer may still be sending; one of ours can be told to stop.
            Own::Told if !complete && self.greeted => channel.own = Own::Cutting,
            Own::Told | Own::Cutting => {}
        }
        self.enqueue(id, wakes);
    }

    /// Aborts a stream, whatever it has told the peer already.
    pub(super) fn abort(&mut self, id: u32, wakes: &mut Vec<Waker>) {
        let greeted = self.greeted;
        if let Some(channel) = self.channels.get_mut(&id)
            && (channel.own != Own::Told || greeted)
        {
            channel.own = Own::Cutting;
            self.enqueue(id, wakes);
        }
    }

    fn tell_end(&mut self, id: u32, wakes: &mut Vec<Waker>) {
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.own = Own::Ending;
            self.enqueue(id, wakes);
        }
    }

    /// Ends a stream in both directions; its holder gets an error.
    fn cut(&mut self, id: u32, cut: Cut, wakes: &mut Vec<Waker>) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.cut.get_or_insert(cut);
        self.buffered -= std::mem::take(&mut channel.inbox).len();
        channel.outbox = VecDeque::new();
        channel.wake(wakes);
        if channel.own != Own::Told {
            channel.own = Own::Cutting;
        }
        self.enqueue(id, wakes);
    }

    /// The session is over: everybody hears it.
    pub(super) fn end(&mut self, reason: String, wakes: &mut Vec<Waker>) {
        self.ended.get_or_insert(reason);
        self.draining = true;
        self.accepted.clear();
        wakes.extend(self.acceptor.take());
        for channel in self.channels.values_mut() {
            channel.outbox = VecDeque::new();
            channel.wake(wakes);
        }
        self.channels.retain(|_, channel| !channel.released);
    }
}
