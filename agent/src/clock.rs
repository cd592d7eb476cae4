//! The only door through which time and randomness enter the agent.

use rand::RngCore as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Monotonic time, cheap to clone. Follows Tokio's clock, so a paused runtime pauses it too.
#[derive(Clone, Debug)]
pub struct Clock {
    origin: Instant,
    /// Nanoseconds by which [`Clock::advance`] has moved it forward.
    ahead: Arc<AtomicU64>,
}

impl Clock {
    /// The real clock, counting from this moment.
    #[expect(clippy::disallowed_methods, reason = "this file is where the clock is read")]
    pub fn system() -> Self {
        Self { origin: Instant::now(), ahead: Arc::default() }
    }

    /// Now, for deadlines of `tokio::time`. Never moved by [`Clock::advance`].
    #[expect(clippy::disallowed_methods, reason = "this file is where the clock is read")]
    pub fn instant(&self) -> Instant {
        Instant::now()
    }

    /// Milliseconds since this clock was made.
    pub fn now_ms(&self) -> u64 {
        let ahead = Duration::from_nanos(self.ahead.load(Ordering::Relaxed));
        u64::try_from((self.instant().duration_since(self.origin) + ahead).as_millis()).unwrap_or(u64::MAX)
    }

    /// Nanoseconds since this clock was made.
    pub fn now_ns(&self) -> u64 {
        let ahead = Duration::from_nanos(self.ahead.load(Ordering::Relaxed));
        u64::try_from((self.instant().duration_since(self.origin) + ahead).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Moves this clock and its clones forward; with it, a test lets marks expire without waiting.
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.ahead.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Time since 1970; zero on a machine whose clock stands before that.
    #[expect(clippy::disallowed_methods, reason = "this file is where the clock is read")]
    pub fn unix_time(&self) -> Duration {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

/// A source of random numbers, cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Random(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    Thread,
    Seeded(Arc<Mutex<rand::rngs::StdRng>>),
}

impl Random {
    /// Unpredictable numbers.
    pub fn system() -> Self {
        Self(Source::Thread)
    }

    /// The same numbers for the same seed.
    pub fn seeded(seed: u64) -> Self {
        use rand::SeedableRng as _;
        Self(Source::Seeded(Arc::new(Mutex::new(rand::rngs::StdRng::seed_from_u64(seed)))))
    }

    /// The next number, uniform over all values.
    #[expect(clippy::disallowed_methods, reason = "this file is where randomness enters")]
    pub fn next(&self) -> u64 {
        match &self.0 {
            Source::Thread => rand::rng().next_u64(),
            Source::Seeded(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).next_u64(),
        }
    }

    /// Uniform in 0..1.
    pub fn unit(&self) -> f64 {
        // 53 bits are what an f64 holds exactly.
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// `duration` ± up to 25 %, so that many agents do not act in step.
    pub fn jitter(&self, duration: Duration) -> Duration {
        duration.mul_f64(0.75 + self.unit() / 2.0)
    }
}
