//! Makes one node run what it should: the only one who sends it configuration, so commands about one object never
//! overtake each other.
//!
//! Level-triggered: whatever wakes it, it compares what is desired with what is acknowledged and sends the
//! difference. A driver lives as long as its connection.

use super::Inner;
use super::board::{Desired, Due, Key, Outcome, Step};
use super::choosing::Sent;
use super::hello::{note_alive, note_connection, said, suspects};
use super::session::{CallError, Session};
use super::slot::{Proposal, Slot};
use crate::metrics::Metrics;
use crate::plan::{NodePlan, Plans, names, owner_chain};
use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use shared::api::Event;
use shared::ids::{NodeId, TunnelId};
use shared::link::{Command, GROUPS, Hello, Report};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// An agent that has not said hello by then is a peer's.
const HELLO_WAIT: Duration = Duration::from_secs(2);
/// For the answer to a configuration command; the peer's panel waits as long.
pub(super) const COMMAND_DEADLINE: Duration = Duration::from_secs(6);
/// Commands under way at once. Our agents keep the order of commands about one object.
const IN_FLIGHT_OURS: usize = 32;
/// A peer's agent promises no order at all between commands.
const IN_FLIGHT_PEER: usize = 1;
/// Changes are told together: after so many answers,
const TELL_AFTER: usize = 32;
/// or after this long.
const TELL_WITHIN: Duration = Duration::from_millis(250);
/// How often a living connection is noted in the database.
const SEEN_EVERY: Duration = Duration::from_secs(300);

/// Why a pushed order is not known to be in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The owner is not connected, or the connection ended before it answered.
    #[error("the node is offline")]
    Offline,
    /// No answer in time; the order may be in force. The chain is left alone until the next push of it or
    /// [`super::Agents::forget_proposal`].
    #[error("the node did not answer in time")]
    Timeout,
    /// The owner said no and keeps what it has.
    #[error("{0}")]
    Refused(String),
    /// The node holds no such chain (any more).
    #[error("the node does not choose an exit of this tunnel")]
    NotOwner,
}

/// An order to be pushed.
#[derive(Debug)]
pub(super) struct PushRequest {
    pub(super) tunnel: TunnelId,
    pub(super) order: Vec<NodeId>,
    pub(super) done: oneshot::Sender<Result<(), PushError>>,
}

enum Ended {
    Step { key: Key, digest: Option<String>, outcome: Outcome },
    Push { request: PushRequest, digest: String, result: Result<(), PushError> },
    Choice { sent: Sent, result: Result<(), String> },
}

struct Driver {
    inner: Arc<Inner>,
    slot: Arc<Slot>,
    session: Arc<Session>,
    peer: bool,
    /// The agent takes persons' choices.
    chooses: bool,
    plans: Arc<Plans>,
    in_flight: FuturesUnordered<BoxFuture<'static, Ended>>,
    waiting: VecDeque<PushRequest>,
    /// Changes that nobody was told of yet.
    untold: usize,
    /// Something happened since desired and acknowledged were compared, which is much work on a node with many objects.
    stale: bool,
    /// When an object that was not accepted is due again.
    retry_at: Option<u64>,
}

