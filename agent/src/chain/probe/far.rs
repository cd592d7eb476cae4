//! Probes of what lies behind chains: a chain as a whole, and the targets of services.

use super::Probe;
use super::check::{Finding, speak};
use crate::chain::asking::Asking;
use crate::chain::blame::ChainFailure;
use crate::chain::dial::{Budget, reach};
use crate::net::Interface;
use crate::service::plane::Plane;
use crate::stream::Stream;
use shared::address::HostPort;
use std::net::{IpAddr, Ipv4Addr};
use tokio::sync::watch;

/// Asks through a chain for what the probe names.
pub(super) async fn through_chain(name: &str, probe: &Probe, plane: &Plane) -> Finding {
    let Some(target) = probe.kind.target() else {
        return Finding::Nothing("it has no target".to_owned());
    };
    let began = plane.options.clock.instant();
    let took = || plane.options.clock.instant().saturating_duration_since(began);
    let mut budget = Budget::new(&plane.options, probe.timeout, 0);
    match dial(name, target, None, probe, (plane, &mut budget)).await {
        Ok(stream) => {
            let outcome = speak(stream, probe, budget.left()).await;
            Finding::of(outcome, took())
        }
        Err(failure) => Finding::Fails(failure.to_string(), took()),
    }
}

/// Reaches for a target the way its service does. That no chain could be used is no news about the target.
pub(super) async fn target(
    target: &HostPort,
    chains: &[String],
    interface: Option<&Interface>,
    probe: &Probe,
    plane: &Plane,
) -> Finding {
    let began = plane.options.clock.instant();
    let took = || plane.options.clock.instant().saturating_duration_since(began);
    let mut budget = Budget::new(&plane.options, probe.timeout, 0);
    if chains.is_empty() {
        let deadline = plane.options.deadlines.connect.min(budget.left());
        let outcome = match crate::net::connect(target, interface, deadline).await {
            Ok(tcp) => speak(Stream::Tcp(tcp), probe, budget.left()).await,
            Err(error) => Err(error.to_string()),
        };
        return Finding::of(outcome, took());
    }
    let mut blamed = None;
    for name in chains {
        match dial(name, target, interface, probe, (plane, &mut budget)).await {
            Ok(stream) => {
                let outcome = speak(stream, probe, budget.left()).await;
                return Finding::of(outcome, took());
            }
            Err(failure @ ChainFailure::Target(_)) => blamed = Some(failure.to_string()),
            Err(_) => {}
        }
    }
    match blamed {
        Some(error) => Finding::Fails(error, took()),
        None => Finding::Nothing("no chain could be used".to_owned()),
    }
}

async fn dial(
    name: &str,
    target: &HostPort,
    interface: Option<&Interface>,
    probe: &Probe,
    (plane, budget): (&Plane, &mut Budget),
) -> Result<Stream, ChainFailure> {
    let Some(chain) = plane.registry.get(name) else { return Err(ChainFailure::Empty) };
    // A request follows at once, so that no answer need be waited for that may only come with the target's.
    let (_told, spoken) = watch::channel(probe.kind.will_speak());
    let key = IpAddr::V4(Ipv4Addr::UNSPECIFIED).into();
    let mut asking = Asking::Racer { key, spoken };
    reach(&chain, target, interface, &mut asking, budget).await.map(|through| through.stream)
}
