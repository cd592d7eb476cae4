//! A look at what a person asks about: nothing is marked, no group learns of it, no session is shared.

use super::Probe;
use super::check::{Finding, by_command, in_use, speak, through_node};
use super::tasks::{Place, Probed};
use super::{Kind, tasks};
use crate::service::plane::Plane;
use crate::stream::Stream;
use shared::address::HostPort;

/// Probes once, and changes nothing. A chain is looked at as it is used at this moment: with one node of each hop.
pub(crate) async fn glance(probed: &Probed, plane: &Plane) -> Finding {
    let probe = &*probed.probe;
    if let Kind::Command(command) = &probe.kind {
        return by_command(command, probe, &plane.options).await;
    }
    match &probed.place {
        // Its test alone marks nothing either.
        Place::Node(_) => tasks::find(probed, plane).await,
        Place::Chain(name) => match probe.kind.target() {
            Some(target) => through(name, target, probe, plane).await,
            None => Finding::Nothing("it has no target".to_owned()),
        },
        Place::Target { target, chains, interface } if chains.is_empty() => {
            let began = plane.options.clock.instant();
            let took = || plane.options.clock.instant().saturating_duration_since(began);
            let deadline = plane.options.deadlines.connect.min(probe.timeout);
            let outcome = match crate::net::connect(target, interface.as_ref(), deadline).await {
                Ok(tcp) => {
                    let left = probe.timeout.saturating_sub(took());
                    speak(Stream::Tcp(tcp), probe, left).await
                }
                Err(error) => Err(error.to_string()),
            };
            Finding::of(outcome, took())
        }
        Place::Target { target, chains, .. } => {
            let mut last = Finding::Nothing("there is no chain".to_owned());
            for chain in chains {
                last = through(chain, target, probe, plane).await;
                if matches!(last, Finding::Works(_)) {
                    break;
                }
            }
            last
        }
    }
}

async fn through(name: &str, target: &HostPort, probe: &Probe, plane: &Plane) -> Finding {
    let Some(chain) = plane.registry.get(name) else { return Finding::Nothing("it is gone".to_owned()) };
    let Some(last) = chain.hops.len().checked_sub(1) else {
        return Finding::Nothing("it has no hops".to_owned());
    };
    let Some(node) = in_use(&chain.hops[last], plane.options.clock.now_ms()) else {
        return Finding::Nothing("its last hop has no nodes".to_owned());
    };
    through_node(&chain, (last, node), (Some(target), probe), &plane.options).await
}
