//! What the API shows.

use super::Served;
use crate::chain::report::MemberReport;
use crate::limit::LimitKind;
use crate::service::report::ServiceReport;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use shared::gost::LimiterConfig;
use std::net::SocketAddr;
use std::sync::Arc;

/// Connections in one answer; the count is always that of all.
const MOST_CONNECTIONS: usize = 10_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServiceView {
    name: String,
    addr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    listening: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    #[serde(flatten)]
    report: Option<ServiceReport>,
}

#[derive(Serialize)]
pub(super) struct ChainView {
    name: String,
    nodes: Vec<MemberReport>,
}

#[derive(Serialize)]
pub(super) struct ConnectionView {
    service: String,
    client: SocketAddr,
    seconds: f64,
}

#[derive(Serialize)]
pub(super) struct Connections {
    count: u64,
    connections: Vec<ConnectionView>,
}

#[derive(Serialize)]
pub(super) struct LimitsView {
    limiters: Vec<LimiterConfig>,
    climiters: Vec<LimiterView>,
    rlimiters: Vec<LimiterConfig>,
}

#[derive(Serialize)]
pub(super) struct LimiterView {
    #[serde(flatten)]
    config: LimiterConfig,
    /// Connections that it counts now.
    open: u64,
}

pub(super) async fn services(State(served): State<Arc<Served>>) -> Json<Vec<ServiceView>> {
    let failed = served.runtime.failed();
    let view = |service: shared::gost::ServiceConfig| ServiceView {
        listening: served.runtime.listening(&service.name),
        failed: failed.get(&shared::link::service_key(&service.name)).cloned(),
        report: served.runtime.service_report(&service.name),
        name: service.name,
        addr: service.addr,
    };
    Json(served.runtime.config().services.into_iter().map(view).collect())
}

/// Marks, counters and probe results of all nodes, hop after hop.
pub(super) async fn chains(State(served): State<Arc<Served>>) -> Json<Vec<ChainView>> {
    let chains = served.runtime.chain_members();
    Json(chains.into_iter().map(|(name, nodes)| ChainView { name, nodes }).collect())
}

pub(super) async fn connections(State(served): State<Arc<Served>>) -> Json<Connections> {
    let now_ms = served.runtime.now_ms();
    let open = served.runtime.tally().connections(usize::MAX);
    let count = open.len() as u64;
    let view = |open: crate::service::tally::OpenConnection| ConnectionView {
        service: open.service,
        client: open.client,
        seconds: now_ms.saturating_sub(open.since_ms) as f64 / 1000.0,
    };
    Json(Connections { count, connections: open.into_iter().take(MOST_CONNECTIONS).map(view).collect() })
}

pub(super) async fn limits(State(served): State<Arc<Served>>) -> Json<LimitsView> {
    let limits = served.runtime.limits();
    let climiters = limits.configs(LimitKind::Connections).into_iter().map(|config| {
        let open = limits.connections(&config.name).map_or(0, |limiter| limiter.count());
        LimiterView { config, open }
    });
    Json(LimitsView {
        limiters: limits.configs(LimitKind::Traffic),
        climiters: climiters.collect(),
        rlimiters: limits.configs(LimitKind::Rate),
    })
}
