//! The order in which one client connection tries the paths through a chain.

use super::group::Attempt;
use super::hash::ClientKey;
use super::select::Draw;
use super::{Chain, Hop};
use crate::options::RuntimeOptions;
use shared::policy::Network;
use std::collections::{BTreeMap, BTreeSet};

/// One connection's way through the alternatives: each path at most once per round.
pub(super) struct Walk<'a> {
    chain: &'a Chain,
    options: &'a RuntimeOptions,
    /// One per hop.
    draws: Vec<Draw>,
    /// Nodes this connection has no more use for, whatever leads to them; one set per hop.
    given_up: Vec<BTreeSet<usize>>,
    /// Nodes that are tried at this moment, where several are at once; one set per hop.
    held: Vec<BTreeSet<usize>>,
    /// Nodes that were tried behind a certain path of earlier hops.
    cut: BTreeMap<Vec<usize>, BTreeSet<usize>>,
}

impl<'a> Walk<'a> {
    /// `network` is what the last node is asked for; those before it are asked for the next node.
    pub(super) fn new(
        chain: &'a Chain,
        client: ClientKey,
        network: Network,
        options: &'a RuntimeOptions,
    ) -> Self {
        let last = chain.hops.len().saturating_sub(1);
        let network = |hop| if hop == last { network } else { Network::Tcp4 };
        let draw = |(hop, h): (usize, &Hop)| h.group.draw(client, network(hop), &options.random);
        let draws = chain.hops.iter().enumerate().map(draw).collect();
        let given_up = vec![BTreeSet::new(); chain.hops.len()];
        let held = given_up.clone();
        Self { chain, options, draws, given_up, held, cut: BTreeMap::new() }
    }

    /// The next path, one node per hop; `None` when there is none left, and for a chain without hops.
    pub(super) fn next(&mut self) -> Option<Vec<Attempt>> {
        let hops = &self.chain.hops;
        let mut path: Vec<Attempt> = Vec::with_capacity(hops.len());
        let mut indices: Vec<usize> = Vec::with_capacity(hops.len());
        while path.len() < hops.len() {
            let at = path.len();
            let cut = self.cut.get(&indices);
            let tried = |i: usize| {
                self.given_up[at].contains(&i)
                    || self.held[at].contains(&i)
                    || cut.is_some_and(|cut| cut.contains(&i))
            };
            match hops[at].group.pick(tried, &self.draws[at], &self.options.clock) {
                Some(attempt) => {
                    indices.push(attempt.index());
                    path.push(attempt);
                }
                // Nothing left for now; what is held may come back.
                None if self.held.iter().any(|held| !held.is_empty()) => return None,
                None => {
                    // Nothing left behind this path: its last node leads nowhere.
                    path.pop();
                    let dead_end = indices.pop()?;
                    self.cut.entry(indices.clone()).or_default().insert(dead_end);
                }
            }
        }
        (!path.is_empty()).then_some(path)
    }

    /// This path is being tried: until it is released, its nodes are not offered again where several are tried at once.
    pub(super) fn hold(&mut self, indices: &[usize]) {
        for ((held, hop), index) in self.held.iter_mut().zip(&self.chain.hops).zip(indices) {
            if hop.group.is_parallel() {
                held.insert(*index);
            }
        }
    }

    /// This path is no longer being tried.
    pub(super) fn release(&mut self, indices: &[usize]) {
        for (held, index) in self.held.iter_mut().zip(indices) {
            held.remove(index);
        }
    }

    /// The node at `hop` of a path could not be reached or did not do its part. `everywhere`: no other way to it would
    /// help.
    pub(super) fn strike(&mut self, indices: &[usize], hop: usize, everywhere: bool) {
        if everywhere || hop == 0 {
            self.given_up[hop].insert(indices[hop]);
        } else {
            self.cut.entry(indices[..hop].to_vec()).or_default().insert(indices[hop]);
        }
    }

    /// Whether nothing is left in this round when this path fails.
    pub(super) fn is_last(&self, indices: &[usize]) -> bool {
        indices.iter().enumerate().all(|(hop, index)| {
            let cut = self.cut.get(&indices[..hop]);
            let used = |i: &usize| {
                i == index || self.given_up[hop].contains(i) || cut.is_some_and(|cut| cut.contains(i))
            };
            let Hop { nodes, group, .. } = &self.chain.hops[hop];
            (0..nodes.len()).all(|i| used(&i) || !group.offers(i, &self.draws[hop]))
        })
    }

