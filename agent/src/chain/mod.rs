//! Ways to the next group: hops, each with its nodes.

pub mod asking;
pub mod blame;
pub mod connector;
pub mod dial;
pub mod failure;
pub mod fault;
pub mod filter;
pub mod group;
pub mod hash;
pub mod marks;
pub mod measured;
pub mod node;
pub mod policy;
pub mod probe;
pub(crate) mod race;
pub mod report;
mod search;
pub mod select;
mod sessions;
pub mod state;
mod walk;

use crate::metadata::{ConfigError, MetadataReader};
use crate::net::Interface;
use connector::Connector;
use group::groups::Steered;
use group::{Group, MemberConfig, OwnTerms};
use node::Node;
use probe::refuse_commands;
use probe::tasks::{Place, Probed};
use shared::gost::{ChainConfig, HopConfig};
use shared::link::{ChainNodeReport, ChainReport};
use state::NodeState;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A chain that can be dialled. Never changes; an update makes a new one.
pub struct Chain {
    /// As configured.
    pub config: ChainConfig,
    /// Passed through one after another. May be empty, and so may a hop: nobody gets through then.
    pub hops: Vec<Hop>,
    /// On which terms it takes part in groups of chains.
    pub terms: OwnTerms,
}

/// One stage of a chain.
pub struct Hop {
    /// In configured order; the same places as in `group`.
    pub nodes: Vec<Node>,
    /// Chooses among them.
    pub group: Group,
    /// Where the first hop is dialled from.
    pub interface: Option<Interface>,
}

