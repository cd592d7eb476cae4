//! The rules of `best`, written a second time: not as a state that counts, but as questions about the past. What the
//! machine says in a round must be what the whole trace up to that round implies.

use crate::trace::Seen;
use shared::best_exit::{Candidate, Leg, Settings};
use shared::ids::NodeId;

/// What a round must lead to.
#[derive(Debug, PartialEq)]
pub(crate) struct Expected {
    /// Code of the reason; of the reason among the others behind a failing pin.
    pub(crate) code: &'static str,
    pub(crate) pin_failed: bool,
    /// First exit of the order to push.
    pub(crate) switch_to: Option<NodeId>,
}

/// latency + 100 * loss * penalty, with loss = a + b - ab.
pub(crate) fn score(candidate: &Candidate, settings: &Settings) -> Option<f64> {
    let numbers = |leg: &Leg| match leg {
        Leg::Measured { latency_ms, loss } => Some((*latency_ms, *loss)),
        Leg::Failed { .. } | Leg::Unmeasured { .. } => None,
    };
    let ((a_ms, a), (b_ms, b)) = (numbers(&candidate.leg_a)?, numbers(&candidate.leg_b)?);
    Some(a_ms + b_ms + (a + b - a * b) * 100.0 * settings.loss_penalty_ms_per_percent)
}

/// The past of one owner, up to and with the round in question (the last).
pub(crate) struct Past<'a> {
    seen: Vec<&'a Seen>,
    settings: &'a Settings,
}

impl<'a> Past<'a> {
    /// Rounds before a restart are forgotten: what is stored is in the books of the driver.
    pub(crate) fn new(seen: &'a [Seen], settings: &'a Settings) -> Self {
        let start = seen.iter().rposition(|s| s.step.restart).unwrap_or(0);
        Self { seen: seen[start..].iter().collect(), settings }
    }

    pub(crate) fn expect(&self) -> Expected {
        let last = self.seen[self.seen.len() - 1];
        let step = &last.step;
        let plain = |code| Expected { code, pin_failed: false, switch_to: None };
        if !step.complete || step.candidates.is_empty() {
            return plain("incomplete");
        }
        if step.candidates.len() == 1 {
            return plain("single_exit");
        }
        if !step.monitoring {
            return plain("paused");
        }
        if !step.online {
            return plain("owner_offline");
        }
        let pin = pin(last);
        if pin.is_some() && pin == last.current && self.works(last, pin) {
            return plain("pinned");
        }
        let (code, switch_to) = self.among(last);
        // While the grace lasts the current exit is not called failed, pinned or not.
        let pin_failed = pin.is_some() && !self.works(last, pin) && code != "current_unmeasured";
        Expected { code, pin_failed, switch_to }
    }

    fn among(&self, last: &Seen) -> (&'static str, Option<NodeId>) {
        let grace = self.grace();
        if self.obeys_pin(last) {
            return if self.since_refusal_waits(last) {
                ("apply_retry_wait", None)
            } else {
                ("switched", pin(last))
            };
        }
        let winner = match self.winner(last) {
            Ok(winner) => winner,
            Err(_) if grace && self.best(last).is_none() => return ("current_unmeasured", None),
            Err(code) => return (code, None),
        };
        if grace {
            return ("current_unmeasured", None);
        }
        if self.confirmed_rounds(winner) < self.settings.confirmations as usize {
            return ("confirming", None);
        }
        if last.last_switch.is_some_and(|at| last.now < at + self.settings.cooldown_ms) {
            return ("cooldown", None);
        }
        if self.since_refusal_waits(last) {
            return ("apply_retry_wait", None);
        }
        ("switched", Some(winner))
    }

