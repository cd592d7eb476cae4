//! A rule on a trace.

use super::random::Random;
use super::trace::{Trace, within};
use crate::best_exit::Reason;
use crate::link::Sample;

/// Time passes in these steps, unless a trace has others.
pub const STEP_MS: u64 = 1000;
/// A switch is needless if the exit that was left would have been no worse on the mean of this time after it.
const HINDSIGHT_MS: u64 = 60_000;
/// An exit that is worse than the best by less than this, and by less than this share of its score, need not be left.
const WORSE_MS: f64 = 20.0;
const WORSE_RATIO: f64 = 0.15;
/// Being worse for less than this is not missed.
const ENDURED_MS: u64 = 60_000;

/// What a rule may see and touch of a trace.
#[derive(Debug)]
pub struct World<'a> {
    /// What happens.
    pub trace: &'a Trace,
    /// Milliseconds since its start.
    pub now: u64,
}

impl World<'_> {
    /// One SYN to an exit.
    pub fn leg_a(&self, exit: usize, after_ms: u64, random: &mut Random) -> Sample {
        self.trace.exits[exit].a.sample(self.now + after_ms, random)
    }

    /// One SYN from an exit to the target.
    pub fn leg_b(&self, exit: usize, after_ms: u64, random: &mut Random) -> Sample {
        self.trace.exits[exit].b.sample(self.now + after_ms, random)
    }

    /// The time of one request through an exit in milliseconds, as the systems measure it that open a connection with a
    /// long timeout: the kernel repeats a lost SYN after 1 s, so loss shows as time.
    pub fn request(&self, exit: usize, timeout_ms: f64, random: &mut Random) -> Option<f64> {
        if within(&self.trace.exits[exit].relay_dead, self.now) || self.now < self.trace.exits[exit].added {
            return None;
        }
        let mut ms = 0.0;
        loop {
            match (self.leg_a(exit, 0, random), self.leg_b(exit, 0, random)) {
                (Sample::Ok { ms: a, .. }, Sample::Ok { ms: b, .. }) => {
                    return Some(ms + a + b).filter(|ms| *ms <= timeout_ms);
                }
                (Sample::Refused, _) | (_, Sample::Refused) => return None,
                _ => ms += 1000.0,
            }
            if ms > timeout_ms {
                return None;
            }
        }
    }

    /// Whether a user's connection through an exit comes up now.
    pub fn dial(&self, exit: usize) -> bool {
        self.trace.truth(exit, self.now, 0.0).usable
    }
}

/// What a rule chooses and what new connections use in a second. The two differ while an agent leaves out a choice that
/// does not take connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The exit that was decided for; a change of it is a switch.
    pub choice: usize,
    /// The exit that connections get.
    pub used: usize,
}

impl Pick {
    /// Connections get what was decided.
    pub fn plain(exit: usize) -> Self {
        Self { choice: exit, used: exit }
    }
}

/// A fail filter as agents have it: this many failed dials in a row leave an exit out for a while; then one trial.
#[derive(Clone, Debug)]
pub struct FailFilter {
    max_fails: u32,
    timeout_ms: u64,
    exits: Vec<(u32, u64)>,
}

impl FailFilter {
    /// `maxFails` and `failTimeout`.
    pub fn new(max_fails: u32, timeout_ms: u64) -> Self {
        Self { max_fails, timeout_ms, exits: Vec::new() }
    }

    /// The exit that a connection uses now, of those in order: the first that is not left out; else the first.
    pub fn dial(&mut self, order: &[usize], world: &World<'_>) -> usize {
        self.exits.resize(world.trace.exits.len(), (0, 0));
        let open = |exit: &&usize| self.exits[**exit].1 <= world.now;
        let used = order.iter().find(open).or(order.first()).copied().unwrap_or(0);
        let (fails, until) = &mut self.exits[used];
        if world.dial(used) {
            *fails = 0;
        } else {
            *fails += 1;
            if *fails >= self.max_fails {
                // One failed trial is enough to be left out again.
                (*fails, *until) = (self.max_fails - 1, world.now + self.timeout_ms);
            }
        }
        used
    }
}

/// A way of choosing.
pub trait Rule {
    /// Its name in tables.
    fn name(&self) -> &str;
    /// One second passes: it may measure, and says which exit new connections use.
    fn second(&mut self, world: &World<'_>, random: &mut Random) -> Pick;
    /// Reasons with their time, if it has such.
    fn reasons(&self) -> &[(u64, Reason)] {
        &[]
    }
}

/// One change of the exit in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switch {
    /// When.
    pub at: u64,
    /// Left.
    pub from: usize,
    /// Taken.
    pub to: usize,
    /// What was left would have been no worse.
    pub needless: bool,
}

