//! What runs on this node: services and chains, changed by one owner, read by everybody.

mod binding;
mod entry;
pub mod groups;
mod load;
mod owner;
mod places;
mod replace;
pub(crate) mod trial;
mod validate;

pub use crate::options::{Deadlines, RuntimeOptions};

use crate::chain::Chain;
use crate::chain::report::MemberReport;
use crate::clock::Clock;
use crate::guard::blocked::BlockedProtocols;
use crate::limit::{LimitKind, Limits};
use crate::metadata::ConfigError;
use crate::relay::traffic::Traffic;
use crate::service::Service;
use crate::service::plane::Plane;
use crate::service::report::ServiceReport;
use crate::service::tally::Tally;
use crate::service::watch::Watch;
use arc_swap::ArcSwap;
use owner::{Order, Owner};
use shared::gost::{ChainConfig, GostConfig, LimiterConfig, ServiceConfig};
use shared::link::Report;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Changes that wait for the owner; whoever sends more waits for room.
const WAITING_ORDERS: usize = 16;

/// A wish to change what runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// New services; an error if a name exists.
    AddServices(Vec<ServiceConfig>),
    /// Services as they shall be. An unchanged one is left alone; one whose address is unchanged keeps its listener; its
    /// connections go on in any case, as what they were when they began.
    UpsertServices(Vec<ServiceConfig>),
    /// Closes the listeners; connections go on until they end. Unknown names are fine.
    DeleteServices(Vec<String>),
    /// Closes listeners and connections, keeps the configuration. An unknown name is an error.
    PauseServices(Vec<String>),
    /// Opens paused services again. An unknown name is an error.
    ResumeServices(Vec<String>),
    /// A new chain; an error if the name exists.
    AddChain(ChainConfig),
    /// A chain as it shall be, swapped without a gap. Connections go on with the one they began with.
    UpsertChain(ChainConfig),
    /// Unknown names are fine. Services that name the chain refuse their clients from now on.
    DeleteChain(String),
    /// A new limiter; an error if the name exists.
    AddLimiter(LimitKind, LimiterConfig),
    /// A limiter as it shall be, at once for live connections too.
    UpsertLimiter(LimitKind, LimiterConfig),
    /// Unknown names are fine. Who was limited by it is not any more.
    DeleteLimiter(LimitKind, String),
    /// Exactly this, all of it or nothing. What is the same is left alone: listeners, chains, connections.
    Replace(GostConfig),
    /// At start: each object on its own; what fails is in [`Runtime::failed`], and listening is tried again. Never an
    /// error.
    Load(GostConfig),
}

/// Why a change was refused. Nothing was changed then. Some texts are those that peer panels look for.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The configuration is wrong.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    /// The name is taken.
    #[error("service {0} already exists")]
    ServiceExists(String),
    /// The name is taken.
    #[error("chain {0} already exists")]
    ChainExists(String),
    /// The name is taken.
    #[error("limiter {0} already exists")]
    LimiterExists(String),
    /// There is none of this name.
    #[error("service {0} not found")]
    ServiceNotFound(String),
    /// The service cannot listen on its address.
    #[error("service {service}: listen on {addr}: {}", listen_reason(.source))]
    Listen {
        /// Name of the service.
        service: String,
        /// As configured.
        addr: String,
        /// What the system says.
        source: io::Error,
    },
    /// The runtime has been shut down.
    #[error("the agent is shutting down")]
    Stopped,
}

/// Go's words, which peer panels look for.
fn listen_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "address already in use".to_owned(),
        io::ErrorKind::AddrNotAvailable => "cannot assign requested address".to_owned(),
        _ => error.to_string(),
    }
}

/// Handle to everything that runs; clones share it. When the last one is dropped, everything ends.
#[derive(Clone)]
pub struct Runtime {
    orders: mpsc::Sender<Order>,
    view: Arc<ArcSwap<View>>,
    plane: Arc<Plane>,
}

/// What the owner lets everybody see.
#[derive(Default)]
struct View {
    config: GostConfig,
    failed: BTreeMap<String, String>,
    listening: BTreeMap<String, SocketAddr>,
    services: BTreeMap<String, Arc<Service>>,
    places: places::Places,
}

