//! The agent on a node: takes orders from a panel and relays traffic.
//!
//! ```text
//! link → commands → runtime → { registry, service, chain, relay }, probe
//! ```

pub mod api;
pub mod chain;
pub mod clash;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod daemon;
pub mod datagram;
pub mod document;
mod document_problems;
pub mod guard;
pub mod limit;
pub mod link;
pub mod metadata;
pub mod net;
pub mod options;
pub mod probe;
pub mod proxy;
pub mod proxy_protocol;
pub mod registry;
pub mod relay;
pub mod runtime;
pub mod service;
mod spare;
pub mod standalone;
pub mod state;
pub mod stream;
pub mod suggest;
pub mod tasks;
pub mod transport;
