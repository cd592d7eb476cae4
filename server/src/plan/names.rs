//! What the objects on a node are called. The peer's names, so that its agents and ours run the same configuration.

use shared::ids::{ForwardId, TunnelId, UserId};

/// The chain of an entry or middle node.
pub fn chain(tunnel: TunnelId) -> String {
    format!("chains_{tunnel}")
}

/// The only hop of that chain.
pub fn hop(tunnel: TunnelId) -> String {
    format!("hop_{tunnel}")
}

/// A member of a group by its position in saved order, from 0. Reordering a group does not rename its nodes, so an
/// agent keeps what it knows about them.
pub fn member(position: usize) -> String {
    format!("node_{}", position + 1)
}

/// The relay service of a middle or exit node.
pub fn relay(tunnel: TunnelId) -> String {
    format!("tunnel_{tunnel}")
}

/// A forward's service for connections. The third number is the peer's user-tunnel id; 0 = none.
pub fn forward_tcp(forward: ForwardId, user: UserId) -> String {
    format!("{forward}_{user}_0_tcp")
}

/// A forward's service for datagrams.
pub fn forward_udp(forward: ForwardId, user: UserId) -> String {
    format!("{forward}_{user}_0_udp")
}

/// Whether a chain of this name is this panel's to delete.
pub fn is_our_chain(name: &str) -> bool {
    name.strip_prefix("chains_").is_some_and(is_number)
}

/// Whether a service of this name is this panel's to delete. What somebody else configured on the node is left alone.
pub fn is_our_service(name: &str) -> bool {
    if let Some(id) = name.strip_prefix("tunnel_") {
        return is_number(id);
    }
    let parts: Vec<&str> = name.split('_').collect();
    matches!(parts[..], [forward, user, user_tunnel, "tcp" | "udp"]
        if is_number(forward) && is_number(user) && is_number(user_tunnel))
}

/// The tunnel of a chain, by the chain's name.
pub fn tunnel_of_chain(name: &str) -> Option<TunnelId> {
    let id = name.strip_prefix("chains_").filter(|id| is_number(id))?;
    id.parse().ok()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_are_recognised_and_others_are_not() {
        let (tunnel, forward, user) = (TunnelId(42), ForwardId(7), UserId(1));
        assert!(is_our_chain(&chain(tunnel)));
        assert_eq!(tunnel_of_chain(&chain(tunnel)), Some(tunnel));
        assert!(is_our_service(&relay(tunnel)));
        assert!(is_our_service(&forward_tcp(forward, user)));
        assert!(is_our_service(&forward_udp(forward, user)));
        for name in ["chains_", "chains_x", "chain_1", "my_chain", "chains_1x"] {
            assert!(!is_our_chain(name), "{name}");
        }
        for name in ["tunnel_", "tunnel_x", "7_1_0", "7_1_0_tls", "web_1_0_tcp", "api", "7__0_tcp"] {
            assert!(!is_our_service(name), "{name}");
        }
    }
}
