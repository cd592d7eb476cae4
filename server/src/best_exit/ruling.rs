//! What a round leads to for one owner: the verdict, the push, and what is told and written about it.

use super::decider::Decider;
use super::legs::{OwnerKey, best_group};
use super::owner::{exit_of, name_of};
use super::push::{self, Failure, PushDone, PushJob};
use super::round::Running;
use super::{pins, view};
use crate::metrics::ReasonLabel;
use crate::store::NewLogEntry;
use shared::api::{Event, SwitchRecord};
use shared::best_exit::{Applied, Pin, Reason, Round};
use shared::ids::NodeId;
use std::sync::Arc;

/// Measurements older than this many round intervals are not used.
const MAX_AGE_INTERVALS: u64 = 3;

impl Decider {
    /// One owner's results of one round are complete.
    pub(super) fn evaluate(&mut self, running: &Running, number: usize) {
        let plan = &running.layout.owners[number];
        let key = plan.key;
        let (now, wall) = (self.now(), self.inner.clock.wall_ms());
        // The owner may be gone since the round started, or its exits may be others now.
        let current = Arc::ptr_eq(&running.layout, &self.layout)
            || self.layout.owners.iter().any(|owner| owner.key == key && owner.saved == plan.saved);
        if !current || self.owners.get(&key).is_none_or(|owner| owner.pushing) {
            return;
        }
        self.observe(key, &plan.saved);
        let max_age_ms = MAX_AGE_INTERVALS * self.settings.round_interval_ms;
        if running.is_stale(plan, self.inner.clock.mono_ms(), max_age_ms) {
            return;
        }
        let pin = pins::in_force(&self.pins, key, wall);
        let Some(owner) = self.owners.get_mut(&key) else { return };
        let candidates = running.candidates(plan);
        let round = Round {
            now,
            complete: plan.complete,
            monitoring: self.settings.monitor_tunnel_quality_enabled,
            owner_online: running.owner_online(plan) && self.inner.agents.is_online(key.1),
            candidates: &candidates,
            pin: pin.map(|pin| Pin { exit: pin.exit_node_id }),
        };
        let verdict = owner.state.evaluate(&round, &self.settings);
        let evaluated_before = owner.evaluated_at.is_some();
        if !verdict.ranked.is_empty() {
            owner.see(&verdict.ranked, candidates, wall);
        }
        self.inner.metrics.decisions.get_or_create(&ReasonLabel { reason: verdict.reason.code() }).inc();
        match verdict.push {
            Some(order) => self.push(key, order, verdict.reason),
            None => {
                if owner.in_doubt.is_some_and(|exit| settles_doubt(&verdict.reason, exit)) {
                    owner.in_doubt = None;
                    self.inner.agents.forget_proposal(key.0, key.1);
                }
                self.note_reason(key, evaluated_before);
            }
        }
        self.publish(key);
    }

    /// Looks at the order that the owner's agent is known to run. It becomes the applied one: at first, after an edit
    /// of the exits, and when a pushed order turns out to have been accepted although nobody said so.
    fn observe(&mut self, key: OwnerKey, saved: &[NodeId]) {
        let Some(order) = self.inner.agents.acknowledged_order(&self.plans, key.0, key.1) else { return };
        let Some(owner) = self.owners.get_mut(&key) else { return };
        if owner.state.applied.order == order {
            if owner.unsaved {
                self.save(key);
            }
            return;
        }
        let before = owner.state.applied.order.first().copied();
        let Some(first) = order.first().copied() else { return };
        if before.is_some_and(|before| before != first && saved.contains(&before)) {
            let reason = Reason::Switched { from: before, to: first, advantage_ms: None, why: None };
            owner.state.reason = reason.clone();
            owner.in_doubt = None;
            self.accepted(key, order, before, reason);
        } else {
            owner.state.applied.order = order;
            self.save(key);
        }
    }

