//! Messages between panel and agent.
//!
//! The peer panel's protocol (`{type,data,requestId}` commands, `…Response` answers) plus what only our two sides
//! speak: [`Hello`], [`Command::ProbeBatch`] and [`Report`]. Those are used when the panel's upgrade response carries
//! [`PANEL_HEADER`].

mod groups;

pub use groups::{
    ChooseMember, GROUPS, GroupChange, GroupState, InUse, MAX_REPORTED_MEMBERS, MemberInUse, MemberState,
    group_of_hop,
};

use crate::gost::{ChainConfig, ServiceConfig};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Response header of the websocket upgrade by which a panel says that it is ours; its value is the link version.
pub const PANEL_HEADER: &str = "x-exitpilot";
/// Version of our additions to the protocol.
pub const LINK_VERSION: u32 = 1;
/// Path of the websocket endpoint on the panel.
pub const LINK_PATH: &str = "/system-info";
/// Path on which a compatible panel takes reports of what services have carried.
pub const TRAFFIC_PATH: &str = "/flow/upload";
/// Path on which a compatible panel takes the whole configuration of a node, to delete there what it has forgotten.
pub const CONFIG_PATH: &str = "/flow/config";
/// Frames larger than this are refused by both sides. The largest real one is a hello with digests of some thousand
/// objects, or a batch of services; both stay well below.
pub const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;
/// Targets in one [`ProbeBatch`].
pub const MAX_BATCH_TARGETS: usize = 1024;

/// A frame as received, before its `data` is understood.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frame {
    /// Name of the command, answer or message.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its content.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub data: serde_json::Value,
    /// Answers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// Answers only: `OK` or what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Pairs a command with its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Frame {
    /// The answer to a command called `kind`.
    pub fn answer(
        kind: &str,
        request_id: Option<String>,
        outcome: Result<serde_json::Value, String>,
    ) -> Self {
        let (success, message, data) = match outcome {
            Ok(data) => (true, "OK".to_owned(), data),
            Err(message) => (false, message, serde_json::Value::Null),
        };
        Self {
            kind: format!("{kind}Response"),
            data,
            success: Some(success),
            message: Some(message),
            request_id,
        }
    }

    /// A message that expects no answer.
    pub fn message(kind: &str, data: serde_json::Value) -> Self {
        Self { kind: kind.to_owned(), data, success: None, message: None, request_id: None }
    }
}

/// What a panel asks of an agent. [`Command::from_frame`] reads it completely before anything is changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// New services; an error if a name exists.
    AddService(Vec<ServiceConfig>),
    /// Services as they shall be (upsert).
    UpdateService(Vec<ServiceConfig>),
    /// Unknown names are fine.
    DeleteService(Vec<String>),
    /// Closes listener and connections, keeps the configuration.
    PauseService(Vec<String>),
    /// Opens a paused service again.
    ResumeService(Vec<String>),
    /// A new chain; an error if the name exists.
    AddChains(ChainConfig),
    /// A chain as it shall be (upsert), swapped without a gap.
    UpdateChains(ChainConfig),
    /// Idempotent.
    DeleteChains(String),
    /// Measures one TCP connect target.
    TcpPing(TcpPing),
    /// Measures many targets; ours only.
    ProbeBatch(ProbeBatch),
    /// Opens one real connection through a chain; ours only.
    ConnectThrough(ConnectThrough),
    /// Chooses a member of a group, or takes the choice back; ours only.
    ChooseMember(ChooseMember),
    /// Blocks protocols on a node, known by what clients say first (1 = blocked); kept by the agent.
    SetProtocol(serde_json::Value),
    /// A command this version does not do. The agent answers `success:false`.
    Unknown(String),
}

/// Why a frame is no valid command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {detail}")]
pub struct CommandError {
    /// Name of the command.
    pub kind: String,
    /// Field and reason.
    pub detail: String,
}

#[derive(Deserialize)]
struct Names {
    services: Vec<String>,
}

