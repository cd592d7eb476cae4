//! How far everything is, for pages.

use super::Agents;
use super::board::Key;
use super::slot::Slot;
use crate::plan::{NodePlan, Plans, Subject, mask, names};
use shared::api::{DeploymentStatus, NodeDeployment, NodeRuntime};
use shared::best_exit::Applied;
use shared::ids::{ForwardId, NodeId, TunnelId};
use std::sync::Arc;

struct Progress(DeploymentStatus, Option<String>);

impl Progress {
    /// The worse one counts; of equals the first reason.
    fn and(self, other: (DeploymentStatus, Option<String>)) -> Self {
        if other.0 > self.0 { Progress(other.0, other.1) } else { self }
    }
}

impl Agents {
    /// How far each node of a tunnel is with what the tunnel needs of it; in the tunnel's order. Empty for a tunnel
    /// that is not planned (yet).
    pub fn deployment(&self, tunnel: TunnelId) -> Vec<NodeDeployment> {
        let Some(plans) = self.plans() else { return Vec::new() };
        let nodes = nodes_of(&plans, tunnel);
        let deployed = |node: NodeId| {
            let Progress(status, reason) = self.tunnel_progress(&plans, tunnel, node);
            NodeDeployment { node_id: node, status, reason }
        };
        nodes.into_iter().map(deployed).collect()
    }

    /// How far each entry node is with a forward.
    pub fn forward_deployment(&self, forward: ForwardId) -> Vec<NodeDeployment> {
        let Some(plans) = self.plans() else { return Vec::new() };
        let entry = plans
            .intent
            .forwards
            .get(&forward)
            .and_then(|stored| plans.intent.tunnels.get(&stored.tunnel))
            .map(|tunnel| tunnel.entry.clone())
            .unwrap_or_default();
        let deployed = |node: NodeId| {
            let Progress(status, reason) = self.forward_progress(&plans, forward, node);
            NodeDeployment { node_id: node, status, reason }
        };
        entry.into_iter().map(deployed).collect()
    }

    /// Has everything that the tunnel and its forwards need sent once more to the nodes that are connected, whatever
    /// they have acknowledged. Upserts of the same objects: no connection notices.
    pub fn redeploy(&self, tunnel: TunnelId) {
        let Some(plans) = self.plans() else { return };
        let concerns = |subject: Subject| match subject {
            Subject::Tunnel(id) => id == tunnel,
            Subject::Forward(id) => plans.intent.forwards.get(&id).is_some_and(|f| f.tunnel == tunnel),
        };
        for node in nodes_of(&plans, tunnel) {
            let (Some(plan), Some(slot)) = (plans.nodes.get(&node), self.inner.existing(node)) else {
                continue;
            };
            {
                let mut board = slot.board();
                for (name, _) in plan.chains.iter().filter(|(_, chain)| concerns(chain.subject)) {
                    board.resend(&Key::Chain(name.clone()));
                }
                for (name, _) in plan.services.iter().filter(|(_, service)| concerns(service.subject)) {
                    board.resend(&Key::Service(name.clone()));
                }
            }
            slot.look.notify_one();
        }
    }

    /// What each node of a tunnel should be running for it and its forwards. Passwords are masked.
    pub async fn runtime(&self, tunnel: TunnelId) -> Vec<NodeRuntime> {
        let Some(plans) = self.plans() else { return Vec::new() };
        let forwards: Vec<ForwardId> = plans
            .intent
            .forwards
            .iter()
            .filter(|(_, forward)| forward.tunnel == tunnel)
            .map(|(id, _)| *id)
            .collect();
        let mut answer = Vec::new();
        for node in nodes_of(&plans, tunnel) {
            let (Some(plan), Some(stored)) = (plans.nodes.get(&node), plans.intent.nodes.get(&node)) else {
                continue;
            };
            let mut config = mask::view(plan, |subject| match subject {
                Subject::Tunnel(id) => id == tunnel,
                Subject::Forward(id) => forwards.contains(&id),
            });
            // The order accepted a moment ago may not be in the plan yet.
            let newer =
                self.inner.existing(node).and_then(|slot| slot.desired_chain(&plans.intent, plan, tunnel));
            if let (Some(newer), [chain]) = (newer, &mut config.chains[..]) {
                *chain = mask::chain(Arc::unwrap_or_clone(newer.config));
            }
            let mut progress = self.tunnel_progress(&plans, tunnel, node);
            if plans.intent.tunnels.get(&tunnel).is_some_and(|tunnel| tunnel.entry.contains(&node)) {
                for forward in &forwards {
                    let Progress(status, reason) = self.forward_progress(&plans, *forward, node);
                    progress = progress.and((status, reason));
                }
            }
            let Progress(status, reason) = progress;
            answer.push(NodeRuntime {
                node_id: node,
                node_name: stored.name.clone(),
                status,
                reason,
                config,
            });
        }
        answer
    }

