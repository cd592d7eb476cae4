//! Connections as those see them who watch them one by one and close them. Nothing is kept until somebody does.

use super::Service;
use super::plane::Plane;
use super::reach::Goal;
use crate::chain::Chain;
use crate::chain::group::Attempt;
use crate::chain::state::OpenConnection;
use crate::relay::traffic::Traffic;
use shared::address::HostPort;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The open connections and sessions of a runtime: as many as it lets in, each some hundred bytes.
#[derive(Debug, Default)]
pub struct Watch {
    /// Whether anybody watches; each connection pays for it.
    on: AtomicBool,
    next: AtomicU64,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    open: BTreeMap<u64, Arc<WatchedConnection>>,
    /// What those have carried that have ended.
    ended: Carried,
}

/// Bytes of payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// From clients to targets.
    pub up: u64,
    /// From targets to clients.
    pub down: u64,
}

impl Carried {
    fn add(&mut self, traffic: &Traffic) {
        self.up = self.up.saturating_add(traffic.up());
        self.down = self.down.saturating_add(traffic.down());
    }
}

/// What a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cargo {
    /// A stream.
    Stream,
    /// Datagrams.
    Datagrams,
}

/// A connection or a session that is open.
#[derive(Debug)]
pub struct WatchedConnection {
    /// Never given twice by a runtime.
    pub id: u64,
    /// Name of the service.
    pub service: String,
    /// What it carries.
    pub cargo: Cargo,
    /// Where the client comes from.
    pub client: SocketAddr,
    /// Time since 1970 at its begin.
    pub since: Duration,
    /// What it has carried so far.
    pub traffic: Arc<Traffic>,
    way: OnceLock<TakenWay>,
    stop: CancellationToken,
}

/// Where a connection leads, and through what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenWay {
    /// Where to.
    pub target: HostPort,
    /// What was chosen, from the client on; empty if nothing was to be chosen.
    pub steps: Vec<Step>,
}

/// A member of a group that a connection goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The name that the group has if it is one that is decided for.
    pub group: String,
    /// The member.
    pub member: String,
}

impl Step {
    fn new(group: impl Into<String>, member: &str) -> Self {
        Self { group: group.into(), member: member.to_owned() }
    }
}

impl WatchedConnection {
    /// The way it has taken, once it is through.
    pub fn way(&self) -> Option<&TakenWay> {
        self.way.get()
    }

    /// Takes note of the way, which is the only one.
    pub(super) fn has_taken(&self, way: Option<TakenWay>) {
        if let Some(way) = way {
            let _ = self.way.set(way);
        }
    }
}

impl Watch {
    /// From now on connections are watched; those that are open already are not.
    pub fn begin(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Whole after each of the few things that are done with it.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are open, oldest first, and what all have carried, the ended ones included.
    pub fn all(&self) -> (Vec<Arc<WatchedConnection>>, Carried) {
        let book = self.book();
        let mut carried = book.ended;
        book.open.values().for_each(|connection| carried.add(&connection.traffic));
        (book.open.values().cloned().collect(), carried)
    }

    /// What all have carried, the ended ones included.
    pub fn carried(&self) -> Carried {
        let book = self.book();
        let mut carried = book.ended;
        book.open.values().for_each(|connection| carried.add(&connection.traffic));
        carried
    }

    /// Closes a connection; whether there was one.
    pub fn close(&self, id: u64) -> bool {
        let found = self.book().open.get(&id).cloned();
        found.inspect(|connection| connection.stop.cancel()).is_some()
    }

    /// Closes all.
    pub fn close_all(&self) {
        for connection in self.all().0 {
            connection.stop.cancel();
        }
    }

    /// Shows a connection of a service until the result is dropped, if anybody watches.
    pub(super) fn show(
        self: &Arc<Self>,
        service: &Service,
        (cargo, client): (Cargo, SocketAddr),
        plane: &Plane,
        stop: &CancellationToken,
    ) -> Option<Watched> {
        if !self.on.load(Ordering::Relaxed) {
            return None;
        }
        let connection = Arc::new(WatchedConnection {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            service: service.name.clone(),
            cargo,
            client,
            since: plane.options.clock.unix_time(),
            traffic: Arc::new(Traffic::part_of(service.traffic.clone())),
            way: OnceLock::new(),
            stop: stop.child_token(),
        });
        self.book().open.insert(connection.id, connection.clone());
        Some(Watched { watch: self.clone(), connection })
    }
}

/// A connection that is seen as long as this lives.
#[derive(Debug)]
pub(crate) struct Watched {
    watch: Arc<Watch>,
    connection: Arc<WatchedConnection>,
}

impl Watched {
    pub(crate) fn connection(&self) -> &Arc<WatchedConnection> {
        &self.connection
    }

    /// Ends the connection.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.connection.stop
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut book = self.watch.book();
        if book.open.remove(&self.connection.id).is_some() {
            book.ended.add(&self.connection.traffic);
        }
    }
}

impl Service {
    /// The way of a connection that holds these open. A chain that was changed since the connection chose among its nodes
    /// does not know those any more that are gone.
    pub(super) fn taken_way(
        &self,
        goal: Goal<'_>,
        chosen: Option<&Attempt>,
        open: &[OpenConnection],
        plane: &Plane,
    ) -> Option<TakenWay> {
        let (target, fixed) = match goal {
            Goal::Asked(target) => (target, None),
            Goal::Fixed(forwarder) => {
                let at = chosen?.index();
                (forwarder.targets.get(at)?, forwarder.names.get(at))
            }
        };
        let mut steps = Vec::new();
        let mut chain = self.chain.as_deref();
        if let Some(chains) = &self.chains
            && let Some(name) = chains.taken(open)
        {
            steps.push(Step::new(format!("service/{}/chains", self.name), name));
            chain = Some(name);
        }
        if let Some(chain) = chain.and_then(|name| plane.registry.get(name)) {
            steps.extend(chain.taken(open));
        }
        steps.extend(fixed.map(|name| Step::new(format!("service/{}/targets", self.name), name)));
        Some(TakenWay { target: target.clone(), steps })
    }
}

impl Chain {
    /// The nodes that a connection goes through, hop after hop.
    fn taken(&self, open: &[OpenConnection]) -> Vec<Step> {
        let hops = self.hops.iter().enumerate().filter_map(|(at, hop)| {
            let is_taken = |node: &usize| open.iter().any(|open| open.is_through(hop.group.state(*node)));
            let node = (0..hop.nodes.len()).find(is_taken)?;
            Some(Step::new(self.group_name(at), &hop.nodes[node].config.name))
        });
        hops.collect()
    }
}
