//! Options of websocket dialers and listeners, with GOST's keys.

use crate::metadata::{ConfigError, MetadataReader};
use shared::address::HostPort;
use std::time::Duration;

/// GOST's default.
const DEFAULT_PATH: &str = "/ws";
/// GOST's default.
const DEFAULT_PING: Duration = Duration::from_secs(15);
/// Headers that the handshake itself sets.
const OWN_HEADERS: [&str; 7] = [
    "host",
    "upgrade",
    "connection",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
    "sec-websocket-accept",
];

/// The client's side of a websocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsClient {
    /// What is asked for.
    pub path: String,
    /// The `Host` header.
    pub host: String,
    /// Sent along.
    pub headers: Vec<(String, String)>,
    /// Pause between pings; after three without any sign of life the connection is dead.
    pub ping: Option<Duration>,
}

/// The server's side of a websocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsServer {
    /// Where it is; everything else is not found.
    pub path: String,
    /// Sent along.
    pub headers: Vec<(String, String)>,
}

impl WsClient {
    /// The keys that [`WsClient::read`] knows.
    pub const KEYS: [&'static str; 7] =
        ["path", "host", "header", "keepalive", "keepalive.", "ttl", "enableCompression"];

    /// Reads the options; `path` is the metadata's, for errors, `addr` the node's address.
    pub fn read(path: &str, metadata: &MetadataReader<'_>, addr: &HostPort) -> Result<Self, ConfigError> {
        metadata.refuse("enableCompression")?;
        let host = match metadata.text("host")? {
            Some(host) if is_field_value(host) => host.to_owned(),
            Some(host) => {
                return Err(ConfigError::new(format!("{path}.host"), format!("{host:?} is no host")));
            }
            None => addr.to_string(),
        };
        let period = match metadata.duration("keepalive.interval")? {
            Some(period) => Some(period),
            None => metadata.duration("ttl")?,
        };
        let period = period.filter(|period| !period.is_zero()).unwrap_or(DEFAULT_PING);
        let ping = metadata.flag("keepalive")?.then_some(period);
        Ok(Self { path: place(path, metadata)?, host, headers: headers(path, metadata)?, ping })
    }
}

impl WsServer {
    /// The keys that [`WsServer::read`] knows.
    pub const KEYS: [&'static str; 3] = ["path", "header", "enableCompression"];

    /// Reads the options; `path` is the metadata's, for errors.
    pub fn read(path: &str, metadata: &MetadataReader<'_>) -> Result<Self, ConfigError> {
        metadata.refuse("enableCompression")?;
        Ok(Self { path: place(path, metadata)?, headers: headers(path, metadata)? })
    }
}

fn place(path: &str, metadata: &MetadataReader<'_>) -> Result<String, ConfigError> {
    let place = metadata.text("path")?.unwrap_or(DEFAULT_PATH);
    if !place.starts_with('/') || !place.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(ConfigError::new(format!("{path}.path"), format!("{place:?} is no path such as /ws")));
    }
    Ok(place.to_owned())
}

fn headers(path: &str, metadata: &MetadataReader<'_>) -> Result<Vec<(String, String)>, ConfigError> {
    let mut headers = Vec::new();
    for (name, value) in metadata.texts("header")? {
        let wrong = |reason: &str| ConfigError::new(format!("{path}.header.{name}"), reason);
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(wrong("is no name of a header"));
        }
        if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(wrong("is set by the handshake"));
        }
        if !is_field_value(value) {
            return Err(wrong("has a value that no header can have"));
        }
        headers.push((name.to_owned(), value.to_owned()));
    }
    Ok(headers)
}

fn is_field_value(text: &str) -> bool {
    text.bytes().all(|b| b == b'\t' || b == b' ' || b.is_ascii_graphic())
}
