//! Whether another exit is better than the current one, and how sure that is.

use super::memory::{LegName, Memory, Seen};
use super::noise::WINDOWS;
use crate::best_exit::Settings;
use serde::{Deserialize, Serialize};

/// Rounds that must all show a large step of latency.
const STEP_ROUNDS: usize = 3;
/// Standard errors that a difference of latency must exceed.
const LATENCY_SIGMAS: f64 = 3.0;
/// The same for a step, which is looked for in every round and in few of them.
const STEP_SIGMAS: f64 = 5.0;
/// Standard errors of a difference of loss that count as nothing.
const LOSS_SIGMAS: f64 = 3.0;
/// The same where a change of the loss was detected by itself.
const CHANGED_SIGMAS: f64 = 1.5;
/// Standard errors of a loss that speaks against the other exit; doubt counts against moving.
const AGAINST_SIGMAS: f64 = 1.0;
/// Rounds that both must have been seen for, before windows below 16 and single steps count.
const SETTLED: usize = 32;
/// Before that, a gain of this share of the score is worth moving for.
const BOLD: f64 = 0.5;
/// The same for loss, of which only what is certain counts as a gain.
const BOLD_LOSS: f64 = 0.25;
/// The share of the needed advantage that the last 8 rounds must still show.
const STILL: f64 = 0.5;
/// Page's sum from which a change of the loss is certain: one false alarm in about e^11 = 60,000 rounds.
const CHANGE: f64 = 11.0;
/// The share of a window's rounds that must have been measured on both sides.
const COVERED: f64 = 0.75;

/// What speaks for a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The current exit does not work.
    Down,
    /// Its latency rose by a step.
    Step,
    /// It loses more than it used to.
    Loss,
    /// It is worse in the mean of a window.
    Window,
    /// It is not measured any more.
    Unmeasured,
}

/// The evidence for or against one other exit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    /// Its advantage in milliseconds of score; loss counts as far as it is certain.
    pub(super) have_ms: f64,
    /// The advantage needed: the settings' margin, or more where the noise is larger.
    pub(super) need_ms: f64,
    pub(super) trigger: Trigger,
    /// The leg of the current exit that makes most of it.
    pub(super) leg: LegName,
    /// Rounds looked at.
    pub(super) rounds: usize,
}

impl Evidence {
    pub(super) fn is_enough(&self) -> bool {
        self.have_ms >= self.need_ms
    }

    fn ratio(&self) -> f64 {
        self.have_ms / self.need_ms.max(1e-6)
    }
}

/// Sums over the last rounds of two exits.
#[derive(Clone, Copy, Default)]
struct Sums {
    rounds: usize,
    pairs: usize,
    gain: [f64; 2],
    most: f64,
    current_ms: f64,
    sent: [[f64; 2]; 2],
    lost: [[f64; 2]; 2],
}

/// The strongest evidence that `other` is better than `current`. `shortest`: windows below are not looked at (0 = all,
/// and single steps too).
pub(super) fn compare(current: &Memory, other: &Memory, settings: &Settings, shortest: usize) -> Evidence {
    let nothing = Evidence {
        have_ms: 0.0,
        need_ms: settings.min_advantage_ms.max(1e-6),
        trigger: Trigger::Window,
        leg: LegName::A,
        rounds: 0,
    };
    // It has just begun to lose more: no time to move there.
    if (0..2).any(|leg| other.long[leg].sum() >= CHANGE / 2.0 && other.lost_of_late(leg) > 1.5) {
        return nothing;
    }
    let young = other.rounds.len().min(current.rounds.len()) < SETTLED;
    let shortest = if young { shortest.max(WINDOWS[2]) } else { shortest };
    let mut pair = Pair::new(current, other, settings);
    pair.young = young;
    let mut best: Option<Evidence> = None;
    let mut take = |evidence: Evidence| {
        if best.is_none_or(|best| evidence.ratio() > best.ratio()) {
            best = Some(evidence);
        }
    };
    let mut scale = 0;
    for (of_current, of_other) in current.rounds.iter().rev().zip(other.rounds.iter().rev()) {
        pair.add(of_current, of_other);
        let rounds = pair.sums.rounds;
        if rounds == STEP_ROUNDS && pair.step && shortest == 0 {
            take(pair.step());
        }
        if scale < WINDOWS.len() && rounds == WINDOWS[scale] {
            pair.note_recent(scale);
            if WINDOWS[scale] >= shortest.max(WINDOWS[1]) && pair.sums.pairs as f64 >= COVERED * rounds as f64
            {
                take(pair.window(scale));
            }
            scale += 1;
        }
    }
    best.unwrap_or(nothing)
}

