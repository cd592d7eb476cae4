//! Checks a whole document.

use crate::chain::Chain;
use crate::chain::group::groups::Steered;
use crate::chain::probe::tasks::{self, Probed};
use crate::limit::{LimitKind, check, limiters, names};
use crate::net::ListenAddress;
use crate::service::Service;
use shared::gost::GostConfig;
use std::collections::BTreeSet;

/// Everything that is wrong with a document, in its order.
pub(super) fn problems(config: &GostConfig) -> Vec<String> {
    let mut problems = Vec::new();
    let mut chains = BTreeSet::new();
    for chain in &config.chains {
        if !chains.insert(&chain.name) {
            problems.push(format!("chain {}: is there twice", chain.name));
        }
        problems.extend(Chain::build(chain, None).err().map(|error| error.to_string()));
    }
    let mut limits = BTreeSet::new();
    for (kind, limiter) in limiters(config) {
        if !limits.insert((kind, limiter.name.as_str())) {
            problems.push(format!("{} {}: is there twice", kind.field(), limiter.name));
        }
        problems.extend(check(kind, limiter).err().map(|error| error.to_string()));
    }
    let mut services = BTreeSet::new();
    for service in &config.services {
        let path = format!("service {}", service.name);
        if !services.insert(&service.name) {
            problems.push(format!("{path}: is there twice"));
        }
        problems.extend(Service::build(service, None).err().map(|error| error.to_string()));
        problems.extend(
            ListenAddress::parse(&service.addr).err().map(|reason| format!("{path}: addr: {reason}")),
        );
        // It would not be limited.
        for kind in LimitKind::ALL {
            let named = match kind {
                LimitKind::Traffic => &service.limiter,
                LimitKind::Connections => &service.climiter,
                LimitKind::Rate => &service.rlimiter,
            };
            for name in names(named.as_deref()) {
                if !limits.contains(&(kind, name.as_str())) {
                    problems.push(format!("{path}: {}: {name} does not exist", kind.field()));
                }
            }
        }
        // It would refuse every client.
        let named = service.handler.chain.iter().filter(|name| !name.is_empty());
        let named = named.map(|name| ("handler.chain".to_owned(), name));
        let group = service.handler.chain_group.iter().flat_map(|group| group.chains.iter().enumerate());
        let group = group.map(|(i, entry)| (format!("handler.chainGroup.chains[{i}]"), &entry.chain));
        for (field, name) in named.chain(group) {
            if !config.chains.iter().any(|chain| chain.name == *name) {
                problems.push(format!("{path}: {field}: chain {name} does not exist"));
            }
        }
    }
    problems
}

/// What is doubtful about a document, in its order. What is wrong is not told again.
pub(super) fn warnings(config: &GostConfig) -> Vec<String> {
    let steered = config.chains.iter().filter_map(|chain| Some(Chain::build(chain, None).ok()?.steered()));
    let of_services =
        config.services.iter().filter_map(|service| Some(Service::build(service, None).ok()?.steered()));
    let raised: Vec<String> = steered
        .chain(of_services)
        .flatten()
        .flat_map(|Steered { steering, .. }| {
            let name = steering.name().to_owned();
            steering.warnings().iter().map(move |warning| format!("{name}: {warning}")).collect::<Vec<_>>()
        })
        .collect();
    let chains = config.chains.iter().filter_map(|chain| Chain::build(chain, None).ok());
    let chains = chains.flat_map(|chain| warnings_of("chain", &chain.probed()));
    let services = config.services.iter().filter_map(|service| Service::build(service, None).ok());
    chains
        .chain(services.flat_map(|service| warnings_of("service", &service.probed())))
        .chain(raised)
        .collect()
}

fn warnings_of(kind: &str, probed: &[Probed]) -> Vec<String> {
    tasks::warnings(probed).map(|warning| format!("{kind} {warning}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_problem_of_a_document_is_named() {
        let service = |name: &str, chain: &str, addr: &str| {
            json!({"name": name, "addr": addr, "handler": {"type": "relay", "chain": chain},
                "listener": {"type": "tcp"}})
        };
        let good = json!({
            "services": [service("a", "c", ":1"), service("b", "", ":2")],
            "chains": [{"name": "c", "hops": []}],
            "limiters": [{"name": "5", "limits": ["$ 1MB"]}], "climiters": [{"name": "5"}]
        });
        let mut good = good;
        good["services"][0]["limiter"] = json!("5");
        good["services"][0]["climiter"] = json!("5");
        assert!(problems(&serde_json::from_value(good).unwrap()).is_empty());

        let bad = json!({
            "services": [service("a", "d", ":1"), service("a", "c", "1"), {"name": "e", "addr": ":3",
                "handler": {"type": "relay"}, "listener": {"type": "kcp"}, "limiter": "5, 6"}],
            "limiters": [{"name": "5", "limits": ["$ fast"]}, {"name": "5"}],
            "chains": [{"name": "c", "hops": [], "metadata": {"x": 1}}, {"name": "c", "hops": []}]
        });
        assert_eq!(
            problems(&serde_json::from_value(bad).unwrap()),
            [
                "chain c: metadata.x: is not supported",
                "chain c: is there twice",
                "limiter 5: limits[0]: `fast` is not a size such as 512KB, 1.5MB or 1GB",
                "limiter 5: is there twice",
                "service a: handler.chain: chain d does not exist",
                "service a: is there twice",
                "service a: addr: `1` is not a listen address such as :8080 or 192.0.2.1:8080",
                "service e: listener.type: kcp is not supported",
                "service e: limiter: 6 does not exist",
            ]
        );
    }
}
