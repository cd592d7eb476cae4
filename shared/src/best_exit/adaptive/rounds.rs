//! The last rounds of one exit, and the sums over windows of them that are kept up to date.
//!
//! Whole numbers: sums that grow and shrink for months stay exact, and two machines have the same.

use super::noise::WINDOWS;
use crate::best_exit::Leg;
use serde::{Deserialize, Serialize};

/// Rounds kept: the longest window.
pub(super) const KEPT: usize = WINDOWS[WINDOWS.len() - 1];
/// Parts of a sample in which loss is counted: a peer's agent tells a percentage.
pub(super) const PARTS: f64 = 1024.0;
/// A peer's agent may say anything; beyond an hour one number is as bad as another.
const LONGEST_US: f64 = 3_600_000_000.0;
/// More samples of a leg in one round are counted as so many; the settings allow 20.
const MOST_SAMPLES: u32 = 63;
/// No latency.
const NONE: u32 = u32::MAX;

/// Both legs in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Mean latency in microseconds, or [`NONE`].
    us: [u32; 2],
    /// Samples lost, in [`PARTS`].
    lost: [u16; 2],
    /// Samples tried; 0: the leg was not measured.
    sent: [u8; 2],
}

impl Seen {
    /// `samples`: of one leg, as the settings ask for.
    pub(super) fn new(legs: [&Leg; 2], samples: u32) -> Self {
        let sent = samples.clamp(1, MOST_SAMPLES) as u8;
        let mut seen = Self { us: [NONE; 2], lost: [0; 2], sent: [0; 2] };
        for (i, leg) in legs.into_iter().enumerate() {
            match (leg, leg.numbers()) {
                (_, Some((ms, loss))) => {
                    seen.us[i] = (ms * 1000.0).min(LONGEST_US) as u32;
                    seen.lost[i] = (loss * f64::from(sent) * PARTS).round() as u16;
                    seen.sent[i] = sent;
                }
                (Leg::Unmeasured { .. }, None) => {}
                (_, None) => {
                    seen.lost[i] = u16::from(sent).saturating_mul(PARTS as u16);
                    seen.sent[i] = sent;
                }
            }
        }
        seen
    }

    /// Both legs have a latency.
    pub(super) fn is_measured(&self) -> bool {
        self.us[0] != NONE && self.us[1] != NONE
    }

    /// Both legs were tried.
    pub(super) fn is_tried(&self) -> bool {
        self.sent[0] > 0 && self.sent[1] > 0
    }

    /// Latency of a leg in milliseconds; only of measured ones.
    pub(super) fn ms(&self, leg: usize) -> f64 {
        f64::from(self.us[leg]) / 1000.0
    }

    /// Latency of both legs in microseconds; only of measured ones.
    pub(super) fn total_us(&self) -> i64 {
        i64::from(self.us[0]) + i64::from(self.us[1])
    }

    pub(super) fn sent(&self, leg: usize) -> f64 {
        f64::from(self.sent[leg])
    }

    pub(super) fn lost(&self, leg: usize) -> f64 {
        f64::from(self.lost[leg]) / PARTS
    }
}

/// Sums over some rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sums {
    /// Of the rounds in which both legs have a latency.
    us: [u64; 2],
    /// Of all rounds, in [`PARTS`].
    lost: [u32; 2],
    sent: [u32; 2],
}

impl Sums {
    fn add(&mut self, seen: &Seen) {
        for i in 0..2 {
            self.us[i] += if seen.is_measured() { u64::from(seen.us[i]) } else { 0 };
            self.lost[i] += u32::from(seen.lost[i]);
            self.sent[i] += u32::from(seen.sent[i]);
        }
    }

    fn take(&mut self, seen: &Seen) {
        for i in 0..2 {
            self.us[i] -= if seen.is_measured() { u64::from(seen.us[i]) } else { 0 };
            self.lost[i] -= u32::from(seen.lost[i]);
            self.sent[i] -= u32::from(seen.sent[i]);
        }
    }

    /// Of one leg, in milliseconds.
    pub(super) fn ms(&self, leg: usize) -> f64 {
        self.us[leg] as f64 / 1000.0
    }

    pub(super) fn sent(&self, leg: usize) -> f64 {
        f64::from(self.sent[leg])
    }

    pub(super) fn lost(&self, leg: usize) -> f64 {
        f64::from(self.lost[leg]) / PARTS
    }
}

/// The last rounds of an exit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rounds {
    /// How many there are.
    len: u32,
    /// Where the next round goes.
    next: u32,
    /// Over each of [`WINDOWS`], or over all rounds where there are fewer.
    sums: [Sums; WINDOWS.len()],
    /// In which rounds both legs have a latency; the lowest bit is the newest round.
    measured: u64,
    /// In halves, since they are written down as arrays, of which serde knows those of up to 32.
    ring: [[Seen; KEPT / 2]; 2],
}

