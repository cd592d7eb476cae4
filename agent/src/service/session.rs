//! One session: a flow of datagrams and the way it takes, chosen once when it begins and kept to its end.

use super::Service;
use super::connection::note;
use super::plane::Plane;
use super::reach::{DatagramWay, Goal, Reached, Refusal, reach_for_datagrams};
use super::sessions::Listed;
use super::tied::cut;
use crate::chain::asking::Asking;
use crate::chain::dial::Through;
use crate::chain::failure::FailureKind;
use crate::chain::group::Attempt;
use crate::chain::hash::ClientKey;
use crate::clock::Clock;
use crate::datagram::frame::{self, FrameReader};
use crate::datagram::inbox::{Inbox, InboxLimits};
use crate::datagram::pump::{Counted, Deliver, Peer, STILL, deliver, frames_to, inbox_to_frames, peer_to};
use crate::datagram::socket::give_up_after;
use crate::limit::datagrams::Policed;
use crate::limit::traffic::Direction;
use crate::relay::traffic::Traffic;
use shared::address::HostPort;
use std::future::Future;
use std::hash::Hash;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

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
    /// Where the client sends from.
    pub(super) address: SocketAddr,
    /// Whether it is a client of the service by itself, with what limits that has; not only a part of one.
    pub(super) is_client: bool,
    /// A datagram that the target gets before the client's first.
    pub(super) announcement: Option<Vec<u8>>,
    /// Takes what comes back.
    pub(super) to: D,
}

/// One flow.
pub(super) struct Session {
    pub(super) inbox: Inbox,
    /// [`Clock::now_ms`] of the last datagram in either direction.
    last_ms: AtomicU64,
    policed: Option<Policed>,
}

impl Session {
    /// Begins with a datagram at `now_ms`, under limits if there are any.
    pub(super) fn new(
        limits: InboxLimits,
        now_ms: u64,
        policed: Option<Policed>,
        traffic: Arc<Traffic>,
    ) -> Self {
        Self { inbox: Inbox::counting(limits, traffic), last_ms: AtomicU64::new(now_ms), policed }
    }

    /// Whether a datagram may pass, which then counts.
    pub(super) fn permits(&self, direction: Direction, datagram: &[u8]) -> bool {
        self.policed.as_ref().is_none_or(|policed| policed.permits(direction, datagram.len()))
    }

    /// How long there has been no datagram.
    pub(super) fn idle(&self, clock: &Clock) -> Duration {
        Duration::from_millis(clock.now_ms().saturating_sub(self.last_ms.load(Ordering::Relaxed)))
    }

    /// A datagram came or went at `now_ms`.
    pub(super) fn touch(&self, now_ms: u64) {
        self.last_ms.store(now_ms, Ordering::Relaxed);
    }
}

/// Why a session ended.
enum End {
    Silence,
    Answered,
    TargetRefuses,
    Way(io::Result<()>),
    Stopped,
    /// A group uses another member now, and its sessions are to.
    Left,
}

/// Takes what comes back, as far as the session's limits permit.
struct Limited<'a, D> {
    to: &'a D,
    session: &'a Session,
    dropped: &'a Plane,
    traffic: &'a Traffic,
}

impl<D: Deliver> Deliver for Limited<'_, D> {
    fn try_deliver(&self, datagram: &[u8]) -> io::Result<()> {
        if !self.session.permits(Direction::Output, datagram) {
            self.dropped.count_dropped();
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let outcome = self.to.try_deliver(datagram);
        if outcome.is_ok() {
            self.traffic.add_down(datagram.len());
        }
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

/// Lives a session from its first datagram to its end.
pub(super) async fn run<K: Hash + Eq + Clone + Send + Sync + 'static, D: Deliver>(
    listed: &Listed<K>,
    beginning: &Beginning<D>,
    first: Vec<u8>,
    opening: impl Send,
) {
    let (stop, plane, service) = (listed.stop(), listed.plane(), &beginning.service);
    let reached = tokio::select! {
        biased;
        () = stop.cancelled() => return,
        reached = open(beginning, &first, plane) => reached,
    };
    drop(opening);
    let end = match reached {
        Ok(reached) => {
            let ties = reached.ties();
            if let Some(watched) = listed.watched()
                && let Some(goal) = goal(beginning)
            {
                let target = reached.target.as_ref();
                watched.has_taken(service.taken_way(goal, target, reached.open(), plane));
            }
            let carried = carry(listed, beginning, reached, first);
            tokio::select! {
                biased;
                () = stop.cancelled() => End::Stopped,
                () = cut(&ties) => End::Left,
                end = carried => end,
            }
        }
        Err(refusal) => {
            note(service, beginning.client.ip(), &refusal, plane);
            tokio::select! {
                () = stop.cancelled() => {}
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
        End::Left => "its group left the member",
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
    let Some(goal) = goal(beginning) else { return Err(Refusal::NoTarget) };
    let mut asking = Asking::Datagrams { key: beginning.client, first };
    reach_for_datagrams(service, goal, &mut asking, plane).await
}

fn goal<D>(beginning: &Beginning<D>) -> Option<Goal<'_>> {
    match (&beginning.target, beginning.service.forwarder()) {
        (Some(target), _) => Some(Goal::Asked(target)),
        (None, Some(forwarder)) => Some(Goal::Fixed(forwarder)),
        (None, None) => None,
    }
}

/// Carries both directions until one of the reasons to end.
async fn carry<K: Hash + Eq + Clone + Send + Sync + 'static, D: Deliver>(
    listed: &Listed<K>,
    beginning: &Beginning<D>,
    Reached { way, target }: Reached<DatagramWay>,
    first: Vec<u8>,
) -> End {
    let (session, options) = (listed.session(), &beginning.options);
    let clock = &listed.plane().options.clock;
    session.touch(clock.now_ms());
    let traffic = listed.watched().map_or(&*beginning.service.traffic, |watched| &*watched.traffic);
    let _target = target.as_ref().map(Attempt::open);
    let doubt = Doubt(Mutex::new(target));
    let to = Limited { to: &beginning.to, session, dropped: listed.plane(), traffic };
    let answered = Notify::new();
    let seen = |_| {
        session.touch(clock.now_ms());
        doubt.dispel();
        if options.one_answer {
            answered.notify_one();
        }
    };
    let carried = async {
        match way {
            DatagramWay::Framed(through) => {
                // It went along with the request.
                traffic.add_up(frame::all(&first).map(<[u8]>::len).sum());
                drop(first);
                framed(session, through, &to, seen).await
            }
            DatagramWay::Socket(socket) => {
                let peer = Arc::new(Peer::new(socket));
                // Waits until the new socket is known to have room, so that those which follow need not.
                for first in frame::all(&first) {
                    deliver(&Counted { to: &*peer, traffic }, first).await;
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

/// Both directions over a stream.
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
                target.count_failure(FailureKind::ConnectRefused);
                if target.mark() {
                    tracing::info!(service = service.name, "target refuses datagrams and is left out");
                }
                return;
            }
        }
    }
}