    /// The exit that speaks against the current one in a round, or why there is none.
    fn winner(&self, seen: &Seen) -> Result<NodeId, &'static str> {
        if self.works(seen, pin(seen)) {
            return pin(seen).filter(|pin| Some(*pin) != seen.current).ok_or("pinned");
        }
        let best = self.best(seen).ok_or("all_exits_failed")?;
        if Some(best) == seen.current {
            return Err("current_is_best");
        }
        let (Some(have), Some(against)) = (self.score(seen, best), seen.current) else { return Ok(best) };
        let Some(current) = self.score(seen, against) else { return Ok(best) };
        let need = f64::max(self.settings.min_advantage_ms, self.settings.min_advantage_ratio * current);
        if current - have >= need { Ok(best) } else { Err("insufficient_advantage") }
    }

    fn best(&self, seen: &Seen) -> Option<NodeId> {
        let scored = seen.step.candidates.iter().filter_map(|c| Some((c.exit, score(c, self.settings)?)));
        // The first of the lowest: ties go to the saved order.
        scored.reduce(|best, next| if next.1 < best.1 { next } else { best }).map(|(exit, _)| exit)
    }

    fn score(&self, seen: &Seen, exit: NodeId) -> Option<f64> {
        score(seen.step.candidates.iter().find(|c| c.exit == exit)?, self.settings)
    }

    fn works(&self, seen: &Seen, exit: Option<NodeId>) -> bool {
        exit.is_some_and(|exit| self.score(seen, exit).is_some())
    }

    /// Rounds that count, newest first.
    fn evaluated(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter().rev().copied().filter(|s| was_evaluated(s))
    }

    /// In how many evaluated rounds without a gap, the last included, it was `winner` who won.
    fn confirmed_rounds(&self, winner: NodeId) -> usize {
        let mut newer: Option<&Seen> = None;
        self.evaluated()
            .take_while(|seen| {
                let gap = newer.map_or(0, |newer| newer.now - seen.now);
                // An accepted push starts the count anew.
                let accepted = newer.is_some() && seen.verdict.push.is_some() && !refused(seen);
                newer = Some(seen);
                let goes_on = gap <= 3 * self.settings.round_interval_ms && !accepted;
                goes_on && !self.obeys_pin(seen) && self.winner(seen) == Ok(winner)
            })
            .count()
    }

    /// Whether the current exit lacks only leg B, and not for longer than the grace.
    fn grace(&self) -> bool {
        let now = self.seen[self.seen.len() - 1].now;
        let current = self.seen[self.seen.len() - 1].current;
        let away = self.evaluated().take_while(|seen| seen.current == current && current_is_away(seen));
        away.last().is_some_and(|since| now - since.now < self.settings.unmeasured_grace_ms)
    }

    /// Whether a round had a working pin that was neither obeyed nor seen failing in a round before: an order, to
    /// which the rules of confirmation and cooldown do not apply.
    fn obeys_pin(&self, seen: &Seen) -> bool {
        let before = self.evaluated().skip_while(|other| other.now >= seen.now);
        let mut same = before.take_while(|before| pin(before) == pin(seen));
        let settled = |seen: &Seen| pin(seen) == seen.current || !self.works(seen, pin(seen));
        self.works(seen, pin(seen)) && pin(seen) != seen.current && !same.any(settled)
    }

    fn since_refusal_waits(&self, last: &Seen) -> bool {
        last.last_refusal.is_some_and(|at| last.now < at + self.settings.apply_retry_ms)
    }
}

pub(crate) fn was_evaluated(seen: &Seen) -> bool {
    let step = &seen.step;
    step.complete && step.monitoring && step.online && step.candidates.len() >= 2
}

/// A pin on an exit that is not there is no pin.
fn pin(seen: &Seen) -> Option<NodeId> {
    seen.step.pin.filter(|pin| seen.step.candidates.iter().any(|c| c.exit == *pin))
}

fn refused(seen: &Seen) -> bool {
    matches!(seen.step.answer, crate::trace::Answer::Refuse)
}

fn current_is_away(seen: &Seen) -> bool {
    let current = seen.step.candidates.iter().find(|c| Some(c.exit) == seen.current);
    current
        .is_some_and(|c| matches!(c.leg_a, Leg::Measured { .. }) && matches!(c.leg_b, Leg::Unmeasured { .. }))
}