impl Runtime {
    /// Nothing runs in it yet. Must be called inside a Tokio runtime.
    pub fn new(options: RuntimeOptions) -> Self {
        let plane = Arc::new(Plane::new(options));
        let view = Arc::new(ArcSwap::default());
        let (orders, received) = mpsc::channel(WAITING_ORDERS);
        let owner = Owner::new(plane.clone(), view.clone());
        plane.tracker.spawn(owner.run(received));
        Self { orders, view, plane }
    }

    /// Checks a whole document without running anything: every object, and that what they name exists. Reads the files
    /// that TLS options name.
    pub fn validate(config: &GostConfig) -> Result<(), Vec<String>> {
        let problems = validate::problems(config);
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// What is allowed in a valid document and yet doubtful.
    pub fn warnings(config: &GostConfig) -> Vec<String> {
        validate::warnings(config)
    }

    /// Validated completely before anything changes; an error leaves everything as it was.
    pub async fn apply(&self, change: Change) -> Result<(), ApplyError> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order { change, answer }).await.map_err(|_| ApplyError::Stopped)?;
        answered.await.map_err(|_| ApplyError::Stopped)?
    }

    /// All configured objects, sorted by name; paused services carry `paused: true` in their metadata.
    pub fn config(&self) -> GostConfig {
        self.view.load().config.clone()
    }

    /// Object key → reason, for what is configured but does not run.
    pub fn failed(&self) -> BTreeMap<String, String> {
        self.view.load().failed.clone()
    }

    /// Where a service listens, with the real port if the system chose it.
    pub fn listening(&self, service: &str) -> Option<SocketAddr> {
        self.view.load().listening.get(service).copied()
    }

    /// What a service has carried.
    pub fn traffic(&self, service: &str) -> Option<Arc<Traffic>> {
        self.view.load().services.get(service).map(|service| service.traffic.clone())
    }

    /// What each service that was understood has carried.
    pub fn traffics(&self) -> Vec<(String, Arc<Traffic>)> {
        let view = self.view.load();
        view.services.iter().map(|(name, service)| (name.clone(), service.traffic.clone())).collect()
    }

    /// What is to be seen of a service that was understood.
    pub fn service_report(&self, service: &str) -> Option<ServiceReport> {
        self.view.load().services.get(service).map(|service| service.report(&self.plane))
    }

    /// All nodes of every chain.
    pub fn chain_members(&self) -> Vec<(String, Vec<MemberReport>)> {
        let now_ms = self.now_ms();
        let of = |chain: &Arc<Chain>| (chain.config.name.clone(), chain.members(now_ms));
        self.plane.registry.all().values().map(of).collect()
    }

    /// Clients let in and refused.
    pub fn tally(&self) -> &Arc<Tally> {
        &self.plane.tally
    }

    /// Connections one by one.
    pub fn watch(&self) -> &Arc<Watch> {
        &self.plane.watch
    }

    /// Protocols that clients may not speak.
    pub fn blocked(&self) -> &BlockedProtocols {
        &self.plane.options.blocked
    }

    /// All limiters.
    pub fn limits(&self) -> &Limits {
        &self.plane.limits
    }

    /// What the runtime reads time from.
    pub(crate) fn clock(&self) -> &Clock {
        &self.plane.options.clock
    }

    /// Milliseconds on the runtime's clock.
    pub fn now_ms(&self) -> u64 {
        self.plane.options.clock.now_ms()
    }

    /// Marks and counters of every chain's last hop, and how many clients were refused.
    pub fn report(&self) -> Report {
        let now_ms = self.plane.options.clock.now_ms();
        let chains = self.plane.registry.all().values().map(|chain| chain.report(now_ms)).collect();
        Report { chains, refused: self.plane.refused(), groups: self.group_states() }
    }

    /// Datagrams dropped for want of room in queues and tables, since the start.
    pub fn dropped(&self) -> u64 {
        self.plane.dropped()
    }

    /// Stops listeners, ends connections, waits a bounded time.
    pub async fn shutdown(&self) {
        self.plane.stop.cancel();
        self.plane.tracker.close();
        let ended = tokio::time::timeout(self.plane.options.deadlines.shutdown, self.plane.tracker.wait());
        if ended.await.is_err() {
            tracing::warn!(left = self.plane.tracker.len(), "tasks did not end in time");
        }
    }
}