    /// Begins another round.
    pub(super) fn restart(&mut self) {
        self.given_up.iter_mut().for_each(BTreeSet::clear);
        self.cut.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn client() -> ClientKey {
        std::net::IpAddr::from([127, 0, 0, 1]).into()
    }

    fn chain(hops: &[&[&str]]) -> Chain {
        let hops: Vec<_> = hops
            .iter()
            .map(|nodes| {
                let nodes: Vec<_> = nodes
                    .iter()
                    .enumerate()
                    .map(|(i, name)| {
                        json!({"name": name, "addr": format!("192.0.2.{}:1", i + 1),
                            "connector": {"type": "relay"}, "dialer": {"type": "tcp"}})
                    })
                    .collect();
                json!({"name": "h", "selector": {"strategy": "fifo"}, "nodes": nodes})
            })
            .collect();
        Chain::build(&serde_json::from_value(json!({"name": "c", "hops": hops})).unwrap(), None).unwrap()
    }

    /// The paths tried when every one fails at hop `at`.
    fn paths(chain: &Chain, at: usize, everywhere: bool) -> Vec<Vec<usize>> {
        let options = RuntimeOptions::default();
        let mut walk = Walk::new(chain, client(), Network::Tcp4, &options);
        let mut seen = Vec::new();
        while let Some(path) = walk.next() {
            let indices: Vec<_> = path.iter().map(Attempt::index).collect();
            let last = walk.is_last(&indices);
            walk.strike(&indices, at, everywhere);
            seen.push((indices, last));
        }
        // Nothing comes after a path that was called the last.
        let called: Vec<_> = seen.iter().map(|(_, last)| *last).collect();
        assert!(called.iter().rev().skip(1).all(|last| !last), "{seen:?}");
        seen.into_iter().map(|(indices, _)| indices).collect()
    }

    #[tokio::test]
    async fn one_hop_tries_each_node_once() {
        assert_eq!(paths(&chain(&[&["a", "b", "c"]]), 0, false), [[0], [1], [2]]);
    }

    #[tokio::test]
    async fn a_later_node_is_tried_behind_every_earlier_one_unless_it_is_given_up() {
        let two = chain(&[&["a", "b"], &["x", "y"]]);
        assert_eq!(paths(&two, 1, false), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        assert_eq!(paths(&two, 1, true), [[0, 0], [0, 1]]);
        assert_eq!(paths(&two, 0, false), [[0, 0], [1, 0]]);
    }

    #[tokio::test]
    async fn the_last_way_is_known_as_such() {
        let two = chain(&[&["a", "b"], &["x", "y"]]);
        let options = RuntimeOptions::default();
        let mut walk = Walk::new(&two, client(), Network::Tcp4, &options);
        assert!(!walk.is_last(&[0, 0]));
        walk.strike(&[0, 0], 1, true);
        assert!(!walk.is_last(&[0, 1]));
        walk.strike(&[0, 0], 0, false);
        assert!(walk.is_last(&[1, 1]));
        walk.restart();
        assert!(!walk.is_last(&[1, 1]));
        assert!(Walk::new(&chain(&[&["a"], &["x"]]), client(), Network::Tcp4, &options).is_last(&[0, 0]));
    }

    #[tokio::test]
    async fn nothing_in_it_means_no_path() {
        assert!(paths(&chain(&[]), 0, false).is_empty());
        assert!(paths(&chain(&[&[]]), 0, false).is_empty());
        assert!(paths(&chain(&[&["a"], &[]]), 0, false).is_empty());
        assert!(paths(&chain(&[&[], &["x"]]), 0, false).is_empty());
    }

    #[tokio::test]
    async fn another_round_begins_at_the_front() {
        let chain = chain(&[&["a", "b"]]);
        let options = RuntimeOptions::default();
        let mut walk = Walk::new(&chain, client(), Network::Tcp4, &options);
        for expected in [0, 1] {
            let index = walk.next().unwrap()[0].index();
            assert_eq!(index, expected);
            walk.strike(&[index], 0, true);
        }
        assert!(walk.next().is_none());
        walk.restart();
        assert_eq!(walk.next().unwrap()[0].index(), 0);
    }
}
