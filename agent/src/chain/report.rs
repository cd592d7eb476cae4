//! What is to be seen of one of several alternatives: a node of a hop, a chain of a group, or a target of a service.

use super::state::NodeState;
use super::{Chain, Hop};
use serde::Serialize;
use shared::link::ProbeReport;
use std::collections::BTreeMap;

/// One alternative at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberReport {
    /// As configured.
    pub name: String,
    /// Where it is, unless it is a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addr: Option<String>,
    /// At which stage of its chain it is, from 0; nodes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop: Option<usize>,
    /// Connections established through it, or to it.
    pub connections: u64,
    /// Of these, open now.
    pub open: u64,
    /// Failed attempts.
    pub failures: u64,
    /// The same by kind, of the kinds that there were: see [`super::failure`].
    pub failures_by_kind: BTreeMap<&'static str, u64>,
    /// Left out now because of failures.
    pub marked: bool,
    /// What its last probe has found, if it is probed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeReport>,
}

impl MemberReport {
    /// `marked`: whether it is left out now.
    pub(crate) fn new(
        name: &str,
        addr: Option<&str>,
        state: &NodeState,
        (marked, now_ms): (bool, u64),
    ) -> Self {
        let counters = state.counters();
        let failures_by_kind = state.failures().by_kind();
        Self {
            name: name.to_owned(),
            addr: addr.map(str::to_owned),
            hop: None,
            connections: counters.connections,
            open: counters.open,
            failures: failures_by_kind.values().sum(),
            failures_by_kind,
            marked,
            probe: state.measured.last().map(|probe| probe.report(now_ms)),
        }
    }
}

impl Chain {
    /// All nodes, hop after hop.
    pub fn members(&self, now_ms: u64) -> Vec<MemberReport> {
        let of_hop = |(at, hop): (usize, &Hop)| -> Vec<MemberReport> {
            let member = |(i, node): (usize, &super::node::Node)| {
                let marked = hop.group.is_marked(i, now_ms);
                let (name, addr) = (&node.config.name, Some(node.config.addr.as_str()));
                let report = MemberReport::new(name, addr, hop.group.state(i), (marked, now_ms));
                MemberReport { hop: Some(at), ..report }
            };
            hop.nodes.iter().enumerate().map(member).collect()
        };
        self.hops.iter().enumerate().flat_map(of_hop).collect()
    }
}
