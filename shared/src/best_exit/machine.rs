//! The state of one (tunnel, owner) and the rules by which its exit is switched.

use super::MonoMs;
use super::adaptive::Adaptive;
use super::leg::Leg;
use super::reason::Reason;
use super::score::{Ranked, Score, rank};
use super::settings::{DecisionRules, Settings};
use crate::ids::NodeId;
use serde::{Deserialize, Serialize};

/// Evaluated rounds further apart than this many round intervals are not consecutive: old evidence is no evidence.
const MAX_GAP_INTERVALS: u64 = 3;

/// One exit as one owner saw it in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The exit.
    pub exit: NodeId,
    /// Owner → exit.
    pub leg_a: Leg,
    /// Exit → probe target.
    pub leg_b: Leg,
}

/// An operator's wish that one exit be used as long as it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    /// The pinned exit.
    pub exit: NodeId,
}

/// What one round knows about one owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Round<'a> {
    /// When the round ended for this owner.
    pub now: MonoMs,
    /// The tunnel is enabled and has all its parts.
    pub complete: bool,
    /// Quality monitoring is on.
    pub monitoring: bool,
    /// The owner is connected and answered in time.
    pub owner_online: bool,
    /// In saved order.
    pub candidates: &'a [Candidate],
    /// The pin that is in force for this owner.
    pub pin: Option<Pin>,
}

/// A better exit on its way to being confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// The exit.
    pub exit: NodeId,
    /// Consecutive evaluated rounds in which it won with the needed advantage.
    pub rounds: u32,
}

/// What was last accepted by the owner's agent, as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// All exits, the current one first; empty = nothing was ever applied, the saved order counts.
    pub order: Vec<NodeId>,
    /// When it was last switched.
    pub last_switch: Option<MonoMs>,
}

impl Applied {
    /// The order to render now: the applied one without exits that are gone, then new exits in saved order.
    pub fn complete(&self, saved: &[NodeId]) -> Vec<NodeId> {
        let kept = self.order.iter().filter(|exit| saved.contains(exit));
        let mut order: Vec<NodeId> = Vec::with_capacity(saved.len());
        for exit in kept.chain(saved) {
            // An exit twice (a damaged row) would be a chain that agents refuse.
            if !order.contains(exit) {
                order.push(*exit);
            }
        }
        order
    }

    /// The first of [`Applied::complete`]; there is at least one candidate.
    pub(super) fn first(&self, candidates: &[Candidate]) -> NodeId {
        let exists = |exit: &&NodeId| candidates.iter().any(|candidate| candidate.exit == **exit);
        self.order.iter().find(exists).copied().unwrap_or(candidates[0].exit)
    }
}

impl Round<'_> {
    /// The pinned exit; a pin on an exit that is no longer in the tunnel is no pin.
    pub(super) fn pin(&self) -> Option<NodeId> {
        let exists = |pin: &Pin| self.candidates.iter().any(|candidate| candidate.exit == pin.exit);
        self.pin.filter(exists).map(|pin| pin.exit)
    }
}

/// The state of one (tunnel, owner).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerState {
    /// Last accepted order.
    pub applied: Applied,
    /// A better exit on its way to being confirmed.
    pub pending: Option<Pending>,
    /// Last verdict's reason.
    pub reason: Reason,
    pub(super) last_evaluated: Option<MonoMs>,
    pub(super) last_push_failed: Option<MonoMs>,
    unmeasured: Option<Unmeasured>,
    pub(super) pin_settled: Option<NodeId>,
    /// What only the adaptive rules remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) adaptive: Option<Box<Adaptive>>,
}

/// Since when the current exit has no leg B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Unmeasured {
    exit: NodeId,
    since: MonoMs,
}

/// What a round leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Best first; empty when the round was not evaluated.
    pub ranked: Vec<Ranked>,
    /// Why.
    pub reason: Reason,
    /// The order to push to the owner, if all rules hold.
    pub push: Option<Vec<NodeId>>,
}

