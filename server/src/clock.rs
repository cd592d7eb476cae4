//! The one door through which time and randomness enter the panel.

use rand::RngCore as _;
use shared::api::WallMs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time. Cheap to clone; clones of a manual clock share their hands.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System { start: tokio::time::Instant },
    Manual(Arc<Hands>),
}

#[derive(Debug)]
struct Hands {
    wall_ms: AtomicI64,
    mono_ms: AtomicU64,
}

/// Moves a manual [`Clock`].
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Hands>);

impl Clock {
    /// The machine's clocks. The monotonic one follows tokio's, so that tests with paused time move it too.
    #[expect(clippy::disallowed_methods, reason = "the one place where the monotonic clock is read")]
    pub fn system() -> Self {
        Self(Source::System { start: tokio::time::Instant::now() })
    }

    /// A clock that stands still until it is moved.
    pub fn manual(wall_ms: WallMs) -> (Self, ManualClock) {
        let hands = Arc::new(Hands { wall_ms: AtomicI64::new(wall_ms), mono_ms: AtomicU64::new(0) });
        (Self(Source::Manual(hands.clone())), ManualClock(hands))
    }

    /// UTC milliseconds since 1970. May jump; never used to measure a duration.
    #[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    pub fn wall_ms(&self) -> WallMs {
        match &self.0 {
            // A clock before 1970 is a broken one; zero keeps it harmless.
            Source::System { .. } => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Source::Manual(hands) => hands.wall_ms.load(Ordering::Acquire),
        }
    }

    /// Monotonic milliseconds since the clock was made.
    #[expect(clippy::disallowed_methods, reason = "the one place where the monotonic clock is read")]
    pub fn mono_ms(&self) -> u64 {
        match &self.0 {
            Source::System { start } => {
                u64::try_from(tokio::time::Instant::now().duration_since(*start).as_millis())
                    .unwrap_or(u64::MAX)
            }
            Source::Manual(hands) => hands.mono_ms.load(Ordering::Acquire),
        }
    }
}

impl ManualClock {
    /// Moves both hands forward.
    pub fn advance_ms(&self, ms: u64) {
        self.0.mono_ms.fetch_add(ms, Ordering::AcqRel);
        self.0.wall_ms.fetch_add(i64::try_from(ms).unwrap_or(i64::MAX), Ordering::AcqRel);
    }

    /// Sets the wall clock only, as somebody who corrects the machine's clock does.
    pub fn set_wall_ms(&self, wall_ms: WallMs) {
        self.0.wall_ms.store(wall_ms, Ordering::Release);
    }
}

/// Bytes fit for secrets.
#[expect(clippy::disallowed_methods, reason = "the one place where randomness enters")]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

/// A number for choices that shall spread: ports, jitter.
pub fn random_u64() -> u64 {
    u64::from_le_bytes(random_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_by_hand() {
        let (clock, hands) = Clock::manual(1000);
        assert_eq!((clock.wall_ms(), clock.mono_ms()), (1000, 0));
        hands.advance_ms(5);
        assert_eq!((clock.wall_ms(), clock.mono_ms()), (1005, 5));
        hands.set_wall_ms(1);
        assert_eq!((clock.wall_ms(), clock.mono_ms()), (1, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn the_system_clock_follows_paused_time() {
        let clock = Clock::system();
        tokio::time::advance(std::time::Duration::from_millis(250)).await;
        assert_eq!(clock.mono_ms(), 250);
    }
}
