//! What plans give to those that follow them: most objects stay as they are when something is edited, and rendering all of
//! them anew is most of the work of a plan.

use super::intent::{ForwardIntent, Intent, TunnelIntent};
use super::{NodePlan, Plans, Subject, names};
use shared::ids::{ForwardId, NodeId, TunnelId};
use std::collections::{BTreeMap, BTreeSet};

/// The plans before, as seen from a new intent.
pub(super) struct Before<'a> {
    plans: &'a Plans,
    /// Nodes that are new or not as they were.
    changed: BTreeSet<NodeId>,
}

impl<'a> Before<'a> {
    pub(super) fn new(plans: &'a Plans, intent: &Intent) -> Self {
        let before = &plans.intent.nodes;
        let changed = intent.nodes.iter().filter(|(id, node)| before.get(id) != Some(node));
        Self { plans, changed: changed.map(|(id, _)| *id).collect() }
    }

    /// Whether everything that the tunnel's objects are made from is as it was: the tunnel, its nodes, and the accepted
    /// orders of those that dial.
    pub(super) fn has_tunnel(&self, intent: &Intent, id: TunnelId, tunnel: &TunnelIntent) -> bool {
        let before = &self.plans.intent;
        before.tunnels.get(&id) == Some(tunnel)
            && nodes_of(tunnel).all(|node| {
                // A node that was deleted is in neither.
                !self.changed.contains(&node)
                    && intent.nodes.contains_key(&node) == before.nodes.contains_key(&node)
                    && intent.applied.get(&(id, node)) == before.applied.get(&(id, node))
            })
    }

    /// Puts the tunnel's objects, and what could not be rendered, into the new plans.
    pub(super) fn give_tunnel(
        &self,
        id: TunnelId,
        tunnel: &TunnelIntent,
        nodes: &mut BTreeMap<NodeId, NodePlan>,
    ) {
        let (chain, relay) = (names::chain(id), names::relay(id));
        for node in nodes_of(tunnel) {
            let Some((plan, before)) = nodes.get_mut(&node).zip(self.plans.nodes.get(&node)) else {
                continue;
            };
            if let Some(object) = before.chains.get(&chain) {
                plan.chains.insert(chain.clone(), object.clone());
            }
            if let Some(object) = before.services.get(&relay) {
                plan.services.insert(relay.clone(), object.clone());
            }
            give_problem(Subject::Tunnel(id), before, plan);
        }
    }

    /// Whether everything that the forward's objects are made from is as it was.
    pub(super) fn has_forward(
        &self,
        intent: &Intent,
        id: ForwardId,
        forward: &ForwardIntent,
        tunnel: &TunnelIntent,
    ) -> bool {
        self.plans.intent.forwards.get(&id) == Some(forward)
            && self.has_tunnel(intent, forward.tunnel, tunnel)
    }

    /// Puts the forward's objects, and what could not be rendered, into the new plans.
    pub(super) fn give_forward(
        &self,
        id: ForwardId,
        forward: &ForwardIntent,
        tunnel: &TunnelIntent,
        nodes: &mut BTreeMap<NodeId, NodePlan>,
    ) {
        for node in &tunnel.entry {
            let Some((plan, before)) = nodes.get_mut(node).zip(self.plans.nodes.get(node)) else { continue };
            for name in [names::forward_tcp(id, forward.user), names::forward_udp(id, forward.user)] {
                if let Some(object) = before.services.get(&name) {
                    plan.services.insert(name, object.clone());
                }
            }
            give_problem(Subject::Forward(id), before, plan);
        }
    }
}

fn give_problem(subject: Subject, before: &NodePlan, plan: &mut NodePlan) {
    if let Some(problem) = before.problems.get(&subject) {
        plan.problems.insert(subject, problem.clone());
    }
}

/// Every node of a tunnel; those that dial are among them.
fn nodes_of(tunnel: &TunnelIntent) -> impl Iterator<Item = NodeId> {
    let groups = tunnel.hops.iter().chain(&tunnel.exit);
    let members = groups.flat_map(|group| group.nodes.iter().map(|member| member.node));
    tunnel.entry.iter().copied().chain(members)
}
