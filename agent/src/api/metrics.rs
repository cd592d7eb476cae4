//! Numbers for Prometheus, made anew from what runs for each request.

use super::{Served, problem};
use crate::chain::report::MemberReport;
use crate::runtime::Runtime;
use crate::service::refused::RefusedBy;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

pub(super) async fn metrics(State(served): State<Arc<Served>>) -> Response {
    match text(&served.runtime) {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written"),
    }
}

fn text(runtime: &Runtime) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("exitpilot_agent");
    let tally = runtime.tally();

    let accepted = Counters::default();
    accepted.get_or_create(&Vec::new()).inc_by(tally.accepted());
    registry.register("connections", "Client connections that were let in", accepted);
    let open = Gauges::default();
    open.get_or_create(&Vec::new()).set(tally.connections(usize::MAX).len() as f64);
    registry.register("connections_open", "Client connections that are open", open);
    let refused = Counters::default();
    for by in RefusedBy::ALL {
        refused.get_or_create(&vec![("reason", by.as_str().to_owned())]).inc_by(tally.refused.of(by));
    }
    registry.register("connections_refused", "Client connections that were refused", refused);

    let dropped = Counters::default();
    dropped.get_or_create(&Vec::new()).inc_by(runtime.dropped());
    registry.register(
        "datagrams_dropped",
        "Datagrams for which there was no room, or no permission",
        dropped,
    );

    let (bytes, refused, missing) = (Counters::default(), Counters::default(), Gauges::default());
    let (connections, open) = (Counters::default(), Gauges::default());
    let (mut targets, mut chains, mut exits) = (Members::default(), Members::default(), Members::default());
    for service in runtime.config().services {
        let Some(report) = runtime.service_report(&service.name) else { continue };
        let of_service = || vec![("service", service.name.clone())];
        for (direction, count) in [("up", report.bytes_up), ("down", report.bytes_down)] {
            bytes.get_or_create(&with(of_service(), "direction", direction)).inc_by(count);
        }
        connections.get_or_create(&of_service()).inc_by(report.connections);
        open.get_or_create(&of_service()).set(report.open as f64);
        for (reason, count) in report.refused {
            refused.get_or_create(&with(of_service(), "reason", reason)).inc_by(count);
        }
        missing.get_or_create(&of_service()).set(report.missing_limiters.len() as f64);
        for target in &report.targets {
            let addr = target.addr.as_deref().unwrap_or_default();
            targets.add(&with(with(of_service(), "target", &target.name), "addr", addr), target);
        }
        for chain in &report.chains {
            chains.add(&with(of_service(), "chain", &chain.name), chain);
        }
    }
    for (chain, nodes) in runtime.chain_members() {
        for node in nodes {
            let (hop, addr) = (node.hop.unwrap_or_default().to_string(), node.addr.as_deref());
            let of_chain = with(vec![("chain", chain.clone())], "hop", &hop);
            exits.add(&with(with(of_chain, "node", &node.name), "addr", addr.unwrap_or_default()), &node);
        }
    }
    registry.register(
        "service_connections",
        "Connections and sessions of datagrams that a service let in",
        connections,
    );
    registry.register("service_connections_open", "Those of a service that are open", open);
    registry.register("service_bytes", "Payload carried for clients", bytes);
    registry.register("service_refused", "Clients that a service refused", refused);
    registry.register(
        "service_missing_limiters",
        "Limiters that a service names and that do not exist",
        missing,
    );
    exits.register(&mut registry, "exit", "a node");
    targets.register(&mut registry, "target", "a service's target");
    chains.register(&mut registry, "service_chain", "a chain of a service's group");

    // One that only grows is a leak.
    let tasks = Gauges::default();
    tasks.get_or_create(&Vec::new()).set(alive_tasks() as f64);
    registry.register("tasks", "Tasks of the runtime that have not ended", tasks);

    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn with(mut labels: Labels, name: &'static str, value: &str) -> Labels {
    labels.push((name, value.to_owned()));
    labels
}

/// The numbers of nodes, of targets or of chains.
#[derive(Default)]
struct Members {
    picks: Counters,
    failures: Counters,
    open: Gauges,
    marked: Gauges,
    probe_ok: Gauges,
    probe_latency: Gauges,
    probe_average: Gauges,
    probe_age: Gauges,
    probes: Counters,
}

impl Members {
    fn add(&mut self, labels: &Labels, member: &MemberReport) {
        let flag = |is: bool| f64::from(u8::from(is));
        self.picks.get_or_create(labels).inc_by(member.connections);
        for (kind, count) in &member.failures_by_kind {
            self.failures.get_or_create(&with(labels.clone(), "kind", kind)).inc_by(*count);
        }
        self.open.get_or_create(labels).set(member.open as f64);
        self.marked.get_or_create(labels).set(flag(member.marked));
        let Some(probe) = &member.probe else { return };
        self.probe_ok.get_or_create(labels).set(flag(probe.ok));
        self.probe_latency.get_or_create(labels).set(probe.latency_ms / 1000.0);
        if let Some(average) = probe.average_ms {
            self.probe_average.get_or_create(labels).set(average / 1000.0);
        }
        self.probe_age.get_or_create(labels).set(probe.age_ms as f64 / 1000.0);
        self.probes.get_or_create(labels).inc_by(probe.probes);
    }

    /// `what` is who they are, for the descriptions.
    fn register(self, registry: &mut Registry, prefix: &str, what: &str) {
        let name = |name: &str| format!("{prefix}_{name}");
        registry.register(name("picks"), format!("Connections established through {what}"), self.picks);
        registry.register(name("failures"), format!("Attempts that failed at {what}"), self.failures);
        registry.register(name("open"), format!("Connections open through {what}"), self.open);
        registry.register(name("marked"), format!("1 while {what} is left out"), self.marked);
        registry.register(
            name("probe_ok"),
            format!("1 if the last probe of {what} succeeded"),
            self.probe_ok,
        );
        let latency = format!("Duration of the last probe of {what}");
        registry.register(name("probe_latency_seconds"), latency, self.probe_latency);
        let average = format!("Moving average of the successful probes of {what}");
        registry.register(name("probe_average_seconds"), average, self.probe_average);
        let age = format!("Time since the last probe of {what} ended");
        registry.register(name("probe_age_seconds"), age, self.probe_age);
        registry.register(name("probes"), format!("Probes of {what}"), self.probes);
    }
}

/// Tasks that were spawned and have not ended; 0 outside of a runtime.
fn alive_tasks() -> usize {
    tokio::runtime::Handle::try_current().map_or(0, |handle| handle.metrics().num_alive_tasks())
}
