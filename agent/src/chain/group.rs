//! A group of alternatives, one of which is used per attempt: the nodes of a hop, or the targets of a forwarder.

use super::failure::FailureKind;
use super::filter::Tier;
use super::hash::ClientKey;
use super::marks::{FailRule, Health};
use super::select::{Candidate, Draw, Picked, Policy, Selection, pick};
use super::state::{NodeState, OpenConnection};
use crate::clock::{Clock, Random};
use crate::metadata::{ConfigError, MetadataReader};
use shared::gost::{Metadata, SelectorConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

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
    /// Where it is; by this it is known to the consistent hash.
    pub addr: &'a str,
    /// `weight`, `backup`, `maxFails`, `failTimeout`.
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
    /// `path` is the group's, for errors.
    pub fn build<'a>(
        path: &str,
        selector: Option<&SelectorConfig>,
        members: impl Iterator<Item = MemberConfig<'a>>,
        previous: Option<&Group>,
    ) -> Result<Self, ConfigError> {
        let (selection, general) = Selection::read(&format!("{path}.selector"), selector)?;
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        let members = members
            .map(|MemberConfig { path, addr, metadata, state }| {
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
        Ok(Self { selection, members, turn: AtomicU64::new(turn), current: AtomicUsize::new(current) })
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
        let member = &self.members[index];
        member.state.health(now_ms, member.terms.rule) == Health::Marked
    }

    /// Draws for one connection; all its picks use the same draw.
    pub fn draw(&self, client: impl Into<ClientKey>, random: &Random) -> Draw {
        let current = self.current.load(Ordering::Relaxed);
        Draw {
            current: (current != NOBODY).then_some(current),
            ..draw(self.selection.policy, &self.turn, client.into(), random)
        }
    }

    /// Chooses the next member to try, and takes its trial if it is on one. `None` when all are tried.
    pub fn pick(&self, tried: impl Fn(usize) -> bool, draw: &Draw, clock: &Clock) -> Option<Attempt> {
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
            return Some(Attempt { index, tier, state, rule, trial, refuted, clock });
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

/// One use of a member that has not ended yet. Dropped without verdict it changes nothing but gives a trial back.
#[derive(Debug)]
pub struct Attempt {
    index: usize,
    tier: Tier,
    state: Arc<NodeState>,
    rule: FailRule,
    trial: bool,
    /// Probes of the member that had failed when this began.
    refuted: u64,
    clock: Clock,
}

impl Attempt {
    /// Which member of its group.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Where it stands among the others.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Counts a failure without holding it against the member yet.
    pub fn count_failure(&self, kind: FailureKind) {
        self.state.count_failure(kind);
    }

    /// Holds the failure against the member; whether it is left out from now on and was not before.
    pub fn mark(mut self) -> bool {
        self.trial = false;
        self.state.mark(self.clock.now_ms(), self.rule)
    }

    /// The connection is through; whether the member had been left out and is no more. What a probe has found meanwhile
    /// stays: otherwise, of a member that is much used, every finding would be undone at once.
    pub fn succeed(mut self) -> bool {
        // The trial, if it was one, is over with the mark, or was ended by the probe.
        self.trial = false;
        self.state.confirm(self.refuted)
    }

    /// Counts a connection through the member, open until the result is dropped.
    pub fn open(&self) -> OpenConnection {
        OpenConnection::begin(self.state.clone())
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.trial {
            self.state.abandon_trial();
        }
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