#[derive(Deserialize)]
struct ChainUpdate {
    #[serde(default)]
    chain: String,
    data: ChainConfig,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ChainName {
    Object { chain: String },
    Text(String),
}

impl Command {
    /// Understands a frame. The whole content is parsed here, so a command that gets through is well-formed.
    pub fn from_frame(frame: &Frame) -> Result<Self, CommandError> {
        fn read<T: serde::de::DeserializeOwned>(frame: &Frame) -> Result<T, CommandError> {
            T::deserialize(&frame.data)
                .map_err(|error| CommandError { kind: frame.kind.clone(), detail: error.to_string() })
        }
        Ok(match frame.kind.as_str() {
            "AddService" => Command::AddService(read(frame)?),
            "UpdateService" => Command::UpdateService(read(frame)?),
            "DeleteService" => Command::DeleteService(read::<Names>(frame)?.services),
            "PauseService" => Command::PauseService(read::<Names>(frame)?.services),
            "ResumeService" => Command::ResumeService(read::<Names>(frame)?.services),
            "AddChains" => Command::AddChains(read(frame)?),
            "UpdateChains" => {
                let update: ChainUpdate = read(frame)?;
                let mut chain = update.data;
                // The wrapper's name wins; a blank one falls back to the chain's own.
                if !update.chain.trim().is_empty() {
                    chain.name = update.chain;
                }
                Command::UpdateChains(chain)
            }
            "DeleteChains" => Command::DeleteChains(match read(frame)? {
                ChainName::Object { chain } => chain,
                ChainName::Text(chain) => chain,
            }),
            "TcpPing" => Command::TcpPing(read(frame)?),
            "ProbeBatch" => Command::ProbeBatch(read(frame)?),
            "ConnectThrough" => Command::ConnectThrough(read(frame)?),
            "ChooseMember" => Command::ChooseMember(read(frame)?),
            "SetProtocol" => Command::SetProtocol(frame.data.clone()),
            other => Command::Unknown(other.to_owned()),
        })
    }

    /// The frame that carries this command.
    pub fn to_frame(&self, request_id: String) -> Frame {
        use serde_json::json;
        let (kind, data) = match self {
            Command::AddService(services) => ("AddService", json!(services)),
            Command::UpdateService(services) => ("UpdateService", json!(services)),
            Command::DeleteService(names) => ("DeleteService", json!({ "services": names })),
            Command::PauseService(names) => ("PauseService", json!({ "services": names })),
            Command::ResumeService(names) => ("ResumeService", json!({ "services": names })),
            Command::AddChains(chain) => ("AddChains", json!(chain)),
            Command::UpdateChains(chain) => ("UpdateChains", json!({ "chain": chain.name, "data": chain })),
            Command::DeleteChains(name) => ("DeleteChains", json!({ "chain": name })),
            Command::TcpPing(ping) => ("TcpPing", json!(ping)),
            Command::ProbeBatch(batch) => ("ProbeBatch", json!(batch)),
            Command::ConnectThrough(connect) => ("ConnectThrough", json!(connect)),
            Command::ChooseMember(choice) => ("ChooseMember", json!(choice)),
            Command::SetProtocol(data) => ("SetProtocol", data.clone()),
            Command::Unknown(kind) => (kind.as_str(), serde_json::Value::Null),
        };
        Frame { kind: kind.to_owned(), data, success: None, message: None, request_id: Some(request_id) }
    }
}

/// A TCP ping as the peer defines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpPing {
    /// Host name or address, without brackets.
    pub ip: String,
    /// TCP port.
    pub port: u16,
    /// Attempts; 0 means 4.
    #[serde(default)]
    pub count: u32,
    /// Per attempt, in milliseconds; 0 means 5000.
    #[serde(default)]
    pub timeout: u64,
}

/// Answer to a [`TcpPing`]. `success: false` makes the numbers meaningless (they are 0 then).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TcpPingResult {
    /// As asked.
    #[serde(default)]
    pub ip: String,
    /// As asked.
    #[serde(default)]
    pub port: u16,
    /// At least one attempt succeeded.
    #[serde(default)]
    pub success: bool,
    /// Mean of the successful attempts in milliseconds.
    #[serde(default)]
    pub average_time: f64,
    /// Lost attempts in percent, 0 to 100.
    #[serde(default)]
    pub packet_loss: f64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

