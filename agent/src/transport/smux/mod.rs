//! Many streams over one connection: the multiplexer `xtaci/smux`, versions 1 and 2, as GOST uses it.
//!
//! The protocol has one frame, `FIN`, for the end of a direction, for the end of a stream and for an abort. Peers of our
//! own tell them apart: each side sends a keepalive with a number that the library ignores ([`frame::GREETING`]); between
//! sides that both did, `FIN` ends one direction, and a keepalive with the number of a stream aborts it. Towards others:
//!
//! - The library sends nothing on a stream any more once `FIN` has come, so who is told of the end of one direction drops
//!   what it still has to say. GOST tells at once, and its client sees a clean end whatever was lost.
//! - Who opened the stream holds its end back until theirs comes or nothing has come for ten seconds (GOST's patience after
//!   the end of a direction): an answer that does not wait for the end arrives. One that does is lost, as between two
//!   GOSTs; a stream that they end then while the last word was ours counts as cut off, and any other as complete.
//! - Who accepted the stream tells its end at once: a server that ends is done, and its client may wait for just that.
//! - After the end of theirs, what we send is accepted for ten seconds more.
//! - An abort looks like an end to them: the protocol has no other word. An abort of theirs looks like an end to us.
//! - The end of the whole session without `FIN`, however, is an error on every stream, on both sides.
//!
//! Version 1 has no window per stream. A stream that is not read holds up all others once the session's receive buffer is
//! full of its bytes; it is cut after [`state::STALL_PATIENCE`] without progress, if others wait behind it. Version 2 has
//! windows, and no stream holds up another.

mod driver;
pub mod frame;
pub mod options;
pub mod session;
mod state;
mod stream;

pub use options::MuxOptions;
pub use session::{Accepting, Heard, OpenError, Session};

#[cfg(test)]
mod tests;