/// Two exits side by side.
struct Pair<'a> {
    current: &'a Memory,
    other: &'a Memory,
    settings: &'a Settings,
    penalty: f64,
    sums: Sums,
    /// One of them is not known for long.
    young: bool,
    /// Each of the last rounds shows a large gain.
    step: bool,
    /// What the other exit's loss costs more than the current one's, as far as it is likely: zero or negative.
    against_ms: f64,
    /// Mean gain of latency over the last 8 rounds, and of loss over the last 16.
    recent: (f64, f64),
}

impl<'a> Pair<'a> {
    fn new(current: &'a Memory, other: &'a Memory, settings: &'a Settings) -> Self {
        let penalty = settings.loss_penalty_ms_per_percent * 100.0;
        let mut all = Sums::default();
        for (of_current, of_other) in current.rounds.iter().rev().zip(other.rounds.iter().rev()) {
            all.add_loss(of_current, of_other);
        }
        let (loss, error) = losses(&all, current, other);
        let raw = combined(loss[0]) - combined(loss[1]);
        let against_ms = (raw + AGAINST_SIGMAS * error).min(0.0) * penalty;
        let sums = Sums { most: f64::MIN, ..Sums::default() };
        Self {
            current,
            other,
            settings,
            penalty,
            sums,
            young: false,
            step: true,
            against_ms,
            recent: (0.0, 0.0),
        }
    }

    fn add(&mut self, of_current: &[Seen; 2], of_other: &[Seen; 2]) {
        let sums = &mut self.sums;
        sums.rounds += 1;
        if of_current.iter().chain(of_other).all(|leg| leg.ms >= 0.0) {
            let gain = [0, 1].map(|i| f64::from(of_current[i].ms) - f64::from(of_other[i].ms));
            let total = gain[0] + gain[1];
            let ms = f64::from(of_current[0].ms) + f64::from(of_current[1].ms);
            sums.pairs += 1;
            sums.gain[0] += gain[0];
            sums.gain[1] += gain[1];
            sums.most = sums.most.max(total);
            sums.current_ms += ms;
            self.step &= total >= margin(self.settings, ms);
        } else if sums.rounds <= STEP_ROUNDS {
            self.step = false;
        }
        sums.add_loss(of_current, of_other);
    }

    fn note_recent(&mut self, scale: usize) {
        if scale <= 1 {
            self.recent.0 = (self.sums.gain[0] + self.sums.gain[1]) / self.sums.pairs.max(1) as f64;
        }
        if scale <= 2 {
            let (loss, _) = losses(&self.sums, self.current, self.other);
            self.recent.1 = combined(loss[0]) - combined(loss[1]);
        }
    }

    /// A large step: every one of the last rounds shows it, and it is larger than the noise of their mean.
    fn step(&self) -> Evidence {
        let sums = &self.sums;
        let pairs = sums.pairs.max(1) as f64;
        let lost: f64 = sums.lost[1].iter().sum::<f64>() - sums.lost[0].iter().sum::<f64>();
        let gain = (sums.gain[0] + sums.gain[1]) / pairs + self.against_ms;
        let need = margin(self.settings, sums.current_ms / pairs).max(STEP_SIGMAS * self.step_noise());
        Evidence {
            have_ms: if lost > 1.5 { 0.0 } else { gain },
            need_ms: need,
            trigger: Trigger::Step,
            leg: guilty(sums.gain),
            rounds: sums.rounds,
        }
    }

