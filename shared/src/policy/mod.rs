//! Selection policies: which member of a group shall the next connection use?
//!
//! Pure: events and the time go in, effects (test this member, close what was left behind) come out; a pick reads
//! what was decided before and allocates nothing. What a policy measures and remembers is one plain value.
//!
//! - [`spec`] and [`text`]: the one way in which a policy is written, and its errors
//! - [`health`]: what is known of one member in one network
//! - [`priority`]: members that are preferred, in bands of latency
//! - [`choose`]: the rules that compare members
//! - [`fallback`]: the state machine of `fixed_fallback`
//! - [`schedule`]: when members are tested, and when an idle group stops
//! - [`event`] and [`forest`]: groups of members and of groups, to any depth
//! - [`build`]: which groups are valid, and in which order they depend on each other

mod arguments;
pub mod build;
pub mod choose;
mod decide;
pub mod event;
mod expected;
pub mod fallback;
pub mod forest;
pub mod health;
pub mod network;
mod order;
pub mod priority;
pub mod schedule;
pub mod spec;
pub mod text;
mod written;

pub use build::{BuildError, GroupSpec, Leaf};
pub use event::{ChooseError, Context, Effect, Event, Why};
pub use expected::Expected;
pub use forest::Forest;
pub use health::{Health, Outcome};
pub use network::Network;
pub use order::Order;
pub use priority::Priority;
pub use spec::{Latency, Measure, Parsed, Policy, parse, parse_with};
pub use text::ParseError;
