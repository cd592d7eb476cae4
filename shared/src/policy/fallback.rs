//! The state machine of `fixed_fallback`, for one group in one network.

use crate::best_exit::MonoMs;
use serde::{Deserialize, Serialize};

/// The numbers of a `fixed_fallback`, exact to the millisecond; configurations raise the timeout before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Between two retries.
    pub timeout_ms: u64,
    /// Retries in all.
    pub retries: u32,
    /// The longest wait between probes after the retries are used up.
    pub interval_ms: u64,
}

/// Where traffic goes and what the runner does. One value: it can be read only as a whole, and holds one runner at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "phase")]
pub enum Phase {
    /// The fixed member lives and has the traffic.
    #[default]
    Primary,
    /// It is dead and a runner probes it.
    Retrying {
        /// When it died.
        dead_since: MonoMs,
        /// Retries so far.
        retries: u32,
        /// When the runner looks again.
        next: MonoMs,
    },
    /// The retries are used up.
    Exhausted {
        /// When it died.
        dead_since: MonoMs,
        /// The next probe and the wait after it; none where only periodic checks are wanted.
        probe: Option<(MonoMs, u64)>,
    },
}

impl Phase {
    /// Its member was seen dead or alive at `now`. True: probe it now.
    pub fn observe(&mut self, alive: bool, now: MonoMs, rules: Rules) -> bool {
        match (alive, *self) {
            (true, _) => {
                *self = Phase::Primary;
                false
            }
            (false, Phase::Primary) if rules.retries == 0 => {
                *self = Phase::Exhausted { dead_since: now, probe: None };
                false
            }
            (false, Phase::Primary) => {
                let next = now.saturating_add(rules.timeout_ms);
                *self = Phase::Retrying { dead_since: now, retries: 1, next };
                true
            }
            // One runner at a time: more bad news changes nothing.
            (false, Phase::Retrying { .. } | Phase::Exhausted { .. }) => false,
        }
    }

    /// When [`Phase::tick`] is due.
    pub fn due(&self) -> Option<MonoMs> {
        match *self {
            Phase::Primary => None,
            Phase::Retrying { next, .. } => Some(next),
            Phase::Exhausted { probe, .. } => probe.map(|(at, _)| at),
        }
    }

    /// The time has come to `now`. True: probe the member now. A tick that comes late fires once.
    pub fn tick(&mut self, now: MonoMs, rules: Rules) -> bool {
        match *self {
            Phase::Retrying { dead_since, retries, next } if next <= now => {
                if retries >= rules.retries {
                    let wait = rules.timeout_ms.saturating_mul(2).min(rules.interval_ms).max(1);
                    *self = Phase::Exhausted { dead_since, probe: Some((now.saturating_add(wait), wait)) };
                    return false;
                }
                let next = now.saturating_add(rules.timeout_ms);
                *self = Phase::Retrying { dead_since, retries: retries + 1, next };
                true
            }
            Phase::Exhausted { dead_since, probe: Some((at, wait)) } if at <= now => {
                let wait = wait.saturating_mul(2).min(rules.interval_ms).max(1);
                *self = Phase::Exhausted { dead_since, probe: Some((now.saturating_add(wait), wait)) };
                true
            }
            _ => false,
        }
    }
}
