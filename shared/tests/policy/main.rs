//! The selection policies: the rules of the systems they come from, one by one, and what must hold always.
#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::unwrap_used, reason = "the rules are functions that one table of tests runs")]

mod dae;
mod fallback;
mod nested;
mod priority;
mod props;
mod rig;
mod rules;
mod singbox;
mod syntax;
