//! Seeing from time to time whether a node works, without waiting for a client to find out.

pub(crate) mod check;
mod command;
mod far;
pub(crate) mod glance;
mod http;
pub mod page;
pub mod tasks;

use crate::metadata::ConfigError;
use page::Page;
use shared::address::HostPort;
use shared::gost::ProbeConfig;
use std::time::Duration;

/// GOST's.
const INTERVAL: Duration = Duration::from_secs(30);
/// GOST's.
const TIMEOUT: Duration = Duration::from_secs(10);
/// More often is no probe but a load.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// How it is seen whether a node works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What is done.
    pub kind: Kind,
    /// From the beginning of one to the beginning of the next, ± 25 %.
    pub interval: Duration,
    /// For the whole of one.
    pub timeout: Duration,
}

/// Refuses the probes in `probes` that run commands, each given with its path.
pub fn refuse_commands<'a>(
    probes: impl Iterator<Item = (String, Option<&'a ProbeConfig>)>,
) -> Result<(), ConfigError> {
    for (path, probe) in probes {
        if probe.is_some_and(|probe| probe.kind == "cmd") {
            let reason = "cmd is refused: this agent was not started with --allow-probe-commands";
            return Err(ConfigError::new(format!("{path}.type"), reason));
        }
    }
    Ok(())
}

/// What a probe does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Dials the node and does the handshake of its transport.
    Tcp {
        /// Then asks the node for a connection to this; `None` if the node itself was meant.
        target: Option<HostPort>,
    },
    /// Dials the node and asks through it for a page.
    Http {
        /// Where the page is; `None` if the node itself has it.
        target: Option<HostPort>,
        /// The complete request.
        request: String,
        /// The status that means success.
        status: u16,
    },
    /// Runs a command; exit status 0 means success. The node is not asked.
    Command(String),
    /// Dials the node and fetches a page through it, over TLS if it says so.
    Page(Page),
}

impl Kind {
    /// What the node is asked for; `None` if it is not asked for anything.
    fn target(&self) -> Option<&HostPort> {
        match self {
            Kind::Tcp { target } | Kind::Http { target, .. } => target.as_ref(),
            Kind::Page(page) => Some(&page.target),
            Kind::Command(_) => None,
        }
    }

    /// Whether we speak first to what was asked for.
    fn will_speak(&self) -> bool {
        matches!(self, Kind::Http { .. } | Kind::Page(_))
    }
}

impl Probe {
    /// `path` is the probe's, for errors; `own` the address of what is probed.
    pub fn build(path: &str, config: &ProbeConfig, own: Option<&HostPort>) -> Result<Self, ConfigError> {
        let wrong = |field: &str, reason: &str| ConfigError::new(format!("{path}.{field}"), reason);
        let is_http = config.kind == "http";
        let foreign = [
            ("httpPath", !config.http_path.is_empty(), is_http),
            ("httpHost", !config.http_host.is_empty(), is_http),
            ("httpHeaders", !config.http_headers.is_empty(), is_http),
            ("expectedStatus", config.expected_status != 0, is_http),
            ("command", !config.command.is_empty(), config.kind == "cmd"),
            ("addr", !config.addr.is_empty(), config.kind != "cmd"),
        ];
        if let Some((field, _, _)) = foreign.iter().find(|(_, is_set, belongs)| *is_set && !belongs) {
            return Err(wrong(field, "is no option of this type of probe"));
        }
        // Without an address GOST switches the probe off in silence.
        let target = || {
            let target = HostPort::parse(&config.addr).map_err(|error| wrong("addr", &error.to_string()))?;
            Ok::<_, ConfigError>(Some(target).filter(|target| Some(target) != own))
        };
        let kind = match config.kind.as_str() {
            "" | "tcp" => Kind::Tcp { target: target()? },
            "http" => {
                let target = target()?;
                let request = http::request(config).map_err(|(field, reason)| wrong(field, reason))?;
                let status = if config.expected_status == 0 { 200 } else { config.expected_status };
                Kind::Http { target, request, status }
            }
            "cmd" if config.command.trim().is_empty() => return Err(wrong("command", "is empty")),
            "cmd" => Kind::Command(config.command.clone()),
            other => return Err(wrong("type", &format!("{other} is not supported (tcp, http or cmd)"))),
        };
        let or = |duration: Duration, default| if duration.is_zero() { default } else { duration };
        let interval = or(config.interval.0, INTERVAL);
        if interval < SHORTEST_INTERVAL {
            return Err(wrong("interval", &format!("must be at least {SHORTEST_INTERVAL:?}")));
        }
        Ok(Self { kind, interval, timeout: or(config.timeout.0, TIMEOUT) })
    }

