//! The decision of one round.

use super::evidence::{self, Evidence, Trigger};
use super::memory::{Memory, State};
use super::{Adaptive, LegName};
use crate::best_exit::machine::{Candidate, OwnerState, Round, Verdict};
use crate::best_exit::reason::Why;
use crate::best_exit::score::{Ranked, Score};
use crate::best_exit::{Leg, MonoMs, Reason, Settings};
use crate::ids::NodeId;

/// Evaluated rounds further apart than this many intervals are not consecutive.
const MAX_GAP_INTERVALS: u64 = 3;
/// The window of the score that is shown and that orders the exits behind the first: 16 rounds.
const SHOWN: usize = 2;
/// Without leg B an exit is kept for the length of the longest useful memory, if not longer by the settings.
const AWAY_MS: u64 = 185_000;
/// Waiting for a refused push doubles up to this.
const MAX_RETRY_MS: u64 = 600_000;

/// What a round leads to: a reason, and the exit to switch to.
type Step = (Reason, Option<NodeId>);

impl OwnerState {
    /// The adaptive rules on a round in which the owner was measured.
    pub(in crate::best_exit) fn judge_adaptively(
        &mut self,
        round: &Round<'_>,
        settings: &Settings,
    ) -> Verdict {
        let mut adaptive = self.adaptive.take().unwrap_or_default();
        let verdict = self.judge_with(&mut adaptive, round, settings);
        self.adaptive = Some(adaptive);
        verdict
    }

    /// Remembers rounds of before, oldest first, without deciding anything: after a restart, from what was stored.
    pub fn warm(&mut self, history: &[(MonoMs, &[Candidate])], settings: &Settings) {
        let adaptive = self.adaptive.get_or_insert_default();
        for (now, candidates) in history {
            if adaptive.last_round.is_none_or(|last| last < *now) && !nobody_works(candidates) {
                adaptive.remember(candidates, *now, settings);
            }
        }
    }

    fn judge_with(&mut self, adaptive: &mut Adaptive, round: &Round<'_>, settings: &Settings) -> Verdict {
        let now = round.now;
        self.pending = None;
        // The same round again, or a late one, is no new evidence.
        if adaptive.last_round.is_some_and(|last| last >= now) {
            return Verdict { ranked: Vec::new(), reason: self.reason.clone(), push: None };
        }
        self.last_evaluated = Some(now);
        let (current, pin) = (self.applied.first(round.candidates), round.pin());
        if nobody_works(round.candidates) {
            adaptive.last_round = Some(now);
            let ranked = adaptive.ranked(round.candidates, settings);
            return Verdict { ranked, reason: blame(round.candidates, pin), push: None };
        }
        adaptive.remember(round.candidates, now, settings);
        let ranked = adaptive.ranked(round.candidates, settings);
        let (mut reason, winner) = self.step(adaptive, &ranked, current, pin, now, settings);
        if let Some(exit) = pin.filter(|exit| !adaptive.is_usable(*exit)) {
            reason = Reason::PinFailed { exit, among_others: Box::new(reason) };
        }
        let push = winner.map(|winner| {
            let others = ranked.iter().map(|r| r.exit).filter(|exit| *exit != winner);
            std::iter::once(winner).chain(others).collect()
        });
        Verdict { ranked, reason, push }
    }

    fn step(
        &mut self,
        adaptive: &Adaptive,
        ranked: &[Ranked],
        current: NodeId,
        pin: Option<NodeId>,
        now: MonoMs,
        settings: &Settings,
    ) -> Step {
        let Some(memory) = adaptive.find(current) else { return (Reason::CurrentIsBest, None) };
        let pin_works = pin.filter(|exit| adaptive.is_usable(*exit));
        // A new pin is obeyed at once; one that was obeyed, or seen failing, returns by the rules.
        let at_once = pin.is_some() && self.pin_settled != pin;
        if pin.is_none() || pin == Some(current) || pin_works.is_none() {
            self.pin_settled = pin;
        } else if at_once {
            self.pin_settled = None;
        }
        let wanted = match pin_works {
            Some(exit) if exit == current => return (Reason::Pinned { exit }, None),
            Some(exit) => {
                let switch = self.switched(current, exit, adaptive.advantage(current, exit, settings), None);
                if at_once {
                    return self.unless_refused(adaptive, exit, switch, now, settings);
                }
                (exit, switch)
            }
            None => match self.wanted(adaptive, memory, ranked, now, settings) {
                Ok(wanted) => wanted,
                Err(step) => return step,
            },
        };
        let (exit, switch) = wanted;
        let hard = memory.state == State::Down;
        if let Some(ends) = self.cooldown_of(adaptive, now, settings).filter(|_| !hard) {
            return (Reason::Cooldown { exit, remaining_ms: ends - now }, None);
        }
        self.unless_refused(adaptive, exit, switch, now, settings)
    }

