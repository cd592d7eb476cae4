//! The adaptive rules: windows instead of rounds, margins scaled to the noise, states instead of single failures.
//!
//! - [`noise`]: how much a value wanders by itself, at each length of time
//! - [`rounds`]: the last rounds, and sums over windows of them
//! - [`memory`]: what is remembered of one exit
//! - [`evidence`]: whether another exit is better, and how sure that is
//! - [`judge`]: the decision of one round
//! - [`damping`]: longer and longer waits for an owner that goes to and fro

mod damping;
mod evidence;
mod judge;
mod memory;
mod noise;
mod rounds;

pub use evidence::Trigger;
pub use memory::LegName;

use damping::Damping;
use memory::Memory;
use serde::{Deserialize, Serialize};

/// What the adaptive rules remember of one owner. A plain value; made again from stored rounds after a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Adaptive {
    exits: Vec<Memory>,
    damping: Damping,
    last_round: Option<super::MonoMs>,
    /// Pushes refused one after the other.
    pub(super) refusals: u32,
}
