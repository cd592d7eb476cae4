//! What the driver does with the state: fill the connection, and take note of what comes.

use super::{BACKLOG, Channel, Cut, FIRST_WINDOW, MOST_CONTROL, Own, Side, State};
use crate::transport::smux::frame::{self, Body, Frame, GO_AWAY, GREETING, KEEPALIVE};
use crate::transport::smux::options::MuxOptions;
use std::collections::VecDeque;
use std::task::Waker;
use tokio::time::Instant;

impl State {
    /// The version that is spoken, given the bytes that have come and were not understood yet; `None` if that cannot be
    /// told yet.
    pub(in crate::transport::smux) fn version(&mut self, input: &[u8]) -> Option<u8> {
        if self.version.is_none() {
            // Any other version fails to be understood as 1.
            self.version = input.first().map(|version| if *version == 2 { 2 } else { 1 });
        }
        self.version
    }

    /// Whether more may be read from the connection.
    pub(in crate::transport::smux) fn may_read(&self, options: &MuxOptions) -> bool {
        self.buffered < options.max_receive_buffer
            && self.control.len() < MOST_CONTROL
            && self.accepted.len() < BACKLOG
    }

    /// Whether a drained session has nothing left to do.
    pub(in crate::transport::smux) fn is_finished(&self) -> bool {
        self.draining && self.channels.is_empty() && self.control.is_empty()
    }

    /// Moves frames to `out` until it holds `enough` or nothing is left to send.
    pub(in crate::transport::smux) fn fill(
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
    pub(in crate::transport::smux) fn receive(
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
                channel.asking = false;
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
        if side == Side::Server && !self.draining {
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
}
