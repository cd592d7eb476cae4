//! The terminal.

use crate::clock;
use std::io::Write as _;
use std::time::Instant;

/// Tells lines with their times.
#[derive(Debug)]
pub struct Teller {
    start: Instant,
}

impl Teller {
    #[expect(clippy::new_without_default, reason = "it reads the clock")]
    /// Times are from now on.
    #[must_use]
    pub fn new() -> Self {
        Self { start: clock::now() }
    }

    /// One line.
    pub fn line(&self, text: &str) {
        // Nobody may be listening any more; the story goes on.
        let _ = writeln!(std::io::stdout(), "[{:6.1} s] {text}", self.start.elapsed().as_secs_f64());
    }
}
