use super::WallMs;
use crate::ids::{NodeId, TunnelId};
use serde::{Deserialize, Serialize};

/// A server-sent event of GET `/events`: a hint to look again, and enough to show the moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum Event {
    /// A node's agent connected or went away.
    Node {
        /// The node.
        node_id: NodeId,
        /// Connected now.
        online: bool,
    },
    /// An owner was evaluated and something about its decision changed.
    Decision {
        /// The tunnel.
        tunnel_id: TunnelId,
        /// The owner.
        owner_node_id: NodeId,
        /// Code of the reason.
        reason: String,
    },
    /// New connections go elsewhere now.
    Switch {
        /// The tunnel.
        tunnel_id: TunnelId,
        /// The owner.
        owner_node_id: NodeId,
        /// Exit before.
        from: Option<NodeId>,
        /// Exit now.
        to: NodeId,
        /// When.
        at: WallMs,
    },
    /// A round of the prober ended: latencies and scores are new.
    Round {
        /// When.
        at: WallMs,
    },
    /// What a node runs changed its state (pending, applied, failed).
    Deployment {
        /// The node.
        node_id: NodeId,
    },
    /// Stored intent changed: `node`, `tunnel`, `forward`, `settings`, `pin` or `choice`.
    Changed {
        /// What.
        what: String,
    },
    /// Events were lost because the reader was too slow: look at everything again.
    Lagged,
}
