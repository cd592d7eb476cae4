//! Whether the lab does to packets what it was asked to, seen by programs on its hosts.
//!
//! The machine may be busy with other things, so times are judged by medians and shares by their intervals; nothing
//! is asked of a single packet's time except that it was not too early.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod delay;
mod faults;
mod hosts;
mod loss;
mod measure;
mod rate;
mod script;
