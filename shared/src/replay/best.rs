//! The `best` strategy as a rule, and the rule of the panel it comes from.

use super::random::Random;
use super::run::{FailFilter, Pick, Rule, World};
use super::trace::within;
use crate::best_exit::{Applied, Candidate, Leg, OwnerState, Pin, Reason, Round, Settings};
use crate::ids::NodeId;
use crate::link::Sample;
use std::collections::VecDeque;

/// The monotonic clock has been running for long when a trace starts.
pub(super) const BEFORE_START: u64 = 1 << 40;
/// From the first sample of a round to its evaluation: 4 samples 200 ms apart and a deadline of 900 ms.
const ROUND_TAKES_MS: u64 = 2000;
/// Samples of one leg are this far apart.
const SPACING_MS: u64 = 200;
/// Failed dials and time of the fail filter that exit groups are rendered with.
const MAX_FAILS: u32 = 3;
const FAIL_TIMEOUT_MS: u64 = 30_000;

/// Our panel with one set of rules.
#[derive(Debug)]
pub struct Best {
    name: String,
    settings: Settings,
    state: OwnerState,
    next_round: u64,
    /// A round that was measured and is evaluated soon.
    measured: Option<(u64, Vec<Candidate>, bool)>,
    refusals: u32,
    reasons: Vec<(u64, Reason)>,
    /// The agent's, below what was decided.
    filter: FailFilter,
    restarted: usize,
    /// Rounds kept as the panel's database keeps them, if it is restarted later.
    history: VecDeque<(u64, Vec<Candidate>)>,
    /// Rounds of a recorded trace that are evaluated.
    evaluated: usize,
    /// What follows from the last of these.
    last: Option<Pick>,
}

impl Best {
    /// With these settings.
    pub fn new(name: &str, settings: Settings) -> Self {
        Self {
            name: name.to_owned(),
            settings,
            state: OwnerState::new(Applied::default()),
            next_round: 0,
            measured: None,
            refusals: 0,
            reasons: Vec::new(),
            filter: FailFilter::new(MAX_FAILS, FAIL_TIMEOUT_MS),
            restarted: 0,
            history: VecDeque::new(),
            evaluated: 0,
            last: None,
        }
    }

    /// One round of both legs of every exit that exists now.
    pub fn measure(&self, world: &World<'_>, random: &mut Random) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (i, exit) in world.trace.exits.iter().enumerate() {
            if world.now < exit.added {
                continue;
            }
            let mut leg = |b: bool| {
                let mut sample = |n: u32| {
                    let after = u64::from(n) * SPACING_MS;
                    if b { world.leg_b(i, after, random) } else { world.leg_a(i, after, random) }
                };
                let samples: Vec<Sample> = (0..self.settings.ping_count).map(&mut sample).collect();
                Leg::from_samples(&samples)
            };
            let (leg_a, mut leg_b) = (leg(false), leg(true));
            if within(&exit.away, world.now) {
                leg_b = Leg::Unmeasured { reason: "its agent is away".to_owned() };
            }
            candidates.push(Candidate { exit: node(i), leg_a, leg_b });
        }
        candidates
    }

    fn evaluate(&mut self, world: &World<'_>, candidates: &[Candidate], online: bool) {
        let (now, trace) = (BEFORE_START + world.now, world.trace);
        let pin = trace.pins.iter().find(|(from, to, _)| (*from..*to).contains(&world.now));
        let round = Round {
            now,
            complete: true,
            monitoring: true,
            owner_online: online,
            candidates,
            pin: pin.map(|(_, _, exit)| Pin { exit: node(*exit) }),
        };
        let verdict = self.state.evaluate(&round, &self.settings);
        if let Some(order) = verdict.push {
            if self.refusals < trace.refusals {
                self.refusals += 1;
                self.state.refused(order[0], "refused".to_owned(), now);
            } else {
                self.state.accepted(order, now);
            }
        }
        // Every round's reason, but repeated ones once.
        let last = self.reasons.last().map(|(_, reason)| reason.code());
        if last != Some(self.state.reason.code()) || matches!(self.state.reason, Reason::Switched { .. }) {
            self.reasons.push((world.now, self.state.reason.clone()));
        }
        if online && self.restarted < trace.restarts.len() {
            if self.history.len() == 128 {
                self.history.pop_front();
            }
            self.history.push_back((now, candidates.to_vec()));
        }
    }
}

/// The id of an exit of a trace.
pub fn node(exit: usize) -> NodeId {
    NodeId(i64::try_from(exit).unwrap_or(i64::MAX))
}

impl Rule for Best {
    fn name(&self) -> &str {
        &self.name
    }

