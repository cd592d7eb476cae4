//! How many bytes connections carried.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Payload bytes per direction, counted when they are handed to the receiving side. Any number of connections can share
/// one.
#[derive(Debug, Default)]
pub struct Traffic {
    up: AtomicU64,
    down: AtomicU64,
    /// What counts there too.
    whole: Option<Arc<Traffic>>,
}

impl Traffic {
    /// Counts what is a part of `whole`, and counts there too.
    pub fn part_of(whole: Arc<Traffic>) -> Self {
        Self { whole: Some(whole), ..Self::default() }
    }

    /// Bytes from clients to targets.
    pub fn up(&self) -> u64 {
        self.up.load(Ordering::Relaxed)
    }

    /// Bytes from targets to clients.
    pub fn down(&self) -> u64 {
        self.down.load(Ordering::Relaxed)
    }

    /// Adds bytes from a client to its target.
    pub fn add_up(&self, bytes: usize) {
        self.counter_up().add(bytes);
    }

    /// Adds bytes from a target to its client.
    pub fn add_down(&self, bytes: usize) {
        self.counter_down().add(bytes);
    }

    pub(super) fn counter_up(&self) -> Counter<'_> {
        Counter { own: &self.up, whole: self.whole.as_deref().map(|whole| &whole.up) }
    }

    pub(super) fn counter_down(&self) -> Counter<'_> {
        Counter { own: &self.down, whole: self.whole.as_deref().map(|whole| &whole.down) }
    }
}

/// One direction.
#[derive(Clone, Copy)]
pub(super) struct Counter<'a> {
    own: &'a AtomicU64,
    whole: Option<&'a AtomicU64>,
}

impl Counter<'_> {
    pub(super) fn add(self, bytes: usize) {
        self.own.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(whole) = self.whole {
            whole.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}