/// What a rule made of a trace.
#[derive(Clone, Debug)]
pub struct Run {
    /// Mean excess of the true score over the best exit of each moment.
    pub mean_excess_ms: f64,
    /// 99th percentile of it.
    pub p99_excess_ms: f64,
    /// Time on an unusable exit while a usable one existed.
    pub unusable_ms: u64,
    /// All changes.
    pub switches: Vec<Switch>,
    /// From the onset to the first change after it.
    pub detection_ms: Option<u64>,
    /// From the onset until connections no longer use the exit of before.
    pub left_ms: Option<u64>,
    /// Reasons with their time, if the rule has such.
    pub reasons: Vec<(u64, Reason)>,
    /// Excess of every step, ascending.
    pub excess_ms: Vec<f32>,
    /// Each time that the exit in use became clearly worse than the best: how long until it was left.
    pub delays_ms: Vec<u64>,
    /// How often it became so for a minute and more, and was not left.
    pub endured: usize,
}

impl Run {
    /// Changes that hindsight does not justify.
    pub fn needless(&self) -> usize {
        self.switches.iter().filter(|switch| switch.needless).count()
    }
}

/// Runs a rule over a trace; truth is scored with this penalty per percent of loss.
pub fn run(rule: &mut dyn Rule, trace: &Trace, penalty_ms_per_percent: f64) -> Run {
    // The rule draws from numbers of its own, or its measuring would change what happens.
    let mut random = Random::new(trace.seed ^ 0x5eed);
    let steps = usize::try_from(trace.length_ms / trace.step_ms).unwrap_or(0);
    let mut watch = Watch::default();
    let (mut excess, mut switches, mut unusable_ms) = (Vec::with_capacity(steps), Vec::new(), 0);
    let mut current: Option<usize> = None;
    let (mut before, mut left_ms) = (0, None);
    for step in 0..steps {
        let now = step as u64 * trace.step_ms;
        let Pick { choice: chosen, used } = rule.second(&World { trace, now }, &mut random);
        if trace.onset == Some(now) {
            before = used;
        } else if trace.onset.is_some_and(|onset| now > onset) && used != before && left_ms.is_none() {
            left_ms = trace.onset.map(|onset| now - onset);
        }
        if let Some(from) = current.filter(|from| *from != chosen) {
            let needless = needless(trace, now, from, chosen, penalty_ms_per_percent);
            switches.push(Switch { at: now, from, to: chosen, needless });
        }
        current = Some(chosen);
        if within(&trace.unknown, now) {
            watch.worse = None;
            continue;
        }
        let truths = (0..trace.exits.len()).map(|exit| trace.truth(exit, now, penalty_ms_per_percent));
        let best = truths.clone().min_by(|a, b| a.score_ms.total_cmp(&b.score_ms));
        let truth = trace.truth(used, now, penalty_ms_per_percent);
        let more = (truth.score_ms - best.map_or(truth.score_ms, |best| best.score_ms)).max(0.0);
        excess.push(more);
        watch.see(used, more >= WORSE_MS.max(WORSE_RATIO * truth.score_ms), now);
        if !truth.usable && truths.clone().any(|truth| truth.usable) {
            unusable_ms += trace.step_ms;
        }
    }
    let mean_excess_ms = excess.iter().sum::<f64>() / excess.len().max(1) as f64;
    excess.sort_by(f64::total_cmp);
    let p99 = excess.get((excess.len() * 99) / 100).copied().unwrap_or(0.0);
    let detection_ms = trace.onset.and_then(|onset| {
        let first = switches.iter().find(|switch: &&Switch| switch.at >= onset)?;
        Some(first.at - onset)
    });
    Run {
        mean_excess_ms,
        p99_excess_ms: p99,
        unusable_ms,
        switches,
        detection_ms,
        left_ms,
        reasons: rule.reasons().to_vec(),
        excess_ms: excess.iter().map(|ms| *ms as f32).collect(),
        delays_ms: watch.delays_ms,
        endured: watch.endured,
    }
}

/// When the exit in use became worse than the best, and what came of it.
#[derive(Default)]
struct Watch {
    last: usize,
    /// Since when, if it became so while it was in use.
    worse: Option<u64>,
    delays_ms: Vec<u64>,
    endured: usize,
}

impl Watch {
    fn see(&mut self, used: usize, worse: bool, now: u64) {
        if used != self.last {
            self.delays_ms.extend(self.worse.take().map(|since| now - since));
            self.last = used;
            // It was taken as it is.
            return;
        }
        match (worse, self.worse) {
            (true, None) => self.worse = Some(now),
            (false, Some(since)) => {
                self.endured += usize::from(now - since >= ENDURED_MS);
                self.worse = None;
            }
            _ => {}
        }
    }
}

fn needless(trace: &Trace, now: u64, from: usize, to: usize, penalty: f64) -> bool {
    let end = (now + HINDSIGHT_MS).min(trace.length_ms);
    let sum = |exit: usize| -> f64 {
        (now..end).step_by(trace.step_ms as usize).map(|t| trace.truth(exit, t, penalty).score_ms).sum()
    };
    sum(from) <= sum(to)
}
