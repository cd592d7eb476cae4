//! Intent → plans.

use super::dial;
use super::intent::{ForwardIntent, GroupIntent, Intent, MemberIntent, NodeIntent, TunnelIntent};
use super::reuse::Before;
use super::selection;
use super::{NodePlan, Planned, Plans, Subject, names};
use shared::address::HostPort;
use shared::api::TunnelType;
use shared::best_exit::Applied;
use shared::gost::{
    ChainConfig, ChainNodeConfig, ConnectorConfig, DialerConfig, ForwardNodeConfig, ForwarderConfig,
    HandlerConfig, HopConfig, ListenerConfig, Metadata, ServiceConfig,
};
use shared::ids::{ForwardId, NodeId, TunnelId};
use shared::strategy::Strategy;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Fail filter of a forward's targets: three failures in a row, out for half a minute. The same as a group's default;
/// one hiccup must not take a target out.
const TARGET_MAX_FAILS: u32 = 3;
/// See [`TARGET_MAX_FAILS`].
const TARGET_FAIL_TIMEOUT: Duration = Duration::from_secs(30);

/// The complete desired configuration of every node.
pub fn render(intent: Arc<Intent>) -> Plans {
    render_again(intent, None)
}

/// The same as [`render`], which takes the objects of the plans before where what they are made from is the same.
pub fn render_again(intent: Arc<Intent>, before: Option<&Plans>) -> Plans {
    let mut nodes: BTreeMap<NodeId, NodePlan> =
        intent.nodes.keys().map(|id| (*id, NodePlan::default())).collect();
    let before = before.map(|before| Before::new(before, &intent));
    for (id, tunnel) in &intent.tunnels {
        if tunnel.enabled && tunnel.kind == TunnelType::Tunnel {
            match before.as_ref().filter(|before| before.has_tunnel(&intent, *id, tunnel)) {
                Some(before) => before.give_tunnel(*id, tunnel, &mut nodes),
                None => render_tunnel(&intent, *id, tunnel, &mut nodes),
            }
        }
    }
    for (id, forward) in &intent.forwards {
        // A paused forward keeps its port in the database; on the nodes it does not exist.
        if let Some(tunnel) = intent.tunnels.get(&forward.tunnel)
            && tunnel.enabled
            && forward.enabled
        {
            match before.as_ref().filter(|before| before.has_forward(&intent, *id, forward, tunnel)) {
                Some(before) => before.give_forward(*id, forward, tunnel, &mut nodes),
                None => render_forward(&intent, *id, forward, tunnel, &mut nodes),
            }
        }
    }
    Plans { intent, nodes }
}

/// The chain of an owner with another exit order than the applied one, completed as every order is. `None`: the node
/// holds no chain of this tunnel, or none of the next nodes can be dialled.
pub fn owner_chain(
    intent: &Intent,
    tunnel: TunnelId,
    owner: NodeId,
    order: &[NodeId],
) -> Option<Planned<ChainConfig>> {
    let stored = intent.tunnels.get(&tunnel).filter(|t| t.enabled && t.kind == TunnelType::Tunnel)?;
    let group = next_group(stored, owner)?;
    let chain = render_chain(intent, tunnel, stored, owner, group, order).chain?;
    Some(Planned::new(Subject::Tunnel(tunnel), chain))
}

fn render_tunnel(
    intent: &Intent,
    id: TunnelId,
    tunnel: &TunnelIntent,
    nodes: &mut BTreeMap<NodeId, NodePlan>,
) {
    let subject = Subject::Tunnel(id);
    let middle = tunnel.hops.iter().flat_map(|hop| hop.nodes.iter().map(move |m| (hop, m)));
    let exits = tunnel.exit.iter().flat_map(|exit| exit.nodes.iter().map(move |m| (exit, m)));

    let dialling = tunnel.entry.iter().copied().chain(middle.clone().map(|(_, m)| m.node));
    for node in dialling {
        let Some(plan) = nodes.get_mut(&node) else { continue };
        let Some(group) = next_group(tunnel, node) else {
            plan.problems.insert(subject, "the tunnel has no exit".to_owned());
            continue;
        };
        let applied = intent.applied.get(&(id, node)).map_or(&[][..], Vec::as_slice);
        let rendered = render_chain(intent, id, tunnel, node, group, applied);
        if let Some(chain) = rendered.chain {
            plan.chains.insert(chain.name.clone(), Planned::new(subject, chain));
        }
        if !rendered.problems.is_empty() {
            plan.problems.insert(subject, rendered.problems.join("; "));
        }
    }

    for (group, member) in middle {
        let Some((plan, node)) = nodes.get_mut(&member.node).zip(intent.nodes.get(&member.node)) else {
            continue;
        };
        // A relay that names a chain which is not there would be a relay to anywhere at some agents.
        let chain = names::chain(id);
        if plan.chains.contains_key(&chain) {
            let service = relay_service(id, tunnel, group, member, node, Some(chain));
            plan.services.insert(service.name.clone(), Planned::new(subject, service));
        }
    }
    for (group, member) in exits {
        let Some((plan, node)) = nodes.get_mut(&member.node).zip(intent.nodes.get(&member.node)) else {
            continue;
        };
        let service = relay_service(id, tunnel, group, member, node, None);
        plan.services.insert(service.name.clone(), Planned::new(subject, service));
    }
}

