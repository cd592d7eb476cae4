//! Who is considered at all: fail filter, then backup filter, then latency filter.
//!
//! A filter that would leave nobody does not apply. So the filters make tiers, and one after another they are used up: an
//! attempt that may fail is better than a refusal that must.

use super::marks::Health;
use super::select::{Candidate, Latency};

/// How far down a candidate stands; the first is used first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Passes every filter.
    Usable,
    /// Held back by the latency filter only.
    Slow,
    /// A backup that passes the others.
    Backup,
    /// A backup that the latency filter holds back too.
    SlowBackup,
    /// Left out because of failures: the last resort.
    Marked,
}

/// Where a candidate stands. `max_latency_us`: the limit of the latency filter, if there is one.
pub fn tier(candidate: &Candidate, max_latency_us: Option<u64>) -> Tier {
    let slow = max_latency_us.is_some_and(|limit| match candidate.latency {
        Latency::Unknown => false,
        Latency::Failed => true,
        Latency::Micros(us) => us > limit,
    });
    match (candidate.health, candidate.backup, slow) {
        (Health::Marked, _, _) => Tier::Marked,
        (Health::Clear | Health::Trial, false, false) => Tier::Usable,
        (Health::Clear | Health::Trial, false, true) => Tier::Slow,
        (Health::Clear | Health::Trial, true, false) => Tier::Backup,
        (Health::Clear | Health::Trial, true, true) => Tier::SlowBackup,
    }
}

/// The tier whose turn it is: the first that has a candidate not tried yet.
pub fn current_tier(candidates: &[Candidate], max_latency_us: Option<u64>) -> Option<Tier> {
    candidates.iter().filter(|c| !c.tried).map(|c| tier(c, max_latency_us)).min()
}
