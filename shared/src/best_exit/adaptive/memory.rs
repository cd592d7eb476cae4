//! What is remembered of one exit: its last rounds, its long-run loss, whether it can be used.

use super::noise::{Noise, WINDOWS};
use super::rounds::{Rounds, Seen};
use crate::best_exit::machine::Candidate;
use crate::best_exit::{Leg, LegFailure, MonoMs};
use crate::ids::NodeId;
use serde::{Deserialize, Serialize};

/// Samples per leg before an exit is judged (Wilson's bound of 20 clean ones is 12 % loss; of fewer it says nothing).
pub(super) const ENOUGH_SAMPLES: u32 = 20;
/// What a round leaves of the long-run loss before it: its half-life is 360 rounds, half an hour at 5 s.
const KEEP: f64 = 0.998_076_443_575_628_7;
/// Strength of the prior that a leg loses 1 %: as if it had lost half a sample of 50.
const PRIOR: (f64, f64) = (0.5, 50.0);
/// Nobody is held to lose less than this, or more, when a change is looked for.
const BEFORE: (f64, f64) = (0.005, 0.5);
/// Rounds without which the last ones say nothing of what an exit used to lose.
const RECENT_ROUNDS: usize = 32;
/// The changes of loss that are looked for: to so many times as much, or by so much more.
const CHANGES: [(f64, f64); 2] = [(2.0, 0.03), (3.0, 0.08)];
/// Where the sum for a change of loss stops growing, so that it can also shrink in time.
const MAX_SUM: f64 = 22.0;
/// Rounds without anything until an exit is down; one alone may be a short burst.
const FALL: u32 = 2;
/// An exit that was down proves itself for twice as long with every time it went down of late.
const MAX_DOUBLINGS: f64 = 5.0;
/// Half-life of the memory of having been down.
const DOWN_HALF_LIFE_MS: f64 = 3_600_000.0;

/// One of the two legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum LegName {
    /// Owner → exit.
    A,
    /// Exit → probe target.
    B,
}

/// Whether an exit can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub(super) enum State {
    /// Too few recent samples.
    Unknown,
    /// It works.
    Up,
    /// A whole round failed.
    Suspect,
    /// Two did, or it refused.
    Down,
    /// It works again, and has to prove it.
    Probation,
}

/// What is remembered of a leg beyond its last rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Long {
    sent: f64,
    lost: f64,
    /// Page's sums for a small and a large change of the loss: each grows while more is lost than before.
    sums: [f64; 2],
}

impl Long {
    /// Long-run loss, drawn towards 1 % by the prior.
    pub(super) fn loss(&self) -> f64 {
        (self.lost + PRIOR.0) / (self.sent + PRIOR.1)
    }

    /// The larger of Page's sums.
    pub(super) fn sum(&self) -> f64 {
        self.sums[0].max(self.sums[1])
    }

    /// One round. `spread`: how much more the loss wanders than independent losses would; `recent`: the loss over the
    /// longest window. An outage of half an hour ago, in which the long run still believes, hides no new one.
    fn add(&mut self, sent: f64, lost: f64, spread: f64, recent: f64) {
        if sent <= 0.0 {
            return;
        }
        let before = self.loss().min(recent).clamp(BEFORE.0, BEFORE.1);
        for (sum, (factor, more)) in self.sums.iter_mut().zip(CHANGES) {
            // What is not lost makes a sum smaller, and an empty one stays empty.
            if lost <= 0.0 && *sum <= 0.0 {
                continue;
            }
            let after = (factor * before).max(before + more).min(0.9);
            let mut gain = (sent - lost) * ((1.0 - after) / (1.0 - before)).ln();
            if lost > 0.0 {
                gain += lost * (after / before).ln();
            }
            *sum = (*sum + gain / spread).clamp(0.0, MAX_SUM);
        }
        self.sent = self.sent * KEEP + sent;
        self.lost = self.lost * KEEP + lost;
    }
}

/// Everything about one exit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Memory {
    pub(super) exit: NodeId,
    /// The last ones, both legs.
    pub(super) rounds: Rounds,
    pub(super) long: [Long; 2],
    pub(super) latency_noise: Noise,
    pub(super) loss_noise: Noise,
    pub(super) state: State,
    /// The leg that failed last.
    pub(super) failed_leg: LegName,
    /// Failed rounds in a row.
    failed: u32,
    /// Samples since it was first, or again, measured without a gap.
    pub(super) fresh: u32,
    /// When both legs were last tried.
    pub(super) tried: MonoMs,
    /// How often it went down of late.
    downs: f64,
    downs_at: MonoMs,
}

impl Memory {
    pub(super) fn new(exit: NodeId, now: MonoMs) -> Self {
        Self {
            exit,
            rounds: Rounds::default(),
            long: [Long::default(), Long::default()],
            latency_noise: Noise::default(),
            loss_noise: Noise::default(),
            state: State::Unknown,
            failed_leg: LegName::A,
            failed: 0,
            fresh: 0,
            tried: now,
            downs: 0.0,
            downs_at: now,
        }
    }

