//! The task that owns all decisions: starts rounds, evaluates owners as their results come in, has orders pushed.

use super::legs::{Layout, OwnerKey};
use super::owner::{Owner, exit_of, name_of};
use super::prober::{self, Answer, How, Question, Said};
use super::push::{self, Failure, PushDone, PushJob};
use super::round::{NodeState, Running};
use super::writer::Writer;
use super::{Inner, MONO_BEFORE_START, pins};
use crate::metrics::{Metrics, ReasonLabel};
use crate::plan::Plans;
use crate::store::{DecisionWrite, LegSample, NewLogEntry, StoredDecision};
use shared::address::HostPort;
use shared::api::{Event, PinRecord, SwitchRecord};
use shared::best_exit::{Leg, MonoMs, Reason, Round, Settings};
use shared::ids::{NodeId, TunnelId};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Sleep;

/// Answers and ends of pushes that wait to be looked at; who sends more waits.
const QUEUE: usize = 1024;
/// The first round follows soon after the start, when the first agents are back.
const FIRST_ROUND: Duration = Duration::from_secs(1);
/// After the database could not be read at the start.
const RETRY: Duration = Duration::from_secs(2);

/// Measurements older than this many round intervals are not used.
const MAX_AGE_INTERVALS: u64 = 3;

pub(super) struct Decider {
    inner: Arc<Inner>,
    writer: Writer,
    settings: Settings,
    pins: Vec<(TunnelId, PinRecord)>,
    plans: Arc<Plans>,
    layout: Arc<Layout>,
    /// What the layout was made from.
    layout_of: Option<(Arc<Plans>, HostPort)>,
    stored: BTreeMap<OwnerKey, StoredDecision>,
    owners: BTreeMap<OwnerKey, Owner>,
    rounds: BTreeMap<u64, Running>,
    next_round: u64,
    busy: BTreeSet<NodeId>,
    unresponsive: BTreeSet<NodeId>,
    answers: mpsc::Sender<Answer>,
    pushes: mpsc::Sender<PushDone>,
    probe_gate: Arc<Semaphore>,
    push_gate: Arc<Semaphore>,
}

/// Decides until cancelled.
pub(super) async fn decide_forever(inner: Arc<Inner>, writer: Writer) {
    let cancel = inner.cancel.clone();
    let (answer_sender, mut answers) = mpsc::channel(QUEUE);
    let (push_sender, mut pushes) = mpsc::channel(QUEUE);
    let Some(mut decider) = Decider::load(inner, writer, answer_sender, push_sender).await else { return };
    let first = FIRST_ROUND.min(decider.interval());
    let mut timer: Pin<Box<Sleep>> = Box::pin(tokio::time::sleep(first));
    loop {
        let inner = decider.inner.clone();
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            Some(done) = pushes.recv() => decider.pushed(done),
            Some(answer) = answers.recv() => decider.answered(answer),
            () = inner.wake.notified() => {
                let (interval, monitoring) = (decider.interval(), decider.settings.monitor_tunnel_quality_enabled);
                decider.reread().await;
                if decider.settings.monitor_tunnel_quality_enabled != monitoring {
                    timer = Box::pin(tokio::time::sleep(Duration::ZERO));
                } else if decider.interval() != interval {
                    timer = Box::pin(tokio::time::sleep(decider.interval()));
                }
            }
            () = &mut timer => {
                decider.reread().await;
                timer = Box::pin(tokio::time::sleep(decider.interval()));
                decider.start_round();
            }
        }
    }
}

impl Decider {
    async fn load(
        inner: Arc<Inner>,
        writer: Writer,
        answers: mpsc::Sender<Answer>,
        pushes: mpsc::Sender<PushDone>,
    ) -> Option<Self> {
        let cancel = inner.cancel.clone();
        let (plans, stored, settings) = loop {
            // Only the waits are cut short: a statement that is broken off costs its connection.
            let plans = cancel.run_until_cancelled(inner.agents.next_plans(None)).await?;
            let stored = inner.db.decisions().await;
            let settings = inner.db.settings().await;
            match (plans, stored, settings) {
                (Some(plans), Ok(stored), Ok((_, settings))) => break (plans, stored, settings),
                (_, Err(error), _) | (_, _, Err(error)) => {
                    tracing::error!(%error, "the stored decisions could not be read");
                }
                (None, _, _) => {}
            }
            cancel.run_until_cancelled(tokio::time::sleep(RETRY)).await?;
        };
        Some(Self {
            inner,
            writer,
            settings,
            pins: Vec::new(),
            plans,
            layout: Arc::default(),
            layout_of: None,
            stored: stored.into_iter().map(|stored| ((stored.tunnel, stored.owner), stored)).collect(),
            owners: BTreeMap::new(),
            rounds: BTreeMap::new(),
            next_round: 1,
            busy: BTreeSet::new(),
            unresponsive: BTreeSet::new(),
            answers,
            pushes,
            probe_gate: Arc::new(Semaphore::new(prober::LEGS_IN_FLIGHT)),
            push_gate: Arc::new(Semaphore::new(push::IN_FLIGHT)),
        })
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(self.settings.round_interval_ms)
    }

