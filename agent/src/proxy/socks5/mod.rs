//! SOCKS5 (RFC 1928) with user name and password (RFC 1929).

pub mod client;
pub mod server;
pub mod tunnel;
pub mod wire;
