//! Multiplexed sessions on the way through a chain.

use super::dial::Patience;
use super::node::Node;
use crate::net::Interface;
use crate::transport::pool::{Opened, Shared, Way};

/// Whether an attempt shares connections with others.
pub(super) enum Sharing<'a> {
    /// Everything is dialled anew, and nobody else uses it: the way it takes is the way it shows.
    Alone,
    /// Sessions that are used are noted.
    With(&'a mut Used),
}

impl Sharing<'_> {
    pub(super) fn patience(&self, patience: Patience) -> Patience {
        match self {
            Sharing::Alone => patience,
            Sharing::With(used) => used.patience(patience),
        }
    }
}

/// The sessions whose streams one attempt uses.
#[derive(Default)]
pub(super) struct Used(Vec<Shared>);

impl Used {
    pub(super) fn push(&mut self, session: Shared) {
        self.0.push(session);
    }

    /// A session that was there may be dead, so time must be left for another one.
    pub(super) fn patience(&self, patience: Patience) -> Patience {
        if self.0.iter().any(Shared::was_there) { Patience::Stage } else { patience }
    }

    /// The attempt failed. Sessions that seem to be dead get no new streams; whether there was one.
    pub(super) fn distrust(&self) -> bool {
        self.0.iter().fold(false, |any, session| session.distrust() | any)
    }
}

/// How the node at `hop` is reached.
pub(super) fn way(nodes: &[&Node], hop: usize, interface: Option<&Interface>) -> Way {
    let through = nodes[..hop].iter().map(|node| node.config.clone()).collect();
    Way { interface: interface.cloned(), through }
}

/// Opens a stream to the last node to which a session is open: everything before it needs no dialling. Also tells which
/// hop that node is at.
pub(super) fn resume(nodes: &[&Node], interface: Option<&Interface>) -> Option<(usize, Opened)> {
    let open = |hop: usize| {
        let mux = nodes[hop].transport.mux()?;
        Some((hop, mux.pool.open(&way(nodes, hop, interface))?))
    };
    (0..nodes.len()).rev().find_map(open)
}
