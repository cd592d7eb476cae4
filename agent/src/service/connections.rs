//! How many clients a service has let in, and has now.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts connections, and sessions of datagrams that are clients by themselves.
#[derive(Debug, Default)]
pub struct Connections {
    total: AtomicU64,
    open: AtomicU64,
}

impl Connections {
    /// Since the service is there.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Now.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// One more; open until the result is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Open {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(self.clone())
    }
}

/// A client that is there.
#[derive(Debug)]
pub(super) struct Open(Arc<Connections>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