/// Drives a node until its connection ends.
pub(super) async fn drive(
    inner: Arc<Inner>,
    slot: Arc<Slot>,
    session: Arc<Session>,
    mut pushes: mpsc::Receiver<PushRequest>,
) {
    let mut hellos = session.hello();
    let hello = tokio::time::timeout(HELLO_WAIT, hellos.wait_for(Option::is_some));
    let hello = tokio::select! {
        () = session.closed.cancelled() => return,
        hello = hello => hello.ok().and_then(|said| said.ok()?.clone()),
    };
    note_connection(&inner, &session, hello.as_deref()).await;
    let mut planned = inner.planned.clone();
    let plans = tokio::select! {
        () = session.closed.cancelled() => return,
        first = planned.wait_for(|planned| planned.plans.is_some()) => match first {
            Ok(planned) => planned.plans.clone(),
            Err(_) => return,
        },
    };
    let Some(plans) = plans else { return };
    let peer = hello.is_none();
    let chooses = hello.iter().any(|hello| hello.capabilities.iter().any(|can| can == GROUPS));
    let mut driver = Driver {
        inner,
        slot,
        session: session.clone(),
        peer,
        chooses,
        plans,
        in_flight: FuturesUnordered::new(),
        waiting: VecDeque::new(),
        untold: 0,
        stale: true,
        retry_at: None,
    };
    driver.start(hello.as_deref());
    hellos.mark_unchanged();
    let mut reports = session.reports();
    let mut seen = tokio::time::interval(SEEN_EVERY);
    seen.tick().await;
    loop {
        driver.start_pushes();
        let next_retry = [driver.start_steps(), driver.start_choices()].into_iter().flatten().min();
        if driver.untold >= TELL_AFTER || driver.in_flight.is_empty() {
            driver.tell();
        }
        tokio::select! {
            biased;
            () = session.closed.cancelled() => break,
            Some(ended) = driver.in_flight.next(), if !driver.in_flight.is_empty() => {
                driver.stale = true;
                driver.ended(ended);
            }
            Some(request) = pushes.recv() => driver.waiting.push_back(request),
            Ok(()) = hellos.changed() => {
                let hello = hellos.borrow_and_update().clone();
                driver.stale = true;
                if let Some(hello) = hello { driver.heard(&hello) }
            }
            Ok(()) = planned.changed() => {
                let plans = planned.borrow_and_update().plans.clone();
                if let Some(plans) = plans { driver.replanned(plans) }
            }
            Ok(()) = reports.changed() => {
                if let Some(report) = &*reports.borrow_and_update() { driver.reported(report) }
            }
            () = driver.slot.look.notified() => driver.stale = true,
            () = sleep_ms(next_retry.unwrap_or(u64::MAX)), if next_retry.is_some() => driver.stale = true,
            () = tokio::time::sleep(TELL_WITHIN), if driver.untold > 0 => driver.tell(),
            _ = seen.tick() => note_alive(&driver.inner, session.node).await,
        }
    }
    driver.stop();
}

async fn sleep_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

impl Driver {
    fn start(&mut self, hello: Option<&Hello>) {
        let intent = &self.plans.intent;
        self.slot.forget_settled_orders(intent);
        self.slot.choosing().forget();
        match hello {
            Some(hello) => {
                let said = said(hello);
                let runs = |chain: &str| {
                    let found = said.iter().find(|(key, _)| matches!(key, Key::Chain(name) if name == chain));
                    found.map(|(_, known)| known.clone())
                };
                self.slot.settle_proposals(intent, &runs);
                self.slot.board().start_known(said);
            }
            None => {
                // It gets every object anew, so nothing stays in doubt.
                self.slot.settle_proposals(intent, &|_| None);
                self.slot.board().start_unknown(suspects(intent, self.session.node));
            }
        }
        self.changed();
    }

    fn heard(&mut self, hello: &Hello) {
        self.slot.board().heard(said(hello));
        self.changed();
    }

    fn replanned(&mut self, plans: Arc<Plans>) {
        let node = self.session.node;
        if Arc::ptr_eq(&plans, &self.plans) {
            return;
        }
        // Where the plan is the same, so is what the accepted orders make of it.
        if plans.nodes.get(&node) != self.plans.nodes.get(&node) {
            self.stale = true;
            self.slot.board().forgive();
            self.changed();
        }
        self.slot.forget_settled_orders(&plans.intent);
        self.plans = plans;
    }

    fn changed(&mut self) {
        self.untold += 1;
    }

    fn tell(&mut self) {
        if std::mem::take(&mut self.untold) > 0 {
            self.inner.bus.send(Event::Deployment { node_id: self.session.node });
        }
    }

    fn plan(&self) -> Option<&NodePlan> {
        self.plans.nodes.get(&self.session.node)
    }

