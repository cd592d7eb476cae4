//! How two legs per exit behave over time.

use super::random::Random;
use super::run::STEP_MS;
use crate::best_exit::Candidate;
use crate::link::Sample;

/// A way of not answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dead {
    /// Nothing comes back.
    Silent,
    /// The port is closed.
    Refused,
}

/// One leg in one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LegState {
    /// Least round-trip time in milliseconds.
    pub base_ms: f64,
    /// Mean of the exponential part on top.
    pub jitter_ms: f64,
    /// Share of samples lost (both directions together).
    pub loss: f64,
    /// This share of samples takes a second path …
    pub mode_share: f64,
    /// … that is longer by so much.
    pub mode_ms: f64,
    /// It does not answer at all.
    pub dead: Option<Dead>,
}

/// Something that happens to a leg for a while. Times are milliseconds from the start of the trace.
#[derive(Clone, Debug)]
pub struct Change {
    /// First moment.
    pub from: u64,
    /// First moment after.
    pub to: u64,
    /// What.
    pub what: What,
}

/// What happens to a leg.
#[derive(Clone, Debug)]
pub enum What {
    /// Longer (or shorter) by so much.
    Add(f64),
    /// Loses this share of the samples.
    Loss(f64),
    /// Another jitter.
    Jitter(f64),
    /// A share of the samples takes a longer path.
    Mode(f64, f64),
    /// Does not answer.
    Dead(Dead),
    /// Longer by so much in every second half of a period.
    Square(u64, f64),
    /// Longer by so much more with every minute.
    Ramp(f64),
    /// Loses this share during these stretches (Gilbert and Elliott's bad state).
    Bursts(Vec<(u64, u64)>, f64),
    /// Does not answer in every first half of a period.
    Flap(u64),
}

/// A leg over time.
#[derive(Clone, Debug)]
pub struct Script {
    /// What it is when nothing happens.
    pub base: LegState,
    /// What happens.
    pub changes: Vec<Change>,
    /// Of a leg that was really measured: what it was from each of these times on. Nothing else counts then.
    pub recorded: Vec<(u64, LegState)>,
}

impl Script {
    /// A clean leg.
    pub fn new(base_ms: f64, jitter_ms: f64) -> Self {
        let base = LegState { base_ms, jitter_ms, loss: 0.0, mode_share: 0.0, mode_ms: 0.0, dead: None };
        Self { base, changes: Vec::new(), recorded: Vec::new() }
    }

    /// With loss in each direction: a sample is hit with `1 - (1 - p)²`.
    pub fn lossy(mut self, per_direction: f64) -> Self {
        self.base.loss = both(per_direction);
        self
    }

    /// With something that happens.
    pub fn with(mut self, from: u64, to: u64, what: What) -> Self {
        self.changes.push(Change { from, to, what });
        self
    }

    /// The leg at a moment.
    pub fn at(&self, t: u64) -> LegState {
        if let Some(first) = self.recorded.first() {
            let next = self.recorded.partition_point(|(from, _)| *from <= t);
            return next.checked_sub(1).map_or(first.1, |last| self.recorded[last].1);
        }
        let mut state = self.base;
        for change in self.changes.iter().filter(|change| (change.from..change.to).contains(&t)) {
            let since = t - change.from;
            match &change.what {
                What::Add(ms) => state.base_ms += ms,
                What::Loss(share) => state.loss = *share,
                What::Jitter(ms) => state.jitter_ms = *ms,
                What::Mode(share, ms) => (state.mode_share, state.mode_ms) = (*share, *ms),
                What::Dead(dead) => state.dead = Some(*dead),
                What::Square(period, ms) => {
                    if since % period >= period / 2 {
                        state.base_ms += ms;
                    }
                }
                What::Ramp(per_minute) => state.base_ms += per_minute * since as f64 / 60_000.0,
                What::Bursts(stretches, loss) => {
                    let next = stretches.partition_point(|(from, _)| *from <= t);
                    if next > 0 && t < stretches[next - 1].1 {
                        state.loss = state.loss.max(*loss);
                    }
                }
                What::Flap(period) => {
                    if since % period < period / 2 {
                        state.dead = Some(Dead::Silent);
                    }
                }
            }
        }
        state.base_ms = state.base_ms.max(0.1);
        state
    }

    /// The same, for moments that do not go back; `begun` is the number of records that have begun, 0 at first.
    fn follow(&self, t: u64, begun: &mut usize) -> LegState {
        if self.recorded.is_empty() {
            return self.at(t);
        }
        while self.recorded.get(*begun).is_some_and(|(from, _)| *from <= t) {
            *begun += 1;
        }
        self.recorded[begun.saturating_sub(1)].1
    }

    /// One SYN at a moment, with the deadline of the specification.
    pub fn sample(&self, t: u64, random: &mut Random) -> Sample {
        let state = self.at(t);
        match state.dead {
            Some(Dead::Silent) => return Sample::Lost,
            Some(Dead::Refused) => return Sample::Refused,
            None => {}
        }
        let (lost, jitter, mode) =
            (random.chance(state.loss), random.exponential(state.jitter_ms), random.chance(state.mode_share));
        let ms = state.base_ms + jitter + if mode { state.mode_ms } else { 0.0 };
        if lost || ms > 900.0 { Sample::Lost } else { Sample::Ok { ms, retransmits: 0 } }
    }
}

/// Loss of a sample from the loss of each direction.
pub fn both(per_direction: f64) -> f64 {
    1.0 - (1.0 - per_direction).powi(2)
}

