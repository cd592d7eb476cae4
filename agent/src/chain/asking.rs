//! Who wants a way through a chain, and for what.

use super::hash::ClientKey;
use crate::relay::pump::Client;
use shared::address::HostPort;
use shared::policy::Network;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tokio::sync::watch;

/// Who wants a way through a chain, and for what.
pub enum Asking<'a> {
    /// A client's connection; for the datagrams it carries in frames, if `datagrams` is set. What was read of those goes
    /// along with every request, see below.
    Connection {
        /// The client.
        client: &'a mut Client,
        /// Whether the target is to get datagrams.
        datagrams: bool,
    },
    /// A client that sends datagrams. The first goes along with every request: a node may hold its answer until the
    /// target has spoken, which may be silent until it is spoken to. A way that fails then may have delivered it, so
    /// that it comes twice; datagrams may.
    Datagrams {
        /// What the hash strategies know the client by.
        key: ClientKey,
        /// What it sent, as a frame.
        first: &'a [u8],
    },
    /// One of several ways that are tried at once for a client's connection.
    Racer {
        /// What the hash strategies know the client by.
        key: ClientKey,
        /// Whether it has sent something.
        spoken: watch::Receiver<bool>,
    },
    /// Nobody: whether there is a way is all that is asked.
    Nothing,
}

/// What a node is asked for.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    Connection,
    /// A way for datagrams. Frames that are there already go along.
    Datagrams {
        first: &'a [u8],
    },
}

impl Asking<'_> {
    /// What the hash strategies know the client by.
    pub fn key(&self) -> ClientKey {
        match self {
            Asking::Connection { client, .. } => client.key,
            Asking::Datagrams { key, .. } | Asking::Racer { key, .. } => *key,
            Asking::Nothing => IpAddr::from(Ipv4Addr::LOCALHOST).into(),
        }
    }

    /// The kind of the connection to `target`; one whose name is not resolved here counts as IPv4.
    pub(crate) fn network(&self, target: &HostPort) -> Network {
        let is_v6 = target.host.parse::<Ipv6Addr>().is_ok();
        match (self.wanted(), is_v6) {
            (Wanted::Connection, false) => Network::Tcp4,
            (Wanted::Connection, true) => Network::Tcp6,
            (Wanted::Datagrams { .. }, false) => Network::Udp4,
            (Wanted::Datagrams { .. }, true) => Network::Udp6,
        }
    }

    /// What a node is asked for.
    pub(super) fn wanted(&self) -> Wanted<'_> {
        match self {
            Asking::Connection { datagrams: false, .. } | Asking::Racer { .. } | Asking::Nothing => {
                Wanted::Connection
            }
            Asking::Connection { client, datagrams: true } => Wanted::Datagrams { first: client.early() },
            Asking::Datagrams { first, .. } => Wanted::Datagrams { first },
        }
    }

    /// Waits until the client has sent something or has ended its direction. An error means that it is gone.
    pub(super) async fn has_spoken(&mut self) -> io::Result<()> {
        match self {
            Asking::Connection { client, .. } => client.has_spoken().await,
            Asking::Datagrams { .. } => Ok(()),
            Asking::Racer { spoken, .. } => match spoken.wait_for(|spoken| *spoken).await {
                Ok(_) => Ok(()),
                Err(_) => Err(io::ErrorKind::NotConnected.into()),
            },
            Asking::Nothing => std::future::pending().await,
        }
    }

    /// Whether several ways may be tried for it at once: every one of them would deliver the first datagram.
    pub(crate) fn may_race(&self) -> bool {
        matches!(self.wanted(), Wanted::Connection)
    }

    /// The same wish for one of several ways; `spoken` tells whether the client has sent something.
    pub(crate) fn racer(&self, spoken: &watch::Receiver<bool>) -> Asking<'static> {
        Asking::Racer { key: self.key(), spoken: spoken.clone() }
    }
}