    /// Sends waiting orders whose chain is not being sent already.
    fn start_pushes(&mut self) {
        for _ in 0..self.waiting.len() {
            let Some(request) = self.waiting.pop_front() else { return };
            let key = Key::Chain(names::chain(request.tunnel));
            if self.slot.board().is_in_flight(&key) {
                self.waiting.push_back(request);
                continue;
            }
            let intent = &self.plans.intent;
            let Some(chain) = owner_chain(intent, request.tunnel, self.session.node, &request.order) else {
                // An error says that the caller is gone.
                let _ = request.done.send(Err(PushError::NotOwner));
                continue;
            };
            let proposal = Proposal { order: request.order.clone(), doubt: None };
            self.slot.orders().proposed.insert(request.tunnel, proposal);
            self.slot.board().begin(key);
            let session = self.session.clone();
            let digest = chain.digest;
            let push = async move {
                let command = Command::UpdateChains(Arc::unwrap_or_clone(chain.config));
                let result = match session.call(&command, COMMAND_DEADLINE).await {
                    Ok(_) => Ok(()),
                    Err(CallError::Offline) => Err(PushError::Offline),
                    Err(CallError::Timeout(_)) => Err(PushError::Timeout),
                    Err(error @ (CallError::Refused(_) | CallError::Overloaded)) => {
                        Err(PushError::Refused(error.to_string()))
                    }
                };
                Ended::Push { request, digest, result }
            };
            self.in_flight.push(push.boxed());
        }
    }

    /// Sends what is due; answers in how many milliseconds something else will be.
    fn start_steps(&mut self) -> Option<u64> {
        let now = self.inner.clock.mono_ms();
        if !std::mem::take(&mut self.stale) {
            return self.retry_at.map(|at| at.saturating_sub(now));
        }
        self.retry_at = None;
        let most = if self.peer { IN_FLIGHT_PEER } else { IN_FLIGHT_OURS };
        let free = most.saturating_sub(self.in_flight.len());
        let Due { steps, next_retry_ms } = {
            let plan = self.plan()?;
            let overrides = self.slot.overrides(&self.plans.intent);
            let in_doubt = self.slot.in_doubt();
            let desired = Desired { plan, overrides: &overrides, in_doubt: &in_doubt };
            self.slot.board().due(&desired, now, free)
        };
        for step in steps {
            let (key, digest) = (step.key(), step.digest());
            self.slot.board().begin(key.clone());
            let (session, peer) = (self.session.clone(), self.peer);
            let work = async move {
                let deleting = digest.is_none();
                let command = match step {
                    Step::Chain(chain) => Command::UpdateChains(Arc::unwrap_or_clone(chain.config)),
                    Step::Service(service) => {
                        Command::UpdateService(vec![Arc::unwrap_or_clone(service.config)])
                    }
                    Step::DeleteService(name) => Command::DeleteService(vec![name]),
                    Step::DeleteChain(name) => Command::DeleteChains(name),
                };
                let outcome = match session.call(&command, COMMAND_DEADLINE).await {
                    Ok(_) => Outcome::Accepted,
                    // The peer's way to say that there is nothing to delete.
                    Err(CallError::Refused(reason)) if deleting && peer && reason.contains("not found") => {
                        Outcome::Accepted
                    }
                    Err(CallError::Refused(reason)) => Outcome::Refused(reason),
                    Err(error) => Outcome::Unanswered(error.to_string()),
                };
                Ended::Step { key, digest, outcome }
            };
            self.in_flight.push(work.boxed());
        }
        self.retry_at = next_retry_ms;
        next_retry_ms.map(|at| at.saturating_sub(now))
    }

