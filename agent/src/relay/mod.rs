//! GOST's relay protocol, and the carrying of payload.

pub mod client;
pub mod pump;
pub mod server;
pub mod wire;
