//! One node of a hop: where it is, how it is dialled, what is spoken to it.

use super::connector::Connector;
use super::probe::Probe;
use crate::metadata::ConfigError;
use crate::transport::dialer::Dialer;
use shared::address::HostPort;
use shared::gost::ChainNodeConfig;
use std::sync::Arc;

/// A node that can be dialled.
pub struct Node {
    /// As configured.
    pub config: ChainNodeConfig,
    /// Where it is.
    pub addr: HostPort,
    /// What lies between TCP and the connector.
    pub transport: Dialer,
    /// What is spoken to it.
    pub connector: Connector,
    /// How it is seen whether it works.
    pub probe: Option<Arc<Probe>>,
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
            transport: Dialer::build(&format!("{path}.dialer"), &config.dialer, &addr)?,
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
