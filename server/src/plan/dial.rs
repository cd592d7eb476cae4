//! At which address one node reaches the relay of another.

use super::intent::{MemberIntent, NodeIntent};
use shared::address::HostPort;
use shared::api::IpPreference;
use std::net::IpAddr;

/// Two nodes have no address family in common.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{from} and {to} have no address family in common; give one of them an address of the other's family"
)]
pub struct NoCommonFamily {
    /// Name of the node that dials.
    pub from: String,
    /// Name of the node that is dialled.
    pub to: String,
}

#[derive(Clone, Copy)]
enum Family {
    V4,
    V6,
}

/// The address and port at which `from` dials the relay service of `member`, which is the node `to`.
///
/// A connect address is used as it is. Else the first family that both nodes have: IPv4 before IPv6, unless IPv6 is
/// preferred. A host name counts as both families, since only the dialling node can tell what it resolves to.
pub fn address(
    from: &NodeIntent,
    to: &NodeIntent,
    member: &MemberIntent,
    preference: IpPreference,
) -> Result<HostPort, NoCommonFamily> {
    if let Some(host) = member.connect_ip.as_deref().filter(|host| !host.is_empty()) {
        return Ok(HostPort::new(unbracketed(host), member.port));
    }
    let families = match preference {
        IpPreference::Auto | IpPreference::V4 => [Family::V4, Family::V6],
        IpPreference::V6 => [Family::V6, Family::V4],
    };
    families
        .into_iter()
        .find_map(|family| {
            host(from, family)?;
            Some(HostPort::new(host(to, family)?, member.port))
        })
        .ok_or_else(|| NoCommonFamily { from: from.name.clone(), to: to.name.clone() })
}

/// The node's host of one family, if it has one.
fn host(node: &NodeIntent, family: Family) -> Option<&str> {
    let own = match family {
        Family::V4 => &node.server_ip_v4,
        Family::V6 => &node.server_ip_v6,
    };
    if !own.is_empty() {
        return Some(unbracketed(own));
    }
    let general = unbracketed(&node.server_ip);
    let fits = match (general.parse::<IpAddr>(), family) {
        (Ok(IpAddr::V4(_)), Family::V4) | (Ok(IpAddr::V6(_)), Family::V6) => true,
        (Ok(_), _) => false,
        (Err(_), _) => !general.is_empty(),
    };
    fits.then_some(general)
}

/// An IP address or name without the brackets of an IPv6 address.
pub fn unbracketed(text: &str) -> &str {
    text.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::ids::NodeId;

    fn node(server_ip: &str, v4: &str, v6: &str) -> NodeIntent {
        NodeIntent {
            name: format!("{server_ip}/{v4}/{v6}"),
            server_ip: server_ip.into(),
            server_ip_v4: v4.into(),
            server_ip_v6: v6.into(),
            ..NodeIntent::default()
        }
    }

    #[test]
    fn table() {
        use IpPreference::{Auto, V4, V6};
        let v4 = node("192.0.2.1", "", "");
        let v6 = node("2001:db8::1", "", "");
        let both = node("192.0.2.9", "", "[2001:db8::9]");
        let both_reversed = node("2001:db8::8", "192.0.2.8", "");
        let name = node("exit.example", "", "");
        let table = [
            (&v4, &both, Auto, Ok("192.0.2.9:443")),
            (&v4, &both, V6, Ok("192.0.2.9:443")),
            (&v6, &both, V4, Ok("[2001:db8::9]:443")),
            (&both, &both_reversed, Auto, Ok("192.0.2.8:443")),
            (&both, &both_reversed, V4, Ok("192.0.2.8:443")),
            (&both, &both_reversed, V6, Ok("[2001:db8::8]:443")),
            (&v6, &name, Auto, Ok("exit.example:443")),
            (&name, &v6, Auto, Ok("[2001:db8::1]:443")),
            (&v4, &v6, Auto, Err(())),
            (&v6, &v4, V6, Err(())),
        ];
        let member = MemberIntent { node: NodeId(1), port: 443, connect_ip: None };
        for (from, to, preference, expected) in table {
            let found = address(from, to, &member, preference).map(|a| a.to_string());
            let found = found.as_deref().map_err(|_| ());
            assert_eq!(found, expected, "{} -> {} {preference:?}", from.name, to.name);
        }
    }

    #[test]
    fn a_connect_address_wins_whatever_the_families() {
        let member = MemberIntent { node: NodeId(1), port: 1, connect_ip: Some("2001:db8::5".into()) };
        let (v4, other) = (node("192.0.2.1", "", ""), node("192.0.2.2", "", ""));
        assert_eq!(address(&v4, &other, &member, IpPreference::V4).unwrap().to_string(), "[2001:db8::5]:1");
    }

    #[test]
    fn the_error_names_both() {
        let member = MemberIntent { node: NodeId(1), port: 1, connect_ip: None };
        let (a, b) = (node("192.0.2.1", "", ""), node("2001:db8::1", "", ""));
        let text = address(&a, &b, &member, IpPreference::Auto).unwrap_err().to_string();
        assert!(text.contains(&a.name) && text.contains(&b.name), "{text}");
    }
}
