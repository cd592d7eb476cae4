//! What is remembered of a node: marks, counters and what its probes found. Outlives the chain it belongs to when the next has the same node.

use super::failure::{FailureKind, Failures};
use super::marks::{FailRule, Health, Marks};
use super::measured::Measured;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Marks, counters and probe results of a node.
#[derive(Debug, Default)]
pub struct NodeState {
    /// Locked for a few instructions at a time, and not at all while there is nothing to remember.
    marks: Mutex<Marks>,
    /// Whether `marks` holds anything.
    remembers: AtomicBool,
    /// What its probes have found.
    pub measured: Measured,
    /// Failed probes. Changed only while `marks` is locked.
    refuted: AtomicU64,
    connections: AtomicU64,
    open: AtomicU64,
    failures: Failures,
}

/// The counters of a node at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Connections established through it.
    pub connections: u64,
    /// Of these, open now.
    pub open: u64,
    /// Failed attempts.
    pub failures: u64,
}

impl NodeState {
    fn marks(&self) -> MutexGuard<'_, Marks> {
        // Marks are consistent after each of their methods, none of which can panic half-way.
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the fail filter thinks of the node now.
    pub fn health(&self, now_ms: u64, rule: FailRule) -> Health {
        if self.remembers.load(Ordering::Acquire) { self.marks().health(now_ms, rule) } else { Health::Clear }
    }

    /// Takes the one trial of a node whose time out has passed.
    pub(super) fn begin_trial(&self, now_ms: u64, rule: FailRule) -> bool {
        self.marks().begin_trial(now_ms, rule)
    }

    pub(super) fn abandon_trial(&self) {
        self.marks().abandon_trial();
    }

    /// Marks the node; whether it is left out from now on and was not before.
    pub(super) fn mark(&self, now_ms: u64, rule: FailRule) -> bool {
        self.fail(&mut self.marks(), now_ms, rule)
    }

    fn fail(&self, marks: &mut Marks, now_ms: u64, rule: FailRule) -> bool {
        let before = marks.health(now_ms, rule);
        marks.fail(now_ms, rule);
        self.remembers.store(true, Ordering::Release);
        before == Health::Clear && marks.health(now_ms, rule) == Health::Marked
    }

    /// A probe has failed: the node is marked, and no connection that is on its way undoes that. Whether it is left out
    /// from now on and was not before.
    pub(super) fn refute(&self, now_ms: u64, rule: FailRule) -> bool {
        let mut marks = self.marks();
        let newly = self.fail(&mut marks, now_ms, rule);
        // Last, so that whoever sees the number sees the mark too.
        self.refuted.fetch_add(1, Ordering::Release);
        newly
    }

    /// How many probes have failed so far.
    pub(super) fn refuted(&self) -> u64 {
        self.refuted.load(Ordering::Acquire)
    }

    /// A connection is through that began when so many probes had failed. If one has failed since, it is the newer news.
    /// Whether the node was left out before and is no more.
    pub(super) fn confirm(&self, refuted: u64) -> bool {
        self.forget(|| self.refuted() == refuted)
    }

    /// Forgets all marks; whether the node was left out before.
    pub(super) fn clear(&self) -> bool {
        self.forget(|| true)
    }

    fn forget(&self, may: impl FnOnce() -> bool) -> bool {
        if !self.remembers.load(Ordering::Acquire) {
            return false;
        }
        let mut marks = self.marks();
        if !may() {
            return false;
        }
        let was_marked = marks.is_marked();
        marks.succeed();
        self.remembers.store(false, Ordering::Release);
        was_marked
    }

    pub(super) fn count_failure(&self, kind: FailureKind) {
        self.failures.count(kind);
    }

    /// In which ways it has failed, and how often.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// The counters now.
    pub fn counters(&self) -> Counters {
        Counters {
            connections: self.connections.load(Ordering::Relaxed),
            open: self.open.load(Ordering::Relaxed),
            failures: self.failures.total(),
        }
    }
}

/// A connection through a node, counted as open until this is dropped.
#[derive(Debug)]
pub struct OpenConnection {
    state: Arc<NodeState>,
    tie: Option<CancellationToken>,
}

impl OpenConnection {
    pub(super) fn begin(state: Arc<NodeState>, tie: Option<CancellationToken>) -> Self {
        state.connections.fetch_add(1, Ordering::Relaxed);
        state.open.fetch_add(1, Ordering::Relaxed);
        Self { state, tie }
    }

    /// Whether it leads through what this is remembered of.
    pub(crate) fn is_through(&self, state: &Arc<NodeState>) -> bool {
        Arc::ptr_eq(&self.state, state)
    }

    /// What ends the connection because its group has left the node, if the group does that.
    pub fn tie(&self) -> Option<&CancellationToken> {
        self.tie.as_ref()
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.state.open.fetch_sub(1, Ordering::Relaxed);
    }
}
