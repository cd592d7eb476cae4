//! How many probes run and wait at the same time.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Slots for running probes and places for waiting ones.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    running: Arc<Semaphore>,
    admitted: Arc<Semaphore>,
}

/// A place in the queue; given back when dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    running: Arc<Semaphore>,
    _admitted: OwnedSemaphorePermit,
}

impl Gate {
    /// At most `running` at the same time and `waiting` behind them.
    pub(crate) fn new(running: usize, waiting: usize) -> Self {
        let semaphore = |n| Arc::new(Semaphore::new(n));
        Self { running: semaphore(running), admitted: semaphore(running + waiting) }
    }

    /// `None` when the queue is full.
    pub(crate) fn enter(&self) -> Option<Ticket> {
        let admitted = self.admitted.clone().try_acquire_owned().ok()?;
        Some(Ticket { running: self.running.clone(), _admitted: admitted })
    }
}

impl Ticket {
    /// Waits for a slot and runs `work` in it. `None` when `deadline` passes first, waiting included: the panel has
    /// stopped listening, so the work is given up and its answer is not sent.
    pub(crate) async fn run<T>(self, deadline: Duration, work: impl Future<Output = T>) -> Option<T> {
        let in_slot = async {
            let _slot = self.running.acquire().await.ok()?;
            Some(work.await)
        };
        tokio::time::timeout(deadline, in_slot).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn some_run_some_wait_the_rest_is_turned_away_and_stale_ones_are_dropped() {
        let gate = Gate::new(1, 2);
        let tickets: Vec<Ticket> = (0..3).map(|_| gate.enter().unwrap()).collect();
        assert!(gate.enter().is_none());
        let work = || async { tokio::time::sleep(SECOND * 2).await };
        // The first runs for two seconds, the second until the fourth, the third is stale before its turn.
        let runs = tickets.into_iter().map(|ticket| ticket.run(SECOND * 4 + SECOND / 2, work()));
        let done: Vec<bool> =
            futures_util::future::join_all(runs).await.iter().map(Option::is_some).collect();
        assert_eq!(done, [true, true, false]);
        assert!(gate.enter().is_some());
    }
}
