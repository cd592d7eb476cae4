//! Sessions: a flow of datagrams and the way it takes, chosen once when it begins and kept to its end.
//!
//! Whoever receives datagrams sorts them by a key (a listener: the client; a proxy's association: the target) and
//! passes them to [`Sessions::pass`]. The first one of a key begins a session; what comes back is handed to the
//! session's [`Deliver`].

use super::Service;
use super::admission::admit;
use super::connection::note;
use super::plane::{LogGate, Plane};
use super::reach::{DatagramWay, Goal, Reached, Refusal, reach_for_datagrams};
use super::udp_relay::STILL;
use crate::chain::asking::Asking;
use crate::chain::dial::Through;
use crate::chain::group::Attempt;
use crate::chain::hash::ClientKey;
use crate::clock::Clock;
use crate::datagram::frame::{self, FrameReader};
use crate::datagram::inbox::{Inbox, InboxLimits};
use crate::datagram::pump::{Deliver, Peer, deliver, frames_to, inbox_to_frames, peer_to};
use crate::datagram::socket::give_up_after;
use crate::limit::datagrams::Policed;
use crate::limit::traffic::Direction;
use shared::address::HostPort;
use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// How long the datagrams of a flow that found no way are dropped before another is looked for: clients repeat
/// themselves faster than chains recover.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

/// How sessions behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionOptions {
    /// Silence in both directions after which a session ends.
    pub(super) ttl: Duration,
    /// End with the first answer.
    pub(super) one_answer: bool,
    /// Sessions that look for their way at the same time.
    pub(super) opening: usize,
    /// Sessions of one listener or association.
    pub(super) most: usize,
    /// What may wait for a way, or for room on it.
    pub(super) inbox: InboxLimits,
}

/// What a new session needs.
pub(super) struct Beginning<D> {
    /// What it is served by to its end.
    pub(super) service: Arc<Service>,
    pub(super) options: SessionOptions,
    /// `None`: one of the service's targets.
    pub(super) target: Option<HostPort>,
    /// What the hash strategies know the client by.
    pub(super) client: ClientKey,
    /// Whether it is a client of the service by itself, with what limits that has; not only a part of one.
    pub(super) is_client: bool,
    /// Takes what comes back.
    pub(super) to: D,
}

/// The sessions of one listener or association.
pub(super) struct Sessions<K> {
    plane: Arc<Plane>,
    /// Ends all of them.
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Locked for a look-up or a change at a time.
    table: Mutex<HashMap<K, Arc<Session>>>,
    opening: AtomicUsize,
    drops: LogGate,
}

/// One flow.
struct Session {
    inbox: Inbox,
    /// [`Clock::now_ms`] of the last datagram in either direction.
    last_ms: AtomicU64,
    policed: Option<Policed>,
}

