use super::WallMs;
use crate::ids::NodeId;
use crate::link::InUse;
use crate::policy::Why;
use crate::policy::health::State;
use crate::strategy::Strategy;
use serde::{Deserialize, Serialize};

/// PUT `/tunnels/{id}/choice`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChoiceInput {
    /// A node of a group with the strategy `selector`.
    pub node_id: NodeId,
    /// One of the nodes that choose in this group; absent = all.
    #[serde(default)]
    pub owner_node_id: Option<NodeId>,
}

/// A choice as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChoiceRecord {
    /// The chosen node; null = taken back, and the owner's agent does not know yet.
    pub node_id: Option<NodeId>,
    /// Who made it.
    pub author: String,
    /// When.
    pub created_at: WallMs,
}

/// One of GET `/tunnels/{id}/groups`: a node and the group in which it chooses ahead of connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OwnerGroup {
    /// The node that chooses.
    pub owner_node_id: NodeId,
    /// Its name.
    pub owner_name: String,
    /// Its agent is connected.
    pub online: bool,
    /// Which group: `exit` or `hops[0]`.
    pub group: String,
    /// How it chooses.
    pub strategy: Strategy,
    /// A person's choice that the panel has stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<ChoiceRecord>,
    /// The agent has what is wanted.
    pub applied: bool,
    /// Why the agent refuses what is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the agent says a person has chosen, here or at the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<NodeId>,
    /// Who is in use, by network; empty = the agent has not reported.
    pub now: Vec<GroupInUse>,
    /// In saved order.
    pub members: Vec<GroupMember>,
}

/// The member that connections of one network use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct GroupInUse {
    /// `tcp4`, `tcp6`, `udp4` or `udp6`.
    pub network: String,
    /// The node.
    pub node_id: NodeId,
    /// Why it is this one.
    pub why: InUse,
    /// Node before the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_from: Option<NodeId>,
    /// What led to the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_why: Option<Why>,
    /// How long ago that was when it was reported, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_ago_ms: Option<u64>,
}

/// What is known of a member, of connections over IPv4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct GroupMember {
    /// The node.
    pub node_id: NodeId,
    /// Whether it lives.
    pub state: State,
    /// Milliseconds of the last test that worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    /// Moving average, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_ms: Option<f64>,
    /// How long ago the last test was when it was reported, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Failures in a row.
    pub failures: u32,
}
