//! What is to be seen of a service.

use super::Service;
use super::plane::Plane;
use crate::chain::report::MemberReport;
use crate::limit::LimitKind;
use crate::proxy_protocol::Version;
use serde::Serialize;
use std::collections::BTreeMap;

/// A service at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceReport {
    /// Payload from clients to targets.
    pub bytes_up: u64,
    /// Payload from targets to clients.
    pub bytes_down: u64,
    /// Clients that it has let in: connections, and sessions of datagrams.
    pub connections: u64,
    /// Those that are there now.
    pub open: u64,
    /// Clients that it refused, of the reasons that there were: see [`super::refused`].
    pub refused: BTreeMap<&'static str, u64>,
    /// Its fixed targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<MemberReport>,
    /// The chains of which it chooses one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<MemberReport>,
    /// Limiters that it names and that do not exist, as `climiter name`: by those it is not limited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_limiters: Vec<String>,
}

impl Service {
    /// What is to be seen of it now.
    pub(crate) fn report(&self, plane: &Plane) -> ServiceReport {
        let now_ms = plane.options.clock.now_ms();
        let targets = self.forwarder().map_or_else(Vec::new, |forwarder| {
            let target = |(i, target): (usize, &shared::address::HostPort)| {
                let (group, addr) = (&forwarder.group, target.to_string());
                let marked = group.is_marked(i, now_ms);
                MemberReport::new(&forwarder.names[i], Some(&addr), group.state(i), (marked, now_ms))
            };
            forwarder.targets.iter().enumerate().map(target).collect()
        });
        let chains = self.chains.as_ref().map_or_else(Vec::new, |group| group.members(plane));
        ServiceReport {
            bytes_up: self.traffic.up(),
            bytes_down: self.traffic.down(),
            connections: self.connections.total(),
            open: self.connections.open(),
            refused: self.refused.by_reason(),
            targets,
            chains,
            missing_limiters: self.missing_limiters(plane),
        }
    }

    /// The limiters that it names and that do not exist.
    pub(crate) fn missing_limiters(&self, plane: &Plane) -> Vec<String> {
        let names = self.limiters.names();
        let missing = names.filter(|(kind, name)| !plane.limits.has(*kind, name));
        missing.map(|(kind, name)| format!("{} {name}", kind.field())).collect()
    }

    /// Whether it names this limiter.
    pub(crate) fn names_limiter(&self, kind: LimitKind, name: &str) -> bool {
        self.limiters.names().any(|named| named == (kind, name))
    }

    /// Says in the log what it is configured with and does not do.
    pub(crate) fn warn(&self, plane: &Plane) {
        self.warn_of_missing_limiters(plane);
        if !self.takes_datagrams() {
            return;
        }
        // Panels set these for all services of a forward.
        if self.proxy_in {
            let reason = "datagrams have no PROXY headers: metadata.proxyProtocol is ignored, as GOST does";
            tracing::warn!(service = self.name, reason);
        }
        if self.proxy_out == Some(Version::One) {
            let reason =
                "version 1 of the PROXY protocol has no words for datagrams: none is sent, use version 2";
            tracing::warn!(service = self.name, reason);
        }
    }

    /// Says in the log by which limiters it is not limited, since they do not exist. Panels may send a service before the
    /// limiters that it names, or take a limiter away before it, so this is no reason to refuse either.
    pub(crate) fn warn_of_missing_limiters(&self, plane: &Plane) {
        let missing = self.missing_limiters(plane);
        if !missing.is_empty() {
            let (service, limiters) = (&self.name, missing.join(", "));
            tracing::warn!(service, limiters, "not limited by what it names: no such limiters (yet)");
        }
    }
}
