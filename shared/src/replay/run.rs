//! A rule on a trace.

use super::random::Random;
use super::trace::{Trace, Truth, Truths, within};
use crate::best_exit::Reason;
use crate::link::Sample;

/// Time passes in these steps, unless a trace has others.
pub const STEP_MS: u64 = 1000;
/// A switch is needless if the exit that was left would have been no worse on the mean of this time after it.
const HINDSIGHT_MS: u64 = 60_000;
/// An exit that is worse than the best by less than this, and by less than this share of its score, need not be left.
const WORSE_MS: f64 = 20.0;
const WORSE_RATIO: f64 = 0.15;
/// An exit whose score is this near to the best one's is as good: what was measured is not known any better.
pub const BEST_MS: f64 = 1.0;
/// Steps between two questions whether to go on.
const ASK_STEPS: usize = 4096;
/// Being worse for less than this is not missed.
const ENDURED_MS: u64 = 60_000;

/// What a rule may see and touch of a trace.
#[derive(Debug)]
pub struct World<'a> {
    /// What happens.
    pub trace: &'a Trace,
    /// Milliseconds since its start.
    pub now: u64,
    /// What is true of every exit now.
    pub truths: &'a [Truth],
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
        self.truths[exit].usable
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
    /// The exit at the start; `None`: the trace has no step.
    pub first: Option<usize>,
    /// Mean excess of the true score over the best exit of each moment.
    pub mean_excess_ms: f64,
    /// 99th percentile of it.
    pub p99_excess_ms: f64,
    /// Mean latency of the exit in use while it worked; `None`: it never did.
    pub mean_latency_ms: Option<f64>,
    /// Time on the best exit, or on one that is worse by no more than [`BEST_MS`].
    pub best_ms: u64,
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
    let mut running = Running::new(rule, trace);
    let mut truths = Truths::new(trace, penalty_ms_per_percent);
    for now in moments(trace) {
        truths.go_to(now);
        running.step(now, &truths);
    }
    running.end()
}

/// Runs rules side by side, so that what is true of every moment is found once. `None`: `proceed`, which is asked now and
/// then, said no.
pub fn run_all(
    rules: &mut [Box<dyn Rule>],
    trace: &Trace,
    penalty_ms_per_percent: f64,
    proceed: &dyn Fn() -> bool,
) -> Option<Vec<Run>> {
    let mut all: Vec<Running<'_>> = rules.iter_mut().map(|rule| Running::new(rule.as_mut(), trace)).collect();
    let mut truths = Truths::new(trace, penalty_ms_per_percent);
    for (step, now) in moments(trace).enumerate() {
        if step % ASK_STEPS == 0 && !proceed() {
            return None;
        }
        truths.go_to(now);
        for running in &mut all {
            running.step(now, &truths);
        }
    }
    Some(all.into_iter().map(Running::end).collect())
}

/// The steps of a trace.
fn moments(trace: &Trace) -> impl Iterator<Item = u64> {
    let step_ms = trace.step_ms;
    (0..trace.length_ms / step_ms).map(move |step| step * step_ms)
}

/// A rule on its way through a trace.
struct Running<'a> {
    rule: &'a mut dyn Rule,
    trace: &'a Trace,
    random: Random,
    watch: Watch,
    first: Option<usize>,
    current: Option<usize>,
    switches: Vec<Switch>,
    /// Sum of what was lost against the best exit, and each step's part.
    excess_sum_ms: f64,
    excess_ms: Vec<f32>,
    best_ms: u64,
    unusable_ms: u64,
    /// Sum and number of the latencies of the exit in use while it worked.
    latency: (f64, u64),
    before: usize,
    left_ms: Option<u64>,
}

impl<'a> Running<'a> {
    fn new(rule: &'a mut dyn Rule, trace: &'a Trace) -> Self {
        let steps = usize::try_from(trace.length_ms / trace.step_ms).unwrap_or(0);
        Self {
            rule,
            trace,
            // The rule draws from numbers of its own, or its measuring would change what happens.
            random: Random::new(trace.seed ^ 0x5eed),
            watch: Watch::default(),
            first: None,
            current: None,
            switches: Vec::new(),
            excess_sum_ms: 0.0,
            excess_ms: Vec::with_capacity(steps),
            best_ms: 0,
            unusable_ms: 0,
            latency: (0.0, 0),
            before: 0,
            left_ms: None,
        }
    }

    fn step(&mut self, now: u64, truths: &Truths<'_>) {
        let (trace, truths, penalty) = (self.trace, &truths.now, truths.penalty_ms_per_percent);
        let Pick { choice: chosen, used } = self.rule.second(&World { trace, now, truths }, &mut self.random);
        if trace.onset == Some(now) {
            self.before = used;
        } else if trace.onset.is_some_and(|onset| now > onset)
            && used != self.before
            && self.left_ms.is_none()
        {
            self.left_ms = trace.onset.map(|onset| now - onset);
        }
        if let Some(from) = self.current.filter(|from| *from != chosen) {
            let needless = needless(trace, now, from, chosen, penalty);
            self.switches.push(Switch { at: now, from, to: chosen, needless });
        }
        self.first = self.first.or(Some(chosen));
        self.current = Some(chosen);
        if within(&trace.unknown, now) {
            self.watch.worse = None;
            return;
        }
        let truth = truths[used];
        let best = truths.iter().map(|truth| truth.score_ms).min_by(f64::total_cmp);
        let more = (truth.score_ms - best.unwrap_or(truth.score_ms)).max(0.0);
        self.excess_sum_ms += more;
        self.excess_ms.push(more as f32);
        self.watch.see(used, more >= WORSE_MS.max(WORSE_RATIO * truth.score_ms), now);
        if truth.usable {
            self.latency = (self.latency.0 + truth.latency_ms, self.latency.1 + 1);
            if more <= BEST_MS {
                self.best_ms += trace.step_ms;
            }
        } else if truths.iter().any(|truth| truth.usable) {
            self.unusable_ms += trace.step_ms;
        }
    }

    fn end(mut self) -> Run {
        let trace = self.trace;
        let mean_excess_ms = self.excess_sum_ms / self.excess_ms.len().max(1) as f64;
        self.excess_ms.sort_unstable_by(f32::total_cmp);
        let p99 = self.excess_ms.get((self.excess_ms.len() * 99) / 100).copied().map_or(0.0, f64::from);
        let detection_ms = trace.onset.and_then(|onset| {
            let first = self.switches.iter().find(|switch: &&Switch| switch.at >= onset)?;
            Some(first.at - onset)
        });
        let (sum, count) = self.latency;
        Run {
            first: self.first,
            mean_excess_ms,
            p99_excess_ms: p99,
            mean_latency_ms: (count > 0).then(|| sum / count as f64),
            best_ms: self.best_ms,
            unusable_ms: self.unusable_ms,
            switches: self.switches,
            detection_ms,
            left_ms: self.left_ms,
            reasons: self.rule.reasons().to_vec(),
            excess_ms: self.excess_ms,
            delays_ms: self.watch.delays_ms,
            endured: self.watch.endured,
        }
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
