//! A panel with its database, and what tests do to it.

use crate::fake::Fake;
use server::agents;
use server::clock::{Clock, ManualClock};
use server::config::Config;
use server::plan::names;
use server::state::AppState;
use server::store::{Db, DecisionLogQuery, NewForward, NewNode, NewTunnel};
use shared::api::{
    DecisionLogEntry, DeploymentStatus, EntryGroup, EntryNode, ForwardInput, Group, GroupNode, NodeInput,
    OwnerDecision, TunnelInput,
};
use shared::best_exit::Settings;
use shared::envelope::link_key;
use shared::gost::Auth;
use shared::ids::{ForwardId, NodeId, TunnelId, UserId};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// When the tests begin: a moment in 2026.
pub(crate) const START_MS: i64 = 1_790_000_000_000;
/// For what must happen; far longer than it takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// What survives a restart of the panel: the database, the clock, and the world outside.
pub(crate) struct World {
    pub(crate) db: Db,
    pub(crate) hands: ManualClock,
    clock: Clock,
    /// Counts what the agents do, so that tests can wait for it.
    pub(crate) activity: watch::Sender<u64>,
    /// Ports of the agents' relays are never used twice.
    next_port: AtomicI64,
}

impl World {
    pub(crate) async fn new() -> Self {
        let (clock, hands) = Clock::manual(START_MS);
        let db = Db::memory().await.unwrap();
        let world =
            Self { db, hands, clock, activity: watch::Sender::new(0), next_port: AtomicI64::new(20_000) };
        world.settings(|_| {}).await;
        world
    }

