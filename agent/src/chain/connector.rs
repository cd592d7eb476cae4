//! What is spoken to a node: how it is asked for a connection.

use super::asking::Wanted;
use super::fault::AskError;
use crate::metadata::{ConfigError, MetadataReader};
use crate::proxy::{http, socks5};
use crate::relay::client::Unanswered;
use crate::relay::wire::datagram_request;
use crate::stream::Stream;
use shared::address::HostPort;
use shared::gost::{Auth, ConnectorConfig};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// Credentials have a length byte on the wire.
const LONGEST_CREDENTIAL: usize = 255;

/// What is spoken to a node.
pub enum Connector {
    /// Nothing: the node knows where to go.
    Forward,
    /// GOST's relay protocol.
    Relay {
        /// Sent along.
        auth: Option<Auth>,
        /// Wait for the node's answer before anything else. Without it, a node may hold its answer until the target
        /// speaks, and payload must not wait for that.
        nodelay: bool,
        /// Replaces the general deadline of the answer.
        timeout: Option<Duration>,
    },
    /// SOCKS5.
    Socks5 {
        /// Offered.
        auth: Option<Auth>,
        /// Replaces the general deadline of the answer.
        timeout: Option<Duration>,
    },
    /// HTTP's `CONNECT`.
    Http {
        /// Sent along.
        auth: Option<Auth>,
        /// Replaces the general deadline of the answer.
        timeout: Option<Duration>,
    },
}

/// A node that has been asked.
pub enum Asked {
    /// It said yes, or has nothing to say: what follows is payload.
    Answered(Stream),
    /// It may hold its answer until the target speaks.
    Unanswered(Unanswered),
}

impl Connector {
    /// `path` is the connector's, for errors.
    pub fn build(path: &str, config: &ConnectorConfig) -> Result<Self, ConfigError> {
        let auth = config.auth.as_ref();
        match config.kind.as_str() {
            "relay" => {
                let metadata = known(path, config, &["nodelay", "connectTimeout", "mux."])?;
                auth.map(|auth| check_auth(&format!("{path}.auth"), auth)).transpose()?;
                Ok(Self::Relay {
                    auth: auth.cloned(),
                    nodelay: metadata.flag("nodelay")?,
                    timeout: positive(metadata.duration("connectTimeout")?),
                })
            }
            "tcp" | "forward" => {
                known(path, config, &["nodelay", "connectTimeout", "mux."])?;
                if auth.is_some() {
                    let reason = format!("{} has no credentials", config.kind);
                    return Err(ConfigError::new(format!("{path}.auth"), reason));
                }
                Ok(Self::Forward)
            }
            "socks5" | "socks" => {
                // `notls` forbids what is never offered: GOST's own methods with TLS inside.
                let metadata = known(path, config, &["timeout", "notls"])?;
                metadata.flag("notls")?;
                auth.map(|auth| check_auth(&format!("{path}.auth"), auth)).transpose()?;
                Ok(Self::Socks5 { auth: auth.cloned(), timeout: positive(metadata.duration("timeout")?) })
            }
            "http" => {
                let metadata = known(path, config, &["timeout"])?;
                auth.map(|auth| check_basic_auth(&format!("{path}.auth"), auth)).transpose()?;
                Ok(Self::Http { auth: auth.cloned(), timeout: positive(metadata.duration("timeout")?) })
            }
            other => Err(ConfigError::new(format!("{path}.type"), format!("{other} is not supported"))),
        }
    }

    /// Replaces the general deadline of the answer.
    pub fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Forward => None,
            Self::Relay { timeout, .. } | Self::Socks5 { timeout, .. } | Self::Http { timeout, .. } => {
                *timeout
            }
        }
    }

    /// Asks the node at the other end of `stream` for a connection to `target`, which may be the next node. The caller
    /// sets the deadline.
    pub async fn ask(&self, mut stream: Stream, target: &HostPort) -> Result<Asked, AskError> {
        match self {
            Self::Forward => Ok(Asked::Answered(stream)),
            Self::Relay { auth, nodelay, .. } => {
                let mut unanswered = Unanswered::ask(stream, target, auth.as_ref()).await?;
                if !nodelay {
                    return Ok(Asked::Unanswered(unanswered));
                }
                unanswered.answer().await?;
                Ok(Asked::Answered(unanswered.into_answered()))
            }
            Self::Socks5 { auth, .. } => {
                socks5::client::connect(&mut stream, target, auth.as_ref()).await?;
                Ok(Asked::Answered(stream))
            }
            Self::Http { auth, .. } => {
                http::client::connect(&mut stream, target, auth.as_ref()).await?;
                Ok(Asked::Answered(stream))
            }
        }
    }
}

