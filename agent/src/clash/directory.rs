//! Names. Dashboards know one flat list of them, in which each stands for one thing; here a node's name means something
//! only within its hop.
//!
//! Groups have the names by which the agent's own API knows them. A node, a chain or a target has its own name if nothing
//! else has it, and otherwise one that begins with that of its group. A chain that is nothing but one hop with a group
//! *is* that group.

use crate::chain::Chain;
use crate::chain::group::report::GroupReport;
use crate::chain::group::steering::Steering;
use crate::chain::probe::tasks::Place;
use crate::runtime::Runtime;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The name that stands for the choice among everything there is.
pub(super) const GLOBAL: &str = "GLOBAL";

/// What is tested, whatever it is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// A node or a target.
    Member { group: String, member: String },
    /// A chain.
    Chain(String),
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The group at this place.
    Group(usize),
    /// What is no group, at this place.
    Leaf(usize),
}

/// A group at this moment.
pub(super) struct Listed {
    pub(super) steering: Arc<Steering>,
    pub(super) report: GroupReport,
    /// What its members are, in its order.
    pub(super) members: Vec<Meaning>,
}

/// What is no group.
pub(super) struct Leaf {
    pub(super) name: String,
    pub(super) key: Key,
    /// What it is, in a word.
    pub(super) kind: String,
    /// The groups that a chain consists of; empty for others.
    pub(super) stages: Vec<String>,
    /// One of the groups that it is a member of, and which member.
    pub(super) place: (usize, usize),
}

/// All groups and their members at one moment, in the order in which they are configured.
pub(super) struct Directory {
    pub(super) groups: Vec<Listed>,
    pub(super) leaves: Vec<Leaf>,
    names: BTreeMap<String, Meaning>,
}

impl Directory {
    pub(super) fn of(runtime: &Runtime) -> Self {
        let (now_ms, steerings) = (runtime.now_ms(), runtime.groups_in_order());
        let mut names: BTreeMap<String, Meaning> = BTreeMap::new();
        for (at, steering) in steerings.iter().enumerate() {
            names.insert(steering.name().to_owned(), Meaning::Group(at));
        }
        let mut leaves: Vec<Leaf> = Vec::new();
        let mut known: BTreeMap<Key, usize> = BTreeMap::new();
        let mut groups = Vec::with_capacity(steerings.len());
        for (at, steering) in steerings.iter().enumerate() {
            let mut members = Vec::with_capacity(steering.members().len());
            for (member, name) in steering.members().iter().enumerate() {
                let place = steering.place(member);
                let chain = match &place {
                    Some(Place::Chain(name)) => runtime.chain(name),
                    _ => None,
                };
                let stages = chain.as_ref().map_or_else(Vec::new, |chain| stages(chain, &names));
                if let ([only], Some(1)) = (stages.as_slice(), chain.map(|chain| chain.hops.len())) {
                    members.push(names[only]);
                    continue;
                }
                let key = match &place {
                    Some(Place::Chain(name)) => Key::Chain(name.clone()),
                    _ => Key::Member { group: steering.name().to_owned(), member: name.clone() },
                };
                let leaf = *known.entry(key.clone()).or_insert_with(|| {
                    let kind = kind(runtime, steering.name(), name, place.as_ref(), !stages.is_empty());
                    leaves.push(Leaf { name: name.clone(), key, kind, stages, place: (at, member) });
                    leaves.len() - 1
                });
                members.push(Meaning::Leaf(leaf));
            }
            let report = steering.report(now_ms);
            groups.push(Listed { steering: steering.clone(), report, members });
        }
        let mut directory = Self { groups, leaves, names };
        directory.name_leaves();
        directory
    }

