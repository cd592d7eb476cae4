//! Which node of a group the next attempt uses: pure, with time and randomness as parameters.
//!
//! The filters say who is considered ([`super::filter`]), then the strategy chooses.

use super::filter::{Tier, current_tier, tier};
use super::hash::affinity;
use super::marks::Health;
pub use super::policy::Policy;
use shared::policy::Network;

/// How a group chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The strategy.
    pub policy: Policy,
    /// Limit of the latency filter.
    pub max_latency_us: Option<u64>,
    /// For [`Policy::LowestLatency`]: how much faster another node must be to take the place of the one in use.
    pub tolerance_us: u64,
}

/// What the last probe of a node said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// There was none.
    Unknown,
    /// It failed.
    Failed,
    /// It took so many microseconds.
    Micros(u64),
}

/// What selection knows of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What the fail filter thinks of it.
    pub health: Health,
    /// Only used when no other node is usable.
    pub backup: bool,
    /// For [`Policy::Rand`]; 0 counts as 1.
    pub weight: u32,
    /// What the last probe said.
    pub latency: Latency,
    /// Stays the same wherever the node stands; for [`Policy::ConsistentHash`].
    pub identity: u32,
    /// This connection has tried it already.
    pub tried: bool,
}

impl Candidate {
    /// Nobody, and not to be chosen.
    pub const NOBODY: Candidate = Candidate {
        health: Health::Clear,
        backup: false,
        weight: 1,
        latency: Latency::Unknown,
        identity: 0,
        tried: true,
    };
}

/// What makes one connection's choice differ from another's.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Counts the group's connections.
    pub turn: u64,
    /// Uniform over all values.
    pub random: u64,
    /// See [`super::hash::ClientKey`].
    pub client: u32,
    /// The node that was used last.
    pub current: Option<usize>,
    /// What the connection is; only groups that are decided for look at it.
    pub network: Network,
}

/// A choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked {
    /// Who.
    pub index: usize,
    /// Where it stands.
    pub tier: Tier,
}

/// The node to try next; `None` when this connection has tried them all.
pub fn pick(selection: &Selection, candidates: &[Candidate], draw: &Draw) -> Option<Picked> {
    let turn = current_tier(candidates, selection.max_latency_us)?;
    let allowed = |c: &Candidate| !c.tried && tier(c, selection.max_latency_us) == turn;
    let index = match turn {
        // The last resort goes in order, whatever the strategy.
        Tier::Marked => candidates.iter().position(allowed),
        Tier::Usable | Tier::Slow | Tier::Backup | Tier::SlowBackup => {
            choose(selection, candidates, allowed, draw)
        }
    }?;
    Some(Picked { index, tier: turn })
}

/// Applies the strategy to the candidates that `allowed` lets through.
fn choose(
    selection: &Selection,
    candidates: &[Candidate],
    allowed: impl Fn(&Candidate) -> bool,
    draw: &Draw,
) -> Option<usize> {
    let passing = || candidates.iter().enumerate().filter(|(_, c)| allowed(c));
    let at = |place: u64| passing().nth(usize::try_from(place).ok()?).map(|(i, _)| i);
    let count = passing().count() as u64;
    if count == 0 {
        return None;
    }
    match selection.policy {
        Policy::Fifo | Policy::Parallel => at(0),
        Policy::Round => at(draw.turn % count),
        Policy::Hash => at(u64::from(draw.client) % count),
        Policy::ConsistentHash => {
            let (index, _) = passing().max_by_key(|(_, c)| affinity(draw.client, c.identity))?;
            Some(index)
        }
        Policy::Rand => {
            let weight = |c: &Candidate| u64::from(c.weight.max(1));
            let mut left = draw.random % passing().map(|(_, c)| weight(c)).sum::<u64>();
            for (i, candidate) in passing() {
                match left.checked_sub(weight(candidate)) {
                    Some(rest) => left = rest,
                    None => return Some(i),
                }
            }
            None
        }
        Policy::LowestLatency => {
            let measured = || {
                passing().filter_map(|(i, c)| match c.latency {
                    Latency::Micros(us) => Some((i, us)),
                    Latency::Unknown | Latency::Failed => None,
                })
            };
            // The first of equals.
            let Some((best, lowest)) = measured().min_by_key(|(_, us)| *us) else { return at(0) };
            let good_enough = |us: u64| us <= lowest.saturating_add(selection.tolerance_us);
            let stays = measured().any(|(i, us)| Some(i) == draw.current && good_enough(us));
            Some(draw.current.filter(|_| stays && selection.tolerance_us > 0).unwrap_or(best))
        }
    }
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