/// The bad stretches of a Gilbert-Elliott path, milliseconds.
pub fn bursts(seed: u64, length_ms: u64, mean_good_ms: f64, mean_bad_ms: f64) -> Vec<(u64, u64)> {
    let mut random = Random::new(seed);
    let mut stretches = Vec::new();
    let mut t = 0.0;
    while t < length_ms as f64 {
        t += random.exponential(mean_good_ms);
        let bad = random.exponential(mean_bad_ms);
        stretches.push((t as u64, (t + bad) as u64));
        t += bad;
    }
    stretches
}

/// An exit.
#[derive(Clone, Debug)]
pub struct Exit {
    /// Owner → exit.
    pub a: Script,
    /// Exit → target.
    pub b: Script,
    /// It is a candidate from here on.
    pub added: u64,
    /// Its agent is not connected: leg B is unmeasured, traffic flows.
    pub away: Vec<(u64, u64)>,
    /// It accepts connections and forwards nothing; both legs look fine.
    pub relay_dead: Vec<(u64, u64)>,
}

impl Exit {
    /// Both legs.
    pub fn new(a: Script, b: Script) -> Self {
        Self { a, b, added: 0, away: Vec::new(), relay_dead: Vec::new() }
    }
}

/// Everything that happens to one owner.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Drawn from by whoever measures.
    pub seed: u64,
    /// How long it is.
    pub length_ms: u64,
    /// In saved order.
    pub exits: Vec<Exit>,
    /// The owner is not connected.
    pub offline: Vec<(u64, u64)>,
    /// Nothing is measured at all.
    pub gaps: Vec<(u64, u64)>,
    /// The panel restarts.
    pub restarts: Vec<u64>,
    /// A person pins this exit.
    pub pins: Vec<(u64, u64, usize)>,
    /// This many pushes are refused first.
    pub refusals: u32,
    /// When the exit in use at the start becomes one to leave.
    pub onset: Option<u64>,
    /// Time passes in these steps.
    pub step_ms: u64,
    /// Nothing is known of the truth.
    pub unknown: Vec<(u64, u64)>,
    /// Rounds that were really measured, with their times; the rules of `best` get these and measure nothing.
    pub recorded: Vec<(u64, Vec<Candidate>)>,
    /// The usual time between two of these.
    pub recorded_every_ms: u64,
}

/// What is true of an exit in a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Its score with everything known: mean latency plus the penalty of the loss.
    pub score_ms: f64,
    /// Its mean latency alone.
    pub latency_ms: f64,
    /// Connections through it work.
    pub usable: bool,
}

impl Trace {
    /// Over these exits.
    pub fn new(seed: u64, length_ms: u64, exits: Vec<Exit>) -> Self {
        Self {
            seed,
            length_ms,
            exits,
            offline: Vec::new(),
            gaps: Vec::new(),
            restarts: Vec::new(),
            pins: Vec::new(),
            refusals: 0,
            onset: None,
            step_ms: STEP_MS,
            unknown: Vec::new(),
            recorded: Vec::new(),
            recorded_every_ms: 0,
        }
    }

    /// How much of it is known.
    pub fn known_ms(&self) -> u64 {
        self.length_ms - self.unknown.iter().map(|(from, to)| to - from).sum::<u64>().min(self.length_ms)
    }

    /// What is true at a moment.
    pub fn truth(&self, exit: usize, t: u64, penalty_ms_per_percent: f64) -> Truth {
        let legs = (self.exits[exit].a.at(t), self.exits[exit].b.at(t));
        self.truth_of(exit, legs, t, penalty_ms_per_percent)
    }

    /// The same where both legs are known.
    fn truth_of(
        &self,
        exit: usize,
        legs: (LegState, LegState),
        t: u64,
        penalty_ms_per_percent: f64,
    ) -> Truth {
        let (exit, (a, b)) = (&self.exits[exit], legs);
        let dead = a.dead.is_some() || b.dead.is_some() || within(&exit.relay_dead, t) || t < exit.added;
        let mean = |leg: &LegState| leg.base_ms + leg.jitter_ms + leg.mode_share * leg.mode_ms;
        let loss = if dead { 1.0 } else { 1.0 - (1.0 - a.loss) * (1.0 - b.loss) };
        let latency_ms = mean(&a) + mean(&b);
        Truth {
            score_ms: latency_ms + loss * 100.0 * penalty_ms_per_percent,
            latency_ms,
            usable: loss < 0.95,
        }
    }
}

/// What is true of all exits, moment after moment. Recorded legs are followed and not searched.
#[derive(Debug)]
pub(super) struct Truths<'a> {
    trace: &'a Trace,
    pub(super) penalty_ms_per_percent: f64,
    /// How many records of both legs of every exit have begun.
    begun: Vec<(usize, usize)>,
    /// What is true at the last moment that was asked for.
    pub(super) now: Vec<Truth>,
}

impl<'a> Truths<'a> {
    pub(super) fn new(trace: &'a Trace, penalty_ms_per_percent: f64) -> Self {
        let begun = vec![(0, 0); trace.exits.len()];
        Self { trace, penalty_ms_per_percent, begun, now: Vec::with_capacity(trace.exits.len()) }
    }

    /// Goes on to a moment that is not before the last.
    pub(super) fn go_to(&mut self, t: u64) {
        self.now.clear();
        for (i, exit) in self.trace.exits.iter().enumerate() {
            let begun = &mut self.begun[i];
            let legs = (exit.a.follow(t, &mut begun.0), exit.b.follow(t, &mut begun.1));
            self.now.push(self.trace.truth_of(i, legs, t, self.penalty_ms_per_percent));
        }
    }
}

/// Whether a moment lies in one of these stretches.
pub fn within(stretches: &[(u64, u64)], t: u64) -> bool {
    stretches.iter().any(|(from, to)| (*from..*to).contains(&t))
}
