//! From configuration to service. Everything that can be wrong is found here, before anything changes.

use super::admission::LimiterNames;
use super::chains::ChainGroup;
use super::plane::LogGate;
use super::{Forwarder, Handler, Service, Transport, proxying};
use crate::chain::connector::check_auth;
use crate::chain::group::groups::Steered;
use crate::chain::group::{Group, MemberConfig};
use crate::chain::probe::tasks::{Place, Probed};
use crate::chain::probe::{Probe, refuse_commands};
use crate::metadata::{ConfigError, MetadataReader};
use crate::net::Interface;
use crate::proxy_protocol::{self, Version};
use crate::transport::acceptor::Acceptor;
use shared::address::HostPort;
use shared::gost::{ForwarderConfig, HandlerConfig, ListenerConfig, ServiceConfig};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The metadata key by which a configuration says that its service does not listen.
const PAUSED: &str = "paused";
/// The metadata key of a handler that says what the hash strategies go by.
pub(super) const HASH: &str = "hash";

impl Service {
    /// Builds a service. Targets that the previous one of the same name had keep their marks.
    pub fn build(config: &ServiceConfig, previous: Option<&Service>) -> Result<Self, ConfigError> {
        if config.name.trim().is_empty() {
            return Err(ConfigError::new("service: name", "is empty"));
        }
        let path = format!("service {}", config.name);
        if config.observer.as_deref().is_some_and(|name| !name.is_empty()) {
            return Err(ConfigError::new(format!("{path}: observer"), "is not supported yet"));
        }
        let known = ["interface", PAUSED, "dialTimeout", proxy_protocol::KEY, "enableStats"];
        let metadata = MetadataReader::new(format!("{path}: metadata"), &config.metadata, &known)?;
        // Clients may use either version, whichever is named.
        let proxy_in = proxy_protocol::version(&metadata, &format!("{path}: metadata"))?.is_some();
        metadata.flag(PAUSED)?;
        let interface = metadata
            .text("interface")?
            .map(Interface::parse)
            .transpose()
            .map_err(|reason| ConfigError::new(format!("{path}: metadata.interface"), reason))?;
        let before = previous.and_then(|service| service.chains.as_ref());
        let chains = ChainGroup::build(&format!("{path}: handler"), &config.name, &config.handler, before)?;
        let chain = config.handler.chain.clone().filter(|name| chains.is_none() && !name.is_empty());
        let transport = transport(&format!("{path}: listener"), &config.listener)?;
        let handler = handler(&path, config, previous)?;
        let kind = &config.handler.kind;
        let mismatch = match (&transport, &handler) {
            (Transport::Udp(_), Handler::Forward(_)) => None,
            (Transport::Udp(_), _) => Some(format!("{kind} cannot listen for datagrams")),
            (_, Handler::Forward(_)) if kind == "udp" => Some("udp needs the listener udp".to_owned()),
            _ => None,
        };
        if let Some(reason) = mismatch {
            return Err(ConfigError::new(format!("{path}: handler.type"), reason));
        }
        let proxy_out = proxy_out(&path, config)?;
        Ok(Self {
            name: config.name.clone(),
            chain,
            chains,
            transport,
            handler,
            retries: config.handler.retries,
            dial_timeout: positive(metadata.duration("dialTimeout")?),
            interface,
            hash_by_target: hash_by_target(&path, &config.handler)?,
            proxy_in,
            proxy_out,
            traffic: previous.map(|old| old.traffic.clone()).unwrap_or_default(),
            connections: previous.map(|old| old.connections.clone()).unwrap_or_default(),
            refused: previous.map(|old| old.refused.clone()).unwrap_or_default(),
            limiters: LimiterNames::of(config),
            refusals: LogGate::default(),
        })
    }

    /// Whether it goes through a chain, so that nothing is ever dialled directly.
    pub(super) fn has_chain(&self) -> bool {
        self.chain.is_some() || self.chains.is_some()
    }

