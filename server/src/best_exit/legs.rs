//! Which legs a round measures: every one once, however many tunnels share it. Pure.

use crate::plan::{GroupIntent, Intent, TunnelIntent, dial};
use shared::address::HostPort;
use shared::api::TunnelType;
use shared::ids::{NodeId, TunnelId};
use shared::strategy::Strategy;
use std::collections::BTreeMap;

/// Names the state of one owner.
pub(super) type OwnerKey = (TunnelId, NodeId);

/// A measured stretch: who connects where. The way to a host is the same for all tunnels, so those that lead to the same
/// exit share it although each has a port of its own there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: NodeId,
    pub(super) host: String,
    /// Ascending, at least one. Any of them stands for all.
    pub(super) ports: Vec<u16>,
    /// What the measurements are kept under: the host, with the port where only this one is meant.
    pub(super) target: String,
}

impl Stretch {
    /// The address to measure at this turn.
    pub(super) fn at(&self, turn: usize) -> HostPort {
        HostPort::new(&self.host, self.ports[turn % self.ports.len()])
    }
}

/// One exit of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CandidatePlan {
    pub(super) exit: NodeId,
    /// Index of owner → exit; `None`: the owner has no way to dial this exit.
    pub(super) leg_a: Option<usize>,
    /// Index of exit → probe target.
    pub(super) leg_b: usize,
}

/// One owner of one tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerPlan {
    pub(super) key: OwnerKey,
    /// The tunnel is enabled.
    pub(super) complete: bool,
    /// In saved order. Without legs, if there is nothing to decide.
    pub(super) candidates: Vec<CandidatePlan>,
    /// All exits in saved order.
    pub(super) saved: Vec<NodeId>,
}

/// All owners and all stretches that they need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) owners: Vec<OwnerPlan>,
    /// Each once.
    pub(super) legs: Vec<Stretch>,
    /// Indices into `owners` of those that need a leg, by the leg's index.
    pub(super) users: Vec<Vec<usize>>,
    /// Indices into `legs`, by the node that measures them.
    pub(super) by_node: BTreeMap<NodeId, Vec<usize>>,
}

impl Layout {
    /// From what is stored.
    pub(super) fn new(intent: &Intent, probe_target: &HostPort) -> Self {
        let mut layout = Layout::default();
        let mut index = BTreeMap::new();
        for (id, tunnel) in &intent.tunnels {
            let Some(exit) = best_group(tunnel) else { continue };
            let measured = tunnel.enabled && exit.nodes.len() >= 2;
            for owner in tunnel.owners() {
                let number = layout.owners.len();
                let mut candidates = Vec::new();
                for member in exit.nodes.iter().filter(|_| measured) {
                    let nodes = intent.nodes.get(&owner).zip(intent.nodes.get(&member.node));
                    let address = nodes
                        .and_then(|(from, to)| dial::address(from, to, member, tunnel.ip_preference).ok());
                    let leg_a = address.map(|to| layout.leg(&mut index, number, owner, &to.host, &to));
                    let target = probe_target.to_string();
                    let leg_b = layout.leg(&mut index, number, member.node, &target, probe_target);
                    candidates.push(CandidatePlan { exit: member.node, leg_a, leg_b });
                }
                layout.owners.push(OwnerPlan {
                    key: (*id, owner),
                    complete: tunnel.enabled,
                    candidates,
                    saved: exit.nodes.iter().map(|member| member.node).collect(),
                });
            }
        }
        layout
    }

    fn leg(
        &mut self,
        index: &mut BTreeMap<(NodeId, String), usize>,
        user: usize,
        from: NodeId,
        target: &str,
        to: &HostPort,
    ) -> usize {
        let next = self.legs.len();
        let leg = *index.entry((from, target.to_owned())).or_insert(next);
        if leg == next {
            self.by_node.entry(from).or_default().push(leg);
            let (host, target) = (to.host.clone(), target.to_owned());
            self.legs.push(Stretch { from, host, ports: vec![to.port], target });
            self.users.push(Vec::new());
        } else if let Err(at) = self.legs[leg].ports.binary_search(&to.port) {
            self.legs[leg].ports.insert(at, to.port);
        }
        if self.users[leg].last() != Some(&user) {
            self.users[leg].push(user);
        }
        leg
    }
}

