//! What happens to groups, and what is to be done.

use super::health::Outcome;
use super::network::Network;
use serde::{Deserialize, Serialize};

/// What happened. Groups and leaves are numbers in the order in which they were given.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Everything is up; the first tests may start.
    Started,
    /// Time has passed; see [`Forest::due`](super::Forest::due).
    Tick,
    /// Traffic used a group.
    Used {
        /// The group.
        group: usize,
    },
    /// A member has changed inside; what is known of it may not hold any more.
    TestMember {
        /// The group.
        group: usize,
        /// The leaf.
        leaf: usize,
    },
    /// A test that [`Effect::Test`] asked for has ended.
    Tested {
        /// The group that asked.
        group: usize,
        /// The leaf.
        leaf: usize,
        /// What it said, by [`Network::index`]; `None`: that network was not tested.
        outcomes: [Option<Outcome>; 4],
    },
    /// A dial for traffic has failed at the leaf.
    DialFailed {
        /// The leaf.
        leaf: usize,
        /// Where.
        network: Network,
    },
    /// A person asks for tests now, recent or not.
    TestNow {
        /// The group.
        group: usize,
    },
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Test the leaf for the group and answer with [`Event::Tested`].
    Test {
        /// The group.
        group: usize,
        /// The leaf.
        leaf: usize,
    },
    /// A group uses another member now.
    Switched {
        /// The group.
        group: usize,
        /// In this network.
        network: Network,
        /// Member before, by its place in the group.
        from: usize,
        /// Member now.
        to: usize,
        /// Why.
        why: Why,
    },
    /// Close the connections of this network that were opened through the group on this member, and dials that are
    /// under way to it; no others.
    Interrupt {
        /// The group.
        group: usize,
        /// In this network.
        network: Network,
        /// The member that was left, by its place in the group.
        member: usize,
        /// How long they still get.
        drain_ms: u64,
    },
    /// Store a person's choice; `None`: there is none any more.
    Remember {
        /// The group.
        group: usize,
        /// By its place in the group.
        member: Option<usize>,
    },
}

/// Why a group uses another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Why {
    /// The one before died.
    Died,
    /// The new one is better by the tolerance.
    Better,
    /// The fixed one is alive again.
    Returned,
    /// A person said so.
    Chosen,
}

/// What a pick may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Of the new connection.
    pub network: Network,
    /// Any number; only random choices look at it.
    pub random: u64,
}

/// Why a choice is refused; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// No such group.
    #[error("there is no group {0}")]
    NoGroup(String),
    /// Its policy chooses by itself.
    #[error("{0} is no selector")]
    NotSelector(String),
    /// Not one of its members.
    #[error("{group}: {member} is not a member")]
    NotMember {
        /// The group.
        group: String,
        /// What was asked for.
        member: String,
    },
}
