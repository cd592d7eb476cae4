//! What makes a tunnel or a forward valid. The same code in the browser before sending and in the panel before storing.

use crate::address::{HostPort, PortRange};
use crate::api::{ForwardInput, Group, TunnelInput, TunnelType};
use crate::field::FieldError;
use crate::ids::NodeId;
use crate::strategy::{Place, Protocol, Strategy};
use std::collections::{BTreeMap, BTreeSet};
pub use strategies::{cannot_carry_out, not_allowed};

mod strategies;

/// What validation needs to know about a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownNode {
    /// Its name, for messages.
    pub name: String,
    /// Text of its port range.
    pub port_range: String,
    /// What its agent can do; empty = unknown, nothing is refused on that ground.
    pub capabilities: Vec<String>,
    /// Its agent has been connected. One that has been, and told nothing of what it can do, is that of another panel.
    pub seen: bool,
    /// Ports used by others than the object being validated, with what uses them. The browser does not know them and
    /// leaves this empty; the panel says `port_taken` then.
    pub taken_ports: BTreeMap<u16, String>,
}

/// What validation needs to know about the rest of the world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// All nodes.
    pub nodes: BTreeMap<NodeId, KnownNode>,
    /// Names of the other tunnels.
    pub tunnel_names: BTreeSet<String>,
}

/// The result of a validation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Prevent storing.
    pub errors: Vec<FieldError>,
    /// Are told, and stored all the same.
    pub warnings: Vec<FieldError>,
}

impl Findings {
    fn error(&mut self, error: FieldError) {
        self.errors.push(error);
    }
}

/// Largest number of nodes in one group: a configuration of this size is a mistake or an attack.
pub const MAX_GROUP_NODES: usize = 64;
/// Largest number of middle hops.
pub const MAX_HOPS: usize = 8;
/// Largest number of targets of a forward.
pub const MAX_TARGETS: usize = 64;

/// Checks a tunnel.
pub fn validate_tunnel(input: &TunnelInput, world: &World) -> Findings {
    let mut findings = Findings::default();
    let name = input.name.trim();
    let chars = name.chars().count();
    if !(2..=50).contains(&chars) {
        let error = FieldError::new("name", "name_length", "give a name of 2 to 50 characters");
        findings.error(error.with("min", 2).with("max", 50));
    } else if world.tunnel_names.contains(name) {
        findings.error(
            FieldError::new("name", "name_taken", format!("another tunnel is called `{name}`"))
                .with("name", name),
        );
    }

    let mut seen = BTreeSet::new();
    if input.entry.nodes.is_empty() {
        findings.error(FieldError::new("entry.nodes", "entry_missing", "choose at least one entry node"));
    }
    too_many(&mut findings, "entry.nodes", input.entry.nodes.len(), MAX_GROUP_NODES);
    for (i, node) in input.entry.nodes.iter().enumerate() {
        check_node(&mut findings, &format!("entry.nodes[{i}].nodeId"), node.node_id, world, &mut seen);
    }

    match input.kind {
        TunnelType::Port => {
            if !input.hops.is_empty() {
                let message = "a port tunnel has no hops; remove them or choose the type tunnel";
                findings.error(FieldError::new("hops", "not_for_port_tunnel", message));
            }
            if input.exit.as_ref().is_some_and(|exit| !exit.nodes.is_empty()) {
                let message = "a port tunnel has no exits; remove them or choose the type tunnel";
                findings.error(FieldError::new("exit", "not_for_port_tunnel", message));
            }
        }
        TunnelType::Tunnel => {
            too_many(&mut findings, "hops", input.hops.len(), MAX_HOPS);
            let mut holders: Vec<NodeId> = input.entry.nodes.iter().map(|node| node.node_id).collect();
            for (i, hop) in input.hops.iter().enumerate() {
                let path = format!("hops[{i}]");
                check_group(&mut findings, &path, hop, Place::Hop, world, &mut seen);
                strategies::check_group(&mut findings, &path, hop, Place::Hop, world, &holders);
                holders = hop.nodes.iter().map(|member| member.node_id).collect();
            }
            match &input.exit {
                Some(exit) => {
                    check_group(&mut findings, "exit", exit, Place::Exit, world, &mut seen);
                    strategies::check_group(&mut findings, "exit", exit, Place::Exit, world, &holders);
                }
                None => findings.error(exit_missing()),
            }
        }
    }
    findings
}

fn exit_missing() -> FieldError {
    FieldError::new("exit.nodes", "exit_missing", "choose at least one exit node")
}

fn too_many(findings: &mut Findings, field: &str, count: usize, max: usize) {
    if count > max {
        findings.error(
            FieldError::new(field, "too_many", format!("at most {max} are possible here")).with("max", max),
        );
    }
}

fn check_node(
    findings: &mut Findings,
    field: &str,
    id: NodeId,
    world: &World,
    seen: &mut BTreeSet<NodeId>,
) -> bool {
    let Some(node) = world.nodes.get(&id) else {
        let message = format!("there is no node {id}");
        findings.error(FieldError::new(field, "node_unknown", message).with("node", id));
        return false;
    };
    if !seen.insert(id) {
        let message = format!("{} is already in this tunnel", node.name);
        findings.error(FieldError::new(field, "node_twice", message).with("node", &node.name));
        return false;
    }
    true
}

