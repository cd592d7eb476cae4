//! Writes what was decided and measured, in order and beside the deciding, which must not wait for a disk.

use super::Inner;
use super::legs::OwnerKey;
use crate::store::{LegSample, NewLogEntry, StoredDecision};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Writes that wait. History beyond that is dropped, decisions are kept by the decider's next write of that owner.
const QUEUE: usize = 4096;
/// Decisions that could not be stored are tried again this often.
const RETRY: Duration = Duration::from_secs(5);

/// Something to be written.
#[derive(Debug)]
pub(super) enum Write {
    /// What an owner runs now, and why.
    Decision(Box<StoredDecision>, Option<Box<NewLogEntry>>),
    /// Why something else was, or was not, done.
    Log(Box<NewLogEntry>),
    /// A round's measurements.
    Samples(Vec<LegSample>),
}

/// Takes writes.
#[derive(Clone, Debug)]
pub(super) struct Writer(mpsc::Sender<Write>);

impl Writer {
    /// A writer and the queue for [`write_forever`].
    pub(super) fn new() -> (Self, mpsc::Receiver<Write>) {
        let (sender, queue) = mpsc::channel(QUEUE);
        (Self(sender), queue)
    }

    /// Writes soon; false if the queue is full.
    pub(super) fn write(&self, write: Write) -> bool {
        let done = self.0.try_send(write).is_ok();
        if !done {
            tracing::error!("the database is too slow for the history of decisions; some is lost");
        }
        done
    }
}

/// Writes until cancelled, and then what is still waiting.
pub(super) async fn write_forever(inner: Arc<Inner>, mut queue: mpsc::Receiver<Write>) {
    let mut unsaved = BTreeMap::new();
    loop {
        tokio::select! {
            biased;
            () = inner.cancel.cancelled() => break,
            write = queue.recv() => match write {
                Some(write) => carry_out(&inner, write, &mut unsaved).await,
                None => break,
            },
            () = tokio::time::sleep(RETRY), if !unsaved.is_empty() => {
                for (_, decision) in std::mem::take(&mut unsaved) {
                    carry_out(&inner, Write::Decision(Box::new(decision), None), &mut unsaved).await;
                }
            }
        }
    }
    queue.close();
    while let Some(write) = queue.recv().await {
        carry_out(&inner, write, &mut unsaved).await;
    }
}

async fn carry_out(inner: &Inner, write: Write, unsaved: &mut BTreeMap<OwnerKey, StoredDecision>) {
    let result = match write {
        Write::Decision(decision, log) => {
            let key = (decision.tunnel, decision.owner);
            unsaved.remove(&key);
            let result = inner.db.store_decision(&decision, log.map(|entry| *entry)).await;
            match &result {
                // Plans are made from what is stored.
                Ok(()) => inner.agents.wake(),
                Err(_) => {
                    unsaved.insert(key, *decision);
                }
            }
            result
        }
        Write::Log(entry) => inner.db.append_decision_log(*entry).await,
        Write::Samples(samples) => inner.db.append_leg_samples(&samples).await,
    };
    if let Err(error) = result {
        tracing::error!(%error, "a decision or measurement could not be stored");
    }
}
