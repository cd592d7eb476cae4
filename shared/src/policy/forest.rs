//! Groups of members and of groups: what happens to them, and which member they use.

use super::build::{self, BuildError, GroupSpec, Leaf, Member};
use super::choose::Standing;
use super::event::{ChooseError, Context, Effect, Event, Why};
use super::fallback::{Phase, Rules};
use super::health::{Health, Outcome};
use super::network::Network;
use super::priority::Priority;
use super::schedule::Schedule;
use super::spec::{Interrupt, Latency, Measure, Policy};
use crate::best_exit::MonoMs;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) spec: GroupSpec,
    pub(super) members: Vec<Member>,
    pub(super) chosen: [Option<usize>; 4],
    /// A person's choice.
    pub(super) manual: Option<usize>,
    pub(super) phases: [Phase; 4],
    pub(super) schedule: Option<Schedule>,
    /// By leaf and network; of this group's target.
    pub(super) health: BTreeMap<usize, [Health; 4]>,
    /// Priorities of the leaves whose bands were left or entered, by leaf and network.
    #[serde(default)]
    pub(super) priorities: BTreeMap<usize, [Option<u32>; 4]>,
}

/// All groups with everything they know. A plain value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forest {
    pub(super) leaves: Vec<Leaf>,
    pub(super) groups: Vec<Group>,
    inside_first: Vec<usize>,
}

impl Forest {
    /// Groups over leaves. `stored`: the choices of persons by group; one that is no member (any more) is ignored.
    pub fn new(
        leaves: Vec<Leaf>,
        specs: Vec<GroupSpec>,
        stored: &BTreeMap<String, String>,
    ) -> Result<Self, BuildError> {
        let (members, inside_first) = build::resolve(&leaves, &specs)?;
        let group = |(spec, members): (GroupSpec, Vec<Member>)| {
            let of = |name: &String| spec.members.iter().position(|member| member == name);
            let schedule = match &spec.policy {
                Policy::UrlTest { measure, idle_timeout_ms, .. } => {
                    Some(Schedule::new(measure.interval_ms, Some(*idle_timeout_ms)))
                }
                Policy::Min { measure, .. } | Policy::FixedFallback { measure, .. } => {
                    Some(Schedule::new(measure.interval_ms, None))
                }
                _ => None,
            };
            Group {
                manual: stored.get(&spec.name).and_then(of),
                members,
                chosen: [None; 4],
                phases: [Phase::Primary; 4],
                schedule,
                health: BTreeMap::new(),
                priorities: BTreeMap::new(),
                spec,
            }
        };
        let groups = specs.into_iter().zip(members).map(group).collect();
        let mut forest = Self { leaves, groups, inside_first };
        // A group has a choice before anything is known: what is written, or the first member.
        forest.settle(0, None, &mut Vec::new());
        Ok(forest)
    }

    /// The leaf for a new connection. `None` only if the group does not exist or its choice does not carry the network;
    /// that is an error for the caller, never a reason to dial directly.
    pub fn pick(&self, group: usize, context: Context) -> Option<usize> {
        let mut at = group;
        loop {
            let group = self.groups.get(at)?;
            match group.members[self.member(group, context)?] {
                Member::Group(inner) => at = inner,
                Member::Leaf(leaf) => return self.carries(leaf, context.network).then_some(leaf),
            }
        }
    }

    /// The member that a group uses, by its place in the group.
    pub fn chosen(&self, group: usize, network: Network) -> Option<usize> {
        self.groups.get(group)?.chosen[network.index()]
    }

    /// The state of a `fixed_fallback`.
    pub fn phase(&self, group: usize, network: Network) -> Option<Phase> {
        Some(self.groups.get(group)?.phases[network.index()])
    }

    /// What a group knows of a leaf.
    pub fn health(&self, group: usize, leaf: usize, network: Network) -> Option<&Health> {
        Some(&self.groups.get(group)?.health.get(&leaf)?[network.index()])
    }

    /// When [`Event::Tick`] is due.
    pub fn due(&self) -> Option<MonoMs> {
        [self.round_due(), self.phase_due()].into_iter().flatten().min()
    }

