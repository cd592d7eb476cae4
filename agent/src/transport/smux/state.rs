//! What the streams of a session and its one driver share.

use super::frame::{self, Body, Frame, GO_AWAY, GREETING, KEEPALIVE};
use super::options::MuxOptions;
use crate::clock::Clock;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes that a stream hands over before the connection has taken them.
pub(super) const OUTBOX_BYTES: usize = 64 * 1024;
/// Streams that nobody has accepted yet (GOST's `backlog`); further ones are refused.
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

/// Why a stream cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Peer,
    Slow,
    Cramped,
    Deaf,
}

impl Cut {
    fn error(self) -> io::Error {
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
enum Own {
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

pub(super) struct Channel {
    inbox: VecDeque<u8>,
    outbox: VecDeque<u8>,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    own: Own,
    peer_ended: bool,
    cut: Option<Cut>,
    /// Nobody holds the stream any more.
    released: bool,
    open_due: bool,
    window_due: bool,
    queued: bool,
    /// Since when the peer has sent no payload, or, after its end, since that.
    quiet_since: Instant,
    /// Something came since our direction ended.
    answered: bool,
    /// Our end was told late, and nothing has come since our direction ended.
    unanswered: bool,
    /// Bytes that the stream's reader took.
    taken: u64,
    // Version 2, modulo 2³².
    consumed: u32,
    reported: u32,
    sent: u32,
    peer_consumed: u32,
    peer_window: u32,
}

impl Channel {
    fn new(now: Instant, open_due: bool) -> Self {
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
            answered: false,
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
    fn window(&self, version: u8) -> usize {
        if version == 1 {
            return usize::MAX;
        }
        let under_way = self.sent.wrapping_sub(self.peer_consumed);
        self.peer_window.saturating_sub(under_way) as usize
    }

    fn wake(&mut self, wakes: &mut Vec<Waker>) {
        wakes.extend(self.reader.take());
        wakes.extend(self.writer.take());
    }
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
    pub(super) fn accept(&mut self) -> Option<u32> {
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
            self.enqueue(id, wakes);
        }
        Ok(n)
    }

    /// Ends our direction.
    pub(super) fn finish(&mut self, id: u32, now: Instant, wakes: &mut Vec<Waker>) -> io::Result<()> {
        if self.ended.is_some() {
            return Err(self.session_error());
        }
        let greeted = self.greeted;
        let Some(channel) = self.channels.get_mut(&id) else { return Err(self.session_error()) };
        if let Some(cut) = channel.cut {
            return Err(cut.error());
        }
        if channel.own == Own::Open {
            channel.own = if greeted || channel.peer_ended { Own::Ending } else { Own::Held };
            channel.quiet_since = now;
            channel.answered = false;
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

    // What the driver does

    /// The version that is spoken, given the bytes that have come and were not understood yet; `None` if that cannot be
    /// told yet.
    pub(super) fn version(&mut self, input: &[u8]) -> Option<u8> {
        if self.version.is_none() {
            // Any other version fails to be understood as 1.
            self.version = input.first().map(|version| if *version == 2 { 2 } else { 1 });
        }
        self.version
    }

    /// Whether more may be read from the connection.
    pub(super) fn may_read(&self, options: &MuxOptions) -> bool {
        self.buffered < options.max_receive_buffer && self.control.len() < MOST_CONTROL
    }

    /// Whether a drained session has nothing left to do.
    pub(super) fn is_finished(&self) -> bool {
        self.draining && self.channels.is_empty() && self.control.is_empty()
    }

    /// Moves frames to `out` until it holds `enough` or nothing is left to send.
    pub(super) fn fill(
        &mut self,
        out: &mut Vec<u8>,
        enough: usize,
        now: Instant,
        options: &MuxOptions,
        wakes: &mut Vec<Waker>,
    ) {
        let Some(version) = self.version else { return };
        let put = |out: &mut Vec<u8>, stream, body| frame::encode(version, Frame { stream, body }, out);
        while out.len() < enough
            && let Some((stream, body)) = self.control.pop_front()
        {
            put(out, stream, body);
        }
        while out.len() < enough
            && let Some(id) = self.ready.pop_front()
        {
            let Some(channel) = self.channels.get_mut(&id) else { continue };
            channel.queued = false;
            if std::mem::take(&mut channel.open_due) {
                put(out, id, Body::Open);
            }
            if channel.own == Own::Cutting {
                channel.outbox = VecDeque::new();
                if self.greeted {
                    put(out, id, Body::Nothing);
                }
                put(out, id, Body::End);
                channel.own = Own::Told;
            }
            if std::mem::take(&mut channel.window_due) && !channel.peer_ended {
                let window = options.max_stream_buffer as u32;
                put(out, id, Body::Window { consumed: channel.consumed, window });
            }
            let n = channel.outbox.len().min(options.max_frame_size).min(channel.window(version));
            if n > 0 {
                frame::data_header(version, id, n, out);
                let (front, back) = channel.outbox.as_slices();
                let first = front.len().min(n);
                out.extend_from_slice(&front[..first]);
                out.extend_from_slice(&back[..n - first]);
                channel.outbox.drain(..n);
                channel.sent = channel.sent.wrapping_add(n as u32);
                wakes.extend(channel.writer.take());
            }
            if channel.outbox.is_empty() && channel.own == Own::Ending {
                put(out, id, Body::End);
                channel.own = Own::Told;
            }
            if channel.released && channel.own == Own::Told {
                self.channels.remove(&id);
                self.empty_since = now;
            } else if n > 0 && !channel.outbox.is_empty() && channel.window(version) > 0 {
                channel.queued = true;
                self.ready.push_back(id);
            }
        }
        if !out.is_empty() {
            self.last_spoken = now;
        }
    }

    /// Takes note of one frame of the peer.
    pub(super) fn receive(
        &mut self,
        frame: Frame<'_>,
        now: Instant,
        (side, options): (Side, &MuxOptions),
        wakes: &mut Vec<Waker>,
    ) {
        self.heard += 1;
        self.last_heard = now;
        let version = self.version;
        let id = frame.stream;
        match frame.body {
            Body::Open => self.opened(id, now, side, wakes),
            Body::Nothing => match id {
                KEEPALIVE => {}
                GREETING => {
                    if !std::mem::replace(&mut self.greeted, true) && side == Side::Server {
                        self.control.push_back((GREETING, Body::Nothing));
                        wakes.extend(self.driver.take());
                    }
                    let held: Vec<_> =
                        self.channels.iter().filter(|(_, c)| c.own == Own::Held).map(|(id, _)| *id).collect();
                    for id in held {
                        self.tell_end(id, wakes);
                    }
                }
                GO_AWAY => self.drain(false, wakes),
                id => self.cut(id, Cut::Peer, wakes),
            },
            Body::End => {
                let Some(channel) = self.channels.get_mut(&id) else { return };
                if !std::mem::replace(&mut channel.peer_ended, true) {
                    channel.quiet_since = now;
                    if channel.unanswered {
                        channel.cut = Some(Cut::Deaf);
                    }
                    channel.wake(wakes);
                    if channel.own == Own::Held {
                        self.tell_end(id, wakes);
                    }
                }
            }
            Body::Data(payload) => {
                let Some(channel) = self.channels.get_mut(&id) else { return };
                if payload.is_empty() || channel.released || channel.peer_ended || channel.cut.is_some() {
                    return;
                }
                // A peer counts what it sent against the window it was told last, which was the first one once.
                let most = options.max_stream_buffer.max(FIRST_WINDOW as usize);
                if version == Some(2) && channel.inbox.len() + payload.len() > most {
                    self.cut(id, Cut::Cramped, wakes);
                    return;
                }
                channel.inbox.extend(payload);
                channel.quiet_since = now;
                channel.answered = true;
                channel.unanswered = false;
                self.buffered += payload.len();
                wakes.extend(channel.reader.take());
            }
            Body::Window { consumed, window } => {
                let Some(channel) = self.channels.get_mut(&id) else { return };
                // More than was sent cannot have been consumed.
                if channel.sent.wrapping_sub(consumed) > channel.sent.wrapping_sub(channel.peer_consumed) {
                    self.cut(id, Cut::Cramped, wakes);
                    return;
                }
                (channel.peer_consumed, channel.peer_window) = (consumed, window);
                self.enqueue(id, wakes);
            }
        }
    }

    fn opened(&mut self, id: u32, now: Instant, side: Side, wakes: &mut Vec<Waker>) {
        if self.channels.contains_key(&id) {
            return;
        }
        if side == Side::Server && !self.draining && self.accepted.len() < BACKLOG {
            self.channels.insert(id, Channel::new(now, false));
            self.accepted.push_back(id);
            wakes.extend(self.acceptor.take());
            return;
        }
        if self.greeted {
            self.control.push_back((id, Body::Nothing));
        }
        self.control.push_back((id, Body::End));
        wakes.extend(self.driver.take());
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

    /// Does what time brings. `Err` when the session is dead.
    pub(super) fn tick(
        &mut self,
        now: Instant,
        side: Side,
        options: &MuxOptions,
        wakes: &mut Vec<Waker>,
    ) -> Result<(), String> {
        if let Some(keepalive) = options.keepalive {
            // While nothing is read, nothing can be heard.
            if !self.may_read(options) {
                self.last_heard = now;
            } else if now.duration_since(self.last_heard) >= keepalive.timeout {
                return Err(format!("nothing heard for {:?}", keepalive.timeout));
            }
            if now.duration_since(self.last_spoken) >= keepalive.interval && self.control.is_empty() {
                self.control.push_back((KEEPALIVE, Body::Nothing));
            }
        }
        if side == Side::Client && self.channels.is_empty() && now.duration_since(self.empty_since) >= IDLE {
            self.drain(false, wakes);
        }
        if !self.greeted {
            self.lose_patience(now, wakes);
        }
        self.relieve(now, options, wakes);
        Ok(())
    }

    /// Ends what a peer that knows no ends of single directions leaves open.
    fn lose_patience(&mut self, now: Instant, wakes: &mut Vec<Waker>) {
        let due: Vec<_> = self
            .channels
            .iter()
            .filter(|(_, channel)| now.duration_since(channel.quiet_since) >= HALF_CLOSE_PATIENCE)
            .map(|(id, channel)| (*id, channel.own, channel.peer_ended))
            .collect();
        for (id, own, peer_ended) in due {
            if own == Own::Held {
                if let Some(channel) = self.channels.get_mut(&id) {
                    channel.unanswered = !channel.answered;
                }
                self.tell_end(id, wakes);
            } else if peer_ended && own == Own::Open {
                self.cut(id, Cut::Peer, wakes);
            }
        }
    }

    /// Cuts the stream that holds up all others, if it has done so for long.
    fn relieve(&mut self, now: Instant, options: &MuxOptions, wakes: &mut Vec<Waker>) {
        if self.buffered < options.max_receive_buffer / 2 {
            self.pressure = None;
            return;
        }
        let Some(pressure) = &self.pressure else {
            let fullest = self.channels.iter().max_by_key(|(_, channel)| channel.inbox.len());
            if self.buffered >= options.max_receive_buffer
                && let Some((id, channel)) = fullest
            {
                self.pressure = Some(Pressure { since: now, stream: *id, taken: channel.taken });
            }
            return;
        };
        if now.duration_since(pressure.since) < STALL_PATIENCE {
            return;
        }
        let (id, taken) = (pressure.stream, pressure.taken);
        self.pressure = None;
        let least = (options.max_receive_buffer / STALL_SHARE) as u64;
        let stuck = self.channels.get(&id).is_some_and(|channel| channel.taken - taken < least);
        if stuck && self.channels.len() > 1 {
            self.cut(id, Cut::Slow, wakes);
        }
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
