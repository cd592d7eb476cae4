//! Choosing ports.

use crate::store::{PortUse, Reservation};
use shared::address::PortRange;
use shared::api::Node;
use shared::ids::NodeId;
use shared::topology::KnownNode;
use std::collections::BTreeMap;

/// Ports in use, per node.
pub(super) type Ports = BTreeMap<NodeId, BTreeMap<u16, Reservation>>;

/// A node as validation sees it: the ports that `own` uses count as free.
pub(super) fn known(node: &Node, ports: &Ports, own: Option<PortUse>) -> KnownNode {
    let taken = ports.get(&node.id).into_iter().flatten();
    let taken = taken.filter(|(_, reservation)| Some(reservation.user) != own);
    KnownNode {
        name: node.name.clone(),
        port_range: node.port_range.clone(),
        capabilities: node.capabilities.clone(),
        seen: node.last_seen.is_some(),
        taken_ports: taken.map(|(port, reservation)| (*port, reservation.label.clone())).collect(),
    }
}

/// A port inside the range of every node and free on each of them.
///
/// The search starts at a random place (`spread`), so that the relays of a panel cannot be guessed by counting.
pub(super) fn choose(nodes: &[&KnownNode], spread: u64) -> Option<u16> {
    let (first, others) = nodes.split_first()?;
    let ranges: Vec<PortRange> =
        others.iter().map(|node| PortRange::parse(&node.port_range)).collect::<Result<_, _>>().ok()?;
    let free: Vec<u16> = PortRange::parse(&first.port_range)
        .ok()?
        .ports()
        .filter(|port| ranges.iter().all(|range| range.contains(*port)))
        .filter(|port| nodes.iter().all(|node| !node.taken_ports.contains_key(port)))
        .collect();
    let index = usize::try_from(spread % u64::try_from(free.len()).ok()?.max(1)).ok()?;
    free.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(range: &str, taken: &[u16]) -> KnownNode {
        KnownNode {
            port_range: range.into(),
            taken_ports: taken.iter().map(|port| (*port, "x".to_owned())).collect(),
            ..KnownNode::default()
        }
    }

    #[test]
    fn only_what_is_free_on_all_is_chosen_and_everything_free_can_be() {
        let (a, b) = (node("10-15", &[11]), node("12-20", &[13]));
        let chosen: std::collections::BTreeSet<_> =
            (0..50).map(|spread| choose(&[&a, &b], spread).unwrap()).collect();
        assert_eq!(chosen.into_iter().collect::<Vec<_>>(), [12, 14, 15]);
        assert_eq!(choose(&[&node("10-11", &[10, 11])], 7), None);
        assert_eq!(choose(&[&node("10", &[]), &node("11", &[])], 7), None);
        assert_eq!(choose(&[], 7), None);
    }
}
