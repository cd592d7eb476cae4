//! Who wants a way through a chain, and for what.

use super::hash::ClientKey;
use crate::relay::pump::Client;
use std::io;

/// Who wants a way through a chain, and for what.
pub enum Asking<'a> {
    /// A client's connection; for the datagrams it carries in frames, if `datagrams` is set.
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
        /// What it sent.
        first: &'a [u8],
    },
}

/// What a node is asked for.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    Connection,
    /// A way for datagrams, of which the first goes along if it is there.
    Datagrams {
        first: Option<&'a [u8]>,
    },
}

impl Asking<'_> {
    /// What the hash strategies know the client by.
    pub fn key(&self) -> ClientKey {
        match self {
            Asking::Connection { client, .. } => client.key,
            Asking::Datagrams { key, .. } => *key,
        }
    }

    /// What a node is asked for.
    pub(super) fn wanted(&self) -> Wanted<'_> {
        match self {
            Asking::Connection { datagrams: false, .. } => Wanted::Connection,
            Asking::Connection { datagrams: true, .. } => Wanted::Datagrams { first: None },
            Asking::Datagrams { first, .. } => Wanted::Datagrams { first: Some(first) },
        }
    }

    /// Waits until the client has sent something or has ended its direction. An error means that it is gone.
    pub(super) async fn has_spoken(&mut self) -> io::Result<()> {
        match self {
            Asking::Connection { client, .. } => client.has_spoken().await,
            Asking::Datagrams { .. } => Ok(()),
        }
    }
}
