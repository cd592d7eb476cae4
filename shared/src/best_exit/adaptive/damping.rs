//! Longer and longer waits for an owner that goes to and fro.

use crate::best_exit::MonoMs;
use crate::ids::NodeId;
use serde::{Deserialize, Serialize};

/// Coming back to an exit within this time is going to and fro.
const REVERSAL_MS: u64 = 2 * 3_600_000;
/// Half-life of the memory of that.
const HALF_LIFE_MS: f64 = 4.0 * 3_600_000.0;
/// The wait doubles at most this often: 30 s become 4 hours.
const MAX_DOUBLINGS: f64 = 9.0;
/// Windows that still count, by how often it went to and fro: short ones see every swing.
const SHORTEST: [usize; 4] = [0, 16, 32, 64];

/// How often an owner went to and fro of late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Damping {
    level: f64,
    at: MonoMs,
    left: Vec<(NodeId, MonoMs)>,
}

impl Damping {
    /// The owner left one exit for another.
    pub(super) fn switched(&mut self, from: NodeId, to: NodeId, now: MonoMs) {
        self.level = self.level(now);
        self.at = now;
        self.left.retain(|(_, at)| now.saturating_sub(*at) <= REVERSAL_MS);
        if self.left.iter().any(|(exit, _)| *exit == to) {
            self.level += 1.0;
        }
        self.left.retain(|(exit, _)| *exit != from);
        self.left.push((from, now));
    }

    /// How often, faded.
    pub(super) fn level(&self, now: MonoMs) -> f64 {
        if self.level == 0.0 {
            return 0.0;
        }
        self.level * (-(now.saturating_sub(self.at) as f64) / HALF_LIFE_MS).exp2()
    }

    /// The cooldown at this level.
    pub(super) fn cooldown_ms(&self, base_ms: u64, now: MonoMs) -> u64 {
        let factor = self.level(now).clamp(0.0, MAX_DOUBLINGS).exp2();
        (base_ms as f64 * factor) as u64
    }

    /// The shortest window that still counts, in rounds; 0: all, and single steps.
    pub(super) fn shortest_window(&self, now: MonoMs) -> usize {
        let level = (self.level(now) + 0.5) as usize;
        SHORTEST[level.min(SHORTEST.len() - 1)]
    }
}