    fn window(&self, scale: usize) -> Evidence {
        let (sums, current, other) = (&self.sums, self.current, self.other);
        let pairs = sums.pairs as f64;
        let mean = (sums.gain[0] + sums.gain[1]) / pairs;
        // One outlier is no evidence: the best round does not count for the other exit.
        let latency_gain =
            if mean > 0.0 { (mean * pairs - sums.most) / (pairs - 1.0).max(1.0) } else { mean };

        let (loss, independent) = losses(sums, current, other);
        let wandering: f64 =
            [current, other].iter().map(|m| m.loss_noise.variance(scale).unwrap_or(0.0)).sum();
        let error = independent.max(wandering.sqrt());
        let changed = (0..2).find(|i| current.long[*i].sum() >= CHANGE);
        let sigmas = if changed.is_some() { CHANGED_SIGMAS } else { LOSS_SIGMAS };
        let raw = combined(loss[0]) - combined(loss[1]);
        let loss_gain = (raw - sigmas * error).max(0.0) * self.penalty;

        let have = latency_gain + loss_gain + self.against_ms;
        let score = sums.current_ms / pairs + combined(loss[0]) * self.penalty;
        let need = margin(self.settings, score).max(LATENCY_SIGMAS * self.noise(scale));
        // A long window reaches back behind the last change: what it says must still be so.
        let by_loss = loss_gain > latency_gain;
        let still = if by_loss { self.recent.1 > 0.0 } else { self.recent.0 >= STILL * need };
        // Few samples cannot show that it loses nothing; only a large gain is worth that risk.
        let bold = latency_gain >= BOLD * score || loss_gain >= BOLD_LOSS * score;
        let risky = self.young && scale <= 2 && !bold;
        let leg = match changed {
            Some(0) => LegName::A,
            Some(_) => LegName::B,
            None if by_loss => guilty([0, 1].map(|i| loss[0][i] - loss[1][i])),
            None => guilty(sums.gain),
        };
        let trigger = if changed.is_some() && by_loss { Trigger::Loss } else { Trigger::Window };
        let have_ms = if still && !risky { have } else { have.min(STILL * need) };
        Evidence { have_ms, need_ms: need, trigger, leg, rounds: sums.rounds }
    }

    /// The same over the few rounds of a step: also as longer blocks tell it, which know it better where it is white.
    fn step_noise(&self) -> f64 {
        self.noise(0).max(self.noise(1) * 1.19).max(self.noise(2) * 1.41)
    }

    /// Standard error of the difference of mean latencies over a window.
    fn noise(&self, scale: usize) -> f64 {
        let of = |memory: &Memory| memory.latency_noise.variance(scale).unwrap_or(0.0);
        (of(self.current) + of(self.other)).sqrt()
    }
}

impl Sums {
    fn add_loss(&mut self, of_current: &[Seen; 2], of_other: &[Seen; 2]) {
        for i in 0..2 {
            for (side, legs) in [of_current, of_other].into_iter().enumerate() {
                self.sent[side][i] += f64::from(legs[i].sent);
                self.lost[side][i] += f64::from(legs[i].lost);
            }
        }
    }
}

/// The loss of each leg of both, and the standard error of the difference if losses are independent.
#[expect(clippy::needless_range_loop, reason = "two sides and two legs, in several arrays at once")]
fn losses(sums: &Sums, current: &Memory, other: &Memory) -> ([[f64; 2]; 2], f64) {
    let mut loss = [[0.0; 2]; 2];
    let mut variance = 0.0;
    for i in 0..2 {
        // Both sides are drawn to the same place, so that equals stay equals.
        let prior = f64::midpoint(current.long[i].loss(), other.long[i].loss());
        for side in 0..2 {
            let sent = sums.sent[side][i];
            loss[side][i] = (sums.lost[side][i] + prior * 4.0) / (sent + 4.0);
            variance += loss[side][i] * (1.0 - loss[side][i]) / sent.max(1.0);
        }
    }
    (loss, variance.sqrt())
}

fn margin(settings: &Settings, current_ms: f64) -> f64 {
    settings.min_advantage_ms.max(settings.min_advantage_ratio * current_ms)
}

fn combined(loss: [f64; 2]) -> f64 {
    1.0 - (1.0 - loss[0]) * (1.0 - loss[1])
}

fn guilty(gain: [f64; 2]) -> LegName {
    if gain[0] >= gain[1] { LegName::A } else { LegName::B }
}
