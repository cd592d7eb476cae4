//! The agent against a panel that lives in the test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod connection;
mod flow;
mod forwards;
mod groups;
mod panel;
mod probes;
mod program;
mod rig;
mod state;
