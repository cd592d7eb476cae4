use super::{DecisionState, WallMs};
use crate::ids::{NodeId, TunnelId};
use crate::strategy::{Protocol, Strategy};
use serde::{Deserialize, Serialize};

/// What a tunnel does at its entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum TunnelType {
    /// 端口转发: the entry dials the target itself.
    Port,
    /// 隧道转发: through hops and an exit.
    #[default]
    Tunnel,
}

/// Which address family neighbouring groups use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum IpPreference {
    /// IPv4 where both have it, else IPv6.
    #[default]
    Auto,
    /// IPv4 first.
    V4,
    /// IPv6 first.
    V6,
}

/// The entry group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryGroup {
    /// At least one.
    pub nodes: Vec<EntryNode>,
}

/// A node of the entry group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryNode {
    /// The node.
    pub node_id: NodeId,
}

/// A middle hop or the exit group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Group {
    /// How the previous group chooses one of these nodes.
    #[serde(default = "default_strategy")]
    pub strategy: Strategy,
    /// Transport from the previous group.
    #[serde(default = "default_protocol")]
    pub protocol: Protocol,
    /// Failures after which a node is left out.
    #[serde(default = "default_max_fails")]
    pub max_fails: u32,
    /// For how long it is left out, in milliseconds.
    #[serde(default = "default_fail_timeout_ms")]
    pub fail_timeout_ms: u64,
    /// In order: the priority of 主备, the saved order of 最优.
    pub nodes: Vec<GroupNode>,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            strategy: default_strategy(),
            protocol: default_protocol(),
            max_fails: default_max_fails(),
            fail_timeout_ms: default_fail_timeout_ms(),
            nodes: Vec::new(),
        }
    }
}

/// Blank means `round` at the peers too.
fn default_strategy() -> Strategy {
    Strategy::Round
}

fn default_protocol() -> Protocol {
    Protocol::Tls
}

/// One hiccup must not take an exit out (the peer's 1 / 600 s does).
fn default_max_fails() -> u32 {
    3
}

fn default_fail_timeout_ms() -> u64 {
    30_000
}

/// A node of a hop or of the exit group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupNode {
    /// The node.
    pub node_id: NodeId,
    /// Its relay port; null or absent = chosen once and kept.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 65535))]
    pub port: Option<u16>,
    /// Address at which the previous group dials it, where it differs from the node's.
    #[serde(default)]
    pub connect_ip: Option<String>,
}

/// A path: entry group, middle hops, exit group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Tunnel {
    /// Identifier.
    pub id: TunnelId,
    /// Counts edits; sent back with a PUT.
    pub version: i64,
    /// Unique, 2 to 50 characters.
    pub name: String,
    /// What it does at its entry.
    #[serde(rename = "type")]
    pub kind: TunnelType,
    /// A disabled tunnel has no runtime.
    pub enabled: bool,
    /// Address family between the groups.
    pub ip_preference: IpPreference,
    /// Where users connect.
    pub entry: EntryGroup,
    /// In between, in order.
    pub hops: Vec<Group>,
    /// Where the traffic leaves; absent for `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Group>,
    /// Only for `best` with two or more exits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_exit: Option<BestExit>,
    /// How far each node is with what the tunnel needs of it.
    #[serde(default)]
    pub deployment: Vec<NodeDeployment>,
    /// Accepted all the same; present in the answers of create and edit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<crate::field::FieldError>,
}

/// POST `/tunnels`, PUT `/tunnels/{id}`. Read-only fields of [`Tunnel`] may be sent back; they are not looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TunnelInput {
    /// PUT: the version that was edited; 409 when another edit came first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Unique, 2 to 50 characters.
    #[cfg_attr(feature = "openapi", schema(min_length = 2, max_length = 50))]
    pub name: String,
    /// Default `tunnel`.
    #[serde(default, rename = "type")]
    pub kind: TunnelType,
    /// Default true.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// Default `auto`.
    #[serde(default)]
    pub ip_preference: IpPreference,
    /// Where users connect.
    pub entry: EntryGroup,
    /// In between, in order.
    #[serde(default)]
    pub hops: Vec<Group>,
    /// Where the traffic leaves; absent for `port`.
    #[serde(default)]
    pub exit: Option<Group>,

    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub id: Option<TunnelId>,
    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub best_exit: Option<serde_json::Value>,
    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub deployment: Option<serde_json::Value>,
    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub warnings: Option<serde_json::Value>,
}