/// Why a session ended.
enum End {
    Silence,
    Answered,
    TargetRefuses,
    Way(io::Result<()>),
    Stopped,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Sessions<K> {
    /// `stop` ends all sessions, and those to come as soon as they begin.
    pub(super) fn new(plane: Arc<Plane>, stop: CancellationToken) -> Arc<Self> {
        let (table, opening, drops) = (Mutex::default(), AtomicUsize::new(0), LogGate::default());
        Arc::new(Self { plane, stop, tasks: TaskTracker::new(), table, opening, drops })
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
            table.get(key).inspect(|session| session.last_ms.store(now_ms, Ordering::Relaxed)).cloned()
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
            Err(denied) => return self.drop_one(&denied.to_string()),
        };
        let session = Arc::new(Session {
            inbox: Inbox::new(beginning.options.inbox),
            last_ms: AtomicU64::new(now_ms),
            policed: admitted.as_ref().and_then(|admitted| admitted.police(&self.plane)),
        });
        if !session.permits(Direction::Input, datagram) {
            return self.drop_one("traffic limit");
        }
        self.table().insert(key.clone(), session.clone());
        let listed = Listed { sessions: self.clone(), key: key.clone(), session };
        let mut first = Vec::with_capacity(datagram.len() + 2);
        frame::push(&mut first, datagram);
        let tracked = self.plane.tracker.token();
        self.tasks.spawn(async move {
            run(&listed, &beginning, first, opening).await;
            drop((slot, admitted, tracked));
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
struct Listed<K: Hash + Eq + Clone + Send + Sync + 'static> {
    sessions: Arc<Sessions<K>>,
    key: K,
    session: Arc<Session>,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Listed<K> {
    /// Waits for `ttl` of silence, and takes the session out of the table at that moment.
    async fn silence(&self, ttl: Duration) {
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

/// Takes what comes back, as far as the session's limits permit.
struct Limited<'a, D> {
    to: &'a D,
    session: &'a Session,
    dropped: &'a Plane,
}

impl<D: Deliver> Deliver for Limited<'_, D> {
    fn try_deliver(&self, datagram: &[u8]) -> io::Result<()> {
        if !self.session.permits(Direction::Output, datagram) {
            self.dropped.count_dropped();
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let outcome = self.to.try_deliver(datagram);
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            && let Some(policed) = &self.session.policed
        {
            policed.give_back(Direction::Output, datagram.len());
        }
        outcome
    }

    fn room(&self) -> impl Future<Output = io::Result<()>> + Send {
        self.to.room()
    }
}

impl Session {
    fn permits(&self, direction: Direction, datagram: &[u8]) -> bool {
        self.policed.as_ref().is_none_or(|policed| policed.permits(direction, datagram.len()))
    }

    fn idle(&self, clock: &Clock) -> Duration {
        Duration::from_millis(clock.now_ms().saturating_sub(self.last_ms.load(Ordering::Relaxed)))
    }

    fn touch(&self, clock: &Clock) {
        self.last_ms.store(clock.now_ms(), Ordering::Relaxed);
    }
}

async fn run<K: Hash + Eq + Clone + Send + Sync + 'static, D: Deliver>(
    listed: &Listed<K>,
    beginning: &Beginning<D>,
    first: Vec<u8>,
    opening: Opening<K>,
) {
    let (sessions, service) = (&listed.sessions, &beginning.service);
    let reached = tokio::select! {
        biased;
        () = sessions.stop.cancelled() => return,
        reached = open(beginning, &first, &sessions.plane) => reached,
    };
    drop(opening);
    let end = match reached {
        Ok(reached) => {
            let carried = carry(listed, beginning, reached, first);
            tokio::select! {
                biased;
                () = sessions.stop.cancelled() => End::Stopped,
                end = carried => end,
            }
        }
        Err(refusal) => {
            note(service, &refusal, &sessions.plane);
            tokio::select! {
                () = sessions.stop.cancelled() => {}
                () = tokio::time::sleep(REFUSED_PAUSE) => {}
            }
            return;
        }
    };
    let reason = match &end {
        End::Silence => "silence",
        End::Answered => "answered",
        End::TargetRefuses => "the target refuses",
        End::Stopped => "stopped",
        End::Way(Ok(())) => "its way was closed",
        End::Way(Err(error)) => {
            tracing::debug!(service = service.name, %error, "session ended");
            return;
        }
    };
    tracing::trace!(service = service.name, reason, "session ended");
}

async fn open<D>(
    beginning: &Beginning<D>,
    first: &[u8],
    plane: &Plane,
) -> Result<Reached<DatagramWay>, Refusal> {
    let service = &beginning.service;
    let goal = match (&beginning.target, service.forwarder()) {
        (Some(target), _) => Goal::Asked(target),
        (None, Some(forwarder)) => Goal::Fixed(forwarder),
        (None, None) => return Err(Refusal::NoTarget),
    };
    let mut asking = Asking::Datagrams { key: beginning.client, first };
    reach_for_datagrams(service, goal, &mut asking, plane).await
}

/// Carries both directions until one of the reasons to end.
async fn carry<K: Hash + Eq + Clone + Send + Sync + 'static, D: Deliver>(
    listed: &Listed<K>,
    beginning: &Beginning<D>,
    Reached { way, target }: Reached<DatagramWay>,
    first: Vec<u8>,
) -> End {
    let (session, options) = (&listed.session, &beginning.options);
    let clock = &listed.sessions.plane.options.clock;
    session.touch(clock);
    let doubt = Doubt(Mutex::new(target));
    let to = Limited { to: &beginning.to, session, dropped: &listed.sessions.plane };
    let answered = Notify::new();
    let seen = |_| {
        session.touch(clock);
        doubt.dispel();
        if options.one_answer {
            answered.notify_one();
        }
    };
    let carried = async {
        match way {
            DatagramWay::Framed(through) => framed(session, through, &to, seen).await,
            DatagramWay::Socket(socket) => {
                let peer = Arc::new(Peer::new(socket));
                // Waits until the new socket is known to have room, so that those which follow need not.
                if let Some((first, _)) = frame::split(&first) {
                    deliver(&*peer, first).await;
                }
                drop(first);
                session.inbox.attach(peer.clone());
                tokio::select! {
                    ended = peer_to(&peer, &to, seen) => End::Way(ended),
                    () = doubt.confirmed(&peer, &beginning.service) => End::TargetRefuses,
                }
            }
        }
    };
    tokio::select! {
        end = carried => end,
        () = answered.notified() => End::Answered,
        () = listed.silence(options.ttl) => End::Silence,
    }
}

/// Both directions over a stream. The first datagram went along with the request.
async fn framed(session: &Session, through: Through, to: &impl Deliver, seen: impl FnMut(u64)) -> End {
    let Through { stream, open: _open } = through;
    give_up_after(&stream, STILL);
    let (mut down, mut up) = tokio::io::split(stream);
    End::Way(tokio::select! {
        ended = frames_to(&mut down, FrameReader::default(), to, seen) => ended,
        ended = inbox_to_frames(&session.inbox, &mut up) => ended,
    })
}

/// One of the service's targets that has not answered yet.
struct Doubt(Mutex<Option<Attempt>>);

impl Doubt {
    fn take(&self) -> Option<Attempt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The target speaks: whatever was held against it is forgotten.
    fn dispel(&self) {
        if let Some(target) = self.take() {
            target.succeed();
        }
    }

    /// Waits until the target's machine says that nobody listens there, and holds that against the target. Never ends if
    /// there is no other one to go to, or once it has answered: a server that restarts finds its clients again.
    async fn confirmed(&self, peer: &Peer, service: &Service) {
        loop {
            peer.refused().await;
            let has_others = service.forwarder().is_some_and(|forwarder| forwarder.targets.len() > 1);
            if has_others && let Some(target) = self.take() {
                target.count_failure();
                if target.mark() {
                    tracing::info!(service = service.name, "target refuses datagrams and is left out");
                }
                return;
            }
        }
    }
}