    /// Gives each leaf a name of its own.
    fn name_leaves(&mut self) {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for leaf in &self.leaves {
            *seen.entry(leaf.name.as_str()).or_default() += 1;
        }
        let shared: BTreeSet<String> =
            seen.into_iter().filter(|(_, times)| *times > 1).map(|(name, _)| name.to_owned()).collect();
        for (at, leaf) in self.leaves.iter_mut().enumerate() {
            let is_taken = |name: &str| name == GLOBAL || self.names.contains_key(name);
            if shared.contains(&leaf.name) || is_taken(&leaf.name) {
                leaf.name = match &leaf.key {
                    Key::Chain(chain) => format!("chain/{chain}"),
                    Key::Member { group, member } => format!("{group}/{member}"),
                };
                while is_taken(&leaf.name) {
                    leaf.name.push('\'');
                }
            }
            self.names.insert(leaf.name.clone(), Meaning::Leaf(at));
        }
    }

    /// What a name stands for.
    pub(super) fn get(&self, name: &str) -> Option<Meaning> {
        self.names.get(name).copied()
    }

    pub(super) fn name(&self, meaning: Meaning) -> &str {
        match meaning {
            Meaning::Group(at) => self.groups[at].steering.name(),
            Meaning::Leaf(at) => &self.leaves[at].name,
        }
    }

    /// Which member of a group is meant by a name: that of this list, or its own.
    pub(super) fn member(&self, group: usize, name: &str) -> Option<usize> {
        let listed = &self.groups[group];
        let called = |member: &Meaning| self.name(*member) == name;
        let own = || listed.steering.members().iter().position(|member| member == name);
        listed.members.iter().position(called).or_else(own)
    }

    /// The member that connections of a group use, over IPv4 unless they have none there.
    pub(super) fn now(&self, group: usize) -> Option<usize> {
        let listed = &self.groups[group];
        let used = ["tcp4", "tcp6", "udp4", "udp6"].into_iter().find_map(|net| listed.report.now.get(net))?;
        listed.steering.members().iter().position(|member| member == used)
    }

    /// The member of a group that does what is to be tested: of a group in a group, that one's. Which group, and which of
    /// its members.
    pub(super) fn tested(&self, meaning: Meaning) -> Option<(usize, usize)> {
        match meaning {
            Meaning::Leaf(at) => Some(self.leaves[at].place),
            // Groups that contain each other are refused when they are configured.
            Meaning::Group(at) => {
                let now = self.now(at)?;
                match self.groups[at].members[now] {
                    Meaning::Leaf(_) => Some((at, now)),
                    inner @ Meaning::Group(_) => self.tested(inner),
                }
            }
        }
    }

    /// Under what the results of a member that is no group are kept.
    pub(super) fn key(&self, (group, member): (usize, usize)) -> Option<&Key> {
        match self.groups[group].members[member] {
            Meaning::Leaf(at) => Some(&self.leaves[at].key),
            Meaning::Group(_) => None,
        }
    }

    /// The name of a member by the names of its group and its own; nothing if there is no such group.
    pub(super) fn called(&self, group: &str, member: &str) -> Option<&str> {
        let Some(Meaning::Group(at)) = self.get(group) else { return None };
        let listed = &self.groups[at];
        let member = listed.steering.members().iter().position(|name| name == member)?;
        Some(self.name(listed.members[member]))
    }
}

/// The groups of a chain's hops.
fn stages(chain: &Chain, names: &BTreeMap<String, Meaning>) -> Vec<String> {
    (0..chain.hops.len())
        .map(|hop| chain.group_name(hop))
        .filter(|name| matches!(names.get(name), Some(Meaning::Group(_))))
        .collect()
}

fn kind(runtime: &Runtime, group: &str, name: &str, place: Option<&Place>, has_stages: bool) -> String {
    match place {
        Some(Place::Target { .. }) => "Target".to_owned(),
        // Clash's word for a way through several.
        Some(Place::Chain(_)) if has_stages => "Relay".to_owned(),
        Some(Place::Chain(_)) => "Chain".to_owned(),
        Some(Place::Node(chain)) => {
            let node = runtime.chain(chain).and_then(|chain| {
                let hop = (0..chain.hops.len()).find(|hop| chain.group_name(*hop) == group)?;
                let node = chain.hops[hop].nodes.iter().find(|node| node.config.name == name)?;
                Some(format!("{}+{}", node.config.connector.kind, node.config.dialer.kind))
            });
            node.unwrap_or_else(|| "Node".to_owned())
        }
        None => "Node".to_owned(),
    }
}