    fn push(&mut self, key: OwnerKey, order: Vec<NodeId>, reason: Reason) {
        let Some(owner) = self.owners.get_mut(&key) else { return };
        owner.pushing = true;
        let from = from_of(&reason);
        let job = PushJob { key, order, from, reason };
        let (gate, done) = (self.push_gate.clone(), self.pushes.clone());
        let pushing = push::push(self.inner.clone(), self.writer.clone(), job, gate, done);
        let cancel = self.inner.cancel.clone();
        self.inner.tracker.spawn(async move { cancel.run_until_cancelled(pushing).await });
    }

    pub(super) fn pushed(&mut self, done: PushDone) {
        let PushDone { job: PushJob { key, order, from, reason }, result } = done;
        let (now, wall) = (self.now(), self.inner.clock.wall_ms());
        // The tunnel may have been removed meanwhile.
        let Some(owner) = self.owners.get_mut(&key) else { return };
        owner.pushing = false;
        let Some(to) = order.first().copied() else { return };
        match result {
            Ok(()) => {
                owner.in_doubt = None;
                owner.state.reason = reason.clone();
                self.accepted(key, order, from, reason);
            }
            Err(failure) => {
                let error = failure.to_string();
                owner.state.refused(to, error.clone(), now);
                owner.in_doubt = (failure == Failure::Unanswered).then_some(to);
                owner.last_switch = Some(SwitchRecord {
                    at: wall,
                    from_exit_node_id: from,
                    to_exit_node_id: to,
                    result: error,
                });
                let reason = owner.state.reason.clone();
                owner.reason_is_new();
                self.inner.metrics.decisions.get_or_create(&ReasonLabel { reason: reason.code() }).inc();
                self.log(key, from, &reason, failure.is_definite());
                self.inner.bus.send(Event::Decision {
                    tunnel_id: key.0,
                    owner_node_id: key.1,
                    reason: reason.code().to_owned(),
                });
            }
        }
        self.publish(key);
    }

    /// The owner runs `order` now, and its first exit is another one than before.
    fn accepted(&mut self, key: OwnerKey, order: Vec<NodeId>, from: Option<NodeId>, reason: Reason) {
        let (now, wall) = (self.now(), self.inner.clock.wall_ms());
        let Some(owner) = self.owners.get_mut(&key) else { return };
        let Some(to) = order.first().copied() else { return };
        owner.state.accepted(order, now);
        owner.last_switch_at = Some(wall);
        owner.last_switch = Some(SwitchRecord {
            at: wall,
            from_exit_node_id: from,
            to_exit_node_id: to,
            result: "applied".to_owned(),
        });
        owner.reason_is_new();
        self.inner.metrics.switches.inc();
        self.log(key, from, &reason, true);
        self.inner.bus.send(Event::Switch { tunnel_id: key.0, owner_node_id: key.1, from, to, at: wall });
    }

    /// Tells of the reason if it is another one than after the round before.
    fn note_reason(&mut self, key: OwnerKey, evaluated_before: bool) {
        let Some(owner) = self.owners.get_mut(&key) else { return };
        if !owner.reason_is_new() {
            return;
        }
        let reason = owner.state.reason.clone();
        let from = owner.state.applied.order.first().copied();
        if owner.worth_logging(evaluated_before) {
            let entry = self.entry(key, from, &reason);
            self.writer.log(entry);
        }
        self.inner.bus.send(Event::Decision {
            tunnel_id: key.0,
            owner_node_id: key.1,
            reason: reason.code().to_owned(),
        });
    }

    /// Writes a switch or a refusal, with the owner's state if that is certain.
    fn log(&mut self, key: OwnerKey, from: Option<NodeId>, reason: &Reason, with_state: bool) {
        let intent = &self.plans.intent;
        tracing::info!(
            tunnel.id = key.0.0,
            owner.id = key.1.0,
            owner.name = name_of(intent, key.1),
            reason = reason.code(),
            "{}",
            reason.describe(&|node| name_of(intent, node))
        );
        let entry = self.entry(key, from, reason);
        self.writer.log(entry);
        if with_state {
            self.save(key);
        }
    }

