//! What a panel is told of a group: who is in use, and why.

use super::steering::Steering;
use shared::link::{GroupChange, GroupState, InUse, MemberInUse, MemberState};
use shared::policy::health::State;
use shared::policy::{Latency, Network, Policy, Why};
use std::sync::PoisonError;

/// By what panels know the networks, in the order of [`Network::ALL`].
const NETWORKS: [&str; 4] = ["tcp4", "tcp6", "udp4", "udp6"];

/// A change of the member in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed {
    from: usize,
    why: Why,
    at_ms: u64,
}

impl Steering {
    /// Another member is in use from now on.
    pub(super) fn changed(&self, network: Network, from: usize, why: Why, at_ms: u64) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes[network.index()] = Some(Changed { from, why, at_ms });
    }

    /// The group at this moment.
    pub(crate) fn state_now(&self, now_ms: u64) -> GroupState {
        let published = self.published();
        let changes = *self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |member: usize| self.members().get(member).cloned();
        let health = |member: usize, network: Network| {
            let known = published.health.get(member).map(|health| health[network.index()].clone());
            known.unwrap_or_default()
        };
        let in_use = |(network, text): (Network, &str)| {
            let member = *published.orders[network.index()].members.first()?;
            let why = why(self.policy(), published.manual, member, health(member, network).state);
            let change = changes[network.index()].and_then(|Changed { from, why, at_ms }| {
                Some(GroupChange { from: name(from)?, why, ago_ms: now_ms.saturating_sub(at_ms) })
            });
            Some((text.to_owned(), MemberInUse { member: name(member)?, why, change }))
        };
        let member = |(at, name): (usize, &String)| {
            let health = health(at, Network::Tcp4);
            MemberState {
                name: name.clone(),
                state: health.state,
                latency_ms: health.latency(Latency::Last),
                average_ms: health.latency(Latency::Moving),
                age_ms: health.at.map(|at| now_ms.saturating_sub(at)),
                failures: health.failures,
            }
        };
        GroupState {
            name: self.name().to_owned(),
            policy: self.policy().to_string(),
            now: Network::ALL.into_iter().zip(NETWORKS).filter_map(in_use).collect(),
            choice: published.manual.and_then(name),
            members: self.members().iter().enumerate().map(member).collect(),
        }
    }
}

/// Why this member is the one in use.
fn why(policy: &Policy, manual: Option<usize>, member: usize, state: State) -> InUse {
    match policy {
        Policy::Selector { .. } if manual == Some(member) => InUse::Chosen,
        Policy::Selector { .. } => InUse::Default,
        Policy::Fixed(_) => InUse::Fixed,
        Policy::FixedFallback { index, .. } if *index == member => InUse::Fixed,
        _ => match state {
            State::Dead => InUse::LastResort,
            State::NoData | State::NotApplicable => InUse::Untested,
            State::Alive if matches!(policy, Policy::FixedFallback { .. }) => InUse::Fallback,
            State::Alive => InUse::Fastest,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::policy::parse;

    #[test]
    fn every_member_in_use_has_its_reason() {
        for (policy, manual, member, state, expected) in [
            ("selector", Some(1), 1, State::NoData, InUse::Chosen),
            ("selector", None, 0, State::NoData, InUse::Default),
            ("fixed(1)", None, 1, State::Dead, InUse::Fixed),
            ("fixed_fallback(0)", None, 0, State::Alive, InUse::Fixed),
            ("fixed_fallback(0)", None, 1, State::Alive, InUse::Fallback),
            ("fixed_fallback(0)", None, 1, State::Dead, InUse::LastResort),
            ("urltest", None, 1, State::Alive, InUse::Fastest),
            ("min", None, 0, State::NoData, InUse::Untested),
            ("min", None, 0, State::Dead, InUse::LastResort),
        ] {
            let policy_read = parse(policy).unwrap().policy;
            assert_eq!(why(&policy_read, manual, member, state), expected, "{policy}");
        }
    }
}
