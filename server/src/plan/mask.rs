//! Plans for human eyes: without passwords.

use super::NodePlan;
use super::Subject;
use shared::gost::{Auth, ChainConfig, GostConfig, ServiceConfig};

/// Stands where a password was.
pub const MASK: &str = "***";

/// A chain whose passwords are masked.
pub fn chain(mut chain: ChainConfig) -> ChainConfig {
    for node in chain.hops.iter_mut().flat_map(|hop| hop.nodes.iter_mut().flatten()) {
        mask(&mut node.connector.auth);
    }
    chain
}

/// A service whose passwords are masked.
pub fn service(mut service: ServiceConfig) -> ServiceConfig {
    mask(&mut service.handler.auth);
    service
}

/// The part of a node's plan that is about `wanted`, masked.
pub fn view(plan: &NodePlan, wanted: impl Fn(Subject) -> bool) -> GostConfig {
    let services = plan.services.values().filter(|planned| wanted(planned.subject));
    let chains = plan.chains.values().filter(|planned| wanted(planned.subject));
    GostConfig {
        services: services.map(|planned| service(ServiceConfig::clone(&planned.config))).collect(),
        chains: chains.map(|planned| chain(ChainConfig::clone(&planned.config))).collect(),
        ..GostConfig::default()
    }
}

fn mask(auth: &mut Option<Auth>) {
    if let Some(auth) = auth {
        auth.password = MASK.to_owned();
    }
}
