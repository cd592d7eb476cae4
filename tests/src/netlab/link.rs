//! One direction of a link: for each packet, when it arrives or why not. Pure: time and seed are given.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::impairment::{Burst, Impairment, Rate};
use super::stats::DropReason;

/// Whether a direction lets packets through at all. Kept apart from the impairment so that repairing a link
/// brings back what it was before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passage {
    /// Packets pass, impaired.
    #[default]
    Open,
    /// Both directions are cut.
    Cut,
    /// This direction swallows everything; the other one is as it was.
    BlackHole,
}

/// What happens to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Deliver {
        /// Time since the lab's start.
        at: Duration,
        /// Held back so that later packets overtake it.
        held: bool,
    },
    Drop(DropReason),
}

/// The decisions of one direction.
#[derive(Debug)]
pub(crate) struct LinkModel {
    impairment: Impairment,
    pub(crate) passage: Passage,
    random: ChaCha8Rng,
    in_burst: bool,
    /// When the rate has worked off what was accepted (a "theoretical arrival time").
    busy_until: Duration,
    /// Arrival of the last packet that was not held back; the next is not earlier.
    last_arrival: Duration,
}

impl LinkModel {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            impairment: Impairment::default(),
            passage: Passage::Open,
            random: ChaCha8Rng::seed_from_u64(seed),
            in_burst: false,
            busy_until: Duration::ZERO,
            last_arrival: Duration::ZERO,
        }
    }

    /// Starts the sequence of decisions anew.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.random = ChaCha8Rng::seed_from_u64(seed);
        self.in_burst = false;
    }

    pub(crate) fn impairment(&self) -> &Impairment {
        &self.impairment
    }

    /// From now on. Packets on the way keep their time, and later ones do not overtake them.
    pub(crate) fn set(&mut self, impairment: Impairment) {
        if impairment.burst.is_none() {
            self.in_burst = false;
        }
        self.impairment = impairment;
    }

    /// The fate of a packet of `bytes` that enters at `now`, a time since the lab's start that never goes back.
    ///
    /// Always takes the same number of random values, so which packets are lost depends on the seed, the
    /// probabilities and the number of packets before, not on delays, the rate or cuts in between.
    pub(crate) fn decide(&mut self, now: Duration, bytes: usize) -> Verdict {
        let [loss, turn, burst_loss, jitter, reorder] = std::array::from_fn(|_| self.random.random::<f64>());
        let lost_in_burst =
            self.impairment.burst.is_some_and(|burst| self.step_burst(burst, turn, burst_loss));
        match self.passage {
            Passage::Open => {}
            Passage::Cut => return Verdict::Drop(DropReason::Cut),
            Passage::BlackHole => return Verdict::Drop(DropReason::BlackHole),
        }
        // The queue is in front of the wire: a packet lost on the wire has used its share of the rate.
        let departure = match self.impairment.rate {
            None => now,
            Some(rate) => match self.admit(rate, now, bytes) {
                Some(departure) => departure,
                None => return Verdict::Drop(DropReason::QueueFull),
            },
        };
        if loss < self.impairment.loss {
            return Verdict::Drop(DropReason::Loss);
        }
        if lost_in_burst {
            return Verdict::Drop(DropReason::Burst);
        }
        let spread = self.impairment.jitter.mul_f64(2.0 * jitter);
        let flight = (self.impairment.delay + spread).saturating_sub(self.impairment.jitter);
        let at = (departure + flight).max(self.last_arrival);
        match self.impairment.reorder {
            Some(asked) if reorder < asked.probability => {
                Verdict::Deliver { at: at + asked.hold, held: true }
            }
            _ => {
                self.last_arrival = at;
                Verdict::Deliver { at, held: false }
            }
        }
    }

    /// Moves the Gilbert-Elliott chain by one packet and says whether that packet is lost.
    fn step_burst(&mut self, burst: Burst, turn: f64, loss: f64) -> bool {
        let change = if self.in_burst { burst.bad_to_good } else { burst.good_to_bad };
        if turn < change {
            self.in_burst = !self.in_burst;
        }
        loss < if self.in_burst { burst.loss_bad } else { burst.loss_good }
    }

    /// When the packet leaves the queue, or `None` when there is no room in it.
    ///
    /// A full bucket is the same as a rate that started `burst_bytes` ago, so one time is all the state.
    fn admit(&mut self, rate: Rate, now: Duration, bytes: usize) -> Option<Duration> {
        let full_bucket = now.saturating_sub(time_for(rate, rate.burst_bytes));
        let done = self.busy_until.max(full_bucket) + time_for(rate, bytes as u64);
        let departure = done.max(now);
        if departure - now > time_for(rate, rate.queue_bytes) {
            return None;
        }
        self.busy_until = done;
        Some(departure)
    }
}

/// How long this rate takes for this many bytes, to the nanosecond.
fn time_for(rate: Rate, bytes: u64) -> Duration {
    let nanos = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(rate.bits_per_second);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The seed of the direction from `from` to `to`: the lab's seed and both names, so that it does not depend on the
/// order in which hosts were made. FNV-1a, with its published 64-bit constants.
pub(crate) fn link_seed(lab_seed: u64, from: &str, to: &str) -> u64 {
    let seed = lab_seed.to_le_bytes();
    let bytes = seed.iter().chain(from.as_bytes()).chain(&[0]).chain(to.as_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
