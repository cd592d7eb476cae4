//! What is counted for whoever looks: refused clients by reason, and who is connected.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why a client was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// The agent has no room for more connections.
    Room,
    /// A limit of open connections.
    ConnectionLimit,
    /// A limit of new connections per second.
    RateLimit,
    /// No good PROXY header came.
    ProxyHeader,
    /// What it asked for, or how.
    Request,
    /// There was no way to its target.
    NoWay,
}

impl RefusedBy {
    /// In the order of their counters.
    pub const ALL: [RefusedBy; 6] = [
        RefusedBy::Room,
        RefusedBy::ConnectionLimit,
        RefusedBy::RateLimit,
        RefusedBy::ProxyHeader,
        RefusedBy::Request,
        RefusedBy::NoWay,
    ];

    /// A stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            RefusedBy::Room => "room",
            RefusedBy::ConnectionLimit => "connection_limit",
            RefusedBy::RateLimit => "rate_limit",
            RefusedBy::ProxyHeader => "proxy_header",
            RefusedBy::Request => "request",
            RefusedBy::NoWay => "no_way",
        }
    }
}

/// Counters and the list of open connections.
#[derive(Debug, Default)]
pub struct Tally {
    refused: [AtomicU64; RefusedBy::ALL.len()],
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
    /// Counts a refused client.
    pub(super) fn refuse(&self, by: RefusedBy) {
        self.refused[by as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Clients refused for this reason since the start.
    pub fn refused(&self, by: RefusedBy) -> u64 {
        self.refused[by as usize].load(Ordering::Relaxed)
    }

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