impl Connector {
    /// Asks for what somebody wants: a connection, as [`Connector::ask`] does, or a way for datagrams.
    pub(super) async fn ask_for(
        &self,
        stream: Stream,
        target: &HostPort,
        wanted: Wanted<'_>,
    ) -> Result<Asked, AskError> {
        let Wanted::Datagrams { first } = wanted else { return self.ask(stream, target).await };
        match self {
            Self::Relay { auth, nodelay, .. } => {
                let mut request = datagram_request(Some(target), auth.as_ref());
                request.extend_from_slice(first);
                let mut unanswered = Unanswered::send(stream, &request).await?;
                if !nodelay {
                    return Ok(Asked::Unanswered(unanswered));
                }
                unanswered.answer().await?;
                Ok(Asked::Answered(unanswered.into_answered()))
            }
            Self::Socks5 { auth, .. } => {
                let mut stream = stream;
                socks5::client::tunnel(&mut stream, auth.as_ref()).await.map_err(AskError::of_tunnel)?;
                let mut tunnel = socks5::tunnel::Tunnel::new(stream, target);
                tunnel.write_all(first).await?;
                tunnel.flush().await?;
                Ok(Asked::Answered(Stream::Layered(Box::new(tunnel))))
            }
            Self::Forward | Self::Http { .. } => Err(AskError::NoDatagrams),
        }
    }
}

fn known<'a>(
    path: &str,
    config: &'a ConnectorConfig,
    known: &[&str],
) -> Result<MetadataReader<'a>, ConfigError> {
    MetadataReader::new(format!("{path}.metadata"), &config.metadata, known)
}

fn positive(duration: Option<Duration>) -> Option<Duration> {
    duration.filter(|duration| !duration.is_zero())
}

/// Refuses credentials that do not fit where a length byte comes before each.
pub(crate) fn check_auth(path: &str, auth: &Auth) -> Result<(), ConfigError> {
    for (field, text) in [("username", &auth.username), ("password", &auth.password)] {
        if text.len() > LONGEST_CREDENTIAL {
            let reason = format!("must not be longer than {LONGEST_CREDENTIAL} bytes");
            return Err(ConfigError::new(format!("{path}.{field}"), reason));
        }
    }
    Ok(())
}

/// Refuses credentials that HTTP's scheme Basic cannot carry.
pub(crate) fn check_basic_auth(path: &str, auth: &Auth) -> Result<(), ConfigError> {
    if auth.username.contains(':') {
        return Err(ConfigError::new(format!("{path}.username"), "must have no colon"));
    }
    check_auth(path, auth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn build(config: Value) -> Result<Connector, ConfigError> {
        Connector::build("n.connector", &serde_json::from_value(config).unwrap())
    }

    #[test]
    fn proxies_of_others() {
        let auth = json!({"username": "u", "password": "p"});
        let connector = build(json!({"type": "http", "auth": auth, "metadata": {"timeout": "3s"}})).unwrap();
        assert_eq!(connector.timeout(), Some(Duration::from_secs(3)));
        let connector = build(json!({"type": "socks5", "auth": auth, "metadata": {"notls": true}})).unwrap();
        assert!(matches!(connector, Connector::Socks5 { auth: Some(_), timeout: None }));
        build(json!({"type": "socks"})).unwrap();
    }

    #[test]
    fn errors_name_the_place() {
        let cases = [
            (json!({"type": "http", "auth": {"username": "a:b"}}), "auth.username: must have no colon"),
            (
                json!({"type": "socks5", "auth": {"username": "", "password": "p".repeat(256)}}),
                "auth.password: must",
            ),
            (json!({"type": "http", "metadata": {"header": {}}}), "metadata.header: is not supported"),
            (json!({"type": "socks5", "metadata": {"relay": "udp"}}), "metadata.relay: is not supported"),
            (json!({"type": "tcp", "auth": {"username": "u"}}), "auth: tcp has no credentials"),
            (json!({"type": "socks4"}), "type: socks4 is not supported"),
        ];
        for (config, expected) in cases {
            let error = build(config).err().unwrap().to_string();
            assert!(error.starts_with(&format!("n.connector.{expected}")), "{error} instead of {expected}");
        }
    }
}
