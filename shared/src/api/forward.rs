use super::NodeDeployment;
use crate::ids::{ForwardId, TunnelId};
use crate::strategy::Strategy;
use serde::{Deserialize, Serialize};

/// A listening port on the entry nodes of a tunnel and its targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Forward {
    /// Identifier.
    pub id: ForwardId,
    /// Counts edits; sent back with a PUT.
    pub version: i64,
    /// Its tunnel.
    pub tunnel_id: TunnelId,
    /// 1 to 50 characters.
    pub name: String,
    /// Port on every entry node.
    pub listen_port: u16,
    /// Address to listen on, where it differs from the node's.
    pub listen_ip: Option<String>,
    /// `host:port`, in order.
    pub targets: Vec<String>,
    /// How a target is chosen.
    pub strategy: Strategy,
    /// A paused forward keeps its port and refuses connections.
    pub enabled: bool,
    /// `host:port` to connect to, one per entry node.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// How far each entry node is.
    #[serde(default)]
    pub deployment: Vec<NodeDeployment>,
}

/// POST `/forwards`, PUT `/forwards/{id}`. Read-only fields of [`Forward`] may be sent back; they are not looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForwardInput {
    /// PUT: the version that was edited; 409 when another edit came first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Its tunnel.
    pub tunnel_id: TunnelId,
    /// 1 to 50 characters.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 50))]
    pub name: String,
    /// 0 = choose one that is free on all entry nodes.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(maximum = 65535))]
    pub listen_port: u16,
    /// Address to listen on, where it differs from the node's.
    #[serde(default)]
    pub listen_ip: Option<String>,
    /// `host:port`, in order; at least one.
    pub targets: Vec<String>,
    /// Default `fifo`.
    #[serde(default = "default_strategy")]
    pub strategy: Strategy,
    /// Default true.
    #[serde(default = "enabled")]
    pub enabled: bool,

    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub id: Option<ForwardId>,
    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub addresses: Option<Vec<String>>,
    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub deployment: Option<serde_json::Value>,
}

fn default_strategy() -> Strategy {
    Strategy::Fifo
}

fn enabled() -> bool {
    true
}
