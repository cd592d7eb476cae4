//! Groups of chains, of which one is chosen per connection.

use super::plane::Plane;
use super::reach::Refusal;
use crate::chain::Chain;
use crate::chain::asking::Asking;
use crate::chain::blame::ChainFailure;
use crate::chain::dial::{Budget, Through, reach};
use crate::chain::group::groups::Steered;
use crate::chain::group::steering::{SteeredMember, Steering};
use crate::chain::group::{Alternative, OwnTerms, attempt, draw, steered_attempt, steered_draw, strategy};
use crate::chain::marks::{FailRule, Health};
use crate::chain::probe::Probe;
use crate::chain::probe::tasks::{Place, Probed};
use crate::chain::report::MemberReport;
use crate::chain::select::{Policy, Selection};
use crate::chain::state::NodeState;
use crate::chain::state::OpenConnection;
use crate::metadata::ConfigError;
use crate::net::Interface;
use shared::address::HostPort;
use shared::gost::HandlerConfig;
use shared::policy::Leaf;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Chains of which one is chosen per connection. On which terms each takes part, its own metadata say.
pub(super) struct ChainGroup {
    selection: Selection,
    rule: FailRule,
    /// Whoever decides ahead of the connections; the selection is not asked then.
    steering: Option<Arc<Steering>>,
    entries: Vec<ChainEntry>,
    /// Counts connections.
    turn: AtomicU64,
}

struct ChainEntry {
    name: String,
    identity: u32,
    state: Arc<NodeState>,
    probe: Option<Arc<Probe>>,
}

impl ChainGroup {
    /// `path` is the handler's, for errors; `service` the name of the service. What the previous group remembers of a chain is kept.
    pub(super) fn build(
        path: &str,
        service: &str,
        handler: &HandlerConfig,
        previous: Option<&ChainGroup>,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(config) = &handler.chain_group else { return Ok(None) };
        let path = format!("{path}.chainGroup");
        let selector = format!("{path}.selector");
        let parsed = match &config.selector {
            Some(config) => strategy::read(&selector, config)?,
            None => None,
        };
        let (selection, rule) = match &parsed {
            Some(_) => Selection::read(&selector, None)?,
            None => Selection::read(&selector, config.selector.as_ref())?,
        };
        let refuse = |field: &str, reason| Err(ConfigError::new(format!("{path}.selector.{field}"), reason));
        if selection.policy == Policy::Parallel {
            return refuse("strategy", "parallel chooses among nodes, not among chains");
        }
        if selection.tolerance_us > 0 {
            return refuse("tolerance", "is an option for nodes");
        }
        let front = handler.chain.as_ref().filter(|name| !name.is_empty());
        let front = front.map(|name| ("handler.chain".to_owned(), name, None));
        let listed = config
            .chains
            .iter()
            .enumerate()
            .map(|(i, entry)| (format!("{path}.chains[{i}]"), &entry.chain, entry.probe.as_ref()));
        let mut names = BTreeSet::new();
        let mut entries = Vec::new();
        for (place, name, probe) in front.into_iter().chain(listed) {
            if name.trim().is_empty() {
                return Err(ConfigError::new(format!("{place}.chain"), "is empty"));
            }
            if !names.insert(name) {
                return Err(ConfigError::new(format!("{place}.chain"), format!("{name} is there twice")));
            }
            let before = previous.and_then(|old| old.entries.iter().find(|entry| entry.name == *name));
            let probe = probe.map(|probe| Probe::build(&format!("{place}.probe"), probe, None));
            entries.push(ChainEntry {
                name: name.clone(),
                identity: crc32fast::hash(name.as_bytes()),
                state: before.map(|entry| entry.state.clone()).unwrap_or_default(),
                probe: probe.transpose()?.map(Arc::new),
            });
        }
        if entries.is_empty() {
            return Err(ConfigError::new(format!("{path}.chains"), "is empty"));
        }
        let steering = match parsed {
            None => None,
            Some(parsed) => {
                let member = |entry: &ChainEntry| SteeredMember {
                    leaf: Leaf::new(entry.name.as_str()),
                    state: entry.state.clone(),
                };
                let members = entries.iter().map(member).collect();
                let name = format!("service/{service}/chains");
                let before = previous.and_then(|old| old.steering.as_ref());
                Some(Steering::build(&selector, name, parsed, members, before)?)
            }
        };
        let turn = AtomicU64::new(previous.map_or(0, |old| old.turn.load(Ordering::Relaxed)));
        Ok(Some(Self { selection, rule, steering, entries, turn }))
    }

    /// Whoever decides ahead of the connections, with what the members are.
    pub(super) fn steered(&self) -> Option<Steered> {
        let steering = self.steering.clone()?;
        Some(Steered { steering, places: self.names().cloned().map(Place::Chain).collect() })
    }

