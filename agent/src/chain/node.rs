//! One node of a hop: where it is, how it is dialled, what is spoken to it.

use super::connector::Connector;
use super::probe::Probe;
use crate::metadata::{ConfigError, MetadataReader};
use crate::stream::Stream;
use crate::tls::TlsClient;
use shared::address::HostPort;
use shared::gost::ChainNodeConfig;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A node that can be dialled.
pub struct Node {
    /// As configured.
    pub config: ChainNodeConfig,
    /// Where it is.
    pub addr: HostPort,
    /// What lies between TCP and the connector.
    pub transport: Transport,
    /// What is spoken to it.
    pub connector: Connector,
    /// How it is seen whether it works.
    pub probe: Option<Arc<Probe>>,
}

/// What lies between TCP and the connector.
pub enum Transport {
    /// Nothing.
    Tcp,
    /// TLS.
    Tls {
        /// Options.
        client: TlsClient,
        /// Replaces the general deadline of the handshake.
        timeout: Option<Duration>,
    },
}

impl Node {
    /// `path` is the node's, for errors.
    pub fn build(path: &str, config: &ChainNodeConfig) -> Result<Self, ConfigError> {
        let wrong = |field: &str, reason: String| ConfigError::new(format!("{path}.{field}"), reason);
        let addr = HostPort::parse(&config.addr).map_err(|error| wrong("addr", error.to_string()))?;
        let probe = config
            .probe
            .as_ref()
            .map(|probe| Probe::build(&format!("{path}.probe"), probe, Some(&addr)).map(Arc::new))
            .transpose()?;
        Ok(Self {
            probe,
            transport: transport(path, config, &addr)?,
            connector: Connector::build(&format!("{path}.connector"), &config.connector)?,
            addr,
            config: config.clone(),
        })
    }

    /// Whether marks and counters of `other` are this node's too.
    pub fn is_same_as(&self, other: &Node) -> bool {
        let (a, b) = (&self.config, &other.config);
        a.addr == b.addr && a.connector == b.connector && a.dialer == b.dialer
    }
}

fn transport(path: &str, config: &ChainNodeConfig, addr: &HostPort) -> Result<Transport, ConfigError> {
    let dialer = &config.dialer;
    let wrong = |field: &str, reason: String| ConfigError::new(format!("{path}.dialer.{field}"), reason);
    let known = ["handshakeTimeout", "keepalive", "keepalive.", "mux.", "nodelay"];
    let metadata = MetadataReader::new(format!("{path}.dialer.metadata"), &dialer.metadata, &known)?;
    let timeout = metadata.duration("handshakeTimeout")?.filter(|timeout| !timeout.is_zero());
    match dialer.kind.as_str() {
        "tcp" if dialer.tls.is_some() => Err(wrong("tls", "tcp has no tls options".to_owned())),
        "tcp" => Ok(Transport::Tcp),
        "tls" => {
            let client =
                TlsClient::new(dialer.tls.as_ref(), &addr.host).map_err(|reason| wrong("tls", reason))?;
            Ok(Transport::Tls { client, timeout })
        }
        other => Err(wrong("type", format!("{other} is not supported"))),
    }
}

impl Transport {
    /// Does the handshake of the transport; `stage` cuts its deadline to the time that is left.
    pub async fn handshake(&self, stream: Stream, default: Duration, left: Duration) -> io::Result<Stream> {
        match self {
            Transport::Tcp => Ok(stream),
            Transport::Tls { client, timeout } => {
                client.handshake(stream, timeout.unwrap_or(default).min(left)).await
            }
        }
    }
}
