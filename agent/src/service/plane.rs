//! What all connections of a runtime share.

use super::tally::Tally;
use super::watch::Watch;
use crate::chain::group::groups::Groups;
use crate::clock::Clock;
use crate::limit::Limits;
use crate::options::RuntimeOptions;
use crate::registry::Registry;
use crate::tasks::Tasks;
use nix::sys::resource::{Resource, getrlimit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Open client connections at most, whatever the limit on files allows: each holds two buffers of 128 KiB while its
/// receivers are slower than its senders.
const MOST_CONNECTIONS: usize = 65_536;
/// Files for everything that is no relayed connection: listeners, the link, probes, the log.
const RESERVED_FILES: u64 = 128;
/// Pause between two log lines of the same kind.
const LOG_PAUSE_MS: u64 = 10_000;

/// What all connections of a runtime share.
pub struct Plane {
    /// Deadlines, clock, randomness.
    pub options: RuntimeOptions,
    /// Name → chain.
    pub registry: Registry,
    /// Groups that are decided for.
    pub groups: Groups,
    /// Name → limiter.
    pub limits: Limits,
    /// Every task of the runtime.
    pub tracker: TaskTracker,
    /// Ends all of them.
    pub stop: CancellationToken,
    /// One permit per open client connection.
    pub(super) slots: Arc<Semaphore>,
    /// One permit per session of datagrams.
    pub(super) sessions: Arc<Semaphore>,
    /// What is counted for whoever looks.
    pub tally: Arc<Tally>,
    /// Connections one by one, if anybody wants to see them.
    pub watch: Arc<Watch>,
    /// Client connections refused because no node could be used.
    refused: AtomicU64,
    /// Datagrams for which there was no room.
    dropped: AtomicU64,
}

impl Plane {
    /// Nothing runs yet.
    pub fn new(options: RuntimeOptions) -> Self {
        let tasks = Tasks::default();
        let options = RuntimeOptions { tasks: tasks.clone(), ..options };
        let slots = options.connection_limit.unwrap_or_else(connections_by_files);
        let sessions = options.session_limit.unwrap_or_else(sessions_by_files);
        Self {
            registry: Registry::default(),
            groups: Groups::default(),
            limits: Limits::new(&options.clock),
            options,
            tracker: tasks.tracker,
            stop: tasks.stop,
            slots: Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS))),
            sessions: Arc::new(Semaphore::new(sessions.min(Semaphore::MAX_PERMITS))),
            tally: Arc::default(),
            watch: Arc::default(),
            refused: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Client connections refused because no node could be used, since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Datagrams dropped for want of room in queues and tables, since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// A client connection needs two files: its own and the one it leads to. A quarter of all is left to sessions.
fn connections_by_files() -> usize {
    files().map_or(MOST_CONNECTIONS, |files| (files / 8 * 3).min(MOST_CONNECTIONS))
}

/// A session needs one file.
fn sessions_by_files() -> usize {
    files().map_or(MOST_CONNECTIONS, |files| (files / 4).min(MOST_CONNECTIONS))
}

/// Files for connections and sessions; `None` if the limit is not known.
fn files() -> Option<usize> {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let left = soft.saturating_sub(RESERVED_FILES + files_of_pipes(soft));
    Some(usize::try_from(left).unwrap_or(usize::MAX).max(256))
}

/// Files for the pipes through which the kernel carries payload.
#[cfg(target_os = "linux")]
fn files_of_pipes(limit: u64) -> u64 {
    2 * crate::relay::splice::most_pipes(limit)
}

#[cfg(not(target_os = "linux"))]
fn files_of_pipes(_: u64) -> u64 {
    0
}

/// Lets one log line through per ten seconds, and counts those it holds back.
#[derive(Debug, Default)]
pub(super) struct LogGate {
    /// When the last one went through, plus one; 0 is never.
    last_ms: AtomicU64,
    held_back: AtomicU64,
}

impl LogGate {
    /// `Some(held back since the last one)` if a line may be written now.
    pub(super) fn pass(&self, clock: &Clock) -> Option<u64> {
        let now = clock.now_ms() + 1;
        let last = self.last_ms.load(Ordering::Relaxed);
        let due = last == 0 || now.saturating_sub(last) >= LOG_PAUSE_MS;
        let first =
            due && self.last_ms.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if first {
            Some(self.held_back.swap(0, Ordering::Relaxed))
        } else {
            self.held_back.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn one_log_line_per_ten_seconds_says_how_many_it_stands_for() {
        let clock = Clock::system();
        let gate = LogGate::default();
        assert_eq!(gate.pass(&clock), Some(0));
        assert_eq!(gate.pass(&clock), None);
        assert_eq!(gate.pass(&clock), None);
        clock.advance(Duration::from_secs(10));
        assert_eq!(gate.pass(&clock), Some(2));
        assert_eq!(gate.pass(&clock), None);
    }

    #[test]
    fn the_file_limit_leaves_room_for_connections() {
        assert!((64..=MOST_CONNECTIONS).contains(&connections_by_files()));
        assert!((64..=MOST_CONNECTIONS).contains(&sessions_by_files()));
    }
}