    /// Tells the agent what persons have chosen and it does not know; answers in how many milliseconds there is more.
    fn start_choices(&mut self) -> Option<u64> {
        if !self.chooses || self.plans.intent.choices.is_empty() {
            return None;
        }
        let now = self.inner.clock.mono_ms();
        let (due, next) = self.slot.choices_due(&self.plans.intent, self.plan()?, now);
        for sent in due {
            let (inner, session) = (self.inner.clone(), self.session.clone());
            let work = async move {
                let result = Slot::choose(&session, &sent).await;
                if result.is_ok() && sent.member.is_none() {
                    match inner.db.choice_taken_back(sent.tunnel, session.node).await {
                        Ok(()) => inner.wishes.wake(),
                        Err(error) => tracing::error!(%error, "a choice that was taken back is still stored"),
                    }
                }
                Ended::Choice { sent, result }
            };
            self.in_flight.push(work.boxed());
        }
        next.map(|at| at.saturating_sub(now))
    }

    /// Pages look again when something else is in use.
    fn reported(&mut self, report: &Report) {
        if self.slot.choosing().heard(report) {
            self.changed();
        }
    }

    fn ended(&mut self, ended: Ended) {
        let metrics = &self.inner.metrics;
        match ended {
            Ended::Step { key, digest, outcome } => {
                Metrics::count(
                    &metrics.objects,
                    match &outcome {
                        Outcome::Accepted => "accepted",
                        Outcome::Refused(_) => "refused",
                        Outcome::Unanswered(_) => "unanswered",
                    },
                );
                if let Outcome::Refused(reason) | Outcome::Unanswered(reason) = &outcome {
                    tracing::warn!(node.id = self.session.node.0, object = ?key, reason, "the node did not accept an object");
                }
                if let Key::Chain(name) = &key {
                    self.slot.choosing().replaced(name);
                }
                let now = self.inner.clock.mono_ms();
                self.slot.board().end(&key, digest, outcome, self.peer, now);
            }
            Ended::Choice { sent, result } => {
                self.slot.chosen(sent, result, self.inner.clock.mono_ms());
            }
            Ended::Push { request, digest, result } => {
                Metrics::count(
                    &metrics.pushes,
                    match &result {
                        Ok(()) => "accepted",
                        Err(PushError::Offline) => "offline",
                        Err(PushError::Timeout) => "unanswered",
                        Err(PushError::Refused(_) | PushError::NotOwner) => "refused",
                    },
                );
                self.push_ended(&request, digest, &result);
                // An error says that the caller is gone; what was learned is noted all the same.
                let _ = request.done.send(result);
            }
        }
        self.changed();
    }

    fn push_ended(&mut self, request: &PushRequest, digest: String, result: &Result<(), PushError>) {
        let key = Key::Chain(names::chain(request.tunnel));
        match result {
            Ok(()) => {
                {
                    let mut orders = self.slot.orders();
                    orders.accepted.insert(request.tunnel, request.order.clone());
                    orders.proposed.remove(&request.tunnel);
                }
                let now = self.inner.clock.mono_ms();
                self.slot.board().end(&key, Some(digest), Outcome::Accepted, self.peer, now);
            }
            Err(PushError::Timeout) => {
                let before = self
                    .plan()
                    .and_then(|plan| self.slot.desired_chain(&self.plans.intent, plan, request.tunnel));
                if let Some(proposal) = self.slot.orders().proposed.get_mut(&request.tunnel) {
                    proposal.doubt = before.map(|chain| chain.digest);
                }
                self.slot.board().unsettle(&key);
            }
            // Whether it arrived is seen when the agent says hello again.
            Err(PushError::Offline) => self.slot.board().unsettle(&key),
            Err(PushError::Refused(_) | PushError::NotOwner) => {
                self.slot.orders().proposed.remove(&request.tunnel);
                if self.peer {
                    self.slot.board().unsettle(&key);
                } else {
                    self.slot.board().abandon(&key);
                }
            }
        }
    }

    /// The connection ended: whoever waits for a push hears it now.
    fn stop(mut self) {
        while let Some(request) = self.waiting.pop_front() {
            let _ = request.done.send(Err(PushError::Offline));
        }
        // The calls see the closed connection themselves; dropping them here drops the answers' senders.
        drop(std::mem::take(&mut self.in_flight));
        self.slot.board().disconnected();
    }
}