    fn second(&mut self, world: &World<'_>, random: &mut Random) -> Pick {
        let trace = world.trace;
        let round = trace.recorded.get(self.evaluated).is_some_and(|(at, _)| *at <= world.now);
        if let Some(last) = self.last.filter(|_| !round && trace.restarts.is_empty()) {
            return last;
        }
        if world.now == 0 {
            // Rounds do not start when the world changes.
            self.next_round = trace.seed % 5 * 1000;
        }
        if trace.restarts.get(self.restarted).is_some_and(|at| *at <= world.now) {
            self.restarted += 1;
            self.measured = None;
            self.state = OwnerState::new(self.state.applied.clone());
            let history: Vec<(u64, &[Candidate])> =
                self.history.iter().map(|(at, candidates)| (*at, candidates.as_slice())).collect();
            self.state.warm(&history, &self.settings);
        }
        if !trace.recorded.is_empty() {
            self.settings.round_interval_ms = trace.recorded_every_ms;
            while let Some((_, candidates)) =
                trace.recorded.get(self.evaluated).filter(|(at, _)| *at <= world.now)
            {
                self.evaluated += 1;
                self.evaluate(world, candidates, true);
            }
        } else if world.now >= self.next_round {
            self.next_round = world.now + self.settings.round_interval_ms;
            if !within(&trace.gaps, world.now) {
                let online = !within(&trace.offline, world.now);
                let candidates = self.measure(world, random);
                self.measured = Some((world.now + ROUND_TAKES_MS, candidates, online));
            }
        }
        if let Some((_, candidates, online)) = self.measured.take_if(|(at, ..)| *at <= world.now) {
            self.evaluate(world, &candidates, online);
        }
        let saved: Vec<NodeId> =
            (0..trace.exits.len()).filter(|i| trace.exits[*i].added <= world.now).map(node).collect();
        let order = self.state.applied.complete(&saved);
        let order: Vec<usize> = order.iter().map(|exit| usize::try_from(exit.0).unwrap_or(0)).collect();
        let choice = order.first().copied().unwrap_or(0);
        // How often users dialled is not recorded: what is judged then is the decision alone.
        if trace.recorded.is_empty() {
            return Pick { choice, used: self.filter.dial(&order, world) };
        }
        // Between two of the rounds nothing can change.
        let pick = Pick { choice, used: choice };
        self.last = trace.exits.iter().all(|exit| exit.added <= world.now).then_some(pick);
        pick
    }

    fn reasons(&self) -> &[(u64, Reason)] {
        &self.reasons
    }
}

/// The panel that `best` comes from, as published: four connects with a timeout of 5 s per leg (so loss shows as time),
/// rounds that take as long as their slowest probe, three rounds, 20 ms and 15 %, 30 s. Below it the agent leaves an exit
/// out for ten minutes after one failed dial.
#[derive(Debug)]
pub struct Flvx {
    filter: FailFilter,
    current: usize,
    next_round: u64,
    pending: Option<(usize, u32)>,
    last_switch: Option<u64>,
}

impl Default for Flvx {
    fn default() -> Self {
        let filter = FailFilter::new(1, 600_000);
        Self { filter, current: 0, next_round: 0, pending: None, last_switch: None }
    }
}

impl Flvx {
    fn leg(world: &World<'_>, exit: usize, b: bool, random: &mut Random) -> Option<(f64, f64)> {
        let (mut sum, mut good) = (0.0, 0u32);
        for n in 0..4u64 {
            // The kernel repeats a lost SYN after 1, 2, 3 and 4 s.
            for lost in 0..5u32 {
                let sample =
                    if b { world.leg_b(exit, n * 100, random) } else { world.leg_a(exit, n * 100, random) };
                match sample {
                    Sample::Ok { ms, .. } => {
                        sum += ms + f64::from(lost) * 1000.0;
                        good += 1;
                        break;
                    }
                    Sample::Refused => break,
                    _ => {}
                }
            }
        }
        (good > 0).then(|| (sum / f64::from(good), 1.0 - f64::from(good) / 4.0))
    }
}

impl Rule for Flvx {
    fn name(&self) -> &str {
        "flvx best"
    }

    fn second(&mut self, world: &World<'_>, random: &mut Random) -> Pick {
        let choice = self.decide(world, random);
        let others = (0..world.trace.exits.len()).filter(|exit| *exit != choice);
        let order: Vec<usize> = std::iter::once(choice).chain(others).collect();
        Pick { choice, used: self.filter.dial(&order, world) }
    }
}

impl Flvx {
    fn decide(&mut self, world: &World<'_>, random: &mut Random) -> usize {
        if world.now < self.next_round
            || within(&world.trace.offline, world.now)
            || within(&world.trace.gaps, world.now)
        {
            return self.current;
        }
        let mut failed = false;
        let mut best: Option<(usize, f64)> = None;
        let mut current_score = None;
        for exit in 0..world.trace.exits.len() {
            let spec = &world.trace.exits[exit];
            // An exit whose agent is away is failed.
            if world.now < spec.added || within(&spec.away, world.now) {
                continue;
            }
            let legs = Self::leg(world, exit, false, random).zip(Self::leg(world, exit, true, random));
            let Some(((a_ms, a), (b_ms, b))) = legs else {
                failed = true;
                continue;
            };
            let score = a_ms + b_ms + (1.0 - (1.0 - a) * (1.0 - b)) * 100.0 * 100.0;
            if exit == self.current {
                current_score = Some(score);
            }
            if best.is_none_or(|(_, least)| score < least) {
                best = Some((exit, score));
            }
        }
        // A dead leg costs the panel's 8 s of patience.
        self.next_round = world.now + if failed { 8000 } else { 3000 };
        let Some((exit, score)) = best.filter(|(exit, _)| *exit != self.current) else {
            self.pending = None;
            return self.current;
        };
        if self.last_switch.is_some_and(|at| world.now - at < 30_000) {
            return self.current;
        }
        if current_score.is_some_and(|current| current - score < (current * 0.15).max(20.0)) {
            self.pending = None;
            return self.current;
        }
        let rounds = self.pending.filter(|(pending, _)| *pending == exit).map_or(0, |(_, rounds)| rounds) + 1;
        self.pending = Some((exit, rounds));
        if rounds >= 3 {
            (self.current, self.pending, self.last_switch) = (exit, None, Some(world.now));
        }
        self.current
    }
}
