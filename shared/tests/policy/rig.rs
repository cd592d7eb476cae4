//! Forests for the tests, and the shorthand to play with them.

use shared::policy::*;
use std::collections::BTreeMap;

pub(crate) const TCP: Network = Network::Tcp4;
pub(crate) const UDP: Network = Network::Udp4;

pub(crate) fn policy(text: &str) -> Policy {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).policy
}

pub(crate) fn leaves(names: &[&str]) -> Vec<Leaf> {
    names.iter().copied().map(Leaf::new).collect()
}

pub(crate) fn group(name: &str, members: &[&str], policy: Policy) -> GroupSpec {
    GroupSpec { name: name.into(), members: members.iter().map(|name| (*name).to_owned()).collect(), policy }
}

/// One group `g` over leaves `n0`, `n1`, `n2`, … .
pub(crate) fn over(count: usize, text: &str) -> Forest {
    with_policy(count, policy(text))
}

pub(crate) fn with_policy(count: usize, policy: Policy) -> Forest {
    let names: Vec<String> = (0..count).map(|i| format!("n{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Forest::new(leaves(&names), vec![group("g", &names, policy)], &BTreeMap::new()).unwrap()
}

pub(crate) fn stored(choices: &[(&str, &str)]) -> BTreeMap<String, String> {
    choices.iter().map(|(group, member)| ((*group).to_owned(), (*member).to_owned())).collect()
}

/// TCP over IPv4 was tested.
pub(crate) fn tcp(outcome: Outcome) -> [Option<Outcome>; 4] {
    [Some(outcome), None, None, None]
}

pub(crate) fn test(forest: &mut Forest, leaf: usize, outcome: Outcome, now: u64) -> Vec<Effect> {
    forest.observe(&Event::Tested { group: 0, leaf, outcomes: tcp(outcome) }, now)
}

/// One test of each leaf; `None`: it failed.
pub(crate) fn round(forest: &mut Forest, delays: &[Option<f64>], now: u64) -> Vec<Effect> {
    let mut effects = Vec::new();
    for (leaf, delay) in delays.iter().enumerate() {
        effects.extend(test(forest, leaf, delay.map_or(Outcome::Failed, Outcome::Ok), now));
    }
    effects
}

pub(crate) fn pick(forest: &Forest, network: Network) -> Option<usize> {
    forest.pick(0, Context { network, random: 0 })
}

/// The leaves that are to be tested.
pub(crate) fn tests(effects: &[Effect]) -> Vec<usize> {
    let of = |effect: &Effect| match effect {
        Effect::Test { leaf, .. } => Some(*leaf),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

pub(crate) fn interrupted(effects: &[Effect]) -> Vec<(Network, usize)> {
    let of = |effect: &Effect| match effect {
        Effect::Interrupt { network, member, .. } => Some((*network, *member)),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}
