//! In which order the members of a group are tried for one connection.

use super::choose::Standing;
use super::forest::{Forest, Group};
use super::health::Health;
use super::network::Network;
use super::spec::{Fallback, Latency, Policy};

/// The members that a connection may use, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// By their places in the group: the chosen one, then those that are known to live by their latency, those of which
    /// nothing is known, the dead. None that cannot carry the network; nobody at all is an error for the caller, never
    /// a reason to dial directly.
    pub members: Vec<usize>,
    /// So many of the first are equally good: one of them is drawn for each connection.
    pub equals: usize,
}

impl Forest {
    /// Who is tried after whom. Where a person or the configuration says which one, there is no other.
    pub fn order(&self, group: usize, network: Network) -> Order {
        let Some(of) = self.groups.get(group) else { return Order::default() };
        let Some(chosen) = of.chosen[network.index()] else { return Order::default() };
        let carries = |member: usize| self.leaf_of(of, member, network).is_some();
        let latency = match &of.spec.policy {
            Policy::Selector { .. } | Policy::Fixed(_) => {
                let members = Vec::from_iter(carries(chosen).then_some(chosen));
                return Order { equals: members.len(), members };
            }
            Policy::Min { latency, .. } => *latency,
            Policy::FixedFallback { fallback: Fallback::Min(latency), .. } => *latency,
            _ => Latency::Last,
        };
        let standing = |member: usize| self.standing_of(of, member, network, latency);
        let rank = |member: usize| match standing(member) {
            Standing::Alive(ms) => (0, u32::MAX - self.priority(of, member, network), ms),
            Standing::Unknown => (1, 0, 0.0),
            Standing::Dead | Standing::Unsupported => (2, 0, 0.0),
        };
        let drawn = self.drawn(of, network, chosen);
        let mut members: Vec<usize> = (0..of.members.len()).filter(|member| carries(*member)).collect();
        // Stable, so that equals keep the order in which they are written.
        members.sort_by(|a, b| {
            let first = |member: usize| !(member == chosen || drawn.contains(&member));
            let ((a_class, a_below, a_ms), (b_class, b_below, b_ms)) = (rank(*a), rank(*b));
            let by_class = first(*a).cmp(&first(*b)).then(a_class.cmp(&b_class));
            by_class.then(a_below.cmp(&b_below)).then(a_ms.total_cmp(&b_ms))
        });
        Order { equals: drawn.len().max(1).min(members.len()), members }
    }

    /// The members among which chance decides.
    fn drawn(&self, group: &Group, network: Network, chosen: usize) -> Vec<usize> {
        match group.spec.policy {
            Policy::FixedFallback { index, fallback: Fallback::Random, .. } if chosen != index => {
                let alive = |member: &usize| {
                    *member != index
                        && matches!(
                            self.standing_of(group, *member, network, Latency::Last),
                            Standing::Alive(_)
                        )
                };
                (0..group.members.len()).filter(alive).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A person's choice in a selector, if there is one.
    pub fn manual(&self, group: usize) -> Option<usize> {
        self.groups.get(group)?.manual
    }

    /// Takes over what was known of a leaf before; only for measurements of the same target.
    pub fn adopt(&mut self, group: usize, leaf: usize, health: [Health; 4]) {
        if let Some(group) = self.groups.get_mut(group).filter(|group| group.schedule.is_some()) {
            group.health.insert(leaf, health);
            if let Some(of) = self.leaves.get(leaf) {
                group.rank(leaf, of);
            }
        }
        self.settle(0, None, &mut Vec::new());
    }
}
