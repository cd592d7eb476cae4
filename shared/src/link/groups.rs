//! Groups whose choice is made ahead of connections: what agents tell of them, and how a person's choice reaches them.

use crate::policy::Why;
use crate::policy::health::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The capability of agents that tell of their groups and take [`ChooseMember`].
pub const GROUPS: &str = "groups";
/// Members in one report, of all groups together; groups beyond are left out. Far more than a node has, and far less
/// than a frame takes.
pub const MAX_REPORTED_MEMBERS: usize = 4096;

/// Chooses a member of a group that leaves it to a person. The agent keeps it, and answers with the [`GroupState`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChooseMember {
    /// Name of the group, see [`group_of_hop`].
    pub group: String,
    /// Name of the member; without one the choice is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
}

/// The name of the group that a chain's hop is.
pub fn group_of_hop(chain: &str, hop: &str) -> String {
    format!("chain/{chain}/{hop}")
}

/// A group at this moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupState {
    /// By what it is known.
    pub name: String,
    /// How it chooses, complete.
    pub policy: String,
    /// The member that connections use, by network: `tcp4`, `tcp6`, `udp4`, `udp6`. One that no member carries is not
    /// there.
    pub now: BTreeMap<String, MemberInUse>,
    /// What a person has chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// In order.
    pub members: Vec<MemberState>,
}

/// The member that connections of one network use, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberInUse {
    /// Its name.
    pub member: String,
    /// Why it is this one.
    pub why: InUse,
    /// The last change, if there was one since the group began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<GroupChange>,
}

/// Why a member is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum InUse {
    /// A person has chosen it.
    Chosen,
    /// Nobody has chosen: it is the default, or the first.
    Default,
    /// The configuration names it.
    Fixed,
    /// The one that the configuration names is dead.
    Fallback,
    /// It is the fastest, or none is faster by the tolerance.
    Fastest,
    /// Nothing is measured yet.
    Untested,
    /// All are dead; somebody has to be tried.
    LastResort,
}

/// A change of the member in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupChange {
    /// Member before.
    pub from: String,
    /// What led to it.
    pub why: Why,
    /// How long ago, in milliseconds.
    pub ago_ms: u64,
}

/// What is known of a member; of connections over IPv4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberState {
    /// Its name.
    pub name: String,
    /// Whether it lives.
    pub state: State,
    /// Milliseconds of the last test that worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    /// Moving average, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_ms: Option<f64>,
    /// How long ago the last test was, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Failures in a row.
    #[serde(default)]
    pub failures: u32,
}
