//! The `best` strategy: which exit shall the next connection use, and why.
//!
//! Pure: rounds of measurements go in with the time they ended, verdicts with their reason come out. The panel, the
//! replay and the page run this same code.
//!
//! - [`leg`]: what one round says about one measured stretch
//! - [`score`]: two legs → one number, and the ranking
//! - [`settings`]: the numbers that govern it, with their ranges
//! - [`reason`]: why the exit was, or was not, switched
//! - [`machine`]: the state of one (tunnel, owner) and the classic rules
//! - [`adaptive`]: the adaptive rules

pub mod adaptive;
pub mod leg;
pub mod machine;
pub mod reason;
pub mod score;
pub mod settings;

pub use adaptive::{LegName, Trigger};
pub use leg::{Leg, LegFailure};
pub use machine::{Applied, Candidate, OwnerState, Pin, Round, Verdict};
pub use reason::{Reason, Why};
pub use score::{Ranked, Score, rank};
pub use settings::{DecisionRules, Settings};

/// Monotonic milliseconds from an arbitrary start.
pub type MonoMs = u64;