fn enabled() -> bool {
    true
}

impl From<Tunnel> for TunnelInput {
    /// What an editor starts from.
    fn from(tunnel: Tunnel) -> Self {
        Self {
            version: Some(tunnel.version),
            name: tunnel.name,
            kind: tunnel.kind,
            enabled: tunnel.enabled,
            ip_preference: tunnel.ip_preference,
            entry: tunnel.entry,
            hops: tunnel.hops,
            exit: tunnel.exit,
            id: None,
            best_exit: None,
            deployment: None,
            warnings: None,
        }
    }
}

/// Short form of a `best` tunnel's decisions, for lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BestExit {
    /// Whether every owner has an applied exit.
    pub status: DecisionState,
    /// The name of the common exit; empty when the owners differ or one has none yet.
    pub summary: String,
    /// One per owner.
    pub owners: Vec<BestExitOwner>,
}

/// One owner of a [`BestExit`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BestExitOwner {
    /// The node that holds the chain.
    pub owner_node_id: NodeId,
    /// First exit of the applied order.
    pub exit_node_id: Option<NodeId>,
    /// Code of the last reason.
    pub reason: String,
    /// Since when this exit is the first one.
    pub since: Option<WallMs>,
}

/// How far a node is with what it should run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeDeployment {
    /// The node.
    pub node_id: NodeId,
    /// Where it stands.
    pub status: DeploymentStatus,
    /// `failed`: what the node said. `pending`: what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum DeploymentStatus {
    /// The node runs what it should.
    Applied,
    /// Not yet sent or answered.
    Pending,
    /// The node refused.
    Failed,
}

/// GET `/tunnels/{id}/runtime`: what the agent of a node should be running for the tunnel. Passwords are masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeRuntime {
    /// The node.
    pub node_id: NodeId,
    /// Its name.
    pub node_name: String,
    /// Where it stands.
    pub status: DeploymentStatus,
    /// `failed`: what the node said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The objects, as they are pushed.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub config: crate::gost::GostConfig,
}

/// GET `/tunnels/{id}/delete-preview`: what goes with the tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeletePreview {
    /// Name of what would be deleted.
    pub name: String,
    /// Names of the forwards that would be deleted with it.
    pub forwards: Vec<String>,
    /// Names of the tunnels that use it (nodes only).
    #[serde(default)]
    pub tunnels: Vec<String>,
}

/// A line of POST `/tunnels/{id}/diagnose` (NDJSON).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum DiagnoseLine {
    /// First line.
    Start {
        /// What will be tried, in order.
        items: Vec<DiagnoseItem>,
    },
    /// One item is done.
    Item {
        /// Index in `items`.
        index: usize,
        /// Whether it worked.
        success: bool,
        /// Mean latency in milliseconds, where measured.
        latency_ms: Option<f64>,
        /// Share lost, 0 to 1, where measured.
        loss: Option<f64>,
        /// What went wrong, or what was seen.
        message: String,
        /// What kind of failure it was, for a text in another language: `no_answer`, `unreachable`, `node_offline`,
        /// `node_timeout`, `agent_old`, `agent_foreign`, `agent_new`; absent for what only the message tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// Last line.
    Done {
        /// Items that worked.
        succeeded: usize,
        /// Items that did not.
        failed: usize,
    },
}

/// One thing a diagnosis tries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiagnoseItem {
    /// `link` between neighbouring groups, `target` from an exit, `connection` through the tunnel.
    pub kind: String,
    /// Node that tries.
    pub from: String,
    /// Node or address tried.
    pub to: String,
}
