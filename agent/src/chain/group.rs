//! A group of alternatives, one of which is used per attempt: the nodes of a hop, or the targets of a forwarder.

mod attempt;
pub mod choices;
mod deciding;
pub mod groups;
mod inbox;
mod published;
pub mod report;
mod state_now;
pub mod steering;
pub(crate) mod strategy;

use super::hash::ClientKey;
use super::marks::{FailRule, Health};
use super::probe::tasks::Place;
use super::select::{Candidate, Draw, Picked, Policy, Selection, pick};
use super::state::NodeState;
use crate::clock::{Clock, Random};
use crate::metadata::{ConfigError, MetadataReader};
pub use attempt::Attempt;
pub(crate) use attempt::{leaf, steered_attempt, steered_draw};
use groups::Steered;
use shared::gost::{Metadata, SelectorConfig};
use shared::policy::{Leaf, Network};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use steering::{SteeredMember, Steering};

/// Failures that a rule may ask for; more would only cost memory.
const MOST_FAILS: u32 = 1000;
/// Groups up to this size are looked at without allocating.
const SMALL: usize = 32;
/// In `current`: nobody was chosen yet.
const NOBODY: usize = usize::MAX;

/// Alternatives and the policy that chooses among them.
#[derive(Debug)]
pub struct Group {
    selection: Selection,
    /// Whoever decides ahead of the connections; the selection is not asked then.
    steering: Option<Arc<Steering>>,
    members: Vec<Member>,
    /// Counts connections, for [`Policy::Round`].
    turn: AtomicU64,
    /// Who was chosen last, for [`Policy::LowestLatency`].
    current: AtomicUsize,
}

/// An alternative as it is configured.
pub struct MemberConfig<'a> {
    /// Its place, for errors.
    pub path: String,
    /// By this it is known to people.
    pub name: &'a str,
    /// Where it is; by this it is known to the consistent hash.
    pub addr: &'a str,
    /// Whether it carries datagrams.
    pub udp: bool,
    /// `weight`, `backup`, `maxFails`, `failTimeout`; or `addLatency` where a strategy goes by tests.
    pub metadata: &'a Metadata,
    /// What is remembered of it.
    pub state: Arc<NodeState>,
}

/// What selection needs of one alternative.
#[derive(Debug)]
struct Member {
    terms: Terms,
    identity: u32,
    state: Arc<NodeState>,
}

/// On which terms a member takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// When failures leave it out.
    pub rule: FailRule,
    /// Only used when no other is usable.
    pub backup: bool,
    /// For [`Policy::Rand`].
    pub weight: u32,
}

/// What a member says itself about its terms.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnTerms {
    max_fails: Option<u32>,
    fail_timeout: Option<Duration>,
    backup: bool,
    weight: Option<u32>,
}

impl OwnTerms {
    /// Reads the metadata of a member; `path` is the metadata's.
    pub fn read(path: &str, metadata: &Metadata) -> Result<Self, ConfigError> {
        let known = ["weight", "backup", "maxFails", "failTimeout"];
        let reader = MetadataReader::new(path, metadata, &known)?;
        let own = Self {
            max_fails: reader.number("maxFails")?.filter(|n| *n > 0),
            fail_timeout: reader.duration("failTimeout")?.filter(|timeout| !timeout.is_zero()),
            backup: reader.flag("backup")?,
            weight: reader.number("weight")?,
        };
        fail_rule(FailRule::DEFAULT, own.max_fails, own.fail_timeout, path)?;
        Ok(own)
    }

    /// With what the group says where this says nothing.
    pub fn over(&self, general: FailRule) -> Terms {
        let rule = FailRule {
            max_fails: self.max_fails.unwrap_or(general.max_fails),
            fail_timeout_ms: self.fail_timeout.map_or(general.fail_timeout_ms, millis),
        };
        Terms { rule, backup: self.backup, weight: self.weight.unwrap_or(1) }
    }
}

impl Selection {
    /// Reads a selector; `path` is the selector's. Also the fail rule for members that have none of their own.
    pub fn read(path: &str, selector: Option<&SelectorConfig>) -> Result<(Self, FailRule), ConfigError> {
        let default = SelectorConfig::default();
        let selector = selector.unwrap_or(&default);
        let policy = Policy::parse(&selector.strategy)
            .map_err(|reason| ConfigError::new(format!("{path}.strategy"), reason))?;
        let (max_fails, timeout) = (Some(selector.max_fails), Some(selector.fail_timeout.0));
        let general = fail_rule(FailRule::DEFAULT, max_fails, timeout, path)?;
        let tolerance_us = micros(selector.tolerance.0);
        if tolerance_us > 0 && policy != Policy::LowestLatency {
            let reason = "is an option of the strategy lowestlatency";
            return Err(ConfigError::new(format!("{path}.tolerance"), reason));
        }
        let max_latency_us = Some(micros(selector.max_latency.0)).filter(|us| *us > 0);
        Ok((Self { policy, max_latency_us, tolerance_us }, general))
    }
}

