use super::WallMs;
use crate::address::{PortRange, validate_host};
use crate::field::FieldError;
use crate::ids::NodeId;
use serde::{Deserialize, Serialize};

/// A server with an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Identifier.
    pub id: NodeId,
    /// Counts edits; sent back with a PUT.
    pub revision: i64,
    /// Unique.
    pub name: String,
    /// Address or host name at which other nodes and users reach it.
    pub server_ip: String,
    /// Its IPv4 address, where it differs.
    pub server_ip_v4: String,
    /// Its IPv6 address.
    pub server_ip_v6: String,
    /// Ports its services may use, `10000-60000`.
    pub port_range: String,
    /// Network interface to dial from; empty = the system's choice.
    pub interface_name: String,
    /// Address its TCP services listen on.
    pub tcp_listen_addr: String,
    /// Address its UDP services listen on.
    pub udp_listen_addr: String,
    /// Its agent is connected.
    pub online: bool,
    /// Version its agent reported; empty before the first connection.
    pub version: String,
    /// What its agent can do; empty = unknown (a peer's agent).
    pub capabilities: Vec<String>,
    /// When its agent was last heard; null = never.
    pub last_seen: Option<WallMs>,
    /// The node secret; in the answers of create and rotate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// POST `/nodes`, PUT `/nodes/{id}`. Read-only fields of [`Node`] may be sent back; they are not looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeInput {
    /// PUT: the revision that was edited; 409 when another edit came first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// 1 to 50 characters, unique.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 50))]
    pub name: String,
    /// Address or host name.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub server_ip: String,
    /// IPv4 address or empty.
    #[serde(default)]
    pub server_ip_v4: String,
    /// IPv6 address or empty.
    #[serde(default)]
    pub server_ip_v6: String,
    /// Default `10000-60000`.
    #[serde(default = "default_port_range")]
    pub port_range: String,
    /// Empty = the system's choice.
    #[serde(default)]
    pub interface_name: String,
    /// Default `[::]`.
    #[serde(default = "default_listen_addr")]
    pub tcp_listen_addr: String,
    /// Default `[::]`.
    #[serde(default = "default_listen_addr")]
    pub udp_listen_addr: String,

    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub id: Option<NodeId>,
    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub online: Option<bool>,
    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub version: Option<String>,
    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub capabilities: Option<Vec<String>>,
    #[doc(hidden)]
    #[serde(default, skip_serializing)]
    pub last_seen: Option<WallMs>,
}

impl Default for NodeInput {
    fn default() -> Self {
        Self {
            revision: None,
            name: String::new(),
            server_ip: String::new(),
            server_ip_v4: String::new(),
            server_ip_v6: String::new(),
            port_range: default_port_range(),
            interface_name: String::new(),
            tcp_listen_addr: default_listen_addr(),
            udp_listen_addr: default_listen_addr(),
            id: None,
            online: None,
            version: None,
            capabilities: None,
            last_seen: None,
        }
    }
}

fn default_port_range() -> String {
    PortRange::DEFAULT.to_owned()
}

fn default_listen_addr() -> String {
    "[::]".to_owned()
}

/// Checks all that can be checked without the other nodes. `[]` means valid.
pub fn validate_node(input: &NodeInput) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let chars = input.name.trim().chars().count();
    if chars == 0 || chars > 50 {
        let error = FieldError::new("name", "name_length", "give a name of 1 to 50 characters");
        errors.push(error.with("min", 1).with("max", 50));
    }
    let unbracketed = |text: &str| text.trim_start_matches('[').trim_end_matches(']').to_owned();
    if let Err(error) = validate_host(&unbracketed(&input.server_ip)) {
        errors.push(FieldError::new("serverIp", error.code(), error.to_string()));
    }
    if !input.server_ip_v4.is_empty() && input.server_ip_v4.parse::<std::net::Ipv4Addr>().is_err() {
        errors.push(FieldError::new(
            "serverIpV4",
            "ip_v4_invalid",
            "write an IPv4 address or leave it empty",
        ));
    }
    if !input.server_ip_v6.is_empty()
        && unbracketed(&input.server_ip_v6).parse::<std::net::Ipv6Addr>().is_err()
    {
        errors.push(FieldError::new(
            "serverIpV6",
            "ip_v6_invalid",
            "write an IPv6 address or leave it empty",
        ));
    }
    if let Err(message) = PortRange::parse(&input.port_range) {
        errors.push(FieldError::new("portRange", "port_range_invalid", message));
    }
    for (field, text) in
        [("tcpListenAddr", &input.tcp_listen_addr), ("udpListenAddr", &input.udp_listen_addr)]
    {
        if unbracketed(text).parse::<std::net::IpAddr>().is_err() {
            let message = "write the IP address to listen on, [::] for all";
            errors.push(FieldError::new(field, "listen_addr_invalid", message));
        }
    }
    // IFNAMSIZ is 16 with the terminating zero.
    let interface = &input.interface_name;
    if interface.len() > 15 || interface.contains(|c: char| c.is_whitespace() || c == '/') {
        let message = "write the name of a network interface (at most 15 characters) or leave it empty";
        errors.push(FieldError::new("interfaceName", "interface_invalid", message));
    }
    errors
}

/// GET `/nodes/{id}/install`: how to install the agent on the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstallCommand {
    /// Fetches the agent from the panel and installs it as a service; with the same placeholder as `command`.
    pub script: String,
    /// Command line with the placeholder `<secret>` where the secret goes; it is shown once, by create and rotate.
    pub command: String,
    /// Address at which the agent reaches the panel.
    pub panel: String,
}
