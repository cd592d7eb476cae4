//! The networks that are kept apart.

use serde::{Deserialize, Serialize};

/// Transport and address family of a connection. A member may work in one and not in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4.
    Udp4,
    /// UDP over IPv6.
    Udp6,
}

impl Network {
    /// All of them, in the order of [`Network::index`].
    pub const ALL: [Network; 4] = [Network::Tcp4, Network::Tcp6, Network::Udp4, Network::Udp6];

    /// Its place in an array of all networks.
    pub const fn index(self) -> usize {
        match self {
            Network::Tcp4 => 0,
            Network::Tcp6 => 1,
            Network::Udp4 => 2,
            Network::Udp6 => 3,
        }
    }

    /// Whether it carries datagrams.
    pub const fn is_udp(self) -> bool {
        matches!(self, Network::Udp4 | Network::Udp6)
    }

    /// Whose measurements speak for this network, best first: its own; TCP of the same family for UDP that nothing
    /// tests; then the other family, as long as nobody said that the member lacks this one.
    pub const fn evidence(self) -> &'static [Network] {
        match self {
            Network::Tcp4 => &[Network::Tcp4, Network::Tcp6],
            Network::Tcp6 => &[Network::Tcp6, Network::Tcp4],
            Network::Udp4 => &[Network::Udp4, Network::Tcp4, Network::Udp6, Network::Tcp6],
            Network::Udp6 => &[Network::Udp6, Network::Tcp6, Network::Udp4, Network::Tcp4],
        }
    }
}