    /// When the next regular round of tests is due; it may come a little late.
    pub fn round_due(&self) -> Option<MonoMs> {
        self.groups.iter().filter_map(|group| group.schedule.as_ref().and_then(Schedule::due)).min()
    }

    /// When a `fixed_fallback` has something to do; that must not be late.
    pub fn phase_due(&self) -> Option<MonoMs> {
        let of = |group: &Group| {
            let phases = group.phases.iter().filter_map(Phase::due);
            let returns = Network::ALL.into_iter().filter_map(|network| self.returns_at(group, network));
            phases.chain(returns).min()
        };
        self.groups.iter().filter_map(of).min()
    }

    /// A person chooses a member of a selector. Stored also when it is the one in use: an explicit choice outlives a
    /// change of the default.
    pub fn choose(&mut self, group: &str, member: &str, now: MonoMs) -> Result<Vec<Effect>, ChooseError> {
        let at = self.selector(group)?;
        let found = self.groups[at].spec.members.iter().position(|name| name == member);
        let Some(found) = found else {
            return Err(ChooseError::NotMember { group: group.to_owned(), member: member.to_owned() });
        };
        self.groups[at].manual = Some(found);
        let mut effects = vec![Effect::Remember { group: at, member: Some(found) }];
        self.settle(now, Some(Why::Chosen), &mut effects);
        Ok(effects)
    }

    /// Takes a person's choice back.
    pub fn clear(&mut self, group: &str, now: MonoMs) -> Result<Vec<Effect>, ChooseError> {
        let at = self.selector(group)?;
        self.groups[at].manual = None;
        let mut effects = vec![Effect::Remember { group: at, member: None }];
        self.settle(now, Some(Why::Chosen), &mut effects);
        Ok(effects)
    }

