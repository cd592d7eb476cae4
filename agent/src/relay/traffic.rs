//! How many bytes connections carried.

use std::sync::atomic::{AtomicU64, Ordering};

/// Payload bytes per direction, counted when they are handed to the receiving side. Any number of connections can share
/// one.
#[derive(Debug, Default)]
pub struct Traffic {
    pub(super) up: AtomicU64,
    pub(super) down: AtomicU64,
}

impl Traffic {
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
        self.up.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Adds bytes from a target to its client.
    pub fn add_down(&self, bytes: usize) {
        self.down.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