/// The group that a node of the entry or of a middle hop dials.
pub fn next_group(tunnel: &TunnelIntent, node: NodeId) -> Option<&GroupIntent> {
    let mut following = tunnel.hops.iter().chain(&tunnel.exit);
    if tunnel.entry.contains(&node) {
        return following.next();
    }
    following.find(|group| group.nodes.iter().any(|member| member.node == node))?;
    following.next()
}

struct RenderedChain {
    chain: Option<ChainConfig>,
    problems: Vec<String>,
}

/// `order` is the applied order; it decides for `best` groups only.
fn render_chain(
    intent: &Intent,
    id: TunnelId,
    tunnel: &TunnelIntent,
    owner: NodeId,
    group: &GroupIntent,
    order: &[NodeId],
) -> RenderedChain {
    let mut problems = Vec::new();
    let Some(from) = intent.nodes.get(&owner) else {
        return RenderedChain { chain: None, problems };
    };
    let saved: Vec<NodeId> = group.nodes.iter().map(|member| member.node).collect();
    let ordered = match group.strategy {
        Strategy::Best => Applied { order: order.to_vec(), last_switch: None }.complete(&saved),
        _ => saved,
    };
    let mut nodes = Vec::with_capacity(ordered.len());
    for node in ordered {
        let found = group.nodes.iter().enumerate().find(|(_, member)| member.node == node);
        let (Some((position, member)), Some(to)) = (found, intent.nodes.get(&node)) else { continue };
        match dial::address(from, to, member, tunnel.ip_preference) {
            Ok(address) => nodes.push(chain_node(tunnel, group, position, &address)),
            Err(error) => problems.push(error.to_string()),
        }
    }
    if nodes.is_empty() {
        if problems.is_empty() {
            problems.push("the next group has no node".to_owned());
        }
        return RenderedChain { chain: None, problems };
    }
    let filter = (group.max_fails, Duration::from_millis(group.fail_timeout_ms));
    let known: Vec<&str> = group
        .nodes
        .iter()
        .map(|member| intent.nodes.get(&member.node).map_or("", |node| node.name.as_str()))
        .collect();
    let (selector, problem) = selection::selector(&group.strategy, filter, &known);
    problems.extend(problem);
    let hop = HopConfig {
        name: names::hop(id),
        selector: Some(selector),
        nodes: Some(nodes),
        interface: interface(from),
        metadata: Metadata::new(),
    };
    let chain = ChainConfig { name: names::chain(id), hops: vec![hop], metadata: Metadata::new() };
    RenderedChain { chain: Some(chain), problems }
}

fn chain_node(
    tunnel: &TunnelIntent,
    group: &GroupIntent,
    position: usize,
    address: &HostPort,
) -> ChainNodeConfig {
    ChainNodeConfig {
        name: names::member(position),
        addr: address.to_string(),
        connector: ConnectorConfig {
            kind: "relay".to_owned(),
            auth: Some(tunnel.relay_auth.clone()),
            metadata: nodelay(),
        },
        dialer: DialerConfig { kind: group.protocol.to_string(), tls: None, metadata: Metadata::new() },
        probe: selection::probe(&group.strategy, &address.to_string()),
        metadata: Metadata::new(),
    }
}