fn check_group(
    findings: &mut Findings,
    path: &str,
    group: &Group,
    place: Place,
    world: &World,
    seen: &mut BTreeSet<NodeId>,
) {
    if group.nodes.is_empty() {
        findings.error(match place {
            Place::Exit => exit_missing(),
            Place::Hop | Place::Targets => {
                FieldError::new(format!("{path}.nodes"), "hop_empty", "choose a node or remove this hop")
            }
        });
    }
    too_many(findings, &format!("{path}.nodes"), group.nodes.len(), MAX_GROUP_NODES);
    if group.strategy == Strategy::Best && group.nodes.len() == 1 {
        let message = "with one exit there is nothing to choose; add a second one";
        findings.warnings.push(FieldError::new(format!("{path}.strategy"), "best_needs_two_exits", message));
    }
    if let Protocol::Other(text) = &group.protocol {
        let message = format!("the protocol `{text}` is not known");
        let error = FieldError::new(format!("{path}.protocol"), "protocol_unknown", message);
        findings.error(error.with("protocol", text));
    }
    if !(1..=100).contains(&group.max_fails) {
        let message = "must be between 1 and 100";
        let error = FieldError::new(format!("{path}.maxFails"), "out_of_range", message);
        findings.error(error.with("min", 1).with("max", 100));
    }
    if !(1..=3_600_000).contains(&group.fail_timeout_ms) {
        let message = "must be between 1 and 3600000 ms";
        let error = FieldError::new(format!("{path}.failTimeoutMs"), "out_of_range", message);
        findings.error(error.with("min", 1).with("max", 3_600_000));
    }
    for (i, member) in group.nodes.iter().enumerate() {
        let path_of = |field: &str| format!("{path}.nodes[{i}].{field}");
        let known = check_node(findings, &path_of("nodeId"), member.node_id, world, seen);
        if let Some(address) = &member.connect_ip
            && !address.is_empty()
        {
            if group.nodes.len() > 1 {
                let message = "a connect address is possible only with one node in the group";
                findings.error(FieldError::new(path_of("connectIp"), "connect_ip_needs_one_node", message));
            } else if address.parse::<std::net::IpAddr>().is_err() {
                let message = "write an IP address or leave it empty";
                findings.error(FieldError::new(path_of("connectIp"), "ip_invalid", message));
            }
        }
        let Some(node) = world.nodes.get(&member.node_id).filter(|_| known) else { continue };
        if let Some(port) = member.port {
            check_port(findings, &path_of("port"), port, node);
        }
        check_capability(findings, &format!("{path}.protocol"), node, &group.protocol.capability());
    }
}

fn check_port(findings: &mut Findings, field: &str, port: u16, node: &KnownNode) {
    let inside = PortRange::parse(&node.port_range).is_ok_and(|range| range.contains(port));
    if !inside {
        let message = format!("{} may use the ports {}", node.name, node.port_range);
        findings.error(
            FieldError::new(field, "port_outside_range", message)
                .with("node", &node.name)
                .with("range", &node.port_range),
        );
    } else if let Some(user) = node.taken_ports.get(&port) {
        let message = format!("port {port} of {} is used by {user}", node.name);
        findings.error(
            FieldError::new(field, "port_taken", message)
                .with("node", &node.name)
                .with("port", port)
                .with("user", user),
        );
    }
}

/// Refuses what a node's agent has said it cannot do. Agents that say nothing are given the benefit of the doubt.
fn check_capability(findings: &mut Findings, field: &str, node: &KnownNode, capability: &str) {
    if !node.capabilities.is_empty() && !node.capabilities.iter().any(|c| c == capability) {
        let message = format!("the agent of {} cannot do this ({capability})", node.name);
        findings.error(
            FieldError::new(field, "capability_missing", message)
                .with("node", &node.name)
                .with("capability", capability),
        );
    }
}

/// Checks a forward. `entries` are the entry nodes of its tunnel; `None` = there is no such tunnel.
pub fn validate_forward(input: &ForwardInput, entries: Option<&[KnownNode]>) -> Findings {
    let mut findings = Findings::default();
    if !(1..=50).contains(&input.name.trim().chars().count()) {
        let error = FieldError::new("name", "name_length", "give a name of 1 to 50 characters");
        findings.error(error.with("min", 1).with("max", 50));
    }
    match entries {
        None => {
            let message = format!("there is no tunnel {}", input.tunnel_id);
            findings.error(
                FieldError::new("tunnelId", "tunnel_unknown", message).with("tunnel", input.tunnel_id),
            );
        }
        Some(nodes) if input.listen_port != 0 => {
            for node in nodes {
                check_port(&mut findings, "listenPort", input.listen_port, node);
            }
        }
        Some(_) => {}
    }
    if let Some(ip) = &input.listen_ip
        && !ip.is_empty()
        && ip.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_err()
    {
        let message = "write the IP address to listen on or leave it empty";
        findings.error(FieldError::new("listenIp", "ip_invalid", message));
    }
    if input.targets.is_empty() {
        findings.error(FieldError::new("targets", "target_missing", "give at least one target, host:port"));
    }
    too_many(&mut findings, "targets", input.targets.len(), MAX_TARGETS);
    for (i, target) in input.targets.iter().enumerate() {
        if let Err(error) = HostPort::parse(target) {
            findings.error(FieldError::new(format!("targets[{i}]"), error.code(), error.to_string()));
        }
    }
    let targets: Vec<&str> = input.targets.iter().map(String::as_str).collect();
    let holders: Vec<&KnownNode> = entries.into_iter().flatten().collect();
    strategies::check(&mut findings, "strategy", &input.strategy, Place::Targets, &targets, &holders);
    findings
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
