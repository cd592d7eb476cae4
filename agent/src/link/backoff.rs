//! When to try the panel again.

use std::time::Duration;

/// Wait after the first failure, as the peer's agent does.
const FIRST: Duration = Duration::from_secs(2);
/// The wait stops growing here, as in the peer's agent: a panel that is back after hours sees its agents in minutes.
const LIMIT: Duration = Duration::from_secs(120);
/// Each wait varies by this part, so that a thousand agents do not come back in the same second.
const JITTER: f64 = 0.25;

/// Doubling waits with jitter.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    limit: Duration,
    next: Duration,
}

impl Backoff {
    /// Starts at `first` and never grows above `limit` (before jitter).
    pub fn new(first: Duration, limit: Duration) -> Self {
        Self { first, limit, next: first.min(limit) }
    }

    /// The wait after one more failure. `random` is uniform in 0..1.
    pub fn wait(&mut self, random: f64) -> Duration {
        let base = self.next;
        self.next = base.saturating_mul(2).min(self.limit);
        base.mul_f64(1.0 - JITTER + 2.0 * JITTER * random.clamp(0.0, 1.0))
    }

    /// A connection was made: the next failure waits for the shortest time again.
    pub fn reset(&mut self) {
        self.next = self.first.min(self.limit);
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(FIRST, LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn doubles_from_two_seconds_to_two_minutes_and_starts_over() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..9).map(|_| backoff.wait(0.5).as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 120, 120, 120]);
        backoff.reset();
        assert_eq!(backoff.wait(0.5).as_secs(), 2);
        assert_eq!(Backoff::default().wait(0.0), Duration::from_millis(1500));
        assert_eq!(Backoff::default().wait(1.0), Duration::from_millis(2500));
    }

    proptest! {
        #[test]
        fn every_wait_is_within_a_quarter_of_its_step(randoms in prop::collection::vec(0.0f64..1.0, 1..40)) {
            let mut backoff = Backoff::default();
            let mut step = 2.0f64;
            for random in randoms {
                let wait = backoff.wait(random).as_secs_f64();
                prop_assert!(wait >= step * 0.749 && wait <= step * 1.251, "{wait} at step {step}");
                step = (step * 2.0).min(120.0);
            }
        }
    }
}
