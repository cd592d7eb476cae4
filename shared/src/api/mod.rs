//! What page, programs and panel say to each other under `/api/v1`: JSON, camelCase, times in UTC milliseconds.

mod auth;
mod choice;
mod decision;
mod event;
mod forward;
mod node;
mod problem;
mod replay;
mod settings;
mod tunnel;

pub use auth::*;
pub use choice::*;
pub use decision::*;
pub use event::*;
pub use forward::*;
pub use node::*;
pub use problem::*;
pub use replay::*;
pub use settings::*;
pub use tunnel::*;

/// UTC milliseconds since 1970.
pub type WallMs = i64;
