//! What time does to the state: keepalives, patience that ends, streams that hold up others.

use super::{Cut, HALF_CLOSE_PATIENCE, IDLE, Own, Pressure, STALL_PATIENCE, STALL_SHARE, Side, State};
use crate::transport::smux::frame::{Body, KEEPALIVE};
use crate::transport::smux::options::MuxOptions;
use std::task::Waker;
use tokio::time::Instant;

impl State {
    /// Does what time brings. `Err` when the session is dead.
    pub(in crate::transport::smux) fn tick(
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
                    channel.unanswered = channel.asking;
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
}
