//! Which member a group uses, from everything that is known.

use super::build::Member;
use super::choose::{self, Edge, Standing};
use super::event::Context;
use super::fallback::Phase;
use super::forest::{Forest, Group};
use super::health::State;
use super::network::Network;
use super::priority::Priority;
use super::schedule::Schedule;
use super::spec::{Fallback, Latency, Policy};
use crate::best_exit::MonoMs;

impl Forest {
    pub(super) fn decide(&self, at: usize, network: Network) -> Option<usize> {
        let group = &self.groups[at];
        let current = group.chosen[network.index()];
        let least = self.highest_priority(group, network);
        let standings = move |latency| {
            (0..group.members.len()).map(move |m| self.preferred(group, m, network, latency, least))
        };
        match &group.spec.policy {
            Policy::Selector { default, .. } => {
                let of = |name: &String| group.spec.members.iter().position(|member| member == name);
                Some(group.manual.or_else(|| default.as_ref().and_then(of)).unwrap_or(0))
            }
            Policy::Fixed(index) => Some(*index),
            Policy::UrlTest { measure, .. } => {
                let best = || {
                    let tolerance = measure.tolerance_ms as f64;
                    choose::lowest(standings(Latency::Last), current, tolerance, Edge::Exceeded)
                };
                // Within a round the first answers must not win for being first. A dead member is left at once.
                let quiet = group.schedule.as_ref().is_none_or(Schedule::is_quiet);
                let usable = current.filter(|member| {
                    matches!(
                        self.preferred(group, *member, network, Latency::Last, least),
                        Standing::Alive(_) | Standing::Unknown
                    )
                });
                if quiet { best() } else { usable.or_else(best) }
            }
            Policy::Min { latency, measure, .. } => {
                let tolerance = measure.tolerance_ms as f64;
                choose::lowest(standings(*latency), current, tolerance, Edge::Reached)
            }
            Policy::FixedFallback { index, fallback, measure, .. } => {
                let index = *index;
                let lacks = self.standing(at, index, network, Latency::Last) == Standing::Unsupported;
                if group.phases[network.index()] == Phase::Primary && !lacks {
                    return Some(index);
                }
                let latency = match fallback {
                    Fallback::Random => Latency::Moving,
                    Fallback::Min(latency) => *latency,
                };
                let tolerance = measure.tolerance_ms as f64;
                let others = standings(latency).enumerate().map(move |(member, standing)| {
                    if member == index { Standing::Unsupported } else { standing }
                });
                let current = current.filter(|member| *member != index);
                let best = choose::lowest(others, current, tolerance, Edge::Reached);
                // Dead as well: then the fixed one is no worse.
                let usable = best.filter(|member| {
                    !matches!(
                        self.standing(at, *member, network, Latency::Last),
                        Standing::Dead | Standing::Unsupported
                    )
                });
                usable.or((!lacks).then_some(index)).or(best)
            }
            // Refused when the forest is made.
            Policy::Fifo
            | Policy::Round
            | Policy::Rand
            | Policy::Hash { .. }
            | Policy::Parallel
            | Policy::LowestLatency { .. }
            | Policy::Best => None,
        }
    }

    /// The member for one connection; only a random fallback looks further than at what was decided.
    pub(super) fn member(&self, group: &Group, context: Context) -> Option<usize> {
        let chosen = group.chosen[context.network.index()]?;
        let Policy::FixedFallback { index, fallback: Fallback::Random, .. } = group.spec.policy else {
            return Some(chosen);
        };
        if chosen == index {
            return Some(chosen);
        }
        let alive = |member: &usize| {
            *member != index
                && matches!(
                    self.standing_of(group, *member, context.network, Latency::Last),
                    Standing::Alive(_)
                )
        };
        let count = (0..group.members.len()).filter(alive).count();
        if count == 0 {
            return Some(chosen);
        }
        let nth = usize::try_from(context.random % count as u64).unwrap_or(0);
        (0..group.members.len()).filter(alive).nth(nth)
    }

