//! Writes what was decided and measured, beside the deciding, which must not wait for a disk: first what pushes wait for,
//! then the log, then the measurements, each in order.

use super::Inner;
use super::legs::OwnerKey;
use crate::store::{DecisionWrite, LegSample, NewLogEntry, StoredDecision};
use shared::ids::NodeId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Decisions that wait; room for one of every owner in the largest panels.
const QUEUE: usize = 16_384;
/// Decisions in one transaction.
const BATCH: usize = 256;
/// Rounds whose measurements wait. If the disk is slower than the rounds, history is dropped.
const SAMPLE_QUEUE: usize = 4;
/// Measurements in one transaction, so that a decision waits for some milliseconds at most.
const SAMPLE_BATCH: usize = 500;
/// Decisions that could not be stored are tried again this often.
const RETRY: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Job {
    write: DecisionWrite,
    /// The plans are to be made anew once the write is durable.
    replan: bool,
    /// Is told once the write is durable, or why it is not.
    done: Option<oneshot::Sender<Result<(), String>>>,
}

/// Takes writes.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    /// Entries for the log, which orders on their way to agents must not wait for.
    log: mpsc::Sender<Job>,
    samples: mpsc::Sender<Vec<LegSample>>,
}

/// What [`write_forever`] works off.
#[derive(Debug)]
pub(super) struct Queues {
    jobs: mpsc::Receiver<Job>,
    log: mpsc::Receiver<Job>,
    samples: mpsc::Receiver<Vec<LegSample>>,
}

impl Writer {
    /// A writer and the queues for [`write_forever`].
    pub(super) fn new() -> (Self, Queues) {
        let (jobs, job_queue) = mpsc::channel(QUEUE);
        let (log, log_queue) = mpsc::channel(QUEUE);
        let (samples, sample_queue) = mpsc::channel(SAMPLE_QUEUE);
        (Self { jobs, log, samples }, Queues { jobs: job_queue, log: log_queue, samples: sample_queue })
    }

    /// Logs soon; false if the queue is full.
    pub(super) fn log(&self, entry: NewLogEntry) -> bool {
        Self::write(&self.log, DecisionWrite::Log(entry), false)
    }

    /// Stores soon what an owner runs; false if the queue is full. `replan`: the plans hold another order.
    pub(super) fn store(&self, decision: StoredDecision, replan: bool) -> bool {
        Self::write(&self.jobs, DecisionWrite::Store(decision), replan)
    }

    fn write(queue: &mpsc::Sender<Job>, write: DecisionWrite, replan: bool) -> bool {
        let queued = queue.try_send(Job { write, replan, done: None }).is_ok();
        if !queued {
            tracing::error!("the database is too slow for the decisions; some are not logged");
        }
        queued
    }

    /// Writes a round's measurements soon.
    pub(super) fn samples(&self, samples: Vec<LegSample>) {
        if self.samples.try_send(samples).is_err() {
            tracing::error!("the database is too slow for the measurements; a round's are dropped");
        }
    }

    /// Notes an order that is about to be pushed, after everything written before; returns when it is durable.
    pub(super) async fn propose(&self, key: OwnerKey, order: &[NodeId]) -> Result<(), String> {
        let (done, result) = oneshot::channel();
        let write = DecisionWrite::Propose { tunnel: key.0, owner: key.1, order: order.to_vec() };
        let stopping = || "the panel stops".to_owned();
        self.jobs.send(Job { write, replan: false, done: Some(done) }).await.map_err(|_| stopping())?;
        result.await.unwrap_or_else(|_| Err(stopping()))
    }
}

/// Writes until cancelled, and then what is still waiting.
pub(super) async fn write_forever(inner: Arc<Inner>, queues: Queues) {
    let Queues { jobs: mut queue, mut log, samples: mut sample_queue } = queues;
    let mut unsaved: BTreeMap<OwnerKey, StoredDecision> = BTreeMap::new();
    let mut samples: VecDeque<LegSample> = VecDeque::new();
    let (mut jobs, mut entries) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    loop {
        tokio::select! {
            biased;
            () = inner.cancel.cancelled() => break,
            taken = queue.recv_many(&mut jobs, BATCH) => {
                if taken == 0 { break }
                carry_out(&inner, &mut jobs, &mut unsaved).await;
            }
            taken = log.recv_many(&mut entries, BATCH) => {
                if taken == 0 { break }
                carry_out(&inner, &mut entries, &mut unsaved).await;
            }
            // Ready at once while there is something to write, after the decisions.
            () = std::future::ready(()), if !samples.is_empty() => write_samples(&inner, &mut samples).await,
            Some(round) = sample_queue.recv() => samples.extend(round),
            () = tokio::time::sleep(RETRY), if !unsaved.is_empty() => {
                jobs.extend(unsaved.values().cloned().map(|decision| Job {
                    write: DecisionWrite::Store(decision),
                    replan: true,
                    done: None,
                }));
                carry_out(&inner, &mut jobs, &mut unsaved).await;
            }
        }
    }
    for mut queue in [queue, log] {
        queue.close();
        while queue.recv_many(&mut jobs, BATCH).await > 0 {
            carry_out(&inner, &mut jobs, &mut unsaved).await;
        }
    }
}

async fn carry_out(inner: &Inner, jobs: &mut Vec<Job>, unsaved: &mut BTreeMap<OwnerKey, StoredDecision>) {
    let mut waiting = Vec::new();
    let mut writes = Vec::with_capacity(jobs.len());
    let mut replan = false;
    for job in jobs.drain(..) {
        replan |= job.replan;
        waiting.extend(job.done);
        writes.push(job.write);
    }
    let result = inner.db.write_decisions(&writes).await;
    for write in writes {
        if let DecisionWrite::Store(decision) = write {
            let key = (decision.tunnel, decision.owner);
            match &result {
                Ok(()) => drop(unsaved.remove(&key)),
                Err(_) => drop(unsaved.insert(key, decision)),
            }
        }
    }
    if let Err(error) = &result {
        tracing::error!(%error, "decisions could not be stored");
    } else if replan {
        inner.agents.wake_for_orders();
    }
    for done in waiting {
        // An error says that the push was given up in this moment.
        let _ = done.send(result.as_ref().map(|_| ()).map_err(ToString::to_string));
    }
}

async fn write_samples(inner: &Inner, samples: &mut VecDeque<LegSample>) {
    let batch: Vec<LegSample> = samples.drain(..samples.len().min(SAMPLE_BATCH)).collect();
    if let Err(error) = inner.db.append_leg_samples(&batch).await {
        tracing::error!(%error, "measurements could not be stored");
    }
}