    /// The exit that the evidence asks for, or why there is none.
    fn wanted(
        &self,
        adaptive: &Adaptive,
        current: &Memory,
        ranked: &[Ranked],
        now: MonoMs,
        settings: &Settings,
    ) -> Result<(NodeId, Reason), Step> {
        let others =
            || ranked.iter().filter(|r| r.exit != current.exit).filter_map(|r| adaptive.find(r.exit));
        let lost = |trigger, leg| {
            // The best that is up; if none is, one that works at least now.
            let up = others().find(|other| other.state == State::Up);
            let other = up.or_else(|| others().find(|other| other.works_now()))?;
            let why = Why { trigger, leg, need_ms: None, rounds: 0 };
            Some((other.exit, self.switched(current.exit, other.exit, None, Some(why))))
        };
        if current.state == State::Down {
            return lost(Trigger::Down, current.failed_leg).ok_or((Reason::AllExitsFailed, None));
        }
        let away_ms = now.saturating_sub(current.tried);
        let unmeasured = current.rounds.newest().is_some_and(|seen| !seen.is_tried());
        if unmeasured {
            let grace_ms = settings.unmeasured_grace_ms.max(AWAY_MS);
            if away_ms < grace_ms {
                return Err((Reason::CurrentUnmeasured { remaining_ms: grace_ms - away_ms }, None));
            }
            let up = others().any(|other| other.state == State::Up);
            let step = (Reason::CurrentUnmeasured { remaining_ms: 0 }, None);
            return if up { lost(Trigger::Unmeasured, LegName::B).ok_or(step) } else { Err(step) };
        }
        if current.state == State::Suspect {
            return Err((Reason::Suspect { exit: current.exit, leg: current.failed_leg }, None));
        }
        let shortest = adaptive.damping.shortest_window(now);
        let mut best: Option<(&Memory, Evidence)> = None;
        let mut held: Option<(&Memory, Evidence)> = None;
        for other in others().filter(|other| other.works_now()) {
            let evidence = evidence::compare(current, other, settings, shortest);
            let place = if other.state == State::Up && current.fresh >= super::memory::ENOUGH_SAMPLES {
                &mut best
            } else {
                &mut held
            };
            let surplus = |evidence: &Evidence| evidence.have_ms - evidence.need_ms;
            if place.as_ref().is_none_or(|(_, before)| surplus(&evidence) > surplus(before)) {
                *place = Some((other, evidence));
            }
        }
        if let Some((other, evidence)) = best.filter(|(_, evidence)| evidence.is_enough()) {
            let why = Why {
                trigger: evidence.trigger,
                leg: evidence.leg,
                need_ms: Some(evidence.need_ms),
                rounds: u32::try_from(evidence.rounds).unwrap_or(u32::MAX),
            };
            let reason = self.switched(current.exit, other.exit, Some(evidence.have_ms), Some(why));
            return Ok((other.exit, reason));
        }
        if let Some((other, _)) = held.filter(|(_, evidence)| evidence.is_enough()) {
            let needed = other.needed(now);
            let samples = other.fresh.min(current.fresh).min(needed);
            return Err((Reason::Held { exit: other.exit, samples, needed }, None));
        }
        Err(match best.filter(|(_, evidence)| evidence.have_ms > 0.0) {
            Some((other, Evidence { have_ms, need_ms, .. })) => {
                (Reason::InsufficientAdvantage { exit: other.exit, have_ms, need_ms }, None)
            }
            None => (Reason::CurrentIsBest, None),
        })
    }

    fn switched(&self, from: NodeId, to: NodeId, advantage_ms: Option<f64>, why: Option<Why>) -> Reason {
        Reason::Switched { from: Some(from), to, advantage_ms, why }
    }

    fn unless_refused(
        &self,
        adaptive: &Adaptive,
        exit: NodeId,
        switch: Reason,
        now: MonoMs,
        settings: &Settings,
    ) -> Step {
        let doublings = adaptive.refusals.saturating_sub(1).min(16);
        let wait = settings.apply_retry_ms.saturating_mul(1 << doublings);
        let wait = wait.min(MAX_RETRY_MS.max(settings.apply_retry_ms));
        match self.last_push_failed.map(|at| at.saturating_add(wait)).filter(|ends| *ends > now) {
            Some(ends) => (Reason::ApplyRetryWait { exit, remaining_ms: ends - now }, None),
            None => (switch, Some(exit)),
        }
    }