    /// Takes a round into account. `samples`: of one leg, as the settings ask for.
    pub(super) fn add(&mut self, candidate: &Candidate, samples: u32, now: MonoMs) {
        let legs = [&candidate.leg_a, &candidate.leg_b];
        let seen = Seen::new(legs, samples);
        let recent = [0, 1].map(|leg| self.recent_loss(leg));
        self.rounds.push(seen);
        let spread = self.spread(samples);
        for (i, long) in self.long.iter_mut().enumerate() {
            long.add(seen.sent(i), seen.lost(i), spread, recent[i]);
        }
        let failed = legs.iter().position(|leg| matches!(leg, Leg::Failed { .. }));
        let measured = seen.is_measured();
        if measured {
            self.latency_noise.add(seen.ms(0) + seen.ms(1));
            self.loss_noise.add(seen.lost(0) / seen.sent(0) + seen.lost(1) / seen.sent(1));
        }
        match failed {
            Some(leg) => {
                self.failed_leg = if leg == 0 { LegName::A } else { LegName::B };
                self.tried = now;
                self.failed += 1;
                let hard = matches!(
                    legs[leg],
                    Leg::Failed {
                        reason: LegFailure::Refused | LegFailure::Unresolved | LegFailure::Unreachable
                    }
                );
                self.fail(hard, now);
            }
            None if measured => {
                self.tried = now;
                self.failed = 0;
                self.fresh = self.fresh.saturating_add(samples);
                self.work(now);
            }
            // Not tried is neither good nor bad.
            None => {}
        }
    }

    fn fail(&mut self, hard: bool, now: MonoMs) {
        let down = hard || self.failed >= FALL || matches!(self.state, State::Down | State::Probation);
        if !down {
            self.state = State::Suspect;
            return;
        }
        if self.state != State::Down {
            self.downs = self.recent_downs(now) + 1.0;
            self.downs_at = now;
        }
        self.state = State::Down;
        self.fresh = 0;
    }

    fn work(&mut self, now: MonoMs) {
        self.state = match self.state {
            State::Down => State::Probation,
            State::Probation if self.fresh < self.needed(now) => State::Probation,
            State::Unknown if self.fresh < ENOUGH_SAMPLES => State::Unknown,
            State::Unknown | State::Up | State::Suspect | State::Probation => State::Up,
        };
    }

    /// Samples that an exit needs before it is judged like others.
    pub(super) fn needed(&self, now: MonoMs) -> u32 {
        let doublings = (self.recent_downs(now) - 1.0).clamp(0.0, MAX_DOUBLINGS);
        (f64::from(ENOUGH_SAMPLES) * doublings.exp2()).ceil() as u32
    }

    fn recent_downs(&self, now: MonoMs) -> f64 {
        self.downs * (-(now.saturating_sub(self.downs_at) as f64) / DOWN_HALF_LIFE_MS).exp2()
    }

    /// Evidence from before a gap is kept, and does not decide alone.
    pub(super) fn gap(&mut self) {
        self.fresh = 0;
        if matches!(self.state, State::Up | State::Suspect) {
            self.state = State::Unknown;
        }
    }

    /// Its last round worked, whatever was before.
    pub(super) fn works_now(&self) -> bool {
        self.failed == 0 && self.rounds.newest().is_some_and(Seen::is_measured)
    }

    /// The loss of a leg over the longest window, drawn like the long run; 1 before enough is known.
    fn recent_loss(&self, leg: usize) -> f64 {
        if self.rounds.len() < RECENT_ROUNDS {
            return 1.0;
        }
        let sums = self.rounds.window(WINDOWS.len() - 1);
        (sums.lost(leg) + PRIOR.0) / (sums.sent(leg) + PRIOR.1)
    }

    /// Samples that a leg lost in the last 16 rounds.
    pub(super) fn lost_of_late(&self, leg: usize) -> f64 {
        self.rounds.window(2).lost(leg)
    }

    /// Mean latency of both legs in milliseconds over window number `scale`, and the loss of each, drawn towards the
    /// long run.
    pub(super) fn summary(&self, scale: usize) -> Option<(f64, [f64; 2])> {
        let (sums, count) = (self.rounds.window(scale), self.rounds.measured(scale));
        let loss = |leg: usize| (sums.lost(leg) + self.long[leg].loss() * 20.0) / (sums.sent(leg) + 20.0);
        (count > 0).then(|| ((sums.ms(0) + sums.ms(1)) / f64::from(count), [loss(0), loss(1)]))
    }

    /// How much more the loss wanders than independent losses would: 1, or more on a path with bursts.
    fn spread(&self, samples: u32) -> f64 {
        let sums = self.rounds.window(WINDOWS.len() - 1);
        // Over the rounds that the noise is measured over: where more is lost, it wanders more.
        let independent: f64 = (0..2)
            .map(|leg| (sums.lost(leg) + PRIOR.0) / (sums.sent(leg) + PRIOR.1))
            .map(|loss| loss * (1.0 - loss))
            .sum::<f64>()
            / (WINDOWS[0] as f64 * f64::from(samples.max(1)));
        let measured = self.loss_noise.variance(0).unwrap_or(0.0);
        (measured / independent).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_run_halves_in_half_an_hour() {
        assert!((KEEP.powi(360) - 0.5).abs() < 1e-12);
    }
}
