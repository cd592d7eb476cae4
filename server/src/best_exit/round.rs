//! One round under way: which results are in, and who can be evaluated. Pure.

use super::legs::{Layout, OwnerPlan};
use shared::best_exit::{Candidate, Leg, LegFailure};
use shared::ids::NodeId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is known about a node when a round starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeState {
    /// Can be asked.
    Ready,
    /// Its agent is not connected, or has not said yet whose it is.
    Offline,
    /// Still answers the round before.
    Busy,
    /// Did not answer the last time; it is asked again, but others do not wait for it.
    Unresponsive {
        /// And still has not.
        busy: bool,
    },
}

/// One round.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) number: u64,
    /// Monotonic milliseconds.
    pub(super) started: u64,
    pub(super) layout: Arc<Layout>,
    /// With the monotonic milliseconds at which they came in.
    results: Vec<Option<(Leg, u64)>>,
    /// Legs that an owner still waits for, by owner; `None`: it is not evaluated (any more) in this round.
    outstanding: Vec<Option<usize>>,
    /// Who is asked and has not finished.
    pub(super) asked: BTreeSet<NodeId>,
    silent: BTreeSet<NodeId>,
    offline: BTreeSet<NodeId>,
    /// Legs whose users do not wait for them, except the owner that measures them.
    not_waited_for: BTreeSet<NodeId>,
}

/// What to do when a round has started.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Started {
    /// Who measures which legs.
    pub(super) asks: Vec<(NodeId, Vec<usize>)>,
    /// Owners that can be evaluated at once.
    pub(super) ready: Vec<usize>,
}

impl Running {
    /// Starts a round. Without `monitoring` nothing is measured and all owners are ready.
    pub(super) fn start(
        number: u64,
        started: u64,
        layout: Arc<Layout>,
        monitoring: bool,
        state: impl Fn(NodeId) -> NodeState,
    ) -> (Self, Started) {
        let mut round = Self {
            number,
            started,
            results: vec![None; layout.legs.len()],
            outstanding: vec![None; layout.owners.len()],
            asked: BTreeSet::new(),
            silent: BTreeSet::new(),
            offline: BTreeSet::new(),
            not_waited_for: BTreeSet::new(),
            layout: layout.clone(),
        };
        let mut begin = Started::default();
        if !monitoring {
            begin.ready = (0..layout.owners.len()).collect();
            return (round, begin);
        }
        let mut busy = BTreeSet::new();
        for (node, legs) in &layout.by_node {
            match state(*node) {
                NodeState::Offline => {
                    round.offline.insert(*node);
                    round.unmeasured(legs, "the node's agent is not connected");
                    continue;
                }
                NodeState::Busy => {
                    busy.insert(*node);
                    continue;
                }
                NodeState::Unresponsive { busy: still } => {
                    round.not_waited_for.insert(*node);
                    if still {
                        busy.insert(*node);
                        continue;
                    }
                }
                NodeState::Ready => {}
            }
            round.asked.insert(*node);
            begin.asks.push((*node, legs.clone()));
        }
        for (number, owner) in layout.owners.iter().enumerate() {
            if owner.candidates.is_empty() || round.offline.contains(&owner.key.1) {
                begin.ready.push(number);
                continue;
            }
            let late = |leg: &usize| {
                let from = layout.legs[*leg].from;
                busy.contains(&from) && (from == owner.key.1 || !round.not_waited_for.contains(&from))
            };
            // Evidence that is not in yet is neither for nor against anyone: this owner waits for the next round.
            if legs_of(owner).any(|leg| late(&leg)) {
                continue;
            }
            let waits = legs_of(owner).filter(|leg| round.waits_for(owner, *leg)).count();
            round.outstanding[number] = Some(waits);
            if waits == 0 {
                begin.ready.push(number);
            }
        }
        (round, begin)
    }

    /// Results came in; answers the owners that can be evaluated now.
    pub(super) fn measured(&mut self, legs: Vec<(usize, Leg)>, now: u64) -> Vec<usize> {
        let layout = self.layout.clone();
        let mut ready = Vec::new();
        for (leg, result) in legs {
            let Some(slot) = self.results.get_mut(leg) else { continue };
            if slot.replace((result, now)).is_some() {
                continue;
            }
            for user in &layout.users[leg] {
                let owner = &layout.owners[*user];
                let from = layout.legs[leg].from;
                if self.not_waited_for.contains(&from) && from != owner.key.1 {
                    continue;
                }
                if let Some(left) = &mut self.outstanding[*user] {
                    *left -= 1;
                    if *left == 0 {
                        ready.push(*user);
                    }
                }
            }
        }
        ready
    }