    /// The monotonic clock of all states, which had been running for long when the panel started.
    fn now(&self) -> MonoMs {
        self.inner.clock.mono_ms() + MONO_BEFORE_START
    }

    /// Reads settings, pins and plans again; on an error what was read before stays in force.
    async fn reread(&mut self) {
        match self.inner.db.settings().await {
            Ok((_, settings)) => self.settings = settings,
            Err(error) => {
                tracing::error!(%error, "the settings could not be read; those before stay in force")
            }
        }
        match self.inner.db.pins().await {
            Ok(pins) => self.pins = pins,
            Err(error) => tracing::error!(%error, "the pins could not be read; those before stay in force"),
        }
        if let Some(plans) = self.inner.agents.plans() {
            self.plans = plans;
        }
        let monitoring = self.settings.monitor_tunnel_quality_enabled;
        self.inner.monitoring.store(monitoring, Ordering::Release);
        self.relayout();
    }

    fn relayout(&mut self) {
        let Ok(target) = HostPort::parse(&self.settings.probe_target) else {
            tracing::error!(target = self.settings.probe_target, "the probe target is no host:port");
            return;
        };
        let same = self
            .layout_of
            .as_ref()
            .is_some_and(|(plans, old)| Arc::ptr_eq(plans, &self.plans) && *old == target);
        if same {
            return;
        }
        self.layout = Arc::new(Layout::new(&self.plans.intent, &target));
        self.layout_of = Some((self.plans.clone(), target));
        let keys: BTreeSet<OwnerKey> = self.layout.owners.iter().map(|owner| owner.key).collect();
        self.owners.retain(|key, _| keys.contains(key));
        self.inner.views().retain(|key, _| keys.contains(key));
        let (wall, now) = (self.inner.clock.wall_ms(), self.now());
        for key in keys {
            self.owners.entry(key).or_insert_with(|| match self.stored.remove(&key) {
                Some(stored) => Owner::restore(stored, wall, now),
                None => Owner::new(self.plans.intent.applied.get(&key).cloned().unwrap_or_default()),
            });
        }
        self.inner.metrics.owners.set(i64::try_from(self.owners.len()).unwrap_or(i64::MAX));
    }

    fn start_round(&mut self) {
        let number = self.next_round;
        self.next_round += 1;
        let (agents, monitoring) = (&self.inner.agents, self.settings.monitor_tunnel_quality_enabled);
        let state = |node: NodeId| {
            let busy = self.busy.contains(&node);
            if agents.kind(node).is_none() {
                NodeState::Offline
            } else if self.unresponsive.contains(&node) {
                NodeState::Unresponsive { busy }
            } else if busy {
                NodeState::Busy
            } else {
                NodeState::Ready
            }
        };
        let (mut running, started) =
            Running::start(number, self.inner.clock.mono_ms(), self.layout.clone(), monitoring, state);
        let how = How::new(&self.settings);
        for (node, legs) in started.asks {
            // It may have gone in this moment; then the question ends at once.
            let kind = self.inner.agents.kind(node).unwrap_or(crate::agents::Kind::Peer);
            let legs: Vec<_> = legs.into_iter().map(|leg| (leg, self.layout.legs[leg].clone())).collect();
            self.busy.insert(node);
            self.inner.metrics.legs_in_flight.inc_by(i64::try_from(legs.len()).unwrap_or(i64::MAX));
            let question = Question { round: number, node, kind, legs, how };
            let (gate, answers) = (self.probe_gate.clone(), self.answers.clone());
            let asking = prober::ask(self.inner.agents.clone(), question, gate, answers);
            let cancel = self.inner.cancel.clone();
            self.inner.tracker.spawn(async move { cancel.run_until_cancelled(asking).await });
        }
        for owner in started.ready {
            self.evaluate(&running, owner);
        }
        if running.asked.is_empty() {
            self.round_ended(&mut running);
        } else {
            self.rounds.insert(number, running);
        }
    }