/// The exit group of a tunnel whose exits are chosen by measuring.
pub(super) fn best_group(tunnel: &TunnelIntent) -> Option<&GroupIntent> {
    let exit = tunnel.exit.as_ref()?;
    (tunnel.kind == TunnelType::Tunnel && exit.strategy == Strategy::Best).then_some(exit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{MemberIntent, NodeIntent};
    use shared::api::IpPreference;
    use shared::gost::Auth;
    use shared::strategy::Protocol;

    fn tunnel(entry: &[i64], exits: &[i64]) -> TunnelIntent {
        let member = |n: &i64| MemberIntent { node: NodeId(*n), port: 20_000 + *n as u16, connect_ip: None };
        TunnelIntent {
            name: String::new(),
            kind: TunnelType::Tunnel,
            enabled: true,
            ip_preference: IpPreference::Auto,
            entry: entry.iter().copied().map(NodeId).collect(),
            hops: vec![],
            exit: Some(GroupIntent {
                strategy: Strategy::Best,
                protocol: Protocol::Tls,
                max_fails: 3,
                fail_timeout_ms: 30_000,
                nodes: exits.iter().map(member).collect(),
            }),
            relay_auth: Auth { username: String::new(), password: String::new() },
        }
    }

    fn intent(tunnels: impl IntoIterator<Item = TunnelIntent>) -> Intent {
        let node =
            |n: i64| (NodeId(n), NodeIntent { server_ip: format!("192.0.2.{n}"), ..Default::default() });
        Intent {
            nodes: (1..=99).map(node).collect(),
            tunnels: (1..).map(TunnelId).zip(tunnels).collect(),
            ..Intent::default()
        }
    }

    fn target() -> HostPort {
        HostPort::new("target.example", 443)
    }

    #[test]
    fn ten_tunnels_over_the_same_exits_measure_each_leg_once() {
        for owners in 1..4 {
            let entry: Vec<i64> = (1..=owners).collect();
            // Every tunnel has relay ports of its own.
            let tunnels = (0..10).map(|number| {
                let mut tunnel = tunnel(&entry, &[30, 31, 32]);
                tunnel.exit.as_mut().unwrap().nodes.iter_mut().for_each(|member| member.port += 100 * number);
                tunnel
            });
            let layout = Layout::new(&intent(tunnels), &target());
            assert_eq!(layout.legs.len() as i64, 3 + owners * 3);
            assert_eq!(layout.owners.len() as i64, 10 * owners);
            let exit_legs =
                layout.by_node.iter().filter(|(node, _)| node.0 >= 30).map(|(_, legs)| legs.len());
            assert_eq!(exit_legs.collect::<Vec<_>>(), [1, 1, 1]);
            let to_exit = layout.legs.iter().find(|leg| leg.host == "192.0.2.31").unwrap();
            let ports: Vec<u16> = (0..10).map(|number| 20_031 + 100 * number).collect();
            assert_eq!((&to_exit.ports, to_exit.target.as_str()), (&ports, "192.0.2.31"));
            assert_eq!([0, 1, 9, 10].map(|turn| to_exit.at(turn).port), [20_031, 20_131, 20_931, 20_031]);
        }
    }

    #[test]
    fn a_host_that_is_exit_and_probe_target_is_measured_as_both() {
        let target = HostPort::new("192.0.2.31", 443);
        // Node 30 is an exit, which measures the target, and an owner with exit 31.
        let layout = Layout::new(&intent([tunnel(&[30], &[31, 32]), tunnel(&[1], &[30, 31])]), &target);
        let from_30: Vec<_> =
            layout.legs.iter().filter(|leg| leg.from == NodeId(30)).map(|leg| leg.target.as_str()).collect();
        assert_eq!(from_30, ["192.0.2.31", "192.0.2.32", "192.0.2.31:443"]);
    }

    #[test]
    fn everybody_who_needs_a_leg_is_told_once() {
        let layout = Layout::new(&intent([tunnel(&[1, 2], &[30, 31]), tunnel(&[1], &[30, 31])]), &target());
        for (leg, stretch) in layout.legs.iter().enumerate() {
            let needs =
                |owner: &OwnerPlan| owner.candidates.iter().any(|c| c.leg_a == Some(leg) || c.leg_b == leg);
            let expected: Vec<usize> =
                (0..layout.owners.len()).filter(|n| needs(&layout.owners[*n])).collect();
            assert_eq!(layout.users[leg], expected, "{stretch:?}");
            assert!(layout.by_node[&stretch.from].contains(&leg));
        }
    }

    #[test]
    fn only_what_can_be_decided_is_measured() {
        let mut disabled = tunnel(&[1], &[30, 31]);
        disabled.enabled = false;
        let mut fifo = tunnel(&[1], &[30, 31]);
        fifo.exit.as_mut().unwrap().strategy = Strategy::Fifo;
        let layout = Layout::new(&intent([disabled, fifo, tunnel(&[1], &[30])]), &target());
        assert_eq!(layout.legs, []);
        let owners: Vec<(i64, bool, usize)> =
            layout.owners.iter().map(|o| (o.key.0.0, o.complete, o.saved.len())).collect();
        assert_eq!(owners, [(1, false, 2), (3, true, 1)], "the fifo tunnel has nothing to decide");
    }

    #[test]
    fn an_exit_that_cannot_be_dialled_has_no_leg_a() {
        let mut intent = intent([tunnel(&[1], &[30, 31])]);
        intent.nodes.get_mut(&NodeId(31)).unwrap().server_ip = "2001:db8::31".into();
        let layout = Layout::new(&intent, &target());
        let legs: Vec<bool> = layout.owners[0].candidates.iter().map(|c| c.leg_a.is_some()).collect();
        assert_eq!(legs, [true, false]);
    }
}
