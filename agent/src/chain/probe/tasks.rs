//! The tasks that probe: one per probed node, for as long as the node is part of what is configured.

use super::check::{Finding, by_command, node};
use super::far::{target, through_chain};
use super::{Kind, Probe};
use crate::chain::marks::FailRule;
use crate::chain::state::NodeState;
use crate::net::Interface;
use crate::service::plane::Plane;
use shared::address::HostPort;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Probes that run at the same time; further ones wait for their turn.
const AT_ONCE: usize = 32;

/// What is to be probed.
#[derive(Clone)]
pub struct Probed {
    /// What is found goes here.
    pub state: Arc<NodeState>,
    /// How.
    pub probe: Arc<Probe>,
    /// How many failures leave it out, and for how long.
    pub rule: FailRule,
    /// A name for the log.
    pub name: String,
    /// Where it is to be found.
    pub place: Place,
}

/// Where something is that is to be probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Among the nodes of the chain of this name.
    Node(String),
    /// The chain of this name.
    Chain(String),
    /// A target of a service.
    Target {
        /// Where it is.
        target: HostPort,
        /// Through one of these; directly only if there are none.
        chains: Vec<String>,
        /// Where the service dials from.
        interface: Option<Interface>,
    },
}

impl Probed {
    /// Whether the task of this one is the task of `other` too.
    fn goes_on_as(&self, other: &Probed) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
            && self.probe == other.probe
            && self.rule == other.rule
            && self.place == other.place
    }
}

/// What is allowed and yet doubtful about probes.
pub fn warnings(probed: &[Probed]) -> impl Iterator<Item = String> {
    probed.iter().filter_map(|probed| {
        let warning = probed.probe.warning(probed.rule.fail_timeout_ms)?;
        Some(format!("{}: {warning}", probed.name))
    })
}

/// All probing of a runtime. Dropping it ends it.
pub struct ProbeTasks {
    /// By what the probed are part of.
    running: BTreeMap<String, Vec<Running>>,
    slots: Arc<Semaphore>,
}

struct Running {
    probed: Probed,
    _stop: DropGuard,
}

impl Default for ProbeTasks {
    fn default() -> Self {
        Self { running: BTreeMap::new(), slots: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl ProbeTasks {
    /// From now on, of `object`, these are probed and no others. Those that were probed in the same way before are
    /// probed on without a break; the first probe of the others is made at once.
    pub fn follow(&mut self, object: &str, wanted: Vec<Probed>, plane: &Arc<Plane>) {
        let mut before = self.running.remove(object).unwrap_or_default();
        let mut kept = Vec::with_capacity(wanted.len());
        let mut new = Vec::new();
        for probed in wanted {
            match before.iter().position(|running| running.probed.goes_on_as(&probed)) {
                Some(at) => kept.push(before.swap_remove(at)),
                None => new.push(probed),
            }
        }
        for ended in before {
            let Running { probed, _stop } = ended;
            drop(_stop);
            // Of the same node, another probe may find something else, and none will find anything.
            if new
                .iter()
                .all(|other| !Arc::ptr_eq(&other.state, &probed.state) || other.probe != probed.probe)
            {
                probed.state.measured.forget();
            }
        }
        kept.extend(new.into_iter().map(|probed| self.start(probed, plane)));
        if !kept.is_empty() {
            self.running.insert(object.to_owned(), kept);
        }
    }

    /// How many tasks there are.
    pub fn len(&self) -> usize {
        self.running.values().map(Vec::len).sum()
    }

    /// Whether nothing is probed.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    fn start(&self, probed: Probed, plane: &Arc<Plane>) -> Running {
        let stop = plane.stop.child_token();
        let task = probe_on(probed.clone(), plane.clone(), self.slots.clone(), stop.clone());
        plane.tracker.spawn(task);
        Running { probed, _stop: stop.drop_guard() }
    }
}

/// Probes at once and then in every interval. Probes never overlap; after one that took longer than the interval, the next
/// follows at once.
async fn probe_on(probed: Probed, plane: Arc<Plane>, slots: Arc<Semaphore>, stop: CancellationToken) {
    let epoch = probed.state.measured.epoch();
    let (clock, random) = (&plane.options.clock, &plane.options.random);
    let probing = async {
        loop {
            let next = clock.instant() + random.jitter(probed.probe.interval);
            // The semaphore is never closed.
            let Ok(slot) = slots.acquire().await else { return };
            let finding = find(&probed, &plane).await;
            drop(slot);
            note(&probed, finding, epoch, &plane);
            tokio::time::sleep_until(next).await;
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = probing => {}
    }
}

/// Probes once.
pub(crate) async fn find(probed: &Probed, plane: &Plane) -> Finding {
    if let Kind::Command(command) = &probed.probe.kind {
        return by_command(command, &probed.probe, &plane.options).await;
    }
    match &probed.place {
        Place::Node(name) => {
            // Looked up anew each time: hops before this one may have changed.
            let Some(chain) = plane.registry.get(name) else { return Finding::Nothing("it is gone".into()) };
            let place = chain.hops.iter().enumerate().find_map(|(hop, h)| {
                let index = (0..h.group.len()).find(|i| Arc::ptr_eq(h.group.state(*i), &probed.state))?;
                Some((hop, index))
            });
            let Some(place) = place else { return Finding::Nothing("it is gone".into()) };
            node(&chain, place, &probed.probe, &plane.options).await
        }
        Place::Chain(name) => through_chain(name, &probed.probe, plane).await,
        Place::Target { target, chains, interface } => {
            self::target(target, chains, interface.as_ref(), &probed.probe, plane).await
        }
    }
}

/// A success clears the marks, a failure marks.
fn note(probed: &Probed, finding: Finding, epoch: u64, plane: &Plane) {
    let (name, now_ms) = (&probed.name, plane.options.clock.now_ms());
    let (outcome, took) = match finding {
        Finding::Works(took) => (Ok(()), took),
        Finding::Fails(error, took) => (Err(error), took),
        Finding::Nothing(reason) => {
            tracing::debug!(name, reason, "probe says nothing");
            return;
        }
    };
    let error = outcome.as_ref().err().cloned();
    if !probed.state.measured.note(epoch, outcome, took, now_ms) {
        return;
    }
    match error {
        None if probed.state.clear() => tracing::info!(name, ?took, "probe: is back"),
        None => tracing::debug!(name, ?took, "probe: works"),
        Some(error) if probed.state.refute(now_ms, probed.rule) => {
            tracing::info!(name, error, "probe: is left out");
        }
        Some(error) => tracing::debug!(name, error, "probe: failed"),
    }
}
