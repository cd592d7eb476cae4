//! The whole system: real processes, each test in a lab of its own. Killed processes, lost links and other faults are
//! the suite `faults`, the swaps under load the suite `swap`.

mod protocols;
mod restarts;
mod stages;
mod switching;
mod trouble;
