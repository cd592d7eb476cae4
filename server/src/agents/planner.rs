//! Keeps the plans up to date with what is stored.

use super::Inner;
use super::slot::Proposal;
use crate::plan::{Plans, render_again};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Without any signal the database is read again after this long; a signal that was missed costs this much.
const EVERY: Duration = Duration::from_secs(60);
/// After the database could not be read.
const RETRY: Duration = Duration::from_secs(2);
/// After orders were accepted. Their owners run them already and the slots know it ([`super::slot::Slot::overrides`]), so
/// the plans need not follow at once: in a large panel some owner switches in every round.
const ORDERS_WITHIN: Duration = Duration::from_secs(15);
/// Longest rest between two plans; see [`plan_forever`].
const MAX_REST_MS: u64 = 1000;

/// What was made, and for which wish.
#[derive(Clone, Debug, Default)]
pub(super) struct Planned {
    /// `None` before the first: nobody may conclude from it that nothing should run.
    pub(super) plans: Option<Arc<Plans>>,
    /// The latest wish that had been made before the database was read.
    pub(super) wish: u64,
}

/// Counts the wishes for a new plan.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    latest: AtomicU64,
    signal: Notify,
    orders: Notify,
}

impl Wishes {
    /// Wishes for a new plan; what is stored before the call will be in it.
    pub(super) fn wake(&self) {
        self.latest.fetch_add(1, Ordering::AcqRel);
        self.signal.notify_one();
    }

    /// Orders that owners have accepted are stored: plan again before long.
    pub(super) fn wake_for_orders(&self) {
        self.orders.notify_one();
    }

    /// The number of the latest wish.
    pub(super) fn latest(&self) -> u64 {
        self.latest.load(Ordering::Acquire)
    }
}

/// Plans when told to and now and then, until cancelled.
pub(super) async fn plan_forever(inner: Arc<Inner>, planned: watch::Sender<Planned>) {
    loop {
        let started = inner.clock.mono_ms();
        let pause = match plan(&inner, &planned).await {
            Ok(()) => EVERY,
            Err(error) => {
                tracing::error!(%error, "the stored configuration could not be read; nodes keep what they have");
                RETRY
            }
        };
        // A storm of signals, every owner switching at once say, must not fill a core: rest as long as it took.
        let rest = Duration::from_millis(inner.clock.mono_ms().saturating_sub(started).min(MAX_REST_MS));
        tokio::select! {
            () = inner.cancel.cancelled() => return,
            () = tokio::time::sleep(rest) => {}
        }
        let orders = async {
            inner.wishes.orders.notified().await;
            tokio::time::sleep(ORDERS_WITHIN).await;
        };
        tokio::select! {
            () = inner.cancel.cancelled() => return,
            () = inner.wishes.signal.notified() => {}
            () = orders => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn plan(inner: &Inner, planned: &watch::Sender<Planned>) -> anyhow::Result<()> {
    let old = planned.borrow().plans.clone();
    if old.is_none() {
        // Orders that were on their way when the panel stopped; drivers look at them once there is a plan.
        for decision in inner.db.decisions().await? {
            if let Some(order) = decision.proposed {
                let slot = inner.slot(decision.owner);
                slot.orders().proposed.insert(decision.tunnel, Proposal { order, doubt: None });
            }
        }
    }
    let wish = inner.wishes.latest();
    let intent = Arc::new(inner.db.intent().await?);
    let plans = match old {
        Some(same) if *same.intent == *intent => same,
        old => Arc::new(tokio::task::spawn_blocking(move || render_again(intent, old.as_deref())).await?),
    };
    planned.send_replace(Planned { plans: Some(plans), wish });
    Ok(())
}
