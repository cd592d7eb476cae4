//! Entry, exits and targets, configured as a panel would.

use crate::panel::{Obeying, free_address};
use crate::target::{ExitName, Target};
use serde_json::{Value, json};
use shared::gost::{ChainConfig, ServiceConfig};
use shared::link::Command;
use std::net::SocketAddr;

/// Everything that runs.
pub(crate) struct Scene {
    transport: &'static str,
    entry: Obeying,
    exits: [Exit; 2],
    direct: Target,
    listen: SocketAddr,
}

struct Exit {
    name: ExitName,
    agent: Obeying,
    relay: SocketAddr,
    _target: Target,
}

impl Exit {
    async fn start(name: ExitName, transport: &str) -> Self {
        let target = Target::start(Some(name)).await;
        let agent = Obeying::start(&format!("exit {name:?}")).await;
        let relay = free_address().await;
        let service = service(json!({
            "name": "tunnel_1", "addr": relay.to_string(),
            "handler": { "type": "relay", "auth": credentials() },
            "listener": { "type": transport },
            "forwarder": { "nodes": [{ "name": "target", "addr": target.address.to_string() }] },
        }));
        agent.obey(Command::AddService(vec![service])).await;
        Self { name, agent, relay, _target: target }
    }
}

impl Scene {
    /// Starts all of it; exit A comes first in the chain.
    pub(crate) async fn set(transport: &'static str) -> Self {
        let exits = [Exit::start(ExitName::A, transport).await, Exit::start(ExitName::B, transport).await];
        let direct = Target::start(None).await;
        let entry = Obeying::start("entry").await;
        let scene = Self { transport, entry, exits, direct, listen: free_address().await };
        scene.apply(ExitName::A).await;
        let forward = service(json!({
            "name": "1_1_0_tcp", "addr": scene.listen.to_string(),
            "handler": { "type": "tcp", "chain": "chains_1" },
            "listener": { "type": "tcp" },
            "forwarder": { "nodes": [{ "name": "target", "addr": scene.direct.address.to_string() }] },
        }));
        scene.entry.obey(Command::AddService(vec![forward])).await;
        scene
    }

    /// Where clients connect.
    pub(crate) fn entry(&self) -> SocketAddr {
        self.listen
    }

    /// Puts one exit first and waits until the entry has accepted that.
    pub(crate) async fn apply(&self, first: ExitName) {
        let mut exits: Vec<&Exit> = self.exits.iter().collect();
        exits.sort_by_key(|exit| exit.name != first);
        let nodes: Vec<Value> = exits.into_iter().map(|exit| self.node(exit)).collect();
        let chain: ChainConfig = serde_json::from_value(json!({
            "name": "chains_1",
            "hops": [{ "name": "hop_1", "selector": { "strategy": "fifo" }, "nodes": nodes }],
        }))
        .unwrap();
        self.entry.obey(Command::UpdateChains(chain)).await;
    }

    fn node(&self, exit: &Exit) -> Value {
        json!({
            "name": format!("node_{:?}", exit.name), "addr": exit.relay.to_string(),
            "connector": { "type": "relay", "auth": credentials() },
            "dialer": { "type": self.transport },
        })
    }

    /// How many connections left the entry without an exit.
    pub(crate) fn direct(&self) -> u64 {
        self.direct.accepted()
    }

    /// Waits until the entry's own account is the one expected: `connections` through its chain, none failed, refused
    /// or open. And nobody lost the panel meanwhile.
    pub(crate) async fn agrees(&mut self, connections: u64) {
        let what = "an account of all connections";
        let report = self.entry.report(what, |report| {
            let nodes = report.chains.iter().flat_map(|chain| &chain.nodes);
            let (made, open) =
                nodes.fold((0, 0), |(made, open), node| (made + node.connections, open + node.open));
            made == connections && open == 0
        });
        let report = report.await;
        let nodes = report.chains.iter().flat_map(|chain| &chain.nodes);
        assert_eq!(nodes.map(|node| node.failures).sum::<u64>(), 0, "{report:?}");
        assert_eq!(report.refused, 0, "{report:?}");
        assert!(self.entry.is_linked() && self.exits.iter().all(|exit| exit.agent.is_linked()));
    }
}

/// The exits relay for nobody else.
fn credentials() -> Value {
    json!({ "username": "tunnel_1", "password": "only for this tunnel" })
}

fn service(config: Value) -> ServiceConfig {
    serde_json::from_value(config).unwrap()
}