    /// The chains and targets that are to be probed.
    pub(crate) fn probed(&self) -> Vec<Probed> {
        let chains: Vec<String> = match &self.chains {
            Some(group) => group.names().cloned().collect(),
            None => self.chain.iter().cloned().collect(),
        };
        let targets = self.forwarder().into_iter().flat_map(|forwarder| {
            let Forwarder { targets, probes, group, .. } = forwarder;
            let chains = &chains;
            targets.iter().zip(probes).enumerate().filter_map(move |(i, (target, probe))| {
                Some(Probed {
                    state: group.state(i).clone(),
                    probe: probe.clone()?,
                    rule: group.rule(i),
                    name: format!("{}: target {target}", self.name),
                    place: Place::Target {
                        target: target.clone(),
                        chains: chains.clone(),
                        interface: self.interface.clone(),
                    },
                })
            })
        });
        let groups = self.chains.iter().flat_map(|group| group.probed(&self.name));
        groups.chain(targets).collect()
    }

    /// The groups that are to be decided for.
    pub(crate) fn steered(&self) -> Vec<Steered> {
        let chains: Vec<String> = match &self.chains {
            Some(group) => group.names().cloned().collect(),
            None => self.chain.iter().cloned().collect(),
        };
        let targets = self.forwarder().and_then(|forwarder| {
            let place = |i: usize| Place::Target {
                target: forwarder.targets[i].clone(),
                chains: chains.clone(),
                interface: self.interface.clone(),
            };
            forwarder.group.steered(place)
        });
        let group = self.chains.as_ref().and_then(ChainGroup::steered);
        group.into_iter().chain(targets).collect()
    }

    /// Refuses probes that run commands.
    pub(crate) fn refuse_commands(config: &ServiceConfig) -> Result<(), ConfigError> {
        let path = format!("service {}", config.name);
        let targets = config.forwarder.iter().flat_map(|forwarder| {
            let path = &path;
            let probe = move |i| format!("{path}: forwarder.nodes[{i}].probe");
            forwarder.nodes.iter().enumerate().map(move |(i, node)| (probe(i), node.probe.as_ref()))
        });
        let chains = config.handler.chain_group.iter().flat_map(|group| {
            let path = &path;
            let probe = move |i| format!("{path}: handler.chainGroup.chains[{i}].probe");
            group.chains.iter().enumerate().map(move |(i, entry)| (probe(i), entry.probe.as_ref()))
        });
        refuse_commands(targets.chain(chains))
    }

    pub(super) fn forwarder(&self) -> Option<&Forwarder> {
        match &self.handler {
            Handler::Forward(forwarder) => Some(forwarder),
            Handler::Relay { forwarder, .. } => forwarder.as_ref(),
            Handler::Proxy(_) => None,
        }
    }
}

/// Whether a service is configured as paused. Only for configurations that were built.
pub(crate) fn is_paused(config: &ServiceConfig) -> bool {
    config.metadata.iter().any(|(key, value)| {
        key.eq_ignore_ascii_case(PAUSED) && (value.as_bool() == Some(true) || value.as_str() == Some("true"))
    })
}

/// Says in the configuration whether a service is paused.
pub(crate) fn set_paused(config: &mut ServiceConfig, paused: bool) {
    config.metadata.retain(|key, _| !key.eq_ignore_ascii_case(PAUSED));
    if paused {
        config.metadata.insert(PAUSED.to_owned(), true.into());
    }
}

/// Whether the handler says `hash: host`.
fn hash_by_target(path: &str, handler: &HandlerConfig) -> Result<bool, ConfigError> {
    let wrong = |reason: String| Err(ConfigError::new(format!("{path}: handler.metadata.{HASH}"), reason));
    let value =
        handler.metadata.iter().find(|(key, _)| key.eq_ignore_ascii_case(HASH)).map(|(_, value)| value);
    match value.map(|value| (value, value.as_str())) {
        None | Some((_, Some(""))) => Ok(false),
        Some((_, Some("host"))) if matches!(handler.kind.as_str(), "tcp" | "forward") => {
            wrong(format!("clients of {} do not say where they want to go", handler.kind))
        }
        Some((_, Some("host"))) => Ok(true),
        Some((value, _)) => wrong(format!("{value} is not supported, expected host")),
    }
}

/// The version of the PROXY header that targets get.
fn proxy_out(path: &str, config: &ServiceConfig) -> Result<Option<Version>, ConfigError> {
    let path = format!("{path}: handler.metadata");
    let keys = &config.handler.metadata;
    // Which keys a handler knows is its own matter.
    let known: Vec<&str> = keys.keys().map(String::as_str).collect();
    proxy_protocol::version(&MetadataReader::new(&path, keys, &known)?, &path)
}