    /// Takes an event into account.
    pub fn observe(&mut self, event: &Event, now: MonoMs) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Started => self.each_schedule(|schedule, targets| schedule.start(targets, now)),
            Event::Tick => {
                self.each_schedule(|schedule, targets| schedule.tick(targets, now));
                self.tick_phases(now, &mut effects);
            }
            Event::Used { group } => {
                self.schedule_of(*group, |schedule, targets| schedule.used(targets, now));
            }
            Event::TestNow { group } => {
                self.schedule_of(*group, |schedule, targets| schedule.round(targets, now, true));
            }
            Event::TestMember { group, leaf } => {
                self.schedule_of(*group, |schedule, _| schedule.urgent(*leaf, now));
            }
            Event::Tested { group, leaf, outcomes } => self.tested(*group, *leaf, outcomes, now),
            Event::DialFailed { leaf, network } => self.dial_failed(*leaf, *network, now),
        }
        self.watch_fixed(now, &mut effects);
        self.settle(now, None, &mut effects);
        self.ask(&mut effects);
        effects
    }

    fn selector(&self, name: &str) -> Result<usize, ChooseError> {
        let found = self.groups.iter().position(|group| group.spec.name == name);
        let at = found.ok_or_else(|| ChooseError::NoGroup(name.to_owned()))?;
        match self.groups[at].spec.policy {
            Policy::Selector { .. } => Ok(at),
            _ => Err(ChooseError::NotSelector(name.to_owned())),
        }
    }

    fn tested(&mut self, group: usize, leaf: usize, outcomes: &[Option<Outcome>; 4], now: MonoMs) {
        let Some(url) = self.groups.get(group).and_then(Group::measure).map(|measure| measure.url.clone())
        else {
            return;
        };
        if leaf >= self.leaves.len() {
            return;
        }
        // One measurement serves every group that looks at the same target; other targets are other measurements.
        for other in &mut self.groups {
            let Some(measure) = other.measure().filter(|measure| measure.url == url).cloned() else {
                continue;
            };
            if let Some(schedule) = &mut other.schedule {
                schedule.ended(leaf);
            }
            let health = other.health.entry(leaf).or_default();
            for (health, outcome) in health.iter_mut().zip(outcomes) {
                if let Some(outcome) = outcome {
                    health.observe(*outcome, now, &measure);
                }
            }
            other.rank(leaf, &self.leaves[leaf]);
        }
    }

    /// A failed dial is evidence for every group that knows the leaf, and a reason to test it at once.
    fn dial_failed(&mut self, leaf: usize, network: Network, now: MonoMs) {
        for at in 0..self.groups.len() {
            let targets = self.targets(at);
            let group = &mut self.groups[at];
            let Some(measure) = group.measure().cloned() else { continue };
            if !targets.contains(&leaf) && !group.health.contains_key(&leaf) {
                continue;
            }
            group.health.entry(leaf).or_default()[network.index()].observe(Outcome::Failed, now, &measure);
            let nobody = (0..group.members.len()).all(|member| {
                matches!(
                    self.standing(at, member, network, Latency::Last),
                    Standing::Dead | Standing::Unsupported
                )
            });
            let Some(schedule) = &mut self.groups[at].schedule else { continue };
            schedule.urgent(leaf, now);
            if nobody {
                for target in targets {
                    schedule.urgent(target, now);
                }
            }
        }
    }

    /// The state machines of `fixed_fallback` see whether their member lives.
    fn watch_fixed(&mut self, now: MonoMs, effects: &mut Vec<Effect>) {
        for at in 0..self.groups.len() {
            let Policy::FixedFallback { index, return_delay_ms, .. } = self.groups[at].spec.policy else {
                continue;
            };
            let Some(rules) = self.groups[at].rules() else { continue };
            for network in Network::ALL {
                let alive = match self.standing(at, index, network, Latency::Last) {
                    Standing::Dead => false,
                    // It lacks this network: others serve it, and there is nothing to wait for.
                    Standing::Unsupported => continue,
                    Standing::Unknown => true,
                    Standing::Alive(_) => {
                        let since = self.alive_since(at, index, network).unwrap_or(now);
                        self.groups[at].phases[network.index()] == Phase::Primary
                            || now.saturating_sub(since) >= return_delay_ms
                    }
                };
                if self.groups[at].phases[network.index()].observe(alive, now, rules) {
                    self.probe(at, index, network, effects);
                }
            }
        }
    }

    fn tick_phases(&mut self, now: MonoMs, effects: &mut Vec<Effect>) {
        for at in 0..self.groups.len() {
            let (Policy::FixedFallback { index, .. }, Some(rules)) =
                (&self.groups[at].spec.policy, self.groups[at].rules())
            else {
                continue;
            };
            let index = *index;
            for network in Network::ALL {
                if self.groups[at].phases[network.index()].tick(now, rules) {
                    self.probe(at, index, network, effects);
                }
            }
        }
    }

    /// One test serves all networks of a member that died together.
    fn probe(&self, group: usize, member: usize, network: Network, effects: &mut Vec<Effect>) {
        if let Some(leaf) = self.leaf(group, member, network) {
            let test = Effect::Test { group, leaf };
            if !effects.contains(&test) {
                effects.push(test);
            }
        }
    }

    /// Decides every group anew, those inside before those around.
    pub(super) fn settle(&mut self, now: MonoMs, why: Option<Why>, effects: &mut Vec<Effect>) {
        for place in 0..self.inside_first.len() {
            let at = self.inside_first[place];
            for network in Network::ALL {
                let new = self.decide(at, network);
                let old = self.groups[at].chosen[network.index()];
                if new == old {
                    continue;
                }
                self.groups[at].chosen[network.index()] = new;
                let (Some(from), Some(to)) = (old, new) else { continue };
                let died = self.standing(at, from, network, Latency::Last) == Standing::Dead;
                let fixed =
                    matches!(self.groups[at].spec.policy, Policy::FixedFallback { index, .. } if index == to);
                let why = match why {
                    Some(why) => why,
                    None if died => Why::Died,
                    None if fixed => Why::Returned,
                    None => Why::Better,
                };
                effects.push(Effect::Switched { group: at, network, from, to, why });
                let (interrupt, drain_ms) = self.groups[at].interrupts();
                if interrupt == Interrupt::OnSwitch || (interrupt == Interrupt::OnDeath && died) {
                    effects.push(Effect::Interrupt { group: at, network, member: from, drain_ms });
                }
            }
            self.ask_for_unknown(at, now);
        }
    }

    /// A group inside uses another leaf now, of which the group around knows nothing: it wants to.
    fn ask_for_unknown(&mut self, at: usize, now: MonoMs) {
        let nested = self.groups[at].members.iter().any(|member| matches!(member, Member::Group(_)));
        if !nested || self.groups[at].health.is_empty() {
            return;
        }
        let unknown: Vec<usize> =
            self.targets(at).into_iter().filter(|leaf| !self.groups[at].health.contains_key(leaf)).collect();
        if let Some(schedule) = &mut self.groups[at].schedule {
            unknown.into_iter().for_each(|leaf| schedule.urgent(leaf, now));
        }
    }

    /// Starts the tests whose turn it is. What another group tests in this moment is not tested twice.
    fn ask(&mut self, effects: &mut Vec<Effect>) {
        for at in 0..self.groups.len() {
            while let Some(leaf) = self.groups[at].schedule.as_mut().and_then(Schedule::next_test) {
                let url = self.groups[at].measure().map(|measure| measure.url.as_str());
                let elsewhere = self.groups.iter().enumerate().any(|(other, group)| {
                    other != at
                        && group.measure().map(|measure| measure.url.as_str()) == url
                        && group.schedule.as_ref().is_some_and(|schedule| schedule.is_under_way(leaf))
                });
                let test = Effect::Test { group: at, leaf };
                if !elsewhere && !effects.contains(&test) {
                    effects.push(test);
                }
            }
        }
    }

    /// The leaves that a group's tests are about now.
    fn targets(&self, group: usize) -> BTreeSet<usize> {
        let members = 0..self.groups[group].members.len();
        members.flat_map(|m| Network::ALL.into_iter().filter_map(move |n| self.leaf(group, m, n))).collect()
    }

    fn each_schedule(&mut self, mut act: impl FnMut(&mut Schedule, &BTreeSet<usize>)) {
        for group in 0..self.groups.len() {
            self.schedule_of(group, &mut act);
        }
    }

    fn schedule_of(&mut self, group: usize, act: impl FnOnce(&mut Schedule, &BTreeSet<usize>)) {
        if self.groups.get(group).is_none_or(|group| group.schedule.is_none()) {
            return;
        }
        let targets = self.targets(group);
        if let Some(schedule) = &mut self.groups[group].schedule {
            act(schedule, &targets);
        }
    }
}

