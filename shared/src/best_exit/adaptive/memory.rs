//! What is remembered of one exit: its last rounds, its long-run loss, whether it can be used.

use super::noise::{Noise, WINDOWS};
use crate::best_exit::machine::Candidate;
use crate::best_exit::{Leg, LegFailure, MonoMs};
use crate::ids::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Rounds kept: the longest window.
pub(super) const KEPT: usize = WINDOWS[WINDOWS.len() - 1];
/// Samples per leg before an exit is judged (Wilson's bound of 20 clean ones is 12 % loss; of fewer it says nothing).
pub(super) const ENOUGH_SAMPLES: u32 = 20;
/// Half-life of the long-run loss, in rounds: half an hour at 5 s.
const LONG_ROUNDS: f64 = 360.0;
/// Strength of the prior that a leg loses 1 %: as if it had lost half a sample of 50.
const PRIOR: (f64, f64) = (0.5, 50.0);
/// The changes of loss that are looked for: to so many times as much, or by so much more.
const CHANGES: [(f64, f64); 2] = [(2.0, 0.03), (3.0, 0.08)];
/// A peer's agent may say anything; beyond an hour one number is as bad as another.
const LONGEST_MS: f64 = 3_600_000.0;
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

/// One leg in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Mean latency; negative: none.
    pub(super) ms: f32,
    pub(super) sent: f32,
    pub(super) lost: f32,
}

const MISSING: Seen = Seen { ms: -1.0, sent: 0.0, lost: 0.0 };

/// What is remembered of a leg beyond its last rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Long {
    sent: f64,
    lost: f64,
    /// Page's sums for a small and a large change of the loss: each grows while more is lost than in the long run.
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

    /// `spread`: how much more the loss wanders than independent losses would.
    fn add(&mut self, seen: Seen, spread: f64) {
        let (sent, lost) = (f64::from(seen.sent), f64::from(seen.lost));
        if sent <= 0.0 {
            return;
        }
        let before = self.loss().clamp(0.01, 0.5);
        for (sum, (factor, more)) in self.sums.iter_mut().zip(CHANGES) {
            let after = (factor * before).max(before + more).min(0.9);
            let gain = lost * (after / before).ln() + (sent - lost) * ((1.0 - after) / (1.0 - before)).ln();
            *sum = (*sum + gain / spread).clamp(0.0, MAX_SUM);
        }
        let keep = 0.5f64.powf(1.0 / LONG_ROUNDS);
        self.sent = self.sent * keep + sent;
        self.lost = self.lost * keep + lost;
    }
}

/// Everything about one exit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Memory {
    pub(super) exit: NodeId,
    /// Both legs, newest last.
    pub(super) rounds: VecDeque<[Seen; 2]>,
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
            rounds: VecDeque::with_capacity(KEPT),
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
        let seen = legs.map(|leg| seen(leg, samples));
        if self.rounds.len() == KEPT {
            self.rounds.pop_front();
        }
        self.rounds.push_back(seen);
        let spread = self.spread(samples);
        for (long, seen) in self.long.iter_mut().zip(seen) {
            long.add(seen, spread);
        }
        let failed = legs.iter().position(|leg| matches!(leg, Leg::Failed { .. }));
        let measured = legs.iter().all(|leg| leg.numbers().is_some());
        if measured {
            self.latency_noise.add(f64::from(seen[0].ms) + f64::from(seen[1].ms));
            let share = |seen: Seen| f64::from(seen.lost / seen.sent);
            self.loss_noise.add(share(seen[0]) + share(seen[1]));
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
        self.failed == 0 && self.rounds.back().is_some_and(|legs| legs.iter().all(|leg| leg.ms >= 0.0))
    }

    /// Samples that a leg lost in the last 16 rounds.
    pub(super) fn lost_of_late(&self, leg: usize) -> f32 {
        self.rounds.iter().rev().take(WINDOWS[2]).map(|legs| legs[leg].lost).sum()
    }

    /// Mean latency of both legs in milliseconds over the last `rounds`, and the loss of each, drawn towards the long run.
    pub(super) fn summary(&self, rounds: usize) -> Option<(f64, [f64; 2])> {
        let (mut ms, mut count, mut sent, mut lost) = (0.0, 0u32, [0.0; 2], [0.0; 2]);
        for legs in self.rounds.iter().rev().take(rounds) {
            if legs.iter().all(|leg| leg.ms >= 0.0) {
                ms += f64::from(legs[0].ms) + f64::from(legs[1].ms);
                count += 1;
            }
            for (i, leg) in legs.iter().enumerate() {
                sent[i] += f64::from(leg.sent);
                lost[i] += f64::from(leg.lost);
            }
        }
        let loss = |i: usize| (lost[i] + self.long[i].loss() * 20.0) / (sent[i] + 20.0);
        (count > 0).then(|| (ms / f64::from(count), [loss(0), loss(1)]))
    }

    /// How much more the loss wanders than independent losses would: 1, or more on a path with bursts.
    fn spread(&self, samples: u32) -> f64 {
        let independent: f64 = self.long.iter().map(|long| long.loss() * (1.0 - long.loss())).sum::<f64>()
            / (WINDOWS[0] as f64 * f64::from(samples.max(1)));
        let measured = self.loss_noise.variance(0).unwrap_or(0.0);
        (measured / independent).max(1.0)
    }
}

fn seen(leg: &Leg, samples: u32) -> Seen {
    let sent = samples.max(1) as f32;
    match (leg, leg.numbers()) {
        (_, Some((ms, loss))) => Seen { ms: ms.min(LONGEST_MS) as f32, sent, lost: loss as f32 * sent },
        (Leg::Unmeasured { .. }, None) => MISSING,
        (_, None) => Seen { ms: -1.0, sent, lost: sent },
    }
}