    /// The chains, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.entries.iter().map(|entry| &entry.name)
    }

    /// The chain that a connection goes through that holds these open.
    pub(super) fn taken(&self, open: &[OpenConnection]) -> Option<&str> {
        let entry =
            open.iter().find_map(|open| self.entries.iter().find(|entry| open.is_through(&entry.state)))?;
        Some(&entry.name)
    }

    /// The chains that are to be probed for the service of this name.
    pub(super) fn probed(&self, service: &str) -> Vec<Probed> {
        let entries = self.entries.iter().filter_map(|entry| {
            Some(Probed {
                state: entry.state.clone(),
                probe: entry.probe.clone()?,
                rule: self.rule,
                name: format!("{service}: chain {}", entry.name),
                place: Place::Chain(entry.name.clone()),
            })
        });
        entries.collect()
    }

    /// What is to be seen of the chains.
    pub(super) fn members(&self, plane: &Plane) -> Vec<MemberReport> {
        let now_ms = plane.options.clock.now_ms();
        let member = |(at, entry): (usize, &ChainEntry)| {
            let chain = plane.registry.get(&entry.name);
            let own = chain.map_or_else(OwnTerms::default, |chain| chain.terms);
            let marked = match &self.steering {
                Some(steering) => steering.is_dead(at),
                None => entry.state.health(now_ms, own.over(self.rule).rule) == Health::Marked,
            };
            MemberReport::new(&entry.name, None, &entry.state, (marked, now_ms))
        };
        self.entries.iter().enumerate().map(member).collect()
    }

    /// Finds a way to `target` through one of the chains after another. A chain that fails is marked; so is one whose nodes
    /// blame the target, if another chain reaches it.
    pub(super) async fn reach(
        &self,
        target: &HostPort,
        interface: Option<&Interface>,
        asking: &mut Asking<'_>,
        (plane, retries): (&Plane, u32),
        budget: &mut Budget,
    ) -> Result<Through, Refusal> {
        let options = &plane.options;
        // Resolved once: this connection keeps the chains it starts with.
        let chains: Vec<Option<Arc<Chain>>> =
            self.entries.iter().map(|entry| plane.registry.get(&entry.name)).collect();
        let network = asking.network(target);
        let draw = match &self.steering {
            Some(steering) => steered_draw(steering, network, &options.random),
            None => draw(self.selection.policy, &self.turn, asking.key(), &options.random),
        };
        let mut tried = BTreeSet::new();
        let mut in_doubt = Vec::new();
        let mut last = None;
        loop {
            let alternative = |i: usize| {
                let ChainEntry { state, identity, .. } = &self.entries[i];
                let own = chains[i].as_ref().map_or_else(OwnTerms::default, |chain| chain.terms);
                let tried = tried.contains(&i) || chains[i].is_none();
                Alternative { state, terms: own.over(self.rule), identity: *identity, tried }
            };
            let picked = match &self.steering {
                Some(steering) => {
                    let tried = |i: usize| tried.contains(&i);
                    steered_attempt(steering, tried, &draw, &options.clock)
                }
                None => attempt(&self.selection, self.entries.len(), alternative, &draw, &options.clock),
            };
            let Some(attempt) = picked.filter(|_| !budget.left().is_zero()) else { break };
            let index = attempt.index();
            tried.insert(index);
            let name = &self.entries[index].name;
            let Some(chain) = &chains[index] else {
                mark((attempt, name), "there is no such chain");
                last = Some(Refusal::NoChain(name.clone()));
                continue;
            };
            budget.renew_attempts(retries);
            let failure = match reach(chain, target, interface, asking, budget).await {
                Ok(mut through) => {
                    through.open.push(attempt.open());
                    attempt.succeed();
                    for other in in_doubt {
                        mark(other, "others reach the target");
                    }
                    return Ok(through);
                }
                Err(failure) => failure,
            };
            if let Some(kind) = failure.kind() {
                attempt.count_failure(kind);
            }
            match &failure {
                ChainFailure::ClientGone => return Err(Refusal::ClientGone),
                ChainFailure::Target(_) => in_doubt.push((attempt, name)),
                // Whatever it was that took the time.
                ChainFailure::Time(_) => drop(attempt),
                ChainFailure::Empty | ChainFailure::Nodes { .. } => {
                    mark((attempt, name), &failure.to_string())
                }
            }
            last = Some(Refusal::Chain { name: name.clone(), failure });
        }
        let none = || Refusal::NoChain(self.names().cloned().collect::<Vec<_>>().join(", "));
        Err(last.unwrap_or_else(none))
    }
}

fn mark((attempt, chain): (crate::chain::group::Attempt, &String), reason: &str) {
    if attempt.mark() {
        tracing::info!(chain, reason, "chain is left out");
    }
}
