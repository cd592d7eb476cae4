//! The monitor of a tunnel: what was measured, what was decided, and why.

pub mod candidates;
pub mod chart;
pub mod groups;
pub mod log;
pub mod owner;
pub mod page;
pub mod pin;
pub mod words;

pub use page::{Monitor, has_groups};
