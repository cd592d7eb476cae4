//! What is known of one member in one network.

use super::spec::{Latency, Measure};
use crate::best_exit::MonoMs;
use serde::{Deserialize, Serialize};

/// What one test said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It worked, in so many milliseconds.
    Ok(f64),
    /// It did not.
    Failed,
    /// The member has no such network: neither good nor bad.
    NotApplicable,
}

/// Four different things; none of them stands for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum State {
    /// Never tested, or nothing recent.
    #[default]
    NoData,
    /// The member lacks this network.
    NotApplicable,
    /// The last tests worked.
    Alive,
    /// They failed.
    Dead,
}

/// What is known of one member in one network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Alive or not.
    pub state: State,
    /// When it was last tested.
    pub at: Option<MonoMs>,
    /// Since when it is alive without a break.
    pub alive_since: Option<MonoMs>,
    /// Failures in a row.
    pub failures: u32,
    successes: u32,
    /// The last ten latencies, oldest first.
    last: Vec<f64>,
    moving: Option<f64>,
}

/// How many latencies `min_avg10` looks at.
const KEPT: usize = 10;

impl Health {
    /// Takes a test into account. A number that cannot be a latency is a failure.
    pub fn observe(&mut self, outcome: Outcome, now: MonoMs, measure: &Measure) {
        self.at = Some(now);
        match outcome {
            Outcome::NotApplicable => {
                *self = Self { state: State::NotApplicable, at: Some(now), ..Self::default() }
            }
            Outcome::Ok(ms) if ms.is_finite() && ms >= 0.0 => {
                self.failures = 0;
                self.successes = self.successes.saturating_add(1);
                if self.last.len() == KEPT {
                    self.last.remove(0);
                }
                self.last.push(ms);
                // From the first sample on: from zero a new member would look twice as fast as it is.
                self.moving = Some(self.moving.map_or(ms, |moving| f64::midpoint(moving, ms)));
                if self.state != State::Alive && (self.state != State::Dead || self.successes >= measure.rise)
                {
                    self.state = State::Alive;
                    self.alive_since = Some(now);
                }
            }
            Outcome::Ok(_) | Outcome::Failed => {
                self.successes = 0;
                self.failures = self.failures.saturating_add(1);
                if self.state != State::Alive || self.failures >= measure.fall {
                    self.state = State::Dead;
                    self.alive_since = None;
                }
            }
        }
    }

    /// A latency in milliseconds, if there was a test that worked.
    pub fn latency(&self, latency: Latency) -> Option<f64> {
        match latency {
            Latency::Last => self.last.last().copied(),
            Latency::Avg10 => {
                (!self.last.is_empty()).then(|| self.last.iter().sum::<f64>() / self.last.len() as f64)
            }
            Latency::Moving => self.moving,
        }
    }
}
