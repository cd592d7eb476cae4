//! The one door through which time and randomness enter this crate.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The monotonic time now.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the crate's clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// UTC milliseconds since 1970, to compare with what the panel tells.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the crate's clock")]
pub fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// For passwords; what a lab draws has its own seeded generators.
#[expect(clippy::disallowed_methods, reason = "the crate's source of randomness")]
pub fn random() -> rand::rngs::ThreadRng {
    rand::rng()
}
