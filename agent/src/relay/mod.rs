//! GOST's relay protocol, and the carrying of payload.

mod buffer;
mod carry;
pub mod client;
pub mod pump;
pub mod server;
#[cfg(target_os = "linux")]
pub(crate) mod splice;
pub mod traffic;
pub mod tunnel;
pub mod wire;