/// Microseconds; less than one counts as one, unless it is nothing.
fn micros(duration: Duration) -> u64 {
    match u64::try_from(duration.as_micros()).unwrap_or(u64::MAX) {
        0 if !duration.is_zero() => 1,
        us => us,
    }
}

impl Group {
    /// `path` is the group's, for errors; by `name` it is known to people.
    pub fn build<'a>(
        path: &str,
        name: String,
        selector: Option<&SelectorConfig>,
        members: impl Iterator<Item = MemberConfig<'a>>,
        previous: Option<&Group>,
    ) -> Result<Self, ConfigError> {
        if let Some(selector) = selector
            && let Some(parsed) = strategy::read(&format!("{path}.selector"), selector)?
        {
            let member = |MemberConfig { path, name, metadata, state, udp, .. }: MemberConfig<'a>| {
                let leaf = Leaf { udp, ..leaf(&format!("{path}.metadata"), name, metadata)? };
                Ok(SteeredMember { leaf, state })
            };
            let members = members.map(member).collect::<Result<Vec<_>, ConfigError>>()?;
            let before = previous.and_then(|group| group.steering.as_ref());
            let steering = Steering::build(&format!("{path}.selector"), name, parsed, members, before)?;
            return Ok(Self::steered_by(steering));
        }
        let (selection, general) = Selection::read(&format!("{path}.selector"), selector)?;
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        let members = members
            .map(|MemberConfig { path, addr, metadata, state, .. }| {
                let terms = OwnTerms::read(&format!("{path}.metadata"), metadata)?.over(general);
                // Members of the same address are told apart by their order among themselves.
                let nth = seen.entry(addr).or_insert(0);
                *nth += 1;
                let identity = crc32fast::hash(format!("{addr}#{nth}").as_bytes());
                Ok(Member { terms, identity, state })
            })
            .collect::<Result<Vec<_>, ConfigError>>()?;
        let turn = previous.map_or(0, |group| group.turn.load(Ordering::Relaxed));
        let current = previous
            .and_then(|group| Some(&group.members.get(group.current.load(Ordering::Relaxed))?.state))
            .and_then(|state| members.iter().position(|member| Arc::ptr_eq(&member.state, state)))
            .unwrap_or(NOBODY);
        let (turn, current) = (AtomicU64::new(turn), AtomicUsize::new(current));
        Ok(Self { selection, steering: None, members, turn, current })
    }

    fn steered_by(steering: Arc<Steering>) -> Self {
        let terms = OwnTerms::default().over(FailRule::DEFAULT);
        let member = |i| Member { terms, identity: 0, state: steering.state(i).clone() };
        let members = (0..steering.members().len()).map(member).collect();
        let selection = Selection { policy: Policy::Fifo, max_latency_us: None, tolerance_us: 0 };
        let (turn, current) = (AtomicU64::new(0), AtomicUsize::new(NOBODY));
        Self { selection, steering: Some(steering), members, turn, current }
    }

    /// Whoever decides ahead of the connections, with where the members are.
    pub fn steered(&self, place: impl Fn(usize) -> Place) -> Option<Steered> {
        let steering = self.steering.clone()?;
        Some(Steered { steering, places: (0..self.members.len()).map(place).collect() })
    }

    /// The member that is used for connections, where that was decided ahead of them.
    pub(crate) fn decided(&self) -> Option<usize> {
        let steering = self.steering.as_ref()?;
        steering.next(Network::Tcp4, |_| false, 0).map(|(member, _)| member)
    }

    /// The members in the order in which a connection tries them, where that was decided ahead of it.
    pub(crate) fn order(&self) -> Option<Vec<usize>> {
        let steering = self.steering.as_ref()?;
        let mut order: Vec<usize> = Vec::with_capacity(self.members.len());
        while let Some((next, _)) = steering.next(Network::Tcp4, |i| order.contains(&i), 0) {
            order.push(next);
        }
        Some(order)
    }

    /// Whether a connection of this draw may use the member at all.
    pub(crate) fn offers(&self, index: usize, draw: &Draw) -> bool {
        self.steering.as_ref().is_none_or(|steering| steering.offers(index, draw.network))
    }

    /// Whether several members are tried at once.
    pub fn is_parallel(&self) -> bool {
        self.selection.policy == Policy::Parallel
    }

    /// When failures leave a member out.
    pub fn rule(&self, index: usize) -> FailRule {
        self.members[index].terms.rule
    }

    /// How many alternatives there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no alternative at all.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What is remembered of a member.
    pub fn state(&self, index: usize) -> &Arc<NodeState> {
        &self.members[index].state
    }

    /// Whether a member is left out now.
    pub fn is_marked(&self, index: usize, now_ms: u64) -> bool {
        if let Some(steering) = &self.steering {
            return steering.is_dead(index);
        }
        let member = &self.members[index];
        member.state.health(now_ms, member.terms.rule) == Health::Marked
    }

    /// Draws for one connection; all its picks use the same draw.
    pub fn draw(&self, client: impl Into<ClientKey>, network: Network, random: &Random) -> Draw {
        if let Some(steering) = &self.steering {
            return steered_draw(steering, network, random);
        }
        let current = self.current.load(Ordering::Relaxed);
        Draw {
            current: (current != NOBODY).then_some(current),
            network,
            ..draw(self.selection.policy, &self.turn, client.into(), random)
        }
    }

    /// Chooses the next member to try, and takes its trial if it is on one. `None` when all are tried.
    pub fn pick(&self, tried: impl Fn(usize) -> bool, draw: &Draw, clock: &Clock) -> Option<Attempt> {
        if let Some(steering) = &self.steering {
            return steered_attempt(steering, tried, draw, clock);
        }
        let member = |i: usize| {
            let Member { terms, identity, state } = &self.members[i];
            Alternative { state, terms: *terms, identity: *identity, tried: tried(i) }
        };
        let attempt = attempt(&self.selection, self.members.len(), member, draw, clock)?;
        if self.selection.policy == Policy::LowestLatency {
            self.current.store(attempt.index, Ordering::Relaxed);
        }
        Some(attempt)
    }
}

