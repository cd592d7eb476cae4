//! Websockets (RFC 6455) as carriers of bytes: every write is one binary message, and messages are read as one stream.
//!
//! Peers of our own agree on the subprotocol [`HALF_CLOSE`]: between them a close frame ends one direction, and a
//! connection that ends without one was cut off. GOST has no word of the websocket for an end: it ends its direction of the
//! connection beneath (TCP's FIN, the close_notify of TLS) and goes on reading, and a close frame it takes for the end of
//! both. Towards such peers ours does the same, and the end of the connection beneath between two messages is the end of
//! their direction; what ends within a message, by a reset, or under TLS without close_notify was cut off. A proxy in
//! between that knows no ends of single directions closes both at the first one, as it does between two GOSTs.

mod handshake;
pub mod options;
mod stream;

pub use options::{WsClient, WsServer};

/// The subprotocol by which both sides say that a close frame ends one direction only.
const HALF_CLOSE: &str = "half-close";

#[cfg(test)]
mod tests;
