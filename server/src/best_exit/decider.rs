//! The task that owns all decisions: starts rounds, evaluates owners as their results come in, has orders pushed.

use super::legs::{Layout, OwnerKey, Stretch};
use super::owner::Owner;
use super::prober::{self, Answer, How, Question, Said};
use super::push::{self, PushDone};
use super::round::{NodeState, Running};
use super::writer::Writer;
use super::{Inner, MONO_BEFORE_START};
use crate::metrics::Metrics;
use crate::plan::Plans;
use crate::store::{LegSample, StoredDecision};
use shared::address::HostPort;
use shared::api::{Event, PinRecord};
use shared::best_exit::{Leg, MonoMs, Settings};
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

pub(super) struct Decider {
    pub(super) inner: Arc<Inner>,
    pub(super) writer: Writer,
    pub(super) settings: Settings,
    pub(super) pins: Vec<(TunnelId, PinRecord)>,
    pub(super) plans: Arc<Plans>,
    pub(super) layout: Arc<Layout>,
    /// How often the measured port of a leg with several has failed, by who measures and what; each time the next one
    /// takes its turn.
    pub(super) turns: BTreeMap<(NodeId, String), usize>,
    /// What the layout was made from.
    pub(super) layout_of: Option<(Arc<Plans>, HostPort)>,
    pub(super) stored: BTreeMap<OwnerKey, StoredDecision>,
    pub(super) owners: BTreeMap<OwnerKey, Owner>,
    pub(super) rounds: BTreeMap<u64, Running>,
    pub(super) next_round: u64,
    pub(super) busy: BTreeSet<NodeId>,
    pub(super) unresponsive: BTreeSet<NodeId>,
    pub(super) answers: mpsc::Sender<Answer>,
    pub(super) pushes: mpsc::Sender<PushDone>,
    pub(super) probe_gate: Arc<Semaphore>,
    pub(super) push_gate: Arc<Semaphore>,
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
            turns: BTreeMap::new(),
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
    pub(super) fn now(&self) -> MonoMs {
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
        self.warm().await;
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
        let legs: BTreeSet<_> = self.layout.legs.iter().map(|leg| (leg.from, leg.target.as_str())).collect();
        self.turns.retain(|(from, target), _| legs.contains(&(*from, target.as_str())));
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
        let idle = started.asks.is_empty() && started.ready.is_empty() && !self.layout.owners.is_empty();
        let how = How::new(&self.settings);
        for (node, legs) in started.asks {
            // It may have gone in this moment; then the question ends at once.
            let kind = self.inner.agents.kind(node).unwrap_or(crate::agents::Kind::Peer);
            let legs: Vec<_> =
                legs.into_iter().map(|leg| (leg, self.address(&self.layout.legs[leg]))).collect();
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
        if idle {
            // Everybody is still busy with the round before; this one is none.
        } else if running.asked.is_empty() {
            self.round_ended(&mut running);
        } else {
            self.rounds.insert(number, running);
        }
    }

    fn address(&self, stretch: &Stretch) -> HostPort {
        stretch.at(self.turns.get(&(stretch.from, stretch.target.clone())).copied().unwrap_or(0))
    }

    /// After a failure the next round tries another port of the same host, if there is one: a single dead service does
    /// not speak for a host long enough to move its tunnels.
    fn turn_away(&mut self, stretch: &Stretch, result: &Leg) {
        if matches!(result, Leg::Failed { .. }) && stretch.ports.len() > 1 {
            *self.turns.entry((stretch.from, stretch.target.clone())).or_insert(0) += 1;
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
                for (number, leg) in &legs {
                    self.turn_away(&running.layout.legs[*number], leg);
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
                LegSample { from: stretch.from, target: stretch.target.clone(), at, leg: result.clone() }
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
}
