//! What must be true of every finished plan, whatever it was made from.

use super::{NodePlan, Plans, names};
use shared::address::HostPort;
use shared::best_exit::Applied;
use shared::gost::ChainConfig;
use shared::ids::{NodeId, TunnelId};
use shared::strategy::Strategy;
use std::collections::BTreeSet;

/// Everything that is wrong with the plans; `[]` is what tests want to see.
pub(crate) fn lint(plans: &Plans) -> Vec<String> {
    let mut findings = Vec::new();
    for (node, plan) in &plans.nodes {
        for finding in lint_node(plans, *node, plan) {
            findings.push(format!("node {node}: {finding}"));
        }
    }
    findings
}

fn lint_node(plans: &Plans, node: NodeId, plan: &NodePlan) -> Vec<String> {
    let mut findings = Vec::new();
    let mut addresses = BTreeSet::new();
    for (name, planned) in &plan.services {
        let service = &planned.config;
        if *name != service.name || !names::is_our_service(name) {
            findings.push(format!("service {name} is called {}", service.name));
        }
        if planned.digest != shared::link::digest(service) {
            findings.push(format!("service {name} has a wrong digest"));
        }
        if !addresses.insert((service.listener.kind == "udp", service.addr.clone())) {
            findings.push(format!("service {name} listens where another one does"));
        }
        if HostPort::parse(&service.addr).is_err() {
            findings.push(format!("service {name} listens on {}", service.addr));
        }
        if let Some(chain) = &service.handler.chain
            && !plan.chains.contains_key(chain)
        {
            findings.push(format!("service {name} names {chain}, which is not there"));
        }
        if service.handler.kind == "relay" && service.handler.auth.is_none() {
            findings.push(format!("service {name} is an open relay"));
        }
    }
    for (name, planned) in &plan.chains {
        let chain = &planned.config;
        if planned.digest != shared::link::digest(chain) {
            findings.push(format!("chain {name} has a wrong digest"));
        }
        match names::tunnel_of_chain(name) {
            Some(tunnel) if *name == chain.name => {
                findings.extend(
                    lint_chain(plans, node, tunnel, chain).into_iter().map(|f| format!("{name}: {f}")),
                );
            }
            _ => findings.push(format!("chain {name} is called {}", chain.name)),
        }
    }
    findings
}

fn lint_chain(plans: &Plans, owner: NodeId, id: TunnelId, chain: &ChainConfig) -> Vec<String> {
    let mut findings = Vec::new();
    let Some(tunnel) = plans.intent.tunnels.get(&id) else {
        return vec!["its tunnel does not exist".to_owned()];
    };
    let [hop] = &chain.hops[..] else { return vec!["it has not exactly one hop".to_owned()] };
    let strategy = hop.selector.as_ref().map_or("", |selector| selector.strategy.as_str());
    if strategy == "best" {
        findings.push("best is nothing that an agent knows".to_owned());
    }
    if hop.members().is_empty() {
        findings.push("it leads nowhere".to_owned());
    }
    let mut seen = BTreeSet::new();
    for node in hop.members() {
        if !seen.insert(&node.name) {
            findings.push(format!("{} is there twice", node.name));
        }
        // The other end listens there, with the same transport and the same credentials.
        let Ok(address) = HostPort::parse(&node.addr) else {
            findings.push(format!("{} has the address {}", node.name, node.addr));
            continue;
        };
        let served =
            plans.nodes.values().filter_map(|plan| plan.services.get(&names::relay(id))).any(|relay| {
                relay.config.addr.ends_with(&format!(":{}", address.port))
                    && relay.config.listener.kind == node.dialer.kind
                    && relay.config.handler.auth == node.connector.auth
            });
        // A middle node whose own way on is missing has no relay.
        let known_problem = plans.nodes.values().any(|plan| !plan.problems.is_empty());
        if !served && !known_problem {
            findings.push(format!("nobody serves {}", node.addr));
        }
    }
    let owns_exits = tunnel.owners().contains(&owner);
    if let Some(exit) = tunnel.exit.as_ref().filter(|exit| owns_exits && exit.strategy == Strategy::Best) {
        if strategy != "fifo" {
            findings.push(format!("a best group is rendered as {strategy}"));
        }
        let saved: Vec<NodeId> = exit.nodes.iter().map(|member| member.node).collect();
        let order = plans.intent.applied.get(&(id, owner)).cloned().unwrap_or_default();
        let expected: Vec<String> = Applied { order, last_switch: None }
            .complete(&saved)
            .iter()
            .filter_map(|exit| saved.iter().position(|node| node == exit))
            .map(names::member)
            .filter(|name| hop.members().iter().any(|node| node.name == *name))
            .collect();
        let rendered: Vec<String> = hop.members().iter().map(|node| node.name.clone()).collect();
        if rendered != expected {
            findings.push(format!("its order is {rendered:?} instead of {expected:?}"));
        }
    }
    findings
}