impl Group {
    /// The priorities of a leaf after its latencies have changed.
    pub(super) fn rank(&mut self, leaf: usize, of: &Leaf) {
        if of.priority == Priority::default() {
            return;
        }
        let latency = self.spec.policy.latency();
        let Some(health) = self.health.get(&leaf) else { return };
        let before = self.priorities.entry(leaf).or_default();
        for (before, health) in before.iter_mut().zip(health) {
            if let Some(ms) = health.latency(latency) {
                *before = Some(of.priority.after(*before, ms + of.add_latency_ms));
            }
        }
    }

    fn measure(&self) -> Option<&Measure> {
        match &self.spec.policy {
            Policy::UrlTest { measure, .. }
            | Policy::Min { measure, .. }
            | Policy::FixedFallback { measure, .. } => Some(measure),
            _ => None,
        }
    }

    fn rules(&self) -> Option<Rules> {
        match &self.spec.policy {
            Policy::FixedFallback { timeout_ms, retries, measure, .. } => {
                Some(Rules { timeout_ms: *timeout_ms, retries: *retries, interval_ms: measure.interval_ms })
            }
            _ => None,
        }
    }

    fn interrupts(&self) -> (Interrupt, u64) {
        match self.spec.policy {
            Policy::Selector { interrupt, drain_ms, .. }
            | Policy::UrlTest { interrupt, drain_ms, .. }
            | Policy::Min { interrupt, drain_ms, .. }
            | Policy::FixedFallback { interrupt, drain_ms, .. } => (interrupt, drain_ms),
            _ => (Interrupt::Never, 0),
        }
    }
}