    /// Settings for fast rounds, changed by `change`.
    pub(crate) async fn settings(&self, change: impl FnOnce(&mut Settings)) {
        let mut settings = Settings {
            probe_target: "target.example:443".into(),
            round_interval_ms: 50,
            ping_count: 1,
            ping_timeout_ms: 100,
            ..Settings::default()
        };
        change(&mut settings);
        let mut tx = self.db.write().await.unwrap();
        tx.update_settings(&settings).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// A node with the address `192.0.2.<id>`; its secret is `secret-<name>`.
    pub(crate) async fn node(&self, name: &str) -> NodeId {
        let mut tx = self.db.write().await.unwrap();
        let mut input = NodeInput { name: name.into(), server_ip: "192.0.2.1".into(), ..Default::default() };
        let link_key = link_key(&secret(name));
        let id = tx.insert_node(&NewNode { input: &input, link_key, at: 0 }).await.unwrap();
        input.server_ip = format!("192.0.2.{id}");
        tx.update_node(id, &input, 0).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    /// A tunnel from the entries to the exits, chosen by measuring.
    pub(crate) async fn tunnel(&self, name: &str, entries: &[NodeId], exits: &[NodeId]) -> TunnelId {
        let input = self.tunnel_input(name, entries, exits);
        let mut tx = self.db.write().await.unwrap();
        let auth = Auth { username: "u".into(), password: "p".into() };
        let id = tx.insert_tunnel(&NewTunnel { input: &input, at: 0 }, &auth).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    pub(crate) fn tunnel_input(&self, name: &str, entries: &[NodeId], exits: &[NodeId]) -> TunnelInput {
        let member = |node: &NodeId| GroupNode {
            node_id: *node,
            port: Some(self.next_port.fetch_add(1, Ordering::Relaxed) as u16),
            connect_ip: None,
        };
        TunnelInput {
            name: name.into(),
            enabled: true,
            entry: EntryGroup { nodes: entries.iter().map(|id| EntryNode { node_id: *id }).collect() },
            exit: Some(Group {
                strategy: "best".into(),
                nodes: exits.iter().map(member).collect(),
                ..Group::default()
            }),
            ..TunnelInput::default()
        }
    }

    pub(crate) async fn edit_tunnel(&self, id: TunnelId, change: impl FnOnce(&mut TunnelInput)) {
        let mut tx = self.db.write().await.unwrap();
        let mut input = TunnelInput::from(tx.tunnel(id).await.unwrap().unwrap().tunnel);
        change(&mut input);
        tx.update_tunnel(id, &NewTunnel { input: &input, at: 0 }).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn forward(&self, tunnel: TunnelId, entries: &[NodeId]) -> ForwardId {
        let input = ForwardInput {
            version: None,
            tunnel_id: tunnel,
            name: "forward".into(),
            listen_port: self.next_port.fetch_add(1, Ordering::Relaxed) as u16,
            listen_ip: None,
            targets: vec!["service.example:80".into()],
            strategy: "fifo".into(),
            enabled: true,
            id: None,
            addresses: None,
            deployment: None,
        };
        let mut tx = self.db.write().await.unwrap();
        let new = NewForward { input: &input, entries, at: 0 };
        let id = tx.insert_forward(&new, UserId(1)).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    /// `host:port` of an exit's relay.
    pub(crate) async fn relay(&self, tunnel: TunnelId, exit: NodeId) -> String {
        let intent = self.db.intent().await.unwrap();
        let group = intent.tunnels[&tunnel].exit.clone().unwrap();
        let member = group.nodes.iter().find(|member| member.node == exit).unwrap();
        format!("192.0.2.{exit}:{}", member.port)
    }

    pub(crate) async fn log(&self, tunnel: TunnelId) -> Vec<DecisionLogEntry> {
        self.db.read().await.unwrap().decision_log(tunnel, &DecisionLogQuery::newest(1000)).await.unwrap()
    }
}

pub(crate) fn secret(name: &str) -> String {
    format!("secret-{name}")
}

/// A running panel.
pub(crate) struct Panel<'a> {
    pub(crate) world: &'a World,
    pub(crate) state: AppState,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl<'a> Panel<'a> {
    pub(crate) async fn start(world: &'a World) -> Self {
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        let config = Config::default();
        let state =
            server::start(config, world.db.clone(), world.clock.clone(), &tracker, &stop).await.unwrap();
        let router = agents::link_routes().with_state(state.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let ended = stop.clone().cancelled_owned();
        tracker.spawn(async move {
            axum::serve(listener, service).with_graceful_shutdown(ended).await.unwrap();
        });
        Self { world, state, address, stop, tracker }
    }

    /// Ends everything and waits for it: nothing of it may touch the database afterwards.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(PATIENCE, self.tracker.wait()).await.expect("the panel ends");
    }

    /// Stored intent was changed.
    pub(crate) fn wake(&self) {
        self.state.agents.wake();
        self.state.best_exit.wake();
    }

    /// Waits until `condition` holds, looking again whenever the panel or an agent did something.
    pub(crate) async fn until<F: Future<Output = bool>>(&self, what: &str, mut condition: impl FnMut() -> F) {
        let (mut events, mut activity) = (self.state.bus.subscribe(), self.world.activity.subscribe());
        let waiting = async {
            while !condition().await {
                tokio::select! {
                    _ = events.recv() => {}
                    _ = activity.changed() => {}
                }
            }
        };
        assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "never happened: {what}");
    }

    /// Lets `count` rounds begin and end.
    pub(crate) async fn rounds(&self, count: u64) {
        let before = self.state.metrics.rounds.get();
        // The one under way may have begun before.
        self.until("rounds", || async { self.state.metrics.rounds.get() > before + count }).await;
    }

    /// Waits until everything of a tunnel is applied.
    pub(crate) async fn applied(&self, tunnel: TunnelId) {
        self.state.agents.replanned().await;
        self.until("everything is applied", || async {
            let deployment = self.state.agents.deployment(tunnel);
            !deployment.is_empty() && deployment.iter().all(|node| node.status == DeploymentStatus::Applied)
        })
        .await;
    }

    pub(crate) async fn owner(&self, tunnel: TunnelId, owner: NodeId) -> OwnerDecision {
        // There is nothing to be asked about before the first plan.
        self.state.agents.replanned().await;
        let decisions = self.state.best_exit.decisions(tunnel).await.expect("a best tunnel");
        decisions.owners.into_iter().find(|found| found.owner_node_id == owner).expect("an owner")
    }

    /// Waits for a reason of an owner.
    pub(crate) async fn reason(&self, tunnel: TunnelId, owner: NodeId, code: &str) -> OwnerDecision {
        self.until(code, || async { self.owner(tunnel, owner).await.reason.code() == code }).await;
        self.owner(tunnel, owner).await
    }

    /// Moves the clock past the cooldown of the default settings.
    pub(crate) fn after_cooldown(&self) {
        self.world.hands.advance_ms(30_001);
    }
}

/// An entry, three exits, a tunnel and a forward; everybody connected and everything applied.
pub(crate) struct Example {
    pub(crate) entry: NodeId,
    pub(crate) exits: [NodeId; 3],
    pub(crate) tunnel: TunnelId,
    pub(crate) forward: ForwardId,
}

impl Example {
    pub(crate) async fn new(world: &World) -> Self {
        let entry = world.node("entry").await;
        let exits = [world.node("exit-a").await, world.node("exit-b").await, world.node("exit-c").await];
        let tunnel = world.tunnel("tunnel", &[entry], &exits).await;
        let forward = world.forward(tunnel, &[entry]).await;
        Self { entry, exits, tunnel, forward }
    }

    pub(crate) fn chain(&self) -> String {
        names::chain(self.tunnel)
    }
}

/// The agents of an [`Example`].
pub(crate) struct Crew {
    pub(crate) entry: Fake,
    pub(crate) exits: [Fake; 3],
}

impl Crew {
    pub(crate) fn new(world: &World) -> Self {
        let fake = |name: &str| Fake::new(world, name);
        Self { entry: fake("entry"), exits: [fake("exit-a"), fake("exit-b"), fake("exit-c")] }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Fake> {
        std::iter::once(&self.entry).chain(&self.exits)
    }

    pub(crate) async fn connect(&self, panel: &Panel<'_>) {
        for fake in self.all() {
            fake.connect(panel).await;
        }
    }
}
