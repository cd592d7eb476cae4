//! Everything a plan is made from: stored intent and the orders that owners have accepted. Plain data.

use shared::api::{ChoiceRecord, IpPreference, TunnelType};
use shared::gost::Auth;
use shared::ids::{ForwardId, NodeId, TunnelId, UserId};
use shared::strategy::{Protocol, Strategy};
use std::collections::BTreeMap;

/// The whole intent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intent {
    /// All nodes.
    pub nodes: BTreeMap<NodeId, NodeIntent>,
    /// All tunnels.
    pub tunnels: BTreeMap<TunnelId, TunnelIntent>,
    /// All forwards.
    pub forwards: BTreeMap<ForwardId, ForwardIntent>,
    /// Orders last accepted, per tunnel and owner.
    pub applied: BTreeMap<(TunnelId, NodeId), Vec<NodeId>>,
    /// What persons have chosen, per tunnel and owner. No part of any configuration: agents keep it.
    pub choices: BTreeMap<(TunnelId, NodeId), ChoiceRecord>,
}

/// What planning needs of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeIntent {
    /// For messages.
    pub name: String,
    /// Address or host name; stands for both families when it is a name.
    pub server_ip: String,
    /// IPv4 address or empty.
    pub server_ip_v4: String,
    /// IPv6 address or empty.
    pub server_ip_v6: String,
    /// Interface to dial from, or empty.
    pub interface_name: String,
    /// Address TCP services listen on.
    pub tcp_listen_addr: String,
    /// Address UDP services listen on.
    pub udp_listen_addr: String,
    /// Text of the ports it may use.
    pub port_range: String,
    /// What its agent said it can do; empty = unknown.
    pub capabilities: Vec<String>,
}

/// A tunnel with all choices made: every group member has its port.
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelIntent {
    /// For messages.
    pub name: String,
    /// What it does at its entry.
    pub kind: TunnelType,
    /// A disabled tunnel has no runtime.
    pub enabled: bool,
    /// Address family between groups.
    pub ip_preference: IpPreference,
    /// Entry nodes in order.
    pub entry: Vec<NodeId>,
    /// Middle hops in order.
    pub hops: Vec<GroupIntent>,
    /// Exits; `None` for a port tunnel.
    pub exit: Option<GroupIntent>,
    /// Generated with the tunnel; its relay listeners demand it.
    pub relay_auth: Auth,
}

/// A hop or the exit group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupIntent {
    /// As stored, `best` included.
    pub strategy: Strategy,
    /// Transport from the previous group.
    pub protocol: Protocol,
    /// Fail filter.
    pub max_fails: u32,
    /// Fail filter, in milliseconds.
    pub fail_timeout_ms: u64,
    /// In saved order.
    pub nodes: Vec<MemberIntent>,
}

/// A node of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberIntent {
    /// The node.
    pub node: NodeId,
    /// Its relay port.
    pub port: u16,
    /// Address at which it is dialled, where it differs from the node's.
    pub connect_ip: Option<String>,
}

/// A forward.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardIntent {
    /// For messages.
    pub name: String,
    /// Its tunnel.
    pub tunnel: TunnelId,
    /// Who made it; part of the service's name.
    pub user: UserId,
    /// On every entry node.
    pub listen_port: u16,
    /// Address to listen on, where it differs from the node's.
    pub listen_ip: Option<String>,
    /// `host:port`, in order.
    pub targets: Vec<String>,
    /// How a target is chosen.
    pub strategy: Strategy,
    /// A paused forward refuses connections.
    pub enabled: bool,
}

impl TunnelIntent {
    /// The nodes that hold the chain whose hop lists the exits: those of the last middle hop, else the entry nodes.
    pub fn owners(&self) -> Vec<NodeId> {
        match self.hops.last() {
            Some(hop) => hop.nodes.iter().map(|member| member.node).collect(),
            None => self.entry.clone(),
        }
    }
}
