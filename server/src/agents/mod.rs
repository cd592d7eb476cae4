//! The connected agents: makes them run what the plans say, and carries commands to them.
//!
//! - `link`: where they connect
//! - `session`: one connection: frames, pings, commands and their answers
//! - `planner`: stored intent → plans, again whenever somebody wakes it
//! - `driver`: one per connection; compares desired with acknowledged and sends the difference
//! - `board`: what a node is known to run, and what is due (pure)
//! - `slot`: what is remembered about a node across connections
//! - `choosing`: what persons have chosen, brought to the agents
//! - `view`: how far everything is, for pages

mod board;
mod choosing;
mod driver;
mod hello;
mod link;
mod planner;
mod session;
mod slot;
mod view;

pub use driver::PushError;
pub use link::{link_routes, routes};
pub use session::CallError;
pub(crate) use session::Kind;

use crate::clock::Clock;
use crate::events::Bus;
use crate::metrics::Metrics;
use crate::plan::{Plans, TunnelIntent};
use crate::store::Db;
use driver::PushRequest;
use planner::{Planned, Wishes};
use session::RequestIds;
use shared::ids::{NodeId, TunnelId};
use shared::link::{Command, Report};
use slot::Slot;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Longest wait of [`Agents::replanned`].
const REPLAN_WAIT: Duration = Duration::from_secs(2);

/// The connected agents. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Agents {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    bus: Bus,
    metrics: Metrics,
    tracker: TaskTracker,
    cancel: CancellationToken,
    wishes: Wishes,
    planned: watch::Receiver<Planned>,
    slots: Mutex<BTreeMap<NodeId, Arc<Slot>>>,
    ids: Arc<RequestIds>,
    refusals: link::Refusals,
}

impl Agents {
    /// Starts planning; agents are served from now on. Ends with `cancel`; `tracker` knows when everything has.
    pub fn start(
        db: Db,
        clock: Clock,
        bus: Bus,
        metrics: Metrics,
        tracker: TaskTracker,
        cancel: CancellationToken,
    ) -> Self {
        let ids = Arc::new(RequestIds::new(&clock));
        let (publish, planned) = watch::channel(Planned::default());
        let inner = Arc::new(Inner {
            db,
            clock,
            bus,
            metrics,
            tracker: tracker.clone(),
            cancel,
            wishes: Wishes::default(),
            planned,
            slots: Mutex::default(),
            ids,
            refusals: link::Refusals::default(),
        });
        tracker.spawn(planner::plan_forever(inner.clone(), publish));
        Self { inner }
    }

    /// Stored intent changed: plan again and send every node its difference.
    pub fn wake(&self) {
        self.inner.wishes.wake();
    }

    /// Orders that owners have accepted are stored. Nobody has to be sent anything, so the plans follow within seconds.
    pub(crate) fn wake_for_orders(&self) {
        self.inner.wishes.wake_for_orders();
    }

    /// Waits until what was stored before the last [`Agents::wake`] is planned, at most 2 s: after it,
    /// [`Agents::deployment`] speaks of the new intent.
    pub async fn replanned(&self) {
        let wish = self.inner.wishes.latest();
        let mut planned = self.inner.planned.clone();
        let caught_up = planned.wait_for(|planned| planned.plans.is_some() && planned.wish >= wish);
        // In a time-out the page shows the older state for a moment; nothing depends on it.
        let _ = tokio::time::timeout(REPLAN_WAIT, caught_up).await;
    }

    /// Whether the latest plans are made from this tunnel as it is.
    pub(crate) fn has_planned(&self, id: TunnelId, tunnel: &TunnelIntent) -> bool {
        self.plans().is_some_and(|plans| plans.intent.tunnels.get(&id) == Some(tunnel))
    }

    /// The latest plans; `None` before the first.
    pub fn plans(&self) -> Option<Arc<Plans>> {
        self.inner.planned.borrow().plans.clone()
    }

    /// Told of every new plan.
    pub(crate) async fn next_plans(&self, last: Option<&Arc<Plans>>) -> Option<Arc<Plans>> {
        let mut planned = self.inner.planned.clone();
        let differs = |planned: &Planned| match (&planned.plans, last) {
            (Some(new), Some(last)) => !Arc::ptr_eq(new, last),
            (Some(_), None) => true,
            (None, _) => false,
        };
        planned.wait_for(differs).await.ok()?.plans.clone()
    }

    /// Whether the node's agent is connected.
    pub fn is_online(&self, node: NodeId) -> bool {
        self.inner.existing(node).is_some_and(|slot| slot.is_online())
    }

    /// Whose agent is connected; `None`: none, or it has not said yet.
    pub(crate) fn kind(&self, node: NodeId) -> Option<Kind> {
        self.inner.existing(node)?.kind()
    }

    /// What the node's agent last reported about its chains; `None`: it is offline or does not report.
    pub fn report(&self, node: NodeId) -> Option<Report> {
        self.inner.existing(node)?.live()?.session.report()
    }

    /// Ends the node's connection, as after a change of its secret. The agent may come back.
    pub fn disconnect(&self, node: NodeId) {
        if let Some(live) = self.inner.existing(node).and_then(|slot| slot.live()) {
            live.session.closed.cancel();
        }
    }

    /// Sends a command and waits for its answer's data. Not for configuration: that is the drivers'.
    pub async fn call(
        &self,
        node: NodeId,
        command: &Command,
        deadline: Duration,
    ) -> Result<serde_json::Value, CallError> {
        let live = self.inner.existing(node).and_then(|slot| slot.live()).ok_or(CallError::Offline)?;
        live.session.call(command, deadline).await
    }

    /// Pushes an exit order to an owner: its chain is rendered with it and sent, in turn with all other configuration
    /// of that node. `Ok`: the owner accepted it.
    pub async fn push_order(
        &self,
        tunnel: TunnelId,
        owner: NodeId,
        order: Vec<NodeId>,
    ) -> Result<(), PushError> {
        let live = self.inner.existing(owner).and_then(|slot| slot.live()).ok_or(PushError::Offline)?;
        let (done, result) = oneshot::channel();
        // A full queue waits for a driver whose every command has a deadline.
        live.pushes.send(PushRequest { tunnel, order, done }).await.map_err(|_| PushError::Offline)?;
        result.await.unwrap_or(Err(PushError::Offline))
    }

    /// An order that was pushed and not answered is not wanted any more: the owner gets its chain with the order
    /// before it.
    pub(crate) fn forget_proposal(&self, tunnel: TunnelId, owner: NodeId) {
        if let Some(slot) = self.inner.existing(owner)
            && slot.orders().proposed.remove(&tunnel).is_some()
        {
            slot.look.notify_one();
        }
    }

    /// The exit order that an owner's agent is known to run; `None`: it has not acknowledged its chain as planned.
    pub(crate) fn acknowledged_order(
        &self,
        plans: &Plans,
        tunnel: TunnelId,
        owner: NodeId,
    ) -> Option<Vec<NodeId>> {
        self.inner.existing(owner)?.acknowledged_order(plans, tunnel)
    }
}

impl Inner {
    fn slots(&self) -> std::sync::MutexGuard<'_, BTreeMap<NodeId, Arc<Slot>>> {
        // The map is consistent after every step, so a panic elsewhere does not spoil it.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn existing(&self, node: NodeId) -> Option<Arc<Slot>> {
        self.slots().get(&node).cloned()
    }

    fn slot(&self, node: NodeId) -> Arc<Slot> {
        self.slots().entry(node).or_insert_with(|| Arc::new(Slot::new(node))).clone()
    }
}