    fn cooldown_of(&self, adaptive: &Adaptive, now: MonoMs, settings: &Settings) -> Option<MonoMs> {
        let length = adaptive.damping.cooldown_ms(settings.cooldown_ms, now);
        let ends = self.applied.last_switch?.saturating_add(length);
        (ends > now).then_some(ends)
    }
}

impl Adaptive {
    /// The cooldown after the last switch, in milliseconds.
    pub(in crate::best_exit) fn cooldown_ms(&self, base_ms: u64, now: MonoMs) -> u64 {
        self.damping.cooldown_ms(base_ms, now)
    }

    /// The owner has accepted another first exit.
    pub(in crate::best_exit) fn accepted(&mut self, from: Option<NodeId>, to: Option<NodeId>, now: MonoMs) {
        self.refusals = 0;
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            self.damping.switched(from, to, now);
        }
    }

    fn find(&self, exit: NodeId) -> Option<&Memory> {
        self.exits.iter().find(|memory| memory.exit == exit)
    }

    /// Neither down nor proving itself.
    fn is_usable(&self, exit: NodeId) -> bool {
        self.find(exit).is_some_and(|memory| !matches!(memory.state, State::Down | State::Probation))
    }

    fn remember(&mut self, candidates: &[Candidate], now: MonoMs, settings: &Settings) {
        let longest = MAX_GAP_INTERVALS * settings.round_interval_ms;
        if self.last_round.is_some_and(|last| now.saturating_sub(last) > longest) {
            self.exits.iter_mut().for_each(Memory::gap);
        }
        self.last_round = Some(now);
        let same = self.exits.len() == candidates.len()
            && self.exits.iter().zip(candidates).all(|(memory, candidate)| memory.exit == candidate.exit);
        if !same {
            let mut before = std::mem::take(&mut self.exits);
            let memory = |candidate: &Candidate| match before.iter().position(|m| m.exit == candidate.exit) {
                Some(at) => before.swap_remove(at),
                None => Memory::new(candidate.exit, now),
            };
            self.exits = candidates.iter().map(memory).collect();
        }
        for (memory, candidate) in self.exits.iter_mut().zip(candidates) {
            memory.add(candidate, settings.ping_count, now);
        }
    }

    /// Exits that can be used by their score over a window, then the others; equals in saved order.
    fn ranked(&self, candidates: &[Candidate], settings: &Settings) -> Vec<Ranked> {
        let score = |candidate: &Candidate| {
            let memory = self.find(candidate.exit).filter(|memory| memory.state != State::Down)?;
            let (latency_ms, legs) = memory.summary(SHOWN)?;
            let loss = 1.0 - (1.0 - legs[0]) * (1.0 - legs[1]);
            let loss_penalty_ms = loss * 100.0 * settings.loss_penalty_ms_per_percent;
            let total_ms = latency_ms + loss_penalty_ms;
            total_ms.is_finite().then_some(Score { latency_ms, loss, loss_penalty_ms, total_ms })
        };
        let mut ranked: Vec<Ranked> =
            candidates.iter().map(|c| Ranked { exit: c.exit, score: score(c) }).collect();
        ranked.sort_by(|a, b| match (&a.score, &b.score) {
            (Some(a), Some(b)) => a.total_ms.total_cmp(&b.total_ms),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        ranked
    }

    fn advantage(&self, current: NodeId, other: NodeId, settings: &Settings) -> Option<f64> {
        let total = |exit| {
            let (ms, loss) = self.find(exit)?.summary(SHOWN)?;
            let loss = 1.0 - (1.0 - loss[0]) * (1.0 - loss[1]);
            Some(ms + loss * 100.0 * settings.loss_penalty_ms_per_percent)
        };
        Some(total(current)? - total(other)?).filter(|ms| ms.is_finite())
    }
}

/// Every exit that was tried failed: something that they share has failed, and none of them is to blame.
fn nobody_works(candidates: &[Candidate]) -> bool {
    let failed =
        |c: &Candidate| matches!(c.leg_a, Leg::Failed { .. }) || matches!(c.leg_b, Leg::Failed { .. });
    candidates.iter().all(failed)
}

/// What failed when everything did: the target for everybody, the owner's own line, or the exits.
fn blame(candidates: &[Candidate], pin: Option<NodeId>) -> Reason {
    let a_failed = candidates.iter().filter(|c| matches!(c.leg_a, Leg::Failed { .. })).count();
    let reason = if a_failed == 0 {
        Reason::TargetFailed
    } else if a_failed == candidates.len() && a_failed >= 3 {
        Reason::OwnerLine
    } else {
        Reason::AllExitsFailed
    };
    match pin {
        Some(exit) => Reason::PinFailed { exit, among_others: Box::new(reason) },
        None => reason,
    }
}
