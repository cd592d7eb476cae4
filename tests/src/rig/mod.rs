//! What whole-system tests and the demo stand on: the panel and the agents as real processes, programs that use the
//! network they make, and patience.
//!
//! ```text
//!   process ── one child: its log is read and kept, it dies with its owner
//!     ├─ panel, agent ── how these are started, killed and started again on the same data
//!   http ── api ── the panel's REST API, typed
//!   target ◄── client, long_lived ── traffic that says which exit it came from
//!   stage ── all of it together in a lab
//! ```

pub mod agent;
pub mod api;
pub mod binaries;
pub mod client;
pub mod eventually;
pub mod http;
pub mod long_lived;
pub mod panel;
pub mod place;
pub mod process;
pub mod stage;
pub mod target;

pub use agent::{Agent, AgentOptions};
pub use api::{Api, ApiError};
pub use client::{Client, Connection, Outcome};
pub use eventually::{eventually, settled};
pub use long_lived::LongLived;
pub use panel::{Panel, PanelOptions};
pub use place::Place;
pub use process::{Log, Process};
pub use stage::{Stage, StageOptions};
pub use target::Target;