    fn tunnel_progress(&self, plans: &Plans, tunnel: TunnelId, node: NodeId) -> Progress {
        let Some(plan) = plans.nodes.get(&node) else { return Progress(DeploymentStatus::Applied, None) };
        let slot = self.inner.existing(node);
        let chain = match &slot {
            Some(slot) => slot.desired_chain(&plans.intent, plan, tunnel).map(|chain| chain.digest),
            None => plan.chains.get(&names::chain(tunnel)).map(|chain| chain.digest.clone()),
        };
        let relay = names::relay(tunnel);
        let service = plan.services.get(&relay).map(|service| service.digest.as_str());
        let slot = slot.as_deref();
        problem(plan, Subject::Tunnel(tunnel))
            .and(status(slot, &Key::Chain(names::chain(tunnel)), chain.as_deref()))
            .and(status(slot, &Key::Service(relay), service))
    }

    fn forward_progress(&self, plans: &Plans, forward: ForwardId, node: NodeId) -> Progress {
        let (Some(plan), Some(stored)) = (plans.nodes.get(&node), plans.intent.forwards.get(&forward)) else {
            return Progress(DeploymentStatus::Applied, None);
        };
        let slot = self.inner.existing(node);
        let of = |name: String| {
            let digest = plan.services.get(&name).map(|service| service.digest.as_str());
            status(slot.as_deref(), &Key::Service(name), digest)
        };
        problem(plan, Subject::Forward(forward))
            .and(of(names::forward_tcp(forward, stored.user)))
            .and(of(names::forward_udp(forward, stored.user)))
    }
}

impl Slot {
    /// The exit order of the chain that the agent has acknowledged; `None`: it has not, as planned.
    pub(super) fn acknowledged_order(&self, plans: &Plans, tunnel: TunnelId) -> Option<Vec<NodeId>> {
        let plan = plans.nodes.get(&self.node)?;
        let desired = self.desired_chain(&plans.intent, plan, tunnel)?;
        let key = Key::Chain(names::chain(tunnel));
        if self.board().known_digest(&key) != Some(desired.digest.as_str()) {
            return None;
        }
        let exit = plans.intent.tunnels.get(&tunnel)?.exit.as_ref()?;
        let saved: Vec<NodeId> = exit.nodes.iter().map(|member| member.node).collect();
        let accepted = self.orders().accepted.get(&tunnel).cloned();
        let order = accepted.or_else(|| plans.intent.applied.get(&(tunnel, self.node)).cloned());
        Some(Applied { order: order.unwrap_or_default(), last_switch: None }.complete(&saved))
    }
}

fn problem(plan: &NodePlan, subject: Subject) -> Progress {
    match plan.problems.get(&subject) {
        Some(text) => Progress(DeploymentStatus::Failed, Some(text.clone())),
        None => Progress(DeploymentStatus::Applied, None),
    }
}

fn status(slot: Option<&Slot>, key: &Key, digest: Option<&str>) -> (DeploymentStatus, Option<String>) {
    match slot {
        Some(slot) => {
            let online = slot.is_online();
            slot.board().status(key, digest, online)
        }
        None if digest.is_some() => (DeploymentStatus::Pending, Some("the node is offline".to_owned())),
        None => (DeploymentStatus::Applied, None),
    }
}

/// Entry, middle and exit nodes in order.
fn nodes_of(plans: &Plans, tunnel: TunnelId) -> Vec<NodeId> {
    let Some(tunnel) = plans.intent.tunnels.get(&tunnel) else { return Vec::new() };
    let groups = tunnel.hops.iter().chain(&tunnel.exit);
    let members = groups.flat_map(|group| group.nodes.iter().map(|member| member.node));
    tunnel.entry.iter().copied().chain(members).collect()
}
