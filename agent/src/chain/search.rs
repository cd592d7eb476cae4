//! What one client connection has learnt on its way through the alternatives of a chain.

use super::Chain;
use super::blame::{Cause, ChainFailure, PathFailure};
use super::dial::{Through, Up};
use super::failure::FailureKind;
use super::filter::Tier;
use super::group::Attempt;
use super::hash::ClientKey;
use super::node::Node;
use super::walk::Walk;
use crate::options::RuntimeOptions;
use crate::relay::client::RelayError;
use shared::policy::Network;

/// One connection's search for a path.
pub(super) struct Search<'a> {
    chain: &'a Chain,
    pub(super) walk: Walk<'a>,
    /// Failures that their nodes blamed on the target. Held against them only if another node reaches it: a target that
    /// is down must not push every exit aside.
    in_doubt: Vec<(Attempt, &'a Node)>,
    last: Option<(&'a Node, Cause)>,
    nodes_failed: bool,
}

/// A path that is tried.
pub(super) struct Entrant<'a> {
    /// One per hop.
    pub(super) indices: Vec<usize>,
    /// One per hop.
    pub(super) nodes: Vec<&'a Node>,
    path: Vec<Attempt>,
}

impl Entrant<'_> {
    /// Where it stands among those that are tried at once.
    pub(super) fn tier(&self, chain: &Chain) -> Tier {
        let at_once = self.path.iter().zip(&chain.hops).filter(|(_, hop)| hop.group.is_parallel());
        at_once.map(|(attempt, _)| attempt.tier()).max().unwrap_or(Tier::Usable)
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(
        chain: &'a Chain,
        client: ClientKey,
        network: Network,
        options: &'a RuntimeOptions,
    ) -> Self {
        let walk = Walk::new(chain, client, network, options);
        Self { chain, walk, in_doubt: Vec::new(), last: None, nodes_failed: false }
    }

    /// The chain that is searched.
    pub(super) fn chain(&self) -> &'a Chain {
        self.chain
    }

    /// The next path; `None` when there is none left in this round, or for now.
    pub(super) fn next(&mut self) -> Option<Entrant<'a>> {
        let path = self.walk.next()?;
        let indices: Vec<_> = path.iter().map(Attempt::index).collect();
        let nodes = self.chain.hops.iter().zip(&indices).map(|(hop, i)| &hop.nodes[*i]).collect();
        Some(Entrant { indices, nodes, path })
    }

    /// Whether a path has failed already.
    pub(super) fn has_tried(&self) -> bool {
        self.last.is_some()
    }

    /// A path has failed: it is not tried again, and its node marked if it is to blame.
    pub(super) fn failed(&mut self, entrant: Entrant<'a>, PathFailure { hop, cause }: PathFailure) {
        let Entrant { indices, nodes, path } = entrant;
        let node = nodes[hop];
        let attempt = path.into_iter().nth(hop);
        if let (Some(attempt), Some(kind)) = (&attempt, cause.kind()) {
            attempt.count_failure(kind);
        }
        self.nodes_failed |= !matches!(cause, Cause::Target(_));
        match &cause {
            Cause::Node { error, everywhere, .. } => {
                self.walk.strike(&indices, hop, *everywhere);
                attempt.into_iter().for_each(|attempt| mark(self.chain, node, attempt, error));
            }
            Cause::Hurried { .. } => self.walk.strike(&indices, hop, false),
            Cause::Target(_) => {
                self.walk.strike(&indices, hop, true);
                self.in_doubt.extend(attempt.map(|attempt| (attempt, node)));
            }
            Cause::ClientGone => {}
        }
        self.last = Some((node, cause));
    }

    /// A path is up.
    pub(super) fn won(self, entrant: Entrant<'a>, up: Up) -> Through {
        for (attempt, node) in self.in_doubt {
            mark(self.chain, node, attempt, "others reach the target");
        }
        settle(self.chain, &entrant.nodes, entrant.path, up)
    }

    /// Why there is no way.
    pub(super) fn verdict(self, out_of_time: bool) -> ChainFailure {
        match self.last {
            None if out_of_time => ChainFailure::Time("none was tried".to_owned()),
            None => ChainFailure::Empty,
            Some((_, Cause::Target(fault))) if !self.nodes_failed => ChainFailure::Target(fault),
            Some((_, Cause::ClientGone)) => ChainFailure::ClientGone,
            Some((node, cause)) => {
                let text = format!("{}: {cause}", node.config.name);
                match cause.kind() {
                    Some(kind) if !out_of_time => ChainFailure::Nodes { last: text, kind },
                    _ => ChainFailure::Time(text),
                }
            }
        }
    }
}

/// An answer that came when payload had gone out already.
fn of_late_answer(error: &RelayError) -> FailureKind {
    match error {
        RelayError::Status(status) => FailureKind::of_status(*status),
        RelayError::Wire(_) => FailureKind::Protocol,
        RelayError::Io(error) => FailureKind::of_answer(error),
    }
}

fn mark(chain: &Chain, node: &Node, attempt: Attempt, reason: &str) {
    let (chain, node, addr) = (&chain.config.name, &node.config.name, &node.config.addr);
    if attempt.mark() {
        tracing::info!(chain, node, addr, reason, "node is left out");
    } else {
        tracing::debug!(chain, node, addr, reason, "node failed");
    }
}

/// A path is up: its nodes are counted, and cleared of marks as soon as the answer is known to be good.
fn settle(chain: &Chain, nodes: &[&Node], path: Vec<Attempt>, up: Up) -> Through {
    let open = path.iter().map(Attempt::open).collect();
    let names: Vec<_> = nodes.iter().map(|node| node.config.name.clone()).collect();
    let chain = chain.config.name.clone();
    let clear = move |path: Vec<Attempt>| {
        for (attempt, node) in path.into_iter().zip(&names) {
            if attempt.succeed() {
                tracing::info!(chain, node, "node is back");
            }
        }
    };
    let stream = match up {
        Up::Answered(stream) => {
            clear(path);
            stream
        }
        Up::Unanswered(unanswered) => unanswered.into_stream(Some(Box::new(move |answer| match answer {
            Ok(()) => clear(path),
            Err(error) => {
                // Payload has gone out, so nobody else can say whether it is the target: the node takes the blame.
                if let Some(attempt) = path.into_iter().next_back() {
                    attempt.count_failure(of_late_answer(error));
                    if attempt.mark() {
                        tracing::info!(%error, "node is left out");
                    }
                }
            }
        }))),
    };
    Through { stream, open }
}
