//! The rules that compare members.

/// One member as a latency rule sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// It cannot carry the network at all.
    Unsupported,
    /// Tested, and found dead.
    Dead,
    /// Nothing known, or alive without a latency.
    Unknown,
    /// Alive, with so many milliseconds.
    Alive(f64),
}

/// Whether a member that is exactly `tolerance` better replaces the current one: dae says yes, sing-box no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Better by the tolerance is enough.
    Reached,
    /// It must be better by more.
    Exceeded,
}

/// The member with the lowest latency; the current one while it lives and nobody is better by the tolerance. Ties go to
/// the current one, then to the first in the list. Without any living member: the current one if it may still work,
/// then the first of which nothing is known, then the current one, then the first that carries the network.
pub fn lowest(
    standings: impl Iterator<Item = Standing> + Clone,
    current: Option<usize>,
    tolerance_ms: f64,
    edge: Edge,
) -> Option<usize> {
    let of = |member: usize| standings.clone().nth(member).unwrap_or(Standing::Unsupported);
    let mut best: Option<(usize, f64)> = None;
    for (member, standing) in standings.clone().enumerate() {
        if let Standing::Alive(ms) = standing
            && best.is_none_or(|(_, least)| ms < least)
        {
            best = Some((member, ms));
        }
    }
    let now = current.map(|member| (member, of(member)));
    if let Some((member, ms)) = best {
        return Some(match now {
            Some((current, Standing::Alive(current_ms))) => {
                let gain = current_ms - ms;
                let enough = match edge {
                    Edge::Exceeded => gain > tolerance_ms,
                    Edge::Reached => gain > 0.0 && gain >= tolerance_ms,
                };
                if enough { member } else { current }
            }
            _ => member,
        });
    }
    let first = |wanted: fn(&Standing) -> bool| standings.clone().position(|standing| wanted(&standing));
    match now {
        Some((current, Standing::Unknown)) => Some(current),
        Some((current, Standing::Dead)) => first(|standing| *standing == Standing::Unknown).or(Some(current)),
        Some((_, Standing::Unsupported | Standing::Alive(_))) | None => first(|s| *s == Standing::Unknown)
            .or_else(|| first(|standing| *standing != Standing::Unsupported)),
    }
}
