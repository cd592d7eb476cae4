//! The panel's back half against agents played by the tests: the real websocket endpoint, planner, drivers, prober and
//! decider over a database in memory. The clock of decisions is moved by hand; rounds come every 50 ms.

#![expect(clippy::unwrap_used, reason = "tests; a panic is the report")]

mod choosing;
mod deciding;
mod diagnosing;
mod fake;
mod link;
mod panel;
mod reconciling;
mod restarting;
