//! The sessions of whoever receives datagrams.
//!
//! It sorts them by a key (a listener: the client; a proxy's association: the target) and passes them to [`Sessions::pass`]. The first one of a key begins a session; what comes back is handed to the
//! session's [`Deliver`].

use super::admission::admit;
use super::denied::Denied;
use super::plane::{LogGate, Plane};
pub(super) use super::session::{Beginning, SessionOptions};
use super::session::{Session, run};
use super::watch::{Cargo, Watched, WatchedConnection};
use crate::datagram::frame;
use crate::datagram::pump::Deliver;
use crate::limit::traffic::Direction;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// The sessions of one listener or association.
pub(super) struct Sessions<K> {
    plane: Arc<Plane>,
    /// Ends all of them.
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Locked for a look-up or a change at a time.
    table: Mutex<HashMap<K, Arc<Session>>>,
    opening: AtomicUsize,
    /// Locked for a look-up.
    denied: Mutex<Denied<K>>,
    drops: LogGate,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Sessions<K> {
    /// `stop` ends all sessions, and those to come as soon as they begin.
    pub(super) fn new(plane: Arc<Plane>, stop: CancellationToken) -> Arc<Self> {
        let (table, opening, drops) = (Mutex::default(), AtomicUsize::new(0), LogGate::default());
        let (tasks, denied) = (TaskTracker::new(), Mutex::default());
        Arc::new(Self { plane, stop, tasks, table, opening, denied, drops })
    }

    /// Ends all sessions when the result is dropped.
    pub(super) fn end_on_drop(&self) -> DropGuard {
        self.stop.clone().drop_guard()
    }

    /// Ends all sessions and waits until nothing is left of them. To be called by whoever made this, as its last act.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn table(&self) -> MutexGuard<'_, HashMap<K, Arc<Session>>> {
        // A map is whole after each of its methods, also if one panics for want of memory.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn denied(&self) -> MutexGuard<'_, Denied<K>> {
        // As the table.
        self.denied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a datagram on without waiting; drops it, and counts that, where there is no room.
    pub(super) fn pass<D: Deliver + 'static>(
        self: &Arc<Self>,
        key: &K,
        datagram: &[u8],
        begin: impl FnOnce() -> Option<Beginning<D>>,
    ) {
        let now_ms = self.plane.options.clock.now_ms();
        let found = {
            let table = self.table();
            // Under the lock, under which a session also ends.
            table.get(key).inspect(|session| session.touch(now_ms)).cloned()
        };
        match found {
            Some(session) => {
                if !session.permits(Direction::Input, datagram) {
                    self.drop_one("traffic limit");
                } else if !session.inbox.put(datagram) {
                    self.drop_one("a session's queue is full");
                }
            }
            None => {
                if let Some(beginning) = begin() {
                    self.begin(key, datagram, beginning, now_ms);
                }
            }
        }
    }

    fn begin<D: Deliver + 'static>(
        self: &Arc<Self>,
        key: &K,
        datagram: &[u8],
        beginning: Beginning<D>,
        now_ms: u64,
    ) {
        if self.table().len() >= beginning.options.most {
            return self.drop_one("too many flows of one client");
        }
        let Ok(slot) = self.plane.sessions.clone().try_acquire_owned() else {
            return self.drop_one("too many sessions");
        };
        let Some(opening) = Opening::take(self, beginning.options.opening) else {
            return self.drop_one("too many new sessions at once");
        };
        let admitted = beginning
            .is_client
            .then(|| admit(&beginning.service, beginning.client.ip(), &self.plane))
            .transpose();
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(denied) => {
                if self.denied().is_new(key, now_ms) {
                    let ip = beginning.client.ip();
                    beginning.service.refuse(denied.refused_by(), ip, &denied, &self.plane);
                }
                return;
            }
        };
        let policed = admitted.as_ref().and_then(|admitted| admitted.police(&self.plane));
        let Beginning { service, address, .. } = &beginning;
        let watched = self.plane.watch.show(service, (Cargo::Datagrams, *address), &self.plane, &self.stop);
        let traffic = watched.as_ref().map_or(&service.traffic, |watched| &watched.connection().traffic);
        let session = Arc::new(Session::new(beginning.options.inbox, now_ms, policed, traffic.clone()));
        if !session.permits(Direction::Input, datagram) {
            return self.drop_one("traffic limit");
        }
        self.table().insert(key.clone(), session.clone());
        let open = beginning.is_client.then(|| beginning.service.connections.begin());
        let listed = Listed { sessions: self.clone(), key: key.clone(), session, watched };
        let mut first = Vec::with_capacity(datagram.len() + 2);
        if let Some(announcement) = &beginning.announcement {
            frame::push(&mut first, announcement);
        }
        frame::push(&mut first, datagram);
        let tracked = self.plane.tracker.token();
        self.tasks.spawn(async move {
            run(&listed, &beginning, first, opening).await;
            drop((slot, admitted, tracked, open));
        });
    }

    fn drop_one(&self, reason: &str) {
        self.plane.count_dropped();
        if let Some(held_back) = self.drops.pass(&self.plane.options.clock) {
            tracing::warn!(reason, held_back, "datagram dropped");
        }
    }
}

/// One of the sessions that look for their way.
struct Opening<K>(Arc<Sessions<K>>);

impl<K> Opening<K> {
    fn take(sessions: &Arc<Sessions<K>>, most: usize) -> Option<Self> {
        let taken = Self(sessions.clone());
        (sessions.opening.fetch_add(1, Ordering::Relaxed) < most).then_some(taken)
    }
}

impl<K> Drop for Opening<K> {
    fn drop(&mut self) {
        self.0.opening.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A session in the table, out of it when this is dropped.
pub(super) struct Listed<K: Hash + Eq + Clone + Send + Sync + 'static> {
    sessions: Arc<Sessions<K>>,
    key: K,
    session: Arc<Session>,
    watched: Option<Watched>,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Listed<K> {
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn plane(&self) -> &Plane {
        &self.sessions.plane
    }

    /// Ends the session.
    pub(super) fn stop(&self) -> &CancellationToken {
        self.watched.as_ref().map_or(&self.sessions.stop, Watched::stop)
    }

    /// What those see of it who watch connections.
    pub(super) fn watched(&self) -> Option<&WatchedConnection> {
        Some(self.watched.as_ref()?.connection())
    }

    /// Waits for `ttl` of silence, and takes the session out of the table at that moment.
    pub(super) async fn silence(&self, ttl: Duration) {
        let clock = &self.sessions.plane.options.clock;
        let mut left = ttl;
        loop {
            tokio::time::sleep(left).await;
            let mut table = self.sessions.table();
            left = ttl.saturating_sub(self.session.idle(clock));
            if left.is_zero() {
                table.remove(&self.key);
                return;
            }
        }
    }
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Drop for Listed<K> {
    fn drop(&mut self) {
        let mut table = self.sessions.table();
        if table.get(&self.key).is_some_and(|listed| Arc::ptr_eq(listed, &self.session)) {
            table.remove(&self.key);
        }
    }
}
