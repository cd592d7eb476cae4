//! What is counted for whoever looks: refused clients by reason, and who is connected.

use super::refused::Refused;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counters and the list of open connections.
#[derive(Debug, Default)]
pub struct Tally {
    /// Clients that were refused, of all services.
    pub refused: Refused,
    accepted: AtomicU64,
    /// Whether anybody wants the list; keeping it costs each connection a lock.
    lists: AtomicBool,
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, OpenConnection>>,
}

/// A client's connection that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenConnection {
    /// Name of the service.
    pub service: String,
    /// Where the client comes from.
    pub client: SocketAddr,
    /// Milliseconds on the agent's clock.
    pub since_ms: u64,
}

impl Tally {
    /// Client connections that were let in since the start.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// From now on open connections are listed; those that are open already are not.
    pub fn keep_list(&self) {
        self.lists.store(true, Ordering::Relaxed);
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, OpenConnection>> {
        // A map is whole after each of its methods.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open connections, oldest first, at most `most` of them.
    pub fn connections(&self, most: usize) -> Vec<OpenConnection> {
        self.open().values().take(most).cloned().collect()
    }

    /// Counts a connection that is let in, and lists it until the result is dropped.
    pub(super) fn accept(self: &Arc<Self>, connection: impl FnOnce() -> OpenConnection) -> Option<Listed> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        if !self.lists.load(Ordering::Relaxed) {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.open().insert(id, connection());
        Some(Listed { tally: self.clone(), id })
    }
}

/// A connection in the list.
#[derive(Debug)]
pub(super) struct Listed {
    tally: Arc<Tally>,
    id: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.tally.open().remove(&self.id);
    }
}