/// Draws for one connection of a group that counts them in `turn`.
pub(crate) fn draw(policy: Policy, turn: &AtomicU64, client: ClientKey, random: &Random) -> Draw {
    let hashed = matches!(policy, Policy::Hash | Policy::ConsistentHash);
    Draw {
        turn: turn.fetch_add(1, Ordering::Relaxed),
        random: if policy == Policy::Rand { random.next() } else { 0 },
        client: if hashed { client.checksum() } else { 0 },
        current: None,
        network: Network::Tcp4,
    }
}

/// One of those that are chosen from, at this moment.
pub(crate) struct Alternative<'a> {
    pub(crate) state: &'a Arc<NodeState>,
    pub(crate) terms: Terms,
    pub(crate) identity: u32,
    pub(crate) tried: bool,
}

/// Chooses among `count` alternatives and takes the trial of the chosen one if it is on one.
pub(crate) fn attempt<'a>(
    selection: &Selection,
    count: usize,
    alternative: impl Fn(usize) -> Alternative<'a>,
    draw: &Draw,
    clock: &Clock,
) -> Option<Attempt> {
    let mut small = [Candidate::NOBODY; SMALL];
    let mut large = Vec::new();
    let candidates = match small.get_mut(..count) {
        Some(small) => small,
        None => {
            large.resize(count, Candidate::NOBODY);
            large.as_mut_slice()
        }
    };
    loop {
        let now_ms = clock.now_ms();
        for (i, candidate) in candidates.iter_mut().enumerate() {
            let Alternative { state, terms, identity, tried } = alternative(i);
            *candidate = Candidate {
                health: state.health(now_ms, terms.rule),
                backup: terms.backup,
                weight: terms.weight,
                latency: state.measured.latency(),
                identity,
                tried,
            };
        }
        let Picked { index, tier } = pick(selection, candidates, draw)?;
        let Alternative { state, terms: Terms { rule, .. }, .. } = alternative(index);
        let (refuted, health) = (state.refuted(), candidates[index].health);
        // Something was found out during the choice, and may not be taken for older than it.
        if state.health(now_ms, rule) != health {
            continue;
        }
        let trial = health == Health::Trial;
        // Another connection may have been quicker; then the member counts as marked, and the choice is made anew.
        if !trial || state.begin_trial(now_ms, rule) {
            let (state, clock) = (state.clone(), clock.clone());
            return Some(Attempt { index, tier, state, rule, trial, refuted, clock, by: None });
        }
    }
}

fn millis(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn fail_rule(
    general: FailRule,
    max_fails: Option<u32>,
    fail_timeout: Option<Duration>,
    path: &str,
) -> Result<FailRule, ConfigError> {
    let max_fails = max_fails.filter(|n| *n > 0).unwrap_or(general.max_fails);
    if max_fails > MOST_FAILS {
        return Err(ConfigError::new(format!("{path}.maxFails"), format!("must not exceed {MOST_FAILS}")));
    }
    let fail_timeout_ms = match fail_timeout.filter(|timeout| !timeout.is_zero()) {
        Some(timeout) => millis(timeout),
        None => general.fail_timeout_ms,
    };
    Ok(FailRule { max_fails, fail_timeout_ms })
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
