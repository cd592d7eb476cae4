//! Measures the exits of every `best` tunnel, round by round, and has the best one put in front.
//!
//! - `legs`: which legs a round measures (pure)
//! - `prober`: asks the nodes
//! - `round`: which results are in, and who can be evaluated (pure)
//! - `decider`: the task that owns all decisions and runs the rounds
//! - `ruling`: what a round leads to for one owner; the rules themselves are [`shared::best_exit`]
//! - `owner`: what is kept about one owner between rounds
//! - `pins`: which pin is in force (pure)
//! - `push`: pushes one order to one owner
//! - `writer`: writes what was decided and measured
//! - `upkeep`: sums the history up, and forgets what is old
//! - `view`: the decisions for people

mod decider;
mod legs;
mod owner;
mod pins;
mod prober;
mod push;
mod round;
mod ruling;
mod upkeep;
mod view;
mod warm;
mod writer;

pub(crate) use prober::ping_command;

use crate::agents::Agents;
use crate::clock::Clock;
use crate::events::Bus;
use crate::metrics::Metrics;
use crate::store::Db;
use legs::OwnerKey;
use shared::best_exit::{MonoMs, Settings};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use view::View;

/// The states' monotonic clock reads this at the start of the panel, so that switches before the start have a place on
/// it: 34 years of milliseconds.
const MONO_BEFORE_START: MonoMs = 1 << 40;

/// Who measures and decides. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BestExit {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    bus: Bus,
    agents: Agents,
    metrics: Metrics,
    tracker: TaskTracker,
    cancel: CancellationToken,
    wake: Notify,
    monitoring: AtomicBool,
    views: Mutex<BTreeMap<OwnerKey, Arc<View>>>,
}

impl BestExit {
    /// Starts the rounds. Ends with `cancel`; `tracker` knows when everything has.
    pub fn start(
        db: Db,
        clock: Clock,
        bus: Bus,
        agents: Agents,
        metrics: Metrics,
        tracker: TaskTracker,
        cancel: CancellationToken,
    ) -> Self {
        let monitoring = AtomicBool::new(Settings::default().monitor_tunnel_quality_enabled);
        let inner = Arc::new(Inner {
            db,
            clock,
            bus,
            agents,
            metrics,
            tracker: tracker.clone(),
            cancel,
            wake: Notify::new(),
            monitoring,
            views: Mutex::default(),
        });
        let (writer, queues) = writer::Writer::new();
        tracker.spawn(writer::write_forever(inner.clone(), queues));
        tracker.spawn(decider::decide_forever(inner.clone(), writer));
        tracker.spawn(upkeep::keep_forever(inner.clone()));
        Self { inner }
    }

    /// Settings or pins changed.
    pub fn wake(&self) {
        self.inner.wake.notify_one();
    }
}

impl Inner {
    fn views(&self) -> MutexGuard<'_, BTreeMap<OwnerKey, Arc<View>>> {
        // The map is consistent after every step, so a panic elsewhere does not spoil it.
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mono_ms(&self) -> MonoMs {
        self.clock.mono_ms() + MONO_BEFORE_START
    }
}
