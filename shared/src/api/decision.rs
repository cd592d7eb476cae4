use super::WallMs;
use crate::best_exit::{Leg, Reason, Score};
use crate::ids::{NodeId, TunnelId};
use serde::{Deserialize, Serialize};

/// State of a tunnel's decisions as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum DecisionState {
    /// 等待探测: some owner has no decision yet.
    Waiting,
    /// Every owner has an applied exit.
    Applied,
    /// Monitoring is off.
    Paused,
}

/// GET `/tunnels/{id}/decisions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TunnelDecisions {
    /// The tunnel.
    pub tunnel_id: TunnelId,
    /// State as a whole.
    pub status: DecisionState,
    /// One per owner, in the order of their group.
    pub owners: Vec<OwnerDecision>,
}

/// State of one owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OwnerDecision {
    /// The node that holds the chain.
    pub owner_node_id: NodeId,
    /// Its name.
    pub owner_name: String,
    /// Its agent is connected.
    pub online: bool,
    /// First exit of the applied order; null before the first accepted push.
    pub applied_exit_node_id: Option<NodeId>,
    /// Last order accepted by its agent (before: the saved order).
    pub applied_order: Vec<NodeId>,
    /// In rank order of the last evaluated round; before it in saved order.
    pub candidates: Vec<CandidateDecision>,
    /// A better exit on its way to being confirmed.
    pub pending: Option<PendingDecision>,
    /// Why the exit was, or was not, switched.
    pub reason: Reason,
    /// End of the cooldown; null = a switch is possible now.
    pub next_switch_possible_at: Option<WallMs>,
    /// The last switch or the last refused push.
    pub last_switch: Option<SwitchRecord>,
    /// When the owner was last evaluated.
    pub evaluated_at: Option<WallMs>,
    /// The pin in force for this owner.
    pub pin: Option<PinRecord>,
    /// Open connections per exit as its agent reports them; empty = the agent does not report.
    pub in_use: Vec<ExitUse>,
}

/// One exit of one owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CandidateDecision {
    /// The exit.
    pub exit_node_id: NodeId,
    /// Its name.
    pub exit_name: String,
    /// Owner → exit.
    pub leg_a: Leg,
    /// Exit → probe target.
    pub leg_b: Leg,
    /// null: failed or unmeasured.
    pub score: Option<Score>,
}

/// A better exit on its way to being confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PendingDecision {
    /// The exit.
    pub exit_node_id: NodeId,
    /// Consecutive rounds so far.
    pub rounds: u32,
    /// Rounds needed.
    pub needed: u32,
}

/// A switch, or a push that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SwitchRecord {
    /// When.
    pub at: WallMs,
    /// Exit before.
    pub from_exit_node_id: Option<NodeId>,
    /// Exit that was to be first.
    pub to_exit_node_id: NodeId,
    /// `applied`, or what the owner said.
    pub result: String,
}

/// How an exit is really used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExitUse {
    /// The exit.
    pub exit_node_id: NodeId,
    /// Connections established since the agent started.
    pub connections: u64,
    /// Open now.
    pub open: u64,
    /// Failed attempts since the agent started.
    pub failures: u64,
    /// Left out by the agent now because of failures.
    pub marked: bool,
}

/// PUT `/tunnels/{id}/pin`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PinInput {
    /// An exit of the tunnel.
    pub exit_node_id: NodeId,
    /// One owner; absent = all.
    #[serde(default)]
    pub owner_node_id: Option<NodeId>,
    /// When it ends; absent = when it is removed.
    #[serde(default)]
    pub until: Option<WallMs>,
    /// Why; 1 to 200 characters.
    pub reason: String,
}

/// A pin as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PinRecord {
    /// The pinned exit.
    pub exit_node_id: NodeId,
    /// One owner; null = all.
    pub owner_node_id: Option<NodeId>,
    /// When it ends.
    pub until: Option<WallMs>,
    /// Why.
    pub reason: String,
    /// Who set it.
    pub author: String,
    /// When it was set.
    pub created_at: WallMs,
}

/// GET `/tunnels/{id}/decision-log`: switches, refusals, and every change of the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DecisionLogEntry {
    /// Descending in the answer; pass the last one as `before` for more.
    pub id: i64,
    /// When.
    pub at: WallMs,
    /// The owner.
    pub owner_node_id: NodeId,
    /// Its name then.
    pub owner_name: String,
    /// Exit before.
    pub from_exit_node_id: Option<NodeId>,
    /// Exit concerned.
    pub to_exit_node_id: Option<NodeId>,
    /// Why.
    pub reason: Reason,
    /// The candidates of that round in rank order.
    pub candidates: Vec<CandidateDecision>,
}

/// GET `/tunnels/{id}/quality`: history of one leg.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LegHistory {
    /// Node that measures.
    pub from_node_id: NodeId,
    /// What it measures, `host:port`.
    pub target: String,
    /// The exit the leg belongs to.
    pub exit_node_id: NodeId,
    /// `a` (owner → exit) or `b` (exit → probe target).
    pub leg: String,
    /// Ascending in time.
    pub points: Vec<LegPoint>,
}

/// One round, or the mean of the rounds of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LegPoint {
    /// End of the round, or start of the step.
    pub at: WallMs,
    /// Mean latency of the measured rounds in milliseconds; null = none measured.
    pub latency_ms: Option<f64>,
    /// Mean loss, failed rounds counted as 1; null = unmeasured only.
    pub loss: Option<f64>,
}