/// Many TCP connect targets, measured concurrently by one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProbeBatch {
    /// At most [`MAX_BATCH_TARGETS`].
    pub targets: Vec<ProbeTarget>,
    /// Samples per target.
    pub count: u32,
    /// Per sample, in milliseconds.
    pub timeout_ms: u64,
    /// Between the starts of two samples of one target, in milliseconds; the agent adds ±25 % jitter.
    pub spacing_ms: u64,
}

/// One target of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProbeTarget {
    /// Chosen by the panel, echoed in the result.
    pub id: u32,
    /// Host name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Answer to a [`ProbeBatch`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeBatchResult {
    /// One per target, in the order asked.
    pub results: Vec<ProbeResult>,
}

/// All samples of one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeResult {
    /// As asked.
    pub id: u32,
    /// The address used, once the name was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// In the order sent. Fewer than asked when the first one shows that more make no sense (refused, unresolved).
    pub samples: Vec<Sample>,
}

/// Outcome of one connect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum Sample {
    /// Connected.
    Ok {
        /// Duration of the connect in milliseconds.
        ms: f64,
        /// SYNs the kernel had to send again (`TCP_INFO`).
        #[serde(default)]
        retransmits: u32,
    },
    /// No answer in time.
    Lost,
    /// The port is closed.
    Refused,
    /// The name has no address.
    Unresolved,
    /// No route, or the local socket failed.
    Unreachable,
}

/// One connection through a chain to a target, closed as soon as it is up. It counts for nothing: no mark is set or
/// cleared, no counter moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConnectThrough {
    /// Name of the chain.
    pub chain: String,
    /// Address (`host:port`) of the only node of its last hop that may be used; without it any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// `host:port`, dialled by the chain's last node.
    pub target: String,
    /// For everything, in milliseconds.
    pub timeout_ms: u64,
}

/// Answer to a [`ConnectThrough`] that worked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectThroughResult {
    /// From the first packet until the last node said that it reached the target, in milliseconds.
    pub ms: f64,
}

/// First message of our agent to our panel, and again whenever the set of objects changes without a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Name of the program.
    pub agent: String,
    /// Its version.
    pub version: String,
    /// `protocol:tls`, `strategy:fifo`, `probe-batch`, …
    pub capabilities: Vec<String>,
    /// [`object_key`] → [`digest`] of what runs.
    pub digests: BTreeMap<String, String>,
    /// [`object_key`] → reason, for configured objects that do not run (a port taken at start, for example).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<String, String>,
}

/// What an agent tells unasked: marks and the exits really used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Report {
    /// One per chain.
    pub chains: Vec<ChainReport>,
    /// Client connections refused because no node could be used, since the agent started.
    #[serde(default)]
    pub refused: u64,
    /// Groups whose choice is made ahead of connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupState>,
}

/// State of one chain's nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChainReport {
    /// Name of the chain.
    pub name: String,
    /// Nodes of its last hop, in configured order.
    pub nodes: Vec<ChainNodeReport>,
}

/// State of one node of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChainNodeReport {
    /// Name of the node in the chain.
    pub name: String,
    /// `host:port`.
    pub addr: String,
    /// Connections established through it since the agent started.
    pub connections: u64,
    /// Of these, open now.
    pub open: u64,
    /// Failed attempts since the agent started.
    pub failures: u64,
    /// Left out now because of failures.
    pub marked: bool,
    /// What its last probe has found, if it is probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeReport>,
}

/// The last probe of a node, and what came before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProbeReport {
    /// Whether the node was found working.
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took, in milliseconds; of a failed one, until it failed.
    pub latency_ms: f64,
    /// Moving average of the successful ones, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_ms: Option<f64>,
    /// How long ago it ended, in milliseconds.
    pub age_ms: u64,
    /// Failures in a row.
    pub failures: u32,
    /// How many there were.
    pub probes: u64,
}

/// Key of a service in [`Hello::digests`].
pub fn service_key(name: &str) -> String {
    format!("service:{name}")
}

