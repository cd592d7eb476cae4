//! HTTP/1.1 as a proxy speaks it (RFC 9110, 9112): `CONNECT`, and requests that name their target in full.

pub mod basic;
pub mod body;
pub mod client;
pub mod forward;
pub mod head;
pub mod read;