    /// As [`Probe::build`], for a target of a service: nothing lies behind it that could be asked for.
    pub fn of_target(path: &str, config: &ProbeConfig, target: &HostPort) -> Result<Self, ConfigError> {
        let probe = Self::build(path, config, Some(target))?;
        match &probe.kind {
            Kind::Tcp { target: Some(_) } | Kind::Http { target: Some(_), .. } => {
                Err(ConfigError::new(format!("{path}.addr"), format!("must be that of the target, {target}")))
            }
            Kind::Tcp { target: None }
            | Kind::Http { target: None, .. }
            | Kind::Command(_)
            | Kind::Page(_) => Ok(probe),
        }
    }

    /// What is doubtful about its interval beside the time for which a failure leaves a node out.
    pub fn warning(&self, fail_timeout_ms: u64) -> Option<String> {
        let interval = self.interval;
        let covers = u128::from(fail_timeout_ms) > interval.as_millis();
        (!covers).then(|| {
            format!(
                "failTimeout {:?} is not above the interval of the probe {interval:?}: between two failed probes a \
                 client's connection tries the node",
                Duration::from_millis(fail_timeout_ms)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn build(config: Value) -> Result<Probe, String> {
        let own = HostPort::new("192.0.2.1", 1080);
        Probe::build("probe", &serde_json::from_value(config).unwrap(), Some(&own)).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults() {
        let probe = build(json!({"addr": "192.0.2.1:1080"})).unwrap();
        assert_eq!(probe.kind, Kind::Tcp { target: None }, "the node's own address asks only the node");
        assert_eq!((probe.interval, probe.timeout), (Duration::from_secs(30), Duration::from_secs(10)));
        let probe =
            build(json!({"type": "tcp", "addr": "8.8.8.8:53", "interval": "0s", "timeout": 0})).unwrap();
        assert_eq!(probe.kind, Kind::Tcp { target: Some(HostPort::new("8.8.8.8", 53)) });
        assert_eq!((probe.interval, probe.timeout), (INTERVAL, TIMEOUT));
        let Kind::Http { request, status, target } =
            build(json!({"type": "http", "addr": "page.example:80"})).unwrap().kind
        else {
            panic!("not http")
        };
        assert_eq!(status, 200);
        assert_eq!(target, Some(HostPort::new("page.example", 80)));
        assert_eq!(request, "GET / HTTP/1.1\r\nHost: page.example:80\r\nConnection: close\r\n\r\n");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let cases = [
            (json!({}), "probe.addr: "),
            (json!({"type": "http"}), "probe.addr: "),
            (json!({"type": "icmp", "addr": "192.0.2.1:1"}), "probe.type: icmp is not supported"),
            (json!({"type": "cmd"}), "probe.command: is empty"),
            (json!({"type": "cmd", "command": "  "}), "probe.command: is empty"),
            (json!({"type": "cmd", "command": "true", "addr": "192.0.2.1:1"}), "probe.addr: is no option"),
            (json!({"addr": "192.0.2.1:1", "httpPath": "/x"}), "probe.httpPath: is no option"),
            (json!({"addr": "192.0.2.1:1", "command": "true"}), "probe.command: is no option"),
            (json!({"addr": "192.0.2.1:1", "interval": "99ms"}), "probe.interval: must be at least 100ms"),
            (json!({"type": "http", "addr": "192.0.2.1:1", "httpPath": "x"}), "probe.httpPath: "),
            (json!({"type": "http", "addr": "192.0.2.1:1", "httpPath": "/ x"}), "probe.httpPath: "),
            (json!({"type": "http", "addr": "192.0.2.1:1", "httpHost": "a\r\nb"}), "probe.httpHost: "),
            (
                json!({"type": "http", "addr": "192.0.2.1:1", "httpHeaders": {"a b": "c"}}),
                "probe.httpHeaders: ",
            ),
            (
                json!({"type": "http", "addr": "192.0.2.1:1", "httpHeaders": {"a": "b\nc"}}),
                "probe.httpHeaders: ",
            ),
        ];
        for (config, expected) in cases {
            let error = build(config).unwrap_err();
            assert!(error.starts_with(expected), "{error} instead of {expected}");
        }
    }

    #[test]
    fn a_fail_timeout_that_ends_before_the_next_probe_is_told() {
        let probe = build(json!({"addr": "192.0.2.1:1", "interval": "30s"})).unwrap();
        assert!(probe.warning(10_000).unwrap().contains("failTimeout 10s"));
        assert!(probe.warning(30_000).is_some());
        assert_eq!(probe.warning(30_001), None);
    }
}
