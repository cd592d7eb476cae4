//! Datagrams: sockets for them, frames that carry them over a stream, and the carrying.
//!
//! Nothing in here allocates per datagram once a flow has found its size.

pub mod frame;
pub mod inbox;
pub mod listener;
pub mod pump;
pub mod socket;
