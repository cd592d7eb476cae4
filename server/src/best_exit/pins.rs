//! Which pin is in force. Pure.

use super::legs::OwnerKey;
use shared::api::{PinRecord, WallMs};
use shared::ids::TunnelId;

/// The pin in force for an owner: one for this owner beats one for all; one whose end has passed is none.
pub(super) fn in_force(pins: &[(TunnelId, PinRecord)], key: OwnerKey, now: WallMs) -> Option<&PinRecord> {
    let (tunnel, owner) = key;
    let valid = pins
        .iter()
        .filter(|(of, pin)| *of == tunnel && pin.until.is_none_or(|until| until > now))
        .map(|(_, pin)| pin);
    valid
        .clone()
        .find(|pin| pin.owner_node_id == Some(owner))
        .or_else(|| valid.clone().find(|pin| pin.owner_node_id.is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::ids::NodeId;

    fn pin(exit: i64, owner: Option<i64>, until: Option<WallMs>) -> (TunnelId, PinRecord) {
        let record = PinRecord {
            exit_node_id: NodeId(exit),
            owner_node_id: owner.map(NodeId),
            until,
            reason: String::new(),
            author: String::new(),
            created_at: 0,
        };
        (TunnelId(1), record)
    }

    #[test]
    fn table() {
        let found = |pins: &[(TunnelId, PinRecord)], now| {
            in_force(pins, (TunnelId(1), NodeId(5)), now).map(|pin| pin.exit_node_id.0)
        };
        assert_eq!(found(&[], 0), None);
        assert_eq!(found(&[pin(30, None, None)], 0), Some(30));
        assert_eq!(found(&[pin(30, None, None), pin(31, Some(5), None)], 0), Some(31));
        assert_eq!(found(&[pin(30, None, None), pin(31, Some(6), None)], 0), Some(30));
        assert_eq!(found(&[pin(31, Some(5), Some(100))], 99), Some(31));
        assert_eq!(found(&[pin(31, Some(5), Some(100))], 100), None);
        assert_eq!(found(&[pin(30, None, None), pin(31, Some(5), Some(100))], 100), Some(30));
        let other = [(TunnelId(2), pin(30, None, None).1)];
        assert_eq!(found(&other, 0), None);
    }
}
