//! The panel.
//!
//! `http → app → { store, plan, auth, agents }`: handlers speak HTTP, use cases hold the transaction boundaries, the
//! store holds all SQL, a plan is a pure function of what is stored, and agents are told what the plan says.

pub mod clock;
pub mod plan;
pub mod store;
