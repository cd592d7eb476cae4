//! What lies between a TCP connection (or a stream that another hop carries) and the protocol spoken on it.
//!
//! | type | layers from below |
//! | --- | --- |
//! | `tcp` | none |
//! | `tls` | TLS |
//! | `ws`, `wss` | websocket; TLS and websocket |
//! | `mtcp`, `mtls`, `mws`, `mwss` | the same, and many streams on top |

pub mod acceptor;
pub mod dialer;
pub(crate) mod pem;
pub mod pool;
pub mod smux;
pub mod tls;
mod tls_options;
pub mod ws;

use crate::metadata::ConfigError;
use smux::MuxOptions;

/// The layers of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    tls: bool,
    ws: bool,
    mux: bool,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        let (carrier, mux) = match text.strip_prefix('m') {
            Some(carrier) => (carrier, true),
            None => (text, false),
        };
        let (tls, ws) = match carrier {
            "tcp" => (false, false),
            "tls" => (true, false),
            "ws" => (false, true),
            "wss" => (true, true),
            _ => return None,
        };
        Some(Self { tls, ws, mux })
    }

    /// The layers of a configured type; `path` is that of the object whose type it is.
    fn of(path: &str, text: &str) -> Result<Self, ConfigError> {
        let unsupported = || ConfigError::new(format!("{path}.type"), format!("{text} is not supported"));
        Self::parse(text).ok_or_else(unsupported)
    }

    /// The metadata keys of this type: those of every type, and those of its layers.
    fn keys(self, every: &[&'static str], websocket: &[&'static str]) -> Vec<&'static str> {
        let mut keys = every.to_vec();
        if self.ws {
            keys.extend(websocket);
        }
        if self.mux {
            // Elsewhere they say nothing, whatever they are.
            keys.retain(|key| *key != "mux.");
            keys.extend(MuxOptions::KEYS);
        }
        keys
    }
}

#[cfg(test)]
impl crate::stream::Layer for tokio::io::DuplexStream {
    fn abort(self: Box<Self>) {}

    fn own_tcp(&self) -> Option<&tokio::net::TcpStream> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let kind = |tls, ws, mux| Some(Kind { tls, ws, mux });
        assert_eq!(Kind::parse("tcp"), kind(false, false, false));
        assert_eq!(Kind::parse("wss"), kind(true, true, false));
        assert_eq!(Kind::parse("mtcp"), kind(false, false, true));
        assert_eq!(Kind::parse("mtls"), kind(true, false, true));
        assert_eq!(Kind::parse("mws"), kind(false, true, true));
        assert_eq!(Kind::parse("mwss"), kind(true, true, true));
        for other in ["", "m", "kcp", "mmtls", "TLS", "quic"] {
            assert_eq!(Kind::parse(other), None, "{other}");
        }
    }
}