impl OwnerState {
    /// A state that starts from what is stored; nothing else survives a restart, so a restart alone never switches.
    pub fn new(applied: Applied) -> Self {
        Self {
            applied,
            pending: None,
            reason: Reason::NoDecision,
            last_evaluated: None,
            last_push_failed: None,
            unmeasured: None,
            pin_settled: None,
            adaptive: None,
        }
    }

    /// Takes one round into account. With a push in the verdict, the caller pushes and then calls
    /// [`OwnerState::accepted`] or [`OwnerState::refused`].
    pub fn evaluate(&mut self, round: &Round<'_>, settings: &Settings) -> Verdict {
        let verdict = self.judge(round, settings);
        self.reason = verdict.reason.clone();
        verdict
    }

    /// The owner accepted `order`.
    pub fn accepted(&mut self, order: Vec<NodeId>, now: MonoMs) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.accepted(self.applied.order.first().copied(), order.first().copied(), now);
        }
        self.applied = Applied { order, last_switch: Some(now) };
        self.pending = None;
        self.last_push_failed = None;
    }

    /// The owner refused, or did not answer: the applied order and the count stay.
    pub fn refused(&mut self, exit: NodeId, error: String, now: MonoMs) {
        self.last_push_failed = Some(now);
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.refusals = adaptive.refusals.saturating_add(1);
        }
        self.reason = Reason::ApplyFailed { exit, error };
    }

    /// When the cooldown ends; `None`: it has, or there was no switch yet.
    pub fn cooldown_ends(&self, now: MonoMs, settings: &Settings) -> Option<MonoMs> {
        let length = match &self.adaptive {
            Some(adaptive) => adaptive.cooldown_ms(settings.cooldown_ms, now),
            None => settings.cooldown_ms,
        };
        let ends = self.applied.last_switch?.saturating_add(length);
        (ends > now).then_some(ends)
    }

    fn judge(&mut self, round: &Round<'_>, settings: &Settings) -> Verdict {
        let skipped = |reason| Verdict { ranked: Vec::new(), reason, push: None };
        if !round.complete || round.candidates.is_empty() {
            return skipped(Reason::Incomplete);
        }
        if round.candidates.len() == 1 {
            return skipped(Reason::SingleExit);
        }
        if !round.monitoring {
            return skipped(Reason::Paused);
        }
        if !round.owner_online {
            return skipped(Reason::OwnerOffline);
        }

        if settings.decision_rules == DecisionRules::Adaptive {
            return self.judge_adaptively(round, settings);
        }
        self.adaptive = None;

        let longest_gap = MAX_GAP_INTERVALS * settings.round_interval_ms;
        if self.last_evaluated.is_some_and(|last| round.now.saturating_sub(last) > longest_gap) {
            self.pending = None;
        }
        self.last_evaluated = Some(round.now);

        let ranked = rank(round.candidates, settings.loss_penalty_ms_per_percent);
        let current = self.applied.first(round.candidates);
        let pin = round.pin();

        let (mut reason, winner) = self.choose(round, settings, &ranked, current, pin);
        let push = winner.map(|winner| {
            let others = ranked.iter().map(|r| r.exit).filter(|exit| *exit != winner);
            std::iter::once(winner).chain(others).collect::<Vec<_>>()
        });
        if let Some(exit) = pin.filter(|exit| score_of(&ranked, *exit).is_none())
            && !matches!(reason, Reason::CurrentUnmeasured { .. })
        {
            reason = Reason::PinFailed { exit, among_others: Box::new(reason) };
        }
        Verdict { ranked, reason, push }
    }

    /// The reason, and the exit to switch to if all rules hold.
    fn choose(
        &mut self,
        round: &Round<'_>,
        settings: &Settings,
        ranked: &[Ranked],
        current: NodeId,
        pin: Option<NodeId>,
    ) -> (Reason, Option<NodeId>) {
        let now = round.now;
        let grace = self.unmeasured_grace(round, settings, current);
        let current_score = score_of(ranked, current);

        let pin_works = pin.filter(|exit| score_of(ranked, *exit).is_some());
        // A new pin is an order and is obeyed at once. One that was obeyed, or that was seen failing, returns by the
        // rules of confirmation and cooldown.
        let obey_at_once = pin.is_some() && self.pin_settled != pin;
        if pin.is_none() || pin == Some(current) || pin_works.is_none() {
            self.pin_settled = pin;
        } else if obey_at_once {
            // The pin before it is history: set again, it is a new order.
            self.pin_settled = None;
        }

        let (winner, advantage_ms) = match pin_works {
            Some(exit) if exit == current => {
                self.pending = None;
                return (Reason::Pinned { exit }, None);
            }
            Some(exit) => {
                let advantage =
                    current_score.zip(score_of(ranked, exit)).map(|(c, p)| c.total_ms - p.total_ms);
                if obey_at_once {
                    // Such a round confirms nobody.
                    self.pending = None;
                    if let Some(remaining_ms) = self.retry_wait(now, settings) {
                        return (Reason::ApplyRetryWait { exit, remaining_ms }, None);
                    }
                    return (
                        Reason::Switched {
                            from: Some(current),
                            to: exit,
                            advantage_ms: advantage,
                            why: None,
                        },
                        Some(exit),
                    );
                }
                (exit, advantage)
            }
            None => {
                let Some(Ranked { exit, score: Some(best) }) = ranked.first() else {
                    // Nobody won this round, so nobody won "consecutive" ones, grace or not.
                    self.pending = None;
                    return (grace.unwrap_or(Reason::AllExitsFailed), None);
                };
                if *exit == current {
                    self.pending = None;
                    return (Reason::CurrentIsBest, None);
                }
                let advantage = current_score.map(|score| score.total_ms - best.total_ms);
                if let (Some(have_ms), Some(score)) = (advantage, current_score) {
                    let need_ms =
                        settings.min_advantage_ms.max(settings.min_advantage_ratio * score.total_ms);
                    if have_ms < need_ms {
                        self.pending = None;
                        return (Reason::InsufficientAdvantage { exit: *exit, have_ms, need_ms }, None);
                    }
                }
                (*exit, advantage)
            }
        };

        let rounds = match self.pending {
            Some(pending) if pending.exit == winner => pending.rounds.saturating_add(1),
            _ => 1,
        };
        self.pending = Some(Pending { exit: winner, rounds });

        let reason = if let Some(grace) = grace {
            grace
        } else if rounds < settings.confirmations {
            Reason::Confirming { exit: winner, rounds, needed: settings.confirmations }
        } else if let Some(ends) = self.cooldown_ends(now, settings) {
            Reason::Cooldown { exit: winner, remaining_ms: ends - now }
        } else if let Some(remaining_ms) = self.retry_wait(now, settings) {
            Reason::ApplyRetryWait { exit: winner, remaining_ms }
        } else {
            return (
                Reason::Switched { from: Some(current), to: winner, advantage_ms, why: None },
                Some(winner),
            );
        };
        (reason, None)
    }

    /// Whether the current exit is kept although it has no leg B: its leg A is good and the grace is not over.
    fn unmeasured_grace(
        &mut self,
        round: &Round<'_>,
        settings: &Settings,
        current: NodeId,
    ) -> Option<Reason> {
        let candidate = round.candidates.iter().find(|c| c.exit == current)?;
        if candidate.leg_a.numbers().is_none() || !matches!(candidate.leg_b, Leg::Unmeasured { .. }) {
            self.unmeasured = None;
            return None;
        }
        let since = match self.unmeasured {
            Some(unmeasured) if unmeasured.exit == current => unmeasured.since,
            _ => round.now,
        };
        self.unmeasured = Some(Unmeasured { exit: current, since });
        let elapsed = round.now.saturating_sub(since);
        let remaining_ms = settings.unmeasured_grace_ms.saturating_sub(elapsed);
        (remaining_ms > 0).then_some(Reason::CurrentUnmeasured { remaining_ms })
    }

    fn retry_wait(&self, now: MonoMs, settings: &Settings) -> Option<u64> {
        let ends = self.last_push_failed?.saturating_add(settings.apply_retry_ms);
        (ends > now).then(|| ends - now)
    }
}

fn score_of(ranked: &[Ranked], exit: NodeId) -> Option<Score> {
    ranked.iter().find(|r| r.exit == exit)?.score
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