fn relay_service(
    id: TunnelId,
    tunnel: &TunnelIntent,
    group: &GroupIntent,
    member: &MemberIntent,
    node: &NodeIntent,
    chain: Option<String>,
) -> ServiceConfig {
    // An exit dials the target itself; the other nodes dial through their chain, whose hop names the interface.
    let interface = if chain.is_none() { interface(node) } else { None };
    ServiceConfig {
        name: names::relay(id),
        addr: listen_address(&node.tcp_listen_addr, member.port),
        handler: HandlerConfig {
            kind: "relay".to_owned(),
            chain,
            chain_group: None,
            retries: 0,
            auth: Some(tunnel.relay_auth.clone()),
            metadata: nodelay(),
        },
        listener: ListenerConfig { kind: group.protocol.to_string(), tls: None, metadata: Metadata::new() },
        forwarder: None,
        limiter: None,
        climiter: None,
        rlimiter: None,
        observer: None,
        metadata: interface_metadata(interface),
    }
}

fn render_forward(
    intent: &Intent,
    id: ForwardId,
    forward: &ForwardIntent,
    tunnel: &TunnelIntent,
    nodes: &mut BTreeMap<NodeId, NodePlan>,
) {
    let subject = Subject::Forward(id);
    for entry in &tunnel.entry {
        let Some((plan, node)) = nodes.get_mut(entry).zip(intent.nodes.get(entry)) else { continue };
        let chain = match tunnel.kind {
            TunnelType::Port => None,
            TunnelType::Tunnel => {
                let chain = names::chain(forward.tunnel);
                if !plan.chains.contains_key(&chain) {
                    let why = plan.problems.get(&Subject::Tunnel(forward.tunnel));
                    let why = why.cloned().unwrap_or_else(|| "the tunnel has no chain here".to_owned());
                    plan.problems.insert(subject, why);
                    continue;
                }
                Some(chain)
            }
        };
        let interface = if chain.is_none() { interface(node) } else { None };
        let tcp = ("tcp", names::forward_tcp(id, forward.user), &node.tcp_listen_addr, Metadata::new());
        let udp = ("udp", names::forward_udp(id, forward.user), &node.udp_listen_addr, datagrams());
        for (kind, name, own_address, metadata) in [tcp, udp] {
            let listen_ip = forward.listen_ip.as_deref().filter(|ip| !ip.is_empty());
            let (forwarder, problem) = forwarder(forward);
            if let Some(problem) = problem {
                plan.problems.insert(subject, problem);
            }
            let service = ServiceConfig {
                name,
                addr: listen_address(listen_ip.unwrap_or(own_address), forward.listen_port),
                handler: HandlerConfig {
                    kind: kind.to_owned(),
                    chain: chain.clone(),
                    chain_group: None,
                    retries: 0,
                    auth: None,
                    metadata: Metadata::new(),
                },
                listener: ListenerConfig { kind: kind.to_owned(), tls: None, metadata },
                forwarder: Some(forwarder),
                limiter: None,
                climiter: None,
                rlimiter: None,
                observer: None,
                metadata: interface_metadata(interface.clone()),
            };
            plan.services.insert(service.name.clone(), Planned::new(subject, service));
        }
    }
}

/// Its targets, and what is wrong about the choice among them.
fn forwarder(forward: &ForwardIntent) -> (ForwarderConfig, Option<String>) {
    let targets = forward.targets.iter().enumerate().map(|(position, addr)| ForwardNodeConfig {
        name: names::member(position),
        addr: addr.clone(),
        probe: selection::probe(&forward.strategy, addr),
        metadata: Metadata::new(),
    });
    let known: Vec<&str> = forward.targets.iter().map(String::as_str).collect();
    let filter = (TARGET_MAX_FAILS, TARGET_FAIL_TIMEOUT);
    let (selector, problem) = selection::selector(&forward.strategy, filter, &known);
    (ForwarderConfig { nodes: targets.collect(), selector: Some(selector) }, problem)
}

/// A client's datagrams stay with one target, and thirty seconds of silence end that: what peers' panels send.
fn datagrams() -> Metadata {
    Metadata::from([("keepAlive".to_owned(), true.into()), ("ttl".to_owned(), "30s".into())])
}

/// Without it the connector reports success before the relay has reached the target, and failures come too late to
/// try another node.
fn nodelay() -> Metadata {
    Metadata::from([("nodelay".to_owned(), serde_json::Value::Bool(true))])
}

fn interface(node: &NodeIntent) -> Option<String> {
    (!node.interface_name.is_empty()).then(|| node.interface_name.clone())
}

fn interface_metadata(interface: Option<String>) -> Metadata {
    interface.into_iter().map(|name| ("interface".to_owned(), serde_json::Value::String(name))).collect()
}

fn listen_address(host: &str, port: u16) -> String {
    let host = dial::unbracketed(host);
    // Nothing configured means every address of both families.
    HostPort::new(if host.is_empty() { "::" } else { host }, port).to_string()
}