pub(super) fn positive(duration: Option<Duration>) -> Option<Duration> {
    duration.filter(|duration| !duration.is_zero())
}

fn transport(path: &str, listener: &ListenerConfig) -> Result<Transport, ConfigError> {
    match listener.kind.as_str() {
        "udp" => super::udp::options(path, listener).map(Transport::Udp),
        _ => Acceptor::build(path, listener).map(Transport::Streams),
    }
}

fn handler(path: &str, config: &ServiceConfig, previous: Option<&Service>) -> Result<Handler, ConfigError> {
    if let Some(proxy) = proxying::Proxy::build(path, config)? {
        return Ok(Handler::Proxy(proxy));
    }
    let HandlerConfig { kind, auth, metadata, .. } = &config.handler;
    let known = [
        "nodelay",
        "readTimeout",
        "keepAlive",
        "keepalive.",
        "mux.",
        proxy_protocol::KEY,
        "ttl",
        HASH,
        "bind",
        "udpBufferSize",
        "udp.bufferSize",
    ];
    let metadata = MetadataReader::new(format!("{path}: handler.metadata"), metadata, &known)?;
    let forwarder = config
        .forwarder
        .as_ref()
        .map(|forwarder| self::forwarder(&format!("{path}: forwarder"), &config.name, forwarder, previous))
        .transpose()?;
    match kind.as_str() {
        "tcp" | "udp" | "forward" => {
            metadata.refuse("bind")?;
            if auth.is_some() {
                return Err(ConfigError::new(
                    format!("{path}: handler.auth"),
                    format!("{kind} has no credentials"),
                ));
            }
            let missing = || ConfigError::new(format!("{path}: forwarder"), format!("{kind} needs one"));
            Ok(Handler::Forward(forwarder.ok_or_else(missing)?))
        }
        "relay" => {
            if let Some(auth) = auth {
                check_auth(&format!("{path}: handler.auth"), auth)?;
            }
            let request_timeout = positive(metadata.duration("readTimeout")?);
            // Of what GOST binds, this does the datagrams; who asks for connections is told no. Buffers are large enough.
            let bind = metadata.flag("bind")?;
            Ok(Handler::Relay { auth: auth.clone(), request_timeout, forwarder, bind })
        }
        other => Err(ConfigError::new(format!("{path}: handler.type"), format!("{other} is not supported"))),
    }
}

