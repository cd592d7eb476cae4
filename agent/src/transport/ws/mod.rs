//! Websockets (RFC 6455) as carriers of bytes: every write is one binary message, and messages are read as one stream.
//!
//! GOST closes the connection beneath without a word of the websocket, and cannot end one direction. Peers of our own agree
//! on the subprotocol [`HALF_CLOSE`]: between them a close frame ends one direction, and a connection that ends without
//! one was cut off. Towards others the end of our direction is held back until theirs ends or nothing has come for
//! ten seconds, and the end of a plain TCP connection between two messages counts as the end, as it does for TCP itself.

mod handshake;
pub mod options;
mod stream;

pub use options::{WsClient, WsServer};

/// The subprotocol by which both sides say that a close frame ends one direction only.
const HALF_CLOSE: &str = "half-close";

#[cfg(test)]
mod tests;
