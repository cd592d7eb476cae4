//! Whether another exit is better than the current one, and how sure that is.

use super::memory::{LegName, Memory};
use super::noise::WINDOWS;
use super::rounds::{self, Paired, Sums};
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
const CHANGED_SIGMAS: f64 = 2.0;
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
    let known = other.rounds.len().min(current.rounds.len());
    let young = known < SETTLED;
    let shortest = if young { shortest.max(WINDOWS[2]) } else { shortest };
    let pair = Pair::new(current, other, settings, known);
    // It has begun to lose more: no time to move there, unless the current one certainly loses more still.
    if (0..2).any(|leg| other.long[leg].sum() >= CHANGE / 2.0 && other.lost_of_late(leg) > 1.5) {
        let Losses { gain, error, .. } = pair.losses[2];
        if gain < CHANGED_SIGMAS * error {
            return nothing;
        }
    }
    let mut best = if shortest == 0 { pair.step() } else { None };
    for (scale, length) in WINDOWS.into_iter().enumerate().skip(1) {
        if length > known || (young && length < WINDOWS[2]) {
            continue;
        }
        // Swings of latency are what short windows are taken away for; a loss that has certainly changed is none.
        if let Some(evidence) = pair.window(scale)
            && (length >= shortest || evidence.trigger == Trigger::Loss)
            && best.is_none_or(|best| evidence.ratio() > best.ratio())
        {
            best = Some(evidence);
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
    /// One of them is not known for long.
    young: bool,
    /// Over each window.
    losses: [Losses; WINDOWS.len()],
    /// What the other exit's loss costs more than the current one's, as far as it is likely: zero or negative.
    against_ms: f64,
    /// Mean gain of latency over the last 8 rounds, and of loss over the last 16.
    recent: (f64, f64),
}

impl<'a> Pair<'a> {
    /// `known`: rounds that both are known for.
    fn new(current: &'a Memory, other: &'a Memory, settings: &'a Settings, known: usize) -> Self {
        let penalty = settings.loss_penalty_ms_per_percent * 100.0;
        // Both sides are drawn to the same place, so that equals stay equals.
        let prior = [0, 1].map(|leg| f64::midpoint(current.long[leg].loss(), other.long[leg].loss()));
        let over = |scale| Losses::new([current.rounds.window(scale), other.rounds.window(scale)], prior);
        // The shortest window is not looked at.
        let losses = [Losses::default(), over(1), over(2), over(3), over(4)];
        let all = if current.rounds.len() == other.rounds.len() {
            losses[4]
        } else {
            Losses::new([&current.rounds.last(known), &other.rounds.last(known)], prior)
        };
        let against_ms = (all.gain + AGAINST_SIGMAS * all.error).min(0.0) * penalty;
        let latest = rounds::paired(&current.rounds, &other.rounds, 1);
        let latency = (latest.gain_ms[0] + latest.gain_ms[1]) / f64::from(latest.pairs.max(1));
        let recent = (latency, losses[if known >= WINDOWS[2] { 2 } else { 1 }].gain);
        Self { current, other, settings, penalty, young: known < SETTLED, losses, against_ms, recent }
    }

    /// A large step: every one of the last rounds shows it, and it is larger than the noise of their mean.
    fn step(&self) -> Option<Evidence> {
        let (mut gain, mut current_ms, mut lost) = ([0.0; 2], 0.0, 0.0);
        for ago in 0..STEP_ROUNDS {
            let (of_current, of_other) = (self.current.rounds.ago(ago)?, self.other.rounds.ago(ago)?);
            if !(of_current.is_measured() && of_other.is_measured()) {
                return None;
            }
            let ms = of_current.ms(0) + of_current.ms(1);
            if ms - of_other.ms(0) - of_other.ms(1) < margin(self.settings, ms) {
                return None;
            }
            current_ms += ms;
            for (leg, gain) in gain.iter_mut().enumerate() {
                *gain += of_current.ms(leg) - of_other.ms(leg);
                lost += of_other.lost(leg) - of_current.lost(leg);
            }
        }
        let rounds = STEP_ROUNDS as f64;
        let have_ms = (gain[0] + gain[1]) / rounds + self.against_ms;
        Some(Evidence {
            have_ms: if lost > 1.5 { 0.0 } else { have_ms },
            need_ms: margin(self.settings, current_ms / rounds).max(STEP_SIGMAS * self.step_noise()),
            trigger: Trigger::Step,
            leg: guilty(gain),
            rounds: STEP_ROUNDS,
        })
    }

    /// Over window number `scale`; none if too few of its rounds were measured on both sides.
    fn window(&self, scale: usize) -> Option<Evidence> {
        let (current, other) = (self.current, self.other);
        let Paired { pairs, gain_ms: gain, first_ms } = rounds::paired(&current.rounds, &other.rounds, scale);
        let pairs = f64::from(pairs);
        if pairs < COVERED * WINDOWS[scale] as f64 {
            return None;
        }
        let mean = (gain[0] + gain[1]) / pairs;
        // One outlier is no evidence: the best round does not count for the other exit.
        let latency_gain = if mean > 0.0 {
            (mean * pairs - rounds::most(&current.rounds, &other.rounds, scale)) / (pairs - 1.0).max(1.0)
        } else {
            mean
        };

        let Losses { loss, gain: raw, error: independent } = self.losses[scale];
        let wandering: f64 =
            [current, other].iter().map(|m| m.loss_noise.variance(scale).unwrap_or(0.0)).sum();
        let error = independent.max(wandering.sqrt());
        let changed = (0..2).find(|i| current.long[*i].sum() >= CHANGE);
        let sigmas = if changed.is_some() { CHANGED_SIGMAS } else { LOSS_SIGMAS };
        let loss_gain = (raw - sigmas * error).max(0.0) * self.penalty;

        let have = latency_gain + loss_gain + self.against_ms;
        let score = first_ms / pairs + combined(loss[0]) * self.penalty;
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
            None => guilty(gain),
        };
        let trigger = if changed.is_some() && by_loss { Trigger::Loss } else { Trigger::Window };
        let have_ms = if still && !risky { have } else { have.min(STILL * need) };
        Some(Evidence { have_ms, need_ms: need, trigger, leg, rounds: WINDOWS[scale] })
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

/// What two exits lost over a window.
#[derive(Clone, Copy, Default)]
struct Losses {
    /// Of the current and of the other exit, each leg.
    loss: [[f64; 2]; 2],
    /// How much less a connection loses through the other one.
    gain: f64,
    /// Standard error of that if losses are independent.
    error: f64,
}

impl Losses {
    fn new(sums: [&Sums; 2], prior: [f64; 2]) -> Self {
        let (mut loss, mut variance) = ([[0.0; 2]; 2], 0.0);
        for side in 0..2 {
            for i in 0..2 {
                let sent = sums[side].sent(i);
                loss[side][i] = (sums[side].lost(i) + prior[i] * 4.0) / (sent + 4.0);
                variance += loss[side][i] * (1.0 - loss[side][i]) / sent.max(1.0);
            }
        }
        Self { loss, gain: combined(loss[0]) - combined(loss[1]), error: variance.sqrt() }
    }
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