impl Rounds {
    pub(super) fn push(&mut self, seen: Seen) {
        for (scale, length) in WINDOWS.into_iter().enumerate() {
            let out = self.ago(length - 1).copied();
            let sums = &mut self.sums[scale];
            if let Some(out) = out {
                sums.take(&out);
            }
            sums.add(&seen);
        }
        self.measured = self.measured << 1 | u64::from(seen.is_measured());
        let next = self.next as usize % KEPT;
        self.ring[next / (KEPT / 2)][next % (KEPT / 2)] = seen;
        self.next = (self.next + 1) % KEPT as u32;
        self.len = (self.len + 1).min(KEPT as u32);
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The round so many rounds before the newest (0).
    pub(super) fn ago(&self, rounds: usize) -> Option<&Seen> {
        let at = (self.next as usize + KEPT).wrapping_sub(1 + rounds) % KEPT;
        (rounds < self.len()).then(|| &self.ring[at / (KEPT / 2)][at % (KEPT / 2)])
    }

    pub(super) fn newest(&self) -> Option<&Seen> {
        self.ago(0)
    }

    /// Sums over window number `scale`.
    pub(super) fn window(&self, scale: usize) -> &Sums {
        &self.sums[scale]
    }

    /// In how many rounds of a window both legs have a latency.
    pub(super) fn measured(&self, scale: usize) -> u32 {
        (self.measured & mask(WINDOWS[scale])).count_ones()
    }

    /// Sums over the last `rounds`, whatever their number.
    pub(super) fn last(&self, rounds: usize) -> Sums {
        let mut sums = Sums::default();
        (0..rounds).filter_map(|ago| self.ago(ago)).for_each(|seen| sums.add(seen));
        sums
    }
}

/// Two exits over the same window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Paired {
    /// Rounds in which both exits have a latency.
    pub(super) pairs: u32,
    /// How much longer the first exit's legs were in these, in milliseconds.
    pub(super) gain_ms: [f64; 2],
    /// The first exit's latency in these, in milliseconds.
    pub(super) first_ms: f64,
}

/// Side by side over window number `scale`.
pub(super) fn paired(first: &Rounds, second: &Rounds, scale: usize) -> Paired {
    let window = mask(WINDOWS[scale]);
    let sum = |of: &Rounds, without: u64| {
        let mut us = of.sums[scale].us;
        // Few rounds are measured on one side only.
        for ago in bits(of.measured & without & window) {
            if let Some(seen) = of.ago(ago) {
                (us[0], us[1]) = (us[0] - u64::from(seen.us[0]), us[1] - u64::from(seen.us[1]));
            }
        }
        us.map(|us| us as f64 / 1000.0)
    };
    let (a, b) = (sum(first, !second.measured), sum(second, !first.measured));
    Paired {
        pairs: (first.measured & second.measured & window).count_ones(),
        gain_ms: [a[0] - b[0], a[1] - b[1]],
        first_ms: a[0] + a[1],
    }
}

/// The largest advantage of the second exit in one round of window number `scale`, in milliseconds.
pub(super) fn most(first: &Rounds, second: &Rounds, scale: usize) -> f64 {
    let both = bits(first.measured & second.measured & mask(WINDOWS[scale]));
    let gain = |ago| Some(first.ago(ago)?.total_us() - second.ago(ago)?.total_us());
    both.filter_map(gain).max().map_or(f64::MIN, |us| us as f64 / 1000.0)
}

fn mask(rounds: usize) -> u64 {
    u64::MAX >> (u64::BITS as usize - rounds)
}

/// The numbers of the bits that are set.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = set.trailing_zeros();
        (set != 0).then(|| {
            set &= set - 1;
            lowest as usize
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::best_exit::LegFailure;

    fn leg(i: u64) -> Leg {
        match i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 {
            0 => Leg::Failed { reason: LegFailure::AllLost },
            1 => Leg::Unmeasured { reason: String::new() },
            n => Leg::Measured { latency_ms: 10.0 + i as f64, loss: (n % 4) as f64 / 4.0 },
        }
    }

    /// What is kept up to date is what a sum over the rounds gives.
    #[test]
    fn sums_and_pairs_are_those_of_the_rounds() {
        let (mut a, mut b) = (Rounds::default(), Rounds::default());
        for i in 0..300u64 {
            a.push(Seen::new([&leg(i), &leg(i + 1000)], 4));
            if i >= 20 {
                b.push(Seen::new([&leg(i + 5000), &leg(i + 7000)], 4));
            }
            for (scale, length) in WINDOWS.into_iter().enumerate() {
                assert_eq!(*a.window(scale), a.last(length), "{i} {length}");
                let pairs: Vec<(&Seen, &Seen)> = (0..length)
                    .filter_map(|ago| Some((a.ago(ago)?, b.ago(ago)?)))
                    .filter(|(a, b)| a.is_measured() && b.is_measured())
                    .collect();
                let gain: f64 = pairs.iter().map(|(a, b)| a.ms(0) - b.ms(0)).sum();
                let found = paired(&a, &b, scale);
                assert_eq!(found.pairs as usize, pairs.len());
                assert!((found.gain_ms[0] - gain).abs() < 1e-6, "{i} {length}: {found:?} {gain}");
                let largest = pairs.iter().map(|(a, b)| a.total_us() - b.total_us()).max();
                assert_eq!(most(&a, &b, scale), largest.map_or(f64::MIN, |us| us as f64 / 1000.0));
            }
        }
        assert_eq!((a.len(), b.len()), (KEPT, KEPT));
    }

    #[test]
    fn wild_numbers_have_a_place() {
        let wild = Leg::Measured { latency_ms: f64::MAX, loss: 0.999_999 };
        let seen = Seen::new([&wild, &Leg::Failed { reason: LegFailure::AllLost }], u32::MAX);
        assert_eq!(seen.ms(0), 3_600_000.0);
        assert!(seen.lost(0) <= 63.0 && seen.lost(1) == 63.0 && seen.sent(1) == 63.0);
        let mut rounds = Rounds::default();
        (0..200).for_each(|_| rounds.push(seen));
        assert_eq!(rounds.measured(4), 0);
    }
}