    /// The highest priority of a living member; `None` where no member has any.
    pub(super) fn highest_priority(&self, group: &Group, network: Network) -> Option<u32> {
        if self.leaves.iter().all(|leaf| leaf.priority == Priority::default()) {
            return None;
        }
        // The member that is returned to anyway does not keep the others away.
        let own = match group.spec.policy {
            Policy::FixedFallback { index, .. } => Some(index),
            _ => None,
        };
        let alive = |member: &usize| {
            Some(*member) != own
                && matches!(self.standing_of(group, *member, network, Latency::Last), Standing::Alive(_))
        };
        (0..group.members.len()).filter(alive).map(|member| self.priority(group, member, network)).max()
    }

    /// The priority of a member now.
    pub(super) fn priority(&self, group: &Group, member: usize, network: Network) -> u32 {
        let Some(leaf) = self.leaf_of(group, member, network) else { return 0 };
        let known = group.priorities.get(&leaf);
        let measured = known.and_then(|known| network.evidence().iter().find_map(|e| known[e.index()]));
        measured.unwrap_or_else(|| self.leaves[leaf].priority.unmeasured())
    }

    /// How a member stands where the highest priority of a living one is `least`: those that live with a lower one are
    /// no choice.
    fn preferred(
        &self,
        group: &Group,
        member: usize,
        network: Network,
        latency: Latency,
        least: Option<u32>,
    ) -> Standing {
        let standing = self.standing_of(group, member, network, latency);
        let below = || least.is_some_and(|least| self.priority(group, member, network) < least);
        if matches!(standing, Standing::Alive(_)) && below() { Standing::Unsupported } else { standing }
    }

    pub(super) fn standing(
        &self,
        group: usize,
        member: usize,
        network: Network,
        latency: Latency,
    ) -> Standing {
        self.standing_of(&self.groups[group], member, network, latency)
    }

    pub(super) fn standing_of(
        &self,
        group: &Group,
        member: usize,
        network: Network,
        latency: Latency,
    ) -> Standing {
        let Some(leaf) = self.leaf_of(group, member, network) else { return Standing::Unsupported };
        let Some(health) = group.health.get(&leaf) else { return Standing::Unknown };
        for evidence in network.evidence() {
            let own = *evidence == network || evidence.index() % 2 == network.index() % 2;
            let health = &health[evidence.index()];
            match health.state {
                State::NoData => {}
                State::NotApplicable if own => return Standing::Unsupported,
                State::NotApplicable => {}
                State::Dead => return Standing::Dead,
                State::Alive => {
                    let ms = health.latency(latency).unwrap_or(0.0);
                    return Standing::Alive(ms + self.leaves[leaf].add_latency_ms);
                }
            }
        }
        Standing::Unknown
    }

    pub(super) fn alive_since(&self, group: usize, member: usize, network: Network) -> Option<MonoMs> {
        let health = self.groups[group].health.get(&self.leaf(group, member, network)?)?;
        let speaks = |evidence: &&Network| health[evidence.index()].state == State::Alive;
        health[network.evidence().iter().find(speaks)?.index()].alive_since
    }

    /// When a `fixed_fallback` whose member is alive again lets traffic return to it.
    pub(super) fn returns_at(&self, group: &Group, network: Network) -> Option<MonoMs> {
        let Policy::FixedFallback { index, return_delay_ms, .. } = group.spec.policy else { return None };
        if group.phases[network.index()] == Phase::Primary
            || !matches!(self.standing_of(group, index, network, Latency::Last), Standing::Alive(_))
        {
            return None;
        }
        let at = self.groups.iter().position(|other| std::ptr::eq(other, group))?;
        Some(self.alive_since(at, index, network)?.saturating_add(return_delay_ms))
    }

    pub(super) fn leaf(&self, group: usize, member: usize, network: Network) -> Option<usize> {
        self.leaf_of(&self.groups[group], member, network)
    }

    /// The leaf that a member stands for now: itself, or what the groups inside have chosen, to any depth.
    pub(super) fn leaf_of(&self, group: &Group, member: usize, network: Network) -> Option<usize> {
        let mut member = *group.members.get(member)?;
        loop {
            match member {
                Member::Leaf(leaf) => return self.carries(leaf, network).then_some(leaf),
                Member::Group(inner) => {
                    let inner = &self.groups[inner];
                    member = inner.members[inner.chosen[network.index()]?];
                }
            }
        }
    }

    pub(super) fn carries(&self, leaf: usize, network: Network) -> bool {
        let leaf = &self.leaves[leaf];
        if network.is_udp() { leaf.udp } else { leaf.tcp }
    }
}
