//! The one place where the commands read the time: how long a step took, and when to give up on one.

use std::time::Instant;

/// The present moment of a clock that never goes back.
#[expect(clippy::disallowed_methods, reason = "the clock of the commands")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
