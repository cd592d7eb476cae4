//! The proxy protocols that others speak: SOCKS5 and HTTP. Codecs are pure over bytes; clients and servers around them
//! read exactly what belongs to a message, so that what follows in the same segment stays payload.

pub mod http;
pub mod socks5;
