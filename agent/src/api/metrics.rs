//! Numbers for Prometheus, made anew from what runs for each request.

use super::{Served, problem};
use crate::runtime::Runtime;
use crate::service::tally::RefusedBy;
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
        refused.get_or_create(&vec![("reason", by.as_str().to_owned())]).inc_by(tally.refused(by));
    }
    registry.register("connections_refused", "Client connections that were refused", refused);

    let bytes = Counters::default();
    for service in runtime.config().services {
        let Some(traffic) = runtime.traffic(&service.name) else { continue };
        for (direction, count) in [("up", traffic.up()), ("down", traffic.down())] {
            let labels = vec![("service", service.name.clone()), ("direction", direction.to_owned())];
            bytes.get_or_create(&labels).inc_by(count);
        }
    }
    registry.register("service_bytes", "Payload carried for clients", bytes);

    let (picks, failures) = (Counters::default(), Counters::default());
    let (through, marked) = (Gauges::default(), Gauges::default());
    let (probe_ok, latency, probes) = (Gauges::default(), Gauges::default(), Counters::default());
    for chain in runtime.report().chains {
        for node in chain.nodes {
            let labels = vec![("chain", chain.name.clone()), ("node", node.name), ("addr", node.addr)];
            picks.get_or_create(&labels).inc_by(node.connections);
            failures.get_or_create(&labels).inc_by(node.failures);
            through.get_or_create(&labels).set(node.open as f64);
            marked.get_or_create(&labels).set(f64::from(u8::from(node.marked)));
            if let Some(probe) = node.probe {
                probe_ok.get_or_create(&labels).set(f64::from(u8::from(probe.ok)));
                latency.get_or_create(&labels).set(probe.latency_ms / 1000.0);
                probes.get_or_create(&labels).inc_by(probe.probes);
            }
        }
    }
    registry.register("exit_picks", "Connections established through a node", picks);
    registry.register("exit_failures", "Attempts that failed at a node", failures);
    registry.register("exit_open", "Connections open through a node", through);
    registry.register("exit_marked", "1 while a node is left out", marked);
    registry.register("exit_probe_ok", "1 if the last probe of a node succeeded", probe_ok);
    registry.register("exit_probe_latency_seconds", "Duration of the last probe of a node", latency);
    registry.register("exit_probes", "Probes of a node", probes);

    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}
