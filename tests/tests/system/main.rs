//! The whole system: real processes, most of them in a lab of their own.

mod fake_panel;
mod restarts;
mod stages;
mod swaps;
mod switching;
mod trouble;
