//! Pushes one order to one owner, beside the rounds.

use super::Inner;
use super::legs::OwnerKey;
use super::writer::Writer;
use crate::agents::PushError;
use shared::best_exit::Reason;
use shared::ids::NodeId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// Pushes under way at once; one owner has one at most.
pub(super) const IN_FLIGHT: usize = 256;

/// An order to be pushed.
#[derive(Debug)]
pub(super) struct PushJob {
    pub(super) key: OwnerKey,
    pub(super) order: Vec<NodeId>,
    /// First exit before.
    pub(super) from: Option<NodeId>,
    /// Why.
    pub(super) reason: Reason,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct PushDone {
    pub(super) job: PushJob,
    pub(super) result: Result<(), Failure>,
}

/// Why an order is not known to be in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// The owner keeps what it has.
    #[error("{0}")]
    Refused(String),
    /// It may be in force; the connection ended.
    #[error("the connection to the node ended before it answered")]
    Gone,
    /// It may be in force.
    #[error("the node did not answer in time")]
    Unanswered,
    /// It was not sent, because it could not be noted before.
    #[error("the database could not be written: {0}")]
    NotStored(String),
}

impl Failure {
    /// Whether the owner certainly runs the order before.
    pub(super) fn is_definite(&self) -> bool {
        matches!(self, Failure::Refused(_) | Failure::NotStored(_))
    }
}

/// Notes the order, pushes it, tells how it ended.
pub(super) async fn push(
    inner: Arc<Inner>,
    writer: Writer,
    job: PushJob,
    gate: Arc<Semaphore>,
    done: mpsc::Sender<PushDone>,
) {
    let started = inner.clock.mono_ms();
    let result = {
        // The semaphore is never closed.
        let _permit = gate.acquire().await;
        attempt(&inner, &writer, &job).await
    };
    let took = Duration::from_millis(inner.clock.mono_ms().saturating_sub(started));
    inner.metrics.push_duration.observe(took.as_secs_f64());
    // An error says that nobody decides any more: the panel stops, and the noted order tells the next one.
    let _ = done.send(PushDone { job, result }).await;
}

async fn attempt(inner: &Inner, writer: &Writer, job: &PushJob) -> Result<(), Failure> {
    let (tunnel, owner) = job.key;
    // A panel that dies between push and answer would otherwise not know whose order the agent runs.
    writer.propose(job.key, &job.order).await.map_err(Failure::NotStored)?;
    match inner.agents.push_order(tunnel, owner, job.order.clone()).await {
        Ok(()) => Ok(()),
        Err(PushError::Timeout) => Err(Failure::Unanswered),
        Err(PushError::Offline) => Err(Failure::Gone),
        Err(error @ (PushError::Refused(_) | PushError::NotOwner)) => {
            Err(Failure::Refused(error.to_string()))
        }
    }
}
