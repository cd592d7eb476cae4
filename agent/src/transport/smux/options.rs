//! Options of the multiplexer, with GOST's keys.

use super::frame::LONGEST_PAYLOAD;
use crate::metadata::{ConfigError, MetadataReader};
use std::time::Duration;

/// How a session behaves. The defaults are the library's that GOST uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MuxOptions {
    /// 1, or 2 with a window per stream; the same on both sides. `None`: a server takes the client's.
    pub version: Option<u8>,
    /// Pause between two keepalives, and the silence after which the session is dead. `None`: neither.
    pub keepalive: Option<Keepalive>,
    /// Longest payload of a frame that is sent.
    pub max_frame_size: usize,
    /// Bytes that all streams together may leave unread before nothing more is read from the connection.
    pub max_receive_buffer: usize,
    /// Version 2: bytes that one stream may leave unread. Version 1 has no way to tell the peer.
    pub max_stream_buffer: usize,
}

/// When a quiet session is spoken on, and when it is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Between two keepalives that are sent.
    pub interval: Duration,
    /// Of silence; then the session is dead.
    pub timeout: Duration,
}

impl Default for MuxOptions {
    fn default() -> Self {
        let keepalive = Keepalive { interval: Duration::from_secs(10), timeout: Duration::from_secs(30) };
        Self {
            version: None,
            keepalive: Some(keepalive),
            max_frame_size: 32768,
            max_receive_buffer: 4_194_304,
            max_stream_buffer: 65536,
        }
    }
}

impl MuxOptions {
    /// The keys that [`MuxOptions::read`] knows.
    pub const KEYS: [&'static str; 7] = [
        "mux.version",
        "mux.keepaliveDisabled",
        "mux.keepaliveInterval",
        "mux.keepaliveTimeout",
        "mux.maxFrameSize",
        "mux.maxReceiveBuffer",
        "mux.maxStreamBuffer",
    ];

    /// Reads the options; `path` is the metadata's, for errors. Absent and zero mean the default, as in GOST.
    pub fn read(path: &str, metadata: &MetadataReader<'_>) -> Result<Self, ConfigError> {
        let default = Self::default();
        let wrong = |key: &str, reason: String| Err(ConfigError::new(format!("{path}.{key}"), reason));
        let size = |key: &str, default: usize, most: usize| match metadata.number(key)?.filter(|n| *n > 0) {
            None => Ok(default.min(most)),
            Some(n) if n as usize > most => {
                Err(ConfigError::new(format!("{path}.{key}"), format!("must not exceed {most}")))
            }
            Some(n) => Ok(n as usize),
        };
        let version = match metadata.number("mux.version")?.unwrap_or(0) {
            0 => None,
            version @ (1 | 2) => Some(version as u8),
            other => return wrong("mux.version", format!("{other} is neither 1 nor 2")),
        };
        let standard =
            default.keepalive.unwrap_or(Keepalive { interval: Duration::ZERO, timeout: Duration::ZERO });
        let time = |key: &str, default: Duration| {
            metadata.duration(key).map(|time| time.filter(|time| !time.is_zero()).unwrap_or(default))
        };
        let interval = time("mux.keepaliveInterval", standard.interval)?;
        let timeout = time("mux.keepaliveTimeout", standard.timeout)?;
        let keepalive = if metadata.flag("mux.keepaliveDisabled")? {
            None
        } else if timeout < interval {
            return wrong(
                "mux.keepaliveTimeout",
                format!("{timeout:?} is less than the interval, {interval:?}"),
            );
        } else {
            Some(Keepalive { interval, timeout })
        };
        // Beyond that, a single session could take a machine's memory.
        let most = 256 * 1024 * 1024;
        let max_receive_buffer = size("mux.maxReceiveBuffer", default.max_receive_buffer, most)?;
        Ok(Self {
            version,
            keepalive,
            max_frame_size: size("mux.maxFrameSize", default.max_frame_size, LONGEST_PAYLOAD)?,
            max_receive_buffer,
            max_stream_buffer: size("mux.maxStreamBuffer", default.max_stream_buffer, max_receive_buffer)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shared::gost::Metadata;

    fn read(value: serde_json::Value) -> Result<MuxOptions, String> {
        let entries: Metadata = serde_json::from_value(value).unwrap();
        let reader = MetadataReader::new("m", &entries, &MuxOptions::KEYS).map_err(|e| e.to_string())?;
        MuxOptions::read("m", &reader).map_err(|e| e.to_string())
    }

    #[test]
    fn nothing_and_zero_mean_the_default() {
        assert_eq!(read(json!({})), Ok(MuxOptions::default()));
        assert_eq!(read(json!({"mux.version": 0, "mux.maxFrameSize": "0"})), Ok(MuxOptions::default()));
    }

    #[test]
    fn what_a_peer_panel_sends() {
        let options = read(json!({
            "mux.keepaliveInterval": "15s", "mux.keepaliveTimeout": "45s", "mux.maxFrameSize": 32768,
            "mux.maxStreamBuffer": 2097152
        }));
        let keepalive = Keepalive { interval: Duration::from_secs(15), timeout: Duration::from_secs(45) };
        let expected =
            MuxOptions { keepalive: Some(keepalive), max_stream_buffer: 2_097_152, ..MuxOptions::default() };
        assert_eq!(options, Ok(expected));
        assert_eq!(read(json!({"mux.keepaliveDisabled": true, "mux.version": 2})).unwrap().keepalive, None);
        assert_eq!(read(json!({"mux.version": 2})).unwrap().version, Some(2));
        // A receive buffer below the default of a stream lowers that too.
        assert_eq!(read(json!({"mux.maxReceiveBuffer": 1000})).unwrap().max_stream_buffer, 1000);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            (json!({"mux.version": 3}), "m.mux.version: 3 is neither 1 nor 2"),
            (json!({"mux.maxFrameSize": 65536}), "m.mux.maxFrameSize: must not exceed 65535"),
            (json!({"mux.maxReceiveBuffer": 300000000}), "m.mux.maxReceiveBuffer: must not exceed 268435456"),
            (
                json!({"mux.maxStreamBuffer": 2000, "mux.maxReceiveBuffer": 1000}),
                "m.mux.maxStreamBuffer: must not exceed 1000",
            ),
            (
                json!({"mux.keepaliveTimeout": "5s"}),
                "m.mux.keepaliveTimeout: 5s is less than the interval, 10s",
            ),
            (json!({"mux.streams": 1}), "m.mux.streams: is not supported"),
        ];
        for (value, expected) in cases {
            assert_eq!(read(value).unwrap_err(), expected);
        }
    }
}