    /// A node did not answer in time (`silent`) or its connection ended; what it has not measured, nobody has.
    pub(super) fn gave_up(&mut self, node: NodeId, silent: bool, now: u64) -> Vec<usize> {
        if silent {
            self.silent.insert(node);
        } else {
            self.offline.insert(node);
        }
        let layout = self.layout.clone();
        let missing = layout.by_node.get(&node).into_iter().flatten();
        let missing = missing.filter(|leg| self.results[**leg].is_none());
        let reason = if silent { "the node did not answer in time" } else { "the node's connection ended" };
        let legs = missing.map(|leg| (*leg, Leg::Unmeasured { reason: reason.to_owned() })).collect();
        self.measured(legs, now)
    }

    /// A node has finished; true if it was the last one.
    pub(super) fn finished(&mut self, node: NodeId) -> bool {
        self.asked.remove(&node);
        self.asked.is_empty()
    }

    /// Whether the owner answered: it is connected and was not silent.
    pub(super) fn owner_online(&self, owner: &OwnerPlan) -> bool {
        !self.offline.contains(&owner.key.1) && !self.silent.contains(&owner.key.1)
    }

    /// Whether a measurement of this owner came in longer than `max_age_ms` ago: it waited for a node that never
    /// answered, and old evidence is no evidence.
    pub(super) fn is_stale(&self, owner: &OwnerPlan, now: u64, max_age_ms: u64) -> bool {
        let measured = |leg: usize| self.results[leg].as_ref().filter(|(leg, _)| leg.numbers().is_some());
        legs_of(owner).filter_map(measured).any(|(_, at)| now.saturating_sub(*at) > max_age_ms)
    }

    /// What the round says about an owner's exits, in saved order.
    pub(super) fn candidates(&self, owner: &OwnerPlan) -> Vec<Candidate> {
        if owner.candidates.is_empty() {
            // Nothing was measured, since there is nothing to decide; how many there are says why.
            let none = || Leg::Unmeasured { reason: "nothing to decide".to_owned() };
            let candidate = |exit: &NodeId| Candidate { exit: *exit, leg_a: none(), leg_b: none() };
            return owner.saved.iter().map(candidate).collect();
        }
        let result = |leg: usize| {
            let missing = || Leg::Unmeasured { reason: "the node did not answer the last time".to_owned() };
            self.results[leg].as_ref().map_or_else(missing, |(leg, _)| leg.clone())
        };
        let candidate = |plan: &super::legs::CandidatePlan| Candidate {
            exit: plan.exit,
            leg_a: plan.leg_a.map_or(Leg::Failed { reason: LegFailure::Unreachable }, result),
            leg_b: result(plan.leg_b),
        };
        owner.candidates.iter().map(candidate).collect()
    }

    /// Everything that was asked and answered, by leg.
    pub(super) fn results(&self) -> impl Iterator<Item = (usize, &Leg)> {
        let asked = |leg: &usize| !self.offline.contains(&self.layout.legs[*leg].from);
        let results = self.results.iter().enumerate();
        results.filter_map(move |(leg, result)| Some((leg, &result.as_ref().filter(|_| asked(&leg))?.0)))
    }

    fn unmeasured(&mut self, legs: &[usize], reason: &str) {
        for leg in legs {
            self.results[*leg] = Some((Leg::Unmeasured { reason: reason.to_owned() }, self.started));
        }
    }

    fn waits_for(&self, owner: &OwnerPlan, leg: usize) -> bool {
        let from = self.layout.legs[leg].from;
        self.results[leg].is_none() && (from == owner.key.1 || !self.not_waited_for.contains(&from))
    }
}

/// Every leg of an owner once.
fn legs_of(owner: &OwnerPlan) -> impl Iterator<Item = usize> {
    let legs: BTreeSet<usize> =
        owner.candidates.iter().flat_map(|c| c.leg_a.into_iter().chain([c.leg_b])).collect();
    legs.into_iter()
}

#[cfg(test)]
#[path = "round_tests.rs"]
mod tests;
