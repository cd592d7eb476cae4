//! Vocabulary and pure logic of ExitPilot.
//!
//! No I/O, no clock, no async runtime: time and randomness are parameters, so the panel, the agent, the page and the
//! replay run the same code.

pub mod address;
pub mod api;
pub mod best_exit;
pub mod field;
pub mod gost;
pub mod ids;
pub mod link;
pub mod policy;
pub mod replay;
pub mod strategy;
pub mod testid;
pub mod topology;
pub mod words;

#[cfg(feature = "link")]
pub mod envelope;
#[cfg(feature = "openapi")]
mod openapi;
#[cfg(feature = "wasm")]
pub mod wasm;
