//! What is remembered about one node across its agent's connections.

use super::board::{Board, Known};
use super::choosing::Choosing;
use super::driver::PushRequest;
use super::session::{Kind, Session};
use crate::plan::{Intent, NodePlan, Planned, names, owner_chain};
use shared::best_exit::Applied;
use shared::gost::ChainConfig;
use shared::ids::{NodeId, TunnelId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// One node.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) node: NodeId,
    live: Mutex<Option<Live>>,
    board: Mutex<Board>,
    orders: Mutex<Orders>,
    choosing: Mutex<Choosing>,
    /// Tells the driver to look again.
    pub(super) look: Notify,
}

/// A connection and the way to its driver.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) session: Arc<Session>,
    pub(super) pushes: mpsc::Sender<PushRequest>,
    /// Cancelled when the driver has ended: nobody but its successor writes the board from then on.
    pub(super) ended: CancellationToken,
}

/// The exit orders of the chains that a node holds.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// Accepted by the agent in the lifetime of this process: newer than, or the same as, what is stored.
    pub(super) accepted: BTreeMap<TunnelId, Vec<NodeId>>,
    /// On their way, or sent and never answered.
    pub(super) proposed: BTreeMap<TunnelId, Proposal>,
}

/// An order of which it is not known whether the agent runs it.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    pub(super) order: Vec<NodeId>,
    /// It was sent on this connection and not answered: digest of the chain with the order before, which is not sent
    /// either until the next decision tells which one is right.
    pub(super) doubt: Option<String>,
}

impl Slot {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node,
            live: Mutex::default(),
            board: Mutex::default(),
            orders: Mutex::default(),
            choosing: Mutex::default(),
            look: Notify::new(),
        }
    }

    // The locks are held for a few statements that leave the value consistent, never across an await; a panic
    // elsewhere does not spoil it.
    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn choosing(&self) -> MutexGuard<'_, Choosing> {
        self.choosing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live_guard(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, if there is one.
    pub(super) fn live(&self) -> Option<Live> {
        self.live_guard().clone()
    }

    pub(super) fn is_online(&self) -> bool {
        self.live_guard().is_some()
    }

    /// Puts a connection in the place of the one before, and answers that.
    pub(super) fn connect(&self, live: Live) -> Option<Live> {
        self.live_guard().replace(live)
    }

    /// Takes a connection away; false if another one has replaced it already.
    pub(super) fn disconnect(&self, session: &Arc<Session>) -> bool {
        let mut live = self.live_guard();
        let current = live.as_ref().is_some_and(|live| Arc::ptr_eq(&live.session, session));
        if current {
            *live = None;
        }
        current
    }

    /// Whose agent is connected, once that is clear.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.live_guard().as_ref()?.session.kind()
    }

    /// The node's chains whose accepted order is newer than the plan's, as they should be.
    pub(super) fn overrides(&self, intent: &Intent) -> BTreeMap<String, Planned<ChainConfig>> {
        let orders = self.orders();
        let newer = orders
            .accepted
            .iter()
            .filter(|(tunnel, order)| intent.applied.get(&(**tunnel, self.node)) != Some(*order));
        newer
            .filter_map(|(tunnel, order)| {
                Some((names::chain(*tunnel), owner_chain(intent, *tunnel, self.node, order)?))
            })
            .collect()
    }

    /// The chain of one tunnel as it should be, and its exit order.
    pub(super) fn desired_chain(
        &self,
        intent: &Intent,
        plan: &NodePlan,
        tunnel: TunnelId,
    ) -> Option<Planned<ChainConfig>> {
        let planned = plan.chains.get(&names::chain(tunnel))?;
        let accepted = self.orders().accepted.get(&tunnel).cloned();
        match accepted.filter(|order| intent.applied.get(&(tunnel, self.node)) != Some(order)) {
            Some(order) => owner_chain(intent, tunnel, self.node, &order),
            None => Some(planned.clone()),
        }
    }

    /// The chains that are left alone because nobody knows which order they run, with the digest they would get.
    pub(super) fn in_doubt(&self) -> BTreeMap<String, String> {
        let orders = self.orders();
        let doubts = orders.proposed.iter();
        doubts
            .filter_map(|(tunnel, proposal)| Some((names::chain(*tunnel), proposal.doubt.clone()?)))
            .collect()
    }

    /// A new connection said which chains it runs: a proposed order that is among them was accepted.
    pub(super) fn settle_proposals(&self, intent: &Intent, runs: &dyn Fn(&str) -> Option<Known>) {
        let mut orders = self.orders();
        for (tunnel, proposal) in std::mem::take(&mut orders.proposed) {
            let chain = owner_chain(intent, tunnel, self.node, &proposal.order);
            let accepted =
                chain.is_some_and(|chain| runs(&chain.config.name) == Some(Known::Digest(chain.digest)));
            if accepted {
                tracing::info!(
                    node.id = self.node.0,
                    tunnel.id = tunnel.0,
                    "a proposed order turned out to be in force"
                );
                orders.accepted.insert(tunnel, proposal.order);
            }
        }
    }

    /// Forgets orders of tunnels whose exits this node no longer chooses, and those that the plans hold by now.
    pub(super) fn forget_settled_orders(&self, intent: &Intent) {
        let owns = |tunnel: &TunnelId| {
            intent.tunnels.get(tunnel).is_some_and(|tunnel| tunnel.owners().contains(&self.node))
        };
        let planned = |tunnel: &TunnelId, order: &[NodeId]| {
            let exit = intent.tunnels.get(tunnel).and_then(|tunnel| tunnel.exit.as_ref());
            let saved: Vec<NodeId> =
                exit.iter().flat_map(|exit| &exit.nodes).map(|member| member.node).collect();
            let complete =
                |order: &[NodeId]| Applied { order: order.to_vec(), last_switch: None }.complete(&saved);
            let applied = intent.applied.get(&(*tunnel, self.node));
            applied.is_some_and(|applied| complete(applied) == complete(order))
        };
        let mut orders = self.orders();
        orders.accepted.retain(|tunnel, order| owns(tunnel) && !planned(tunnel, order));
        orders.proposed.retain(|tunnel, _| owns(tunnel));
    }
}