    fn answered(&mut self, answer: Answer) {
        let Answer { round: number, node, said } = answer;
        let Some(mut running) = self.rounds.remove(&number) else { return };
        let ended = !matches!(said, Said::Legs(_));
        let now = self.inner.clock.mono_ms();
        let ready = match said {
            Said::Legs(legs) => {
                self.unresponsive.remove(&node);
                for (_, leg) in &legs {
                    Metrics::count(
                        &self.inner.metrics.legs,
                        match leg {
                            Leg::Measured { .. } => "measured",
                            Leg::Failed { .. } => "failed",
                            Leg::Unmeasured { .. } => "unmeasured",
                        },
                    );
                }
                running.measured(legs, now)
            }
            Said::Finished => Vec::new(),
            Said::Silent => {
                self.unresponsive.insert(node);
                running.gave_up(node, true, now)
            }
            Said::Gone => {
                self.unresponsive.remove(&node);
                running.gave_up(node, false, now)
            }
        };
        for owner in ready {
            self.evaluate(&running, owner);
        }
        if !ended {
            self.rounds.insert(number, running);
            return;
        }
        self.busy.remove(&node);
        let legs = running.layout.by_node.get(&node).map_or(0, Vec::len);
        self.inner.metrics.legs_in_flight.dec_by(i64::try_from(legs).unwrap_or(i64::MAX));
        if running.finished(node) {
            self.round_ended(&mut running);
        } else {
            self.rounds.insert(number, running);
        }
    }

    fn round_ended(&mut self, running: &mut Running) {
        let at = self.inner.clock.wall_ms();
        let samples: Vec<LegSample> = running
            .results()
            .map(|(leg, result)| {
                let stretch = &running.layout.legs[leg];
                LegSample { from: stretch.from, target: stretch.to.to_string(), at, leg: result.clone() }
            })
            .collect();
        if !samples.is_empty() {
            self.writer.samples(samples);
        }
        let took = self.inner.clock.mono_ms().saturating_sub(running.started);
        self.inner.metrics.rounds.inc();
        self.inner.metrics.round_duration.observe(Duration::from_millis(took).as_secs_f64());
        tracing::debug!(round = running.number, took_ms = took, "a round ended");
        self.inner.bus.send(Event::Round { at });
    }

    /// One owner's results of one round are complete.
    fn evaluate(&mut self, running: &Running, number: usize) {
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
            pin: pin.map(|pin| shared::best_exit::Pin { exit: pin.exit_node_id }),
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
            let reason = Reason::Switched { from: before, to: first, advantage_ms: None };
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
        let from = owner.state.applied.complete(&order).first().copied();
        let job = PushJob { key, order, from, reason };
        let (gate, done) = (self.push_gate.clone(), self.pushes.clone());
        let pushing = push::push(self.inner.clone(), self.writer.clone(), job, gate, done);
        let cancel = self.inner.cancel.clone();
        self.inner.tracker.spawn(async move { cancel.run_until_cancelled(pushing).await });
    }

    fn pushed(&mut self, done: PushDone) {
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
            self.writer.write(DecisionWrite::Log(entry));
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
        self.writer.write(DecisionWrite::Log(entry));
        if with_state {
            self.save(key);
        }
    }

    fn save(&mut self, key: OwnerKey) {
        let Some(owner) = self.owners.get_mut(&key) else { return };
        owner.unsaved = !self.writer.write(DecisionWrite::Store(owner.stored(key)));
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
            let view = super::view::View { owner: owner.clone(), needed, cooldown_ends };
            self.inner.views().insert(key, Arc::new(view));
        }
    }
}

/// Whether a verdict without a push says that the order which was pushed and not answered, with `exit` in front, is not
/// wanted any more.
fn settles_doubt(reason: &Reason, doubted: NodeId) -> bool {
    match reason {
        Reason::Confirming { exit, .. }
        | Reason::Cooldown { exit, .. }
        | Reason::ApplyRetryWait { exit, .. }
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