/// Key of a chain in [`Hello::digests`].
pub fn chain_key(name: &str) -> String {
    format!("chain:{name}")
}

/// Digest of a configuration object: 32 hex characters (the first half of SHA-256) of its JSON text. Both sides
/// serialise the same types, so equal objects have equal digests.
#[cfg(feature = "link")]
pub fn digest<T: Serialize>(object: &T) -> String {
    use sha2::Digest as _;
    let json = serde_json::to_vec(object).unwrap_or_default();
    hex::encode(&sha2::Sha256::digest(&json)[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn frame(kind: &str, data: serde_json::Value) -> Frame {
        Frame { kind: kind.into(), data, success: None, message: None, request_id: Some("11_1".into()) }
    }

    #[test]
    fn update_chains_takes_the_wrapper_and_refuses_a_bare_chain() {
        let chain = json!({"name":"x","hops":[]});
        let command =
            Command::from_frame(&frame("UpdateChains", json!({"chain":"chains_1","data":chain}))).unwrap();
        assert!(matches!(command, Command::UpdateChains(c) if c.name == "chains_1"));
        let command = Command::from_frame(&frame("UpdateChains", json!({"chain":" ","data":chain}))).unwrap();
        assert!(matches!(command, Command::UpdateChains(c) if c.name == "x"));
        assert!(Command::from_frame(&frame("UpdateChains", chain)).is_err());
    }

    #[test]
    fn delete_chains_takes_object_and_text() {
        for data in [json!({"chain":"chains_1"}), json!("chains_1")] {
            let command = Command::from_frame(&frame("DeleteChains", data)).unwrap();
            assert_eq!(command, Command::DeleteChains("chains_1".into()));
        }
    }

    #[test]
    fn every_command_survives_the_wire() {
        let chain: ChainConfig = serde_json::from_value(json!({"name":"c","hops":[]})).unwrap();
        let ping = TcpPing { ip: "198.51.100.7".into(), port: 443, count: 4, timeout: 900 };
        let batch = ProbeBatch {
            targets: vec![ProbeTarget { id: 1, host: "exit.example".into(), port: 443 }],
            count: 4,
            timeout_ms: 900,
            spacing_ms: 200,
        };
        let commands = [
            Command::AddService(vec![]),
            Command::UpdateService(vec![]),
            Command::DeleteService(vec!["a".into()]),
            Command::PauseService(vec!["a".into()]),
            Command::ResumeService(vec!["a".into()]),
            Command::AddChains(chain.clone()),
            Command::UpdateChains(chain),
            Command::DeleteChains("c".into()),
            Command::TcpPing(ping),
            Command::ProbeBatch(batch),
            Command::ConnectThrough(ConnectThrough {
                chain: "c".into(),
                via: Some("198.51.100.7:20443".into()),
                target: "target.example:443".into(),
                timeout_ms: 10_000,
            }),
            Command::ChooseMember(ChooseMember { group: "chain/c/h".into(), member: Some("m".into()) }),
            Command::ChooseMember(ChooseMember { group: "chain/c/h".into(), member: None }),
            Command::SetProtocol(json!({"http":1})),
        ];
        for command in commands {
            let text = serde_json::to_string(&command.to_frame("7_1".into())).unwrap();
            let frame: Frame = serde_json::from_str(&text).unwrap();
            assert_eq!(frame.request_id.as_deref(), Some("7_1"));
            assert_eq!(Command::from_frame(&frame).unwrap(), command, "{text}");
        }
    }

    #[test]
    fn a_wrong_field_is_named() {
        let error = Command::from_frame(&frame("UpdateService", json!([{"name":"s","addr":1}]))).unwrap_err();
        assert!(error.to_string().starts_with("UpdateService: "), "{error}");
    }

    #[test]
    fn samples_have_stable_names() {
        let samples = vec![Sample::Ok { ms: 1.5, retransmits: 0 }, Sample::Lost, Sample::Refused];
        assert_eq!(
            serde_json::to_value(samples).unwrap(),
            json!([{"outcome":"ok","ms":1.5,"retransmits":0},{"outcome":"lost"},{"outcome":"refused"}])
        );
    }
}
