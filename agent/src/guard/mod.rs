//! Protocols that are not to be spoken on a node: its panel can block HTTP, TLS and SOCKS.
//!
//! It is the client's first bytes that tell, after the layers of the listener (so that TLS is what comes inside of a
//! listener's own). Nothing is held back from the server, which may speak first; a client that says nothing goes on.

pub mod blocked;
pub mod guarded;
pub mod recognise;