fn forwarder(
    path: &str,
    service: &str,
    config: &ForwarderConfig,
    previous: Option<&Service>,
) -> Result<Forwarder, ConfigError> {
    if config.nodes.is_empty() {
        return Err(ConfigError::new(format!("{path}.nodes"), "is empty"));
    }
    let previous = previous.and_then(Service::forwarder);
    let mut names = BTreeSet::new();
    let (mut targets, mut probes) = (Vec::with_capacity(config.nodes.len()), Vec::new());
    for (i, node) in config.nodes.iter().enumerate() {
        let wrong = |field: &str, reason| ConfigError::new(format!("{path}.nodes[{i}].{field}"), reason);
        if !names.insert(&node.name) {
            return Err(wrong("name", format!("{} is there twice", node.name)));
        }
        let target = HostPort::parse(&node.addr).map_err(|error| wrong("addr", error.to_string()))?;
        let probe = node
            .probe
            .as_ref()
            .map(|probe| Probe::of_target(&format!("{path}.nodes[{i}].probe"), probe, &target).map(Arc::new));
        probes.push(probe.transpose()?);
        targets.push(target);
    }
    let members = config.nodes.iter().enumerate().map(|(i, node)| {
        let before = previous.and_then(|old| {
            let at = old.targets.iter().position(|target| *target == targets[i])?;
            Some(old.group.state(at).clone())
        });
        MemberConfig {
            path: format!("{path}.nodes[{i}]"),
            name: &node.name,
            addr: &node.addr,
            udp: true,
            metadata: &node.metadata,
            state: before.unwrap_or_default(),
        }
    });
    let previous = previous.map(|old| &old.group);
    let name = format!("service/{service}/targets");
    let group = Group::build(path, name, config.selector.as_ref(), members, previous)?;
    let names = config.nodes.iter().map(|node| node.name.clone()).collect();
    Ok(Forwarder { names, targets, probes, group })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn forward() -> Value {
        json!({
            "name": "7_1_0_tcp", "addr": "[::]:20001",
            "handler": {"type": "tcp", "chain": "chains_1"},
            "listener": {"type": "tcp"},
            "forwarder": {
                "nodes": [{"name": "node_1", "addr": "192.0.2.1:443"}, {"name": "node_2", "addr": "x.example:443"}],
                "selector": {"strategy": "fifo", "maxFails": 1, "failTimeout": "600s"}
            }
        })
    }

    fn build(service: Value) -> Result<Service, ConfigError> {
        Service::build(&serde_json::from_value(service).unwrap(), None)
    }

    #[test]
    fn what_a_peer_panel_sends_is_understood() {
        build(forward()).unwrap();
        let relay = json!({
            "name": "tunnel_42", "addr": "[::]:20443", "metadata": {"interface": "eth0"},
            "handler": {"type": "relay", "retries": 1, "chain": "chains_42",
                "metadata": {"nodelay": true, "mux.keepaliveInterval": "15s"}},
            "listener": {"type": "tls", "metadata": {"nodelay": true, "mux.maxFrameSize": 32768}}
        });
        build(relay).unwrap();
    }

    #[test]
    fn errors_name_the_place() {
        let cases = [
            ("/handler/type", json!("sni"), "service 7_1_0_tcp: handler.type: sni is not supported"),
            ("/handler/type", json!("udp"), "service 7_1_0_tcp: handler.type: udp needs the listener udp"),
            ("/listener/type", json!("kcp"), "service 7_1_0_tcp: listener.type: kcp is not supported"),
            ("/observer", json!("o"), "service 7_1_0_tcp: observer: is not supported yet"),
            ("/forwarder", Value::Null, "service 7_1_0_tcp: forwarder: tcp needs one"),
            ("/forwarder/nodes", json!([]), "service 7_1_0_tcp: forwarder.nodes: is empty"),
            (
                "/forwarder/nodes/1/addr",
                json!("x.example"),
                "service 7_1_0_tcp: forwarder.nodes[1].addr: the port must be",
            ),
            (
                "/forwarder/nodes/1/name",
                json!("node_1"),
                "service 7_1_0_tcp: forwarder.nodes[1].name: node_1 is there twice",
            ),
            (
                "/forwarder/selector/strategy",
                json!("best"),
                "service 7_1_0_tcp: forwarder.selector.strategy: `best`",
            ),
            (
                "/handler/auth",
                json!({"username": "u"}),
                "service 7_1_0_tcp: handler.auth: tcp has no credentials",
            ),
            ("/metadata", json!({"stats": 1}), "service 7_1_0_tcp: metadata.stats: is not supported"),
            (
                "/metadata",
                json!({"proxyProtocol": 3}),
                "service 7_1_0_tcp: metadata.proxyProtocol: 3 is not a version, expected 1 or 2",
            ),
            ("/metadata", json!({"interface": "a b"}), "service 7_1_0_tcp: metadata.interface: `a b`"),
            ("/listener/tls", json!({}), "service 7_1_0_tcp: listener.tls: tcp has no tls options"),
            ("/name", json!(""), "service: name: is empty"),
        ];
        for (pointer, value, expected) in cases {
            let mut service = forward();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = service.pointer_mut(parent).unwrap();
            match key.parse::<usize>() {
                Ok(index) => parent[index] = value,
                Err(_) => parent[key] = value,
            }
            let error = build(service).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{error} instead of {expected}");
        }
    }

    #[test]
    fn paused_is_read_from_the_metadata() {
        let mut service = forward();
        assert!(!is_paused(&serde_json::from_value(service.clone()).unwrap()));
        service["metadata"] = json!({"Paused": true, "interface": "eth0"});
        let mut config = serde_json::from_value(service).unwrap();
        assert!(is_paused(&config));
        set_paused(&mut config, false);
        assert!(!is_paused(&config) && config.metadata.len() == 1);
        set_paused(&mut config, true);
        assert_eq!(config.metadata["paused"], json!(true));
    }
}
