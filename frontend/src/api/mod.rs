//! Talking to the panel: one function per endpoint, the session, and data that keeps itself fresh.

pub mod client;
pub mod feed;
pub mod http;
pub mod json;
pub mod live;
pub mod session;

pub use feed::Feed;
pub use http::{Access, ApiError};
pub use live::Live;
