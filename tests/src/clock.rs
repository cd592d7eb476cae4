//! The one door through which time enters this crate.

use std::time::Instant;

/// The monotonic time now.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the crate's clock")]
pub fn now() -> Instant {
    Instant::now()
}