    fn save(&mut self, key: OwnerKey) {
        let Some(owner) = self.owners.get_mut(&key) else { return };
        // The plans complete an order by the saved one, so storing that for the first time changes none of them.
        let saved = self.plans.intent.tunnels.get(&key.0).and_then(best_group);
        let saved: Vec<NodeId> =
            saved.iter().flat_map(|exit| &exit.nodes).map(|member| member.node).collect();
        let planned = self.plans.intent.applied.get(&key).cloned().unwrap_or_default();
        let planned = Applied { order: planned, last_switch: None };
        let replan = planned.complete(&saved) != owner.state.applied.complete(&saved);
        owner.unsaved = !self.writer.store(owner.stored(key), replan);
    }

    fn entry(&self, key: OwnerKey, from: Option<NodeId>, reason: &Reason) -> NewLogEntry {
        let intent = &self.plans.intent;
        NewLogEntry {
            tunnel: key.0,
            owner: key.1,
            at: self.inner.clock.wall_ms(),
            from,
            to: exit_of(reason),
            reason: reason.clone(),
            candidates: self.owners.get(&key).map(|owner| owner.decisions(intent)).unwrap_or_default(),
        }
    }

    fn publish(&self, key: OwnerKey) {
        if let Some(owner) = self.owners.get(&key) {
            let needed = self.settings.confirmations;
            let cooldown_ends = owner.state.cooldown_ends(self.now(), &self.settings);
            let view = view::View { owner: owner.clone(), needed, cooldown_ends };
            self.inner.views().insert(key, Arc::new(view));
        }
    }
}

/// The exit before a switch.
fn from_of(reason: &Reason) -> Option<NodeId> {
    match reason {
        Reason::Switched { from, .. } => *from,
        Reason::PinFailed { among_others, .. } => from_of(among_others),
        _ => None,
    }
}

/// Whether a verdict without a push says that the order which was pushed and not answered, with `exit` in front, is not
/// wanted any more.
fn settles_doubt(reason: &Reason, doubted: NodeId) -> bool {
    match reason {
        Reason::Confirming { exit, .. }
        | Reason::Cooldown { exit, .. }
        | Reason::ApplyRetryWait { exit, .. }
        | Reason::Held { exit, .. }
        | Reason::ApplyFailed { exit, .. } => *exit != doubted,
        Reason::CurrentIsBest
        | Reason::InsufficientAdvantage { .. }
        | Reason::Pinned { .. }
        | Reason::Switched { .. } => true,
        Reason::PinFailed { among_others, .. } => settles_doubt(among_others, doubted),
        // Nothing was decided; the doubt stays as it is.
        Reason::NoDecision
        | Reason::SingleExit
        | Reason::Incomplete
        | Reason::Paused
        | Reason::OwnerOffline
        | Reason::AllExitsFailed
        | Reason::OwnerLine
        | Reason::TargetFailed
        | Reason::Suspect { .. }
        | Reason::CurrentUnmeasured { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_decision_for_something_else_settles_a_doubt() {
        let doubted = NodeId(7);
        let cooldown = |exit| Reason::Cooldown { exit: NodeId(exit), remaining_ms: 1 };
        let table = [
            (Reason::CurrentIsBest, true),
            (cooldown(7), false),
            (cooldown(8), true),
            (Reason::Confirming { exit: doubted, rounds: 1, needed: 3 }, false),
            (Reason::AllExitsFailed, false),
            (Reason::OwnerOffline, false),
            (Reason::PinFailed { exit: NodeId(9), among_others: Box::new(cooldown(7)) }, false),
            (Reason::PinFailed { exit: NodeId(9), among_others: Box::new(Reason::CurrentIsBest) }, true),
        ];
        for (reason, settled) in table {
            assert_eq!(settles_doubt(&reason, doubted), settled, "{reason:?}");
        }
    }
}