impl Chain {
    /// Builds a chain. Nodes that the previous one of the same name had keep their marks and counters.
    pub fn build(config: &ChainConfig, previous: Option<&Chain>) -> Result<Self, ConfigError> {
        let path = format!("chain {}", config.name);
        if config.name.trim().is_empty() {
            return Err(ConfigError::new("chain: name", "is empty"));
        }
        let terms = OwnTerms::read(&format!("{path}: metadata"), &config.metadata)?;
        let hops = config
            .hops
            .iter()
            .enumerate()
            .map(|(i, hop)| {
                let group = group_name(config, i);
                let before = previous.and_then(|chain| chain.hops.get(i));
                let is_last = i + 1 == config.hops.len();
                Hop::build(&format!("{path}: hops[{i}]"), (group, is_last), hop, before)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut groups = BTreeSet::new();
        for (i, hop) in hops.iter().enumerate() {
            let name = hop.group.steered(|_| Place::Node(String::new()));
            if name.is_some_and(|steered| !groups.insert(steered.steering.name().to_owned())) {
                let reason = "is there twice; by their names choices are known";
                return Err(ConfigError::new(format!("{path}: hops[{i}].name"), reason));
            }
        }
        Ok(Self { config: config.clone(), hops, terms })
    }

    /// By what the group of a hop is known.
    pub(crate) fn group_name(&self, hop: usize) -> String {
        group_name(&self.config, hop)
    }

    /// The nodes that are to be probed.
    pub fn probed(&self) -> Vec<Probed> {
        let name = &self.config.name;
        let of_hop = |hop: &Hop| -> Vec<Probed> {
            let probed = |(i, node): (usize, &Node)| {
                Some(Probed {
                    state: hop.group.state(i).clone(),
                    probe: node.probe.clone()?,
                    rule: hop.group.rule(i),
                    name: format!("{name}: {} ({})", node.config.name, node.config.addr),
                    place: Place::Node(name.clone()),
                })
            };
            hop.nodes.iter().enumerate().filter_map(probed).collect()
        };
        self.hops.iter().flat_map(of_hop).collect()
    }

    /// The groups that are to be decided for.
    pub fn steered(&self) -> Vec<Steered> {
        let place = |_| Place::Node(self.config.name.clone());
        self.hops.iter().filter_map(|hop| hop.group.steered(place)).collect()
    }

    /// Refuses probes that run commands.
    pub fn refuse_commands(config: &ChainConfig) -> Result<(), ConfigError> {
        let probes = config.hops.iter().enumerate().flat_map(|(hop, h)| {
            let path = move |node| format!("chain {}: hops[{hop}].nodes[{node}].probe", config.name);
            h.members().iter().enumerate().map(move |(i, node)| (path(i), node.probe.as_ref()))
        });
        refuse_commands(probes)
    }

    /// Marks and counters of the last hop's nodes.
    pub fn report(&self, now_ms: u64) -> ChainReport {
        let nodes = self.hops.last().map_or_else(Vec::new, |hop| hop.report(now_ms));
        ChainReport { name: self.config.name.clone(), nodes }
    }
}

fn group_name(config: &ChainConfig, hop: usize) -> String {
    match config.hops.get(hop).map_or("", |hop| hop.name.as_str()) {
        "" => format!("chain/{}/{hop}", config.name),
        name => format!("chain/{}/{name}", config.name),
    }
}

impl Hop {
    /// By `name` its group is known to people.
    fn build(
        path: &str,
        (name, is_last): (String, bool),
        config: &HopConfig,
        previous: Option<&Hop>,
    ) -> Result<Self, ConfigError> {
        let metadata = MetadataReader::new(format!("{path}.metadata"), &config.metadata, &["interface"])?;
        let interface = match (
            config.interface.as_deref().filter(|name| !name.is_empty()),
            metadata.text("interface")?,
        ) {
            (Some(name), _) => Some((name, format!("{path}.interface"))),
            (None, Some(name)) => Some((name, format!("{path}.metadata.interface"))),
            (None, None) => None,
        };
        let interface = interface
            .map(|(name, path)| Interface::parse(name).map_err(|reason| ConfigError::new(path, reason)))
            .transpose()?;

        let mut names = BTreeSet::new();
        let Some(configs) = &config.nodes else {
            return Err(ConfigError::new(format!("{path}.nodes"), "is missing"));
        };
        let mut nodes = Vec::with_capacity(configs.len());
        for (i, node) in configs.iter().enumerate() {
            let path = format!("{path}.nodes[{i}]");
            if !names.insert(&node.name) {
                return Err(ConfigError::new(path + ".name", format!("{} is there twice", node.name)));
            }
            let mut node = Node::build(&path, node)?;
            if let Some(old) = previous.and_then(|hop| hop.nodes.iter().find(|old| old.is_same_as(&node))) {
                node.transport.share_sessions(&old.transport);
            }
            nodes.push(node);
        }
        let states = inherited_states(&nodes, previous);
        let members = nodes.iter().zip(states).enumerate().map(|(i, (node, state))| MemberConfig {
            path: format!("{path}.nodes[{i}]"),
            name: &node.config.name,
            addr: &node.config.addr,
            udp: !is_last || matches!(node.connector, Connector::Relay { .. }),
            metadata: &node.config.metadata,
            state,
        });
        let previous = previous.map(|hop| &hop.group);
        let group = Group::build(path, name, config.selector.as_ref(), members, previous)?;
        Ok(Self { nodes, group, interface })
    }

    fn report(&self, now_ms: u64) -> Vec<ChainNodeReport> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(i, node)| {
                let state = self.group.state(i);
                let counters = state.counters();
                ChainNodeReport {
                    name: node.config.name.clone(),
                    addr: node.config.addr.clone(),
                    connections: counters.connections,
                    open: counters.open,
                    failures: counters.failures,
                    marked: self.group.is_marked(i, now_ms),
                    probe: state.measured.last().map(|probe| probe.report(now_ms)),
                }
            })
            .collect()
    }
}

/// The states of the nodes of a new hop: those of the same nodes in the previous one, each given once, else new ones.
fn inherited_states(nodes: &[Node], previous: Option<&Hop>) -> Vec<Arc<NodeState>> {
    let mut left: Vec<(&Node, &Arc<NodeState>)> = previous.map_or_else(Vec::new, |hop| {
        hop.nodes.iter().enumerate().map(|(i, node)| (node, hop.group.state(i))).collect()
    });
    nodes
        .iter()
        .map(|node| match left.iter().position(|(old, _)| old.is_same_as(node)) {
            Some(at) => left.remove(at).1.clone(),
            None => Arc::default(),
        })
        .collect()
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
