//! Which groups are valid, and in which order they depend on each other.

use super::priority::Priority;
use super::spec::Policy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Something traffic can go through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaf {
    /// Unique among leaves and groups.
    pub name: String,
    /// Carries TCP.
    pub tcp: bool,
    /// Carries UDP.
    pub udp: bool,
    /// Added to every latency when members are compared; may be negative.
    pub add_latency_ms: f64,
    /// Where latencies decide, the living members with the highest one come before all others.
    #[serde(default)]
    pub priority: Priority,
}

impl Leaf {
    /// Carries both, no offset, no priority.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), tcp: true, udp: true, add_latency_ms: 0.0, priority: Priority::default() }
    }
}

/// A group as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSpec {
    /// Unique among leaves and groups.
    pub name: String,
    /// Names of leaves and groups, in order.
    pub members: Vec<String>,
    /// How it chooses.
    pub policy: Policy,
}

/// Why a set of groups is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Two things have one name.
    #[error("{name}: the name is used twice")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// A group without members.
    #[error("{group}: has no members")]
    Empty {
        /// The group.
        group: String,
    },
    /// A member that is neither leaf nor group.
    #[error("{group}: member {index} ({member}) does not exist")]
    UnknownMember {
        /// The group.
        group: String,
        /// Its place in the list, from 0.
        index: usize,
        /// What is written there.
        member: String,
    },
    /// A member that stands in the list twice.
    #[error("{group}: member {index} ({member}) is listed twice")]
    MemberTwice {
        /// The group.
        group: String,
        /// The place of the second one.
        index: usize,
        /// The member.
        member: String,
    },
    /// Groups that contain each other.
    #[error("groups contain each other: {}", path.join(" -> "))]
    Cycle {
        /// From a group back to itself.
        path: Vec<String>,
    },
    /// A default that is no member; also refused while a stored choice would hide it.
    #[error("{group}: the default {default} is not a member")]
    DefaultNotMember {
        /// The group.
        group: String,
        /// What is written.
        default: String,
    },
    /// `fixed(i)` beyond the members.
    #[error("{group}: there is no member {index}; the last is {}", members - 1)]
    IndexOutOfRange {
        /// The group.
        group: String,
        /// What is written.
        index: usize,
        /// How many there are.
        members: usize,
    },
    /// A policy that is executed elsewhere.
    #[error("{group}: {policy} does not run here")]
    NotHere {
        /// The group.
        group: String,
        /// Its policy.
        policy: String,
    },
}

/// What a group's list points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Member {
    /// A leaf, by number.
    Leaf(usize),
    /// A group, by number.
    Group(usize),
}

/// Names resolved and checked: the members of each group, and all groups with those inside before those around.
pub(super) fn resolve(
    leaves: &[Leaf],
    groups: &[GroupSpec],
) -> Result<(Vec<Vec<Member>>, Vec<usize>), BuildError> {
    let mut names: BTreeMap<&str, Member> = BTreeMap::new();
    let leaf_names = leaves.iter().enumerate().map(|(i, leaf)| (leaf.name.as_str(), Member::Leaf(i)));
    let group_names = groups.iter().enumerate().map(|(i, group)| (group.name.as_str(), Member::Group(i)));
    for (name, member) in leaf_names.chain(group_names) {
        if names.insert(name, member).is_some() {
            return Err(BuildError::NameTwice { name: name.to_owned() });
        }
    }
    let mut members = Vec::with_capacity(groups.len());
    for group in groups {
        members.push(members_of(group, &names)?);
    }
    Ok((members.clone(), inside_first(groups, &members)?))
}

fn members_of(group: &GroupSpec, names: &BTreeMap<&str, Member>) -> Result<Vec<Member>, BuildError> {
    let name = || group.name.clone();
    if group.members.is_empty() {
        return Err(BuildError::Empty { group: name() });
    }
    let mut members = Vec::with_capacity(group.members.len());
    for (index, member) in group.members.iter().enumerate() {
        let Some(found) = names.get(member.as_str()) else {
            return Err(BuildError::UnknownMember { group: name(), index, member: member.clone() });
        };
        if members.contains(found) {
            return Err(BuildError::MemberTwice { group: name(), index, member: member.clone() });
        }
        members.push(*found);
    }
    match &group.policy {
        Policy::Selector { default: Some(default), .. } if !group.members.contains(default) => {
            Err(BuildError::DefaultNotMember { group: name(), default: default.clone() })
        }
        Policy::Fixed(index) | Policy::FixedFallback { index, .. } if *index >= members.len() => {
            Err(BuildError::IndexOutOfRange { group: name(), index: *index, members: members.len() })
        }
        Policy::Fifo
        | Policy::Round
        | Policy::Rand
        | Policy::Hash { .. }
        | Policy::Parallel
        | Policy::LowestLatency { .. }
        | Policy::Best => Err(BuildError::NotHere { group: name(), policy: group.policy.to_string() }),
        Policy::Selector { .. }
        | Policy::UrlTest { .. }
        | Policy::Fixed(_)
        | Policy::Min { .. }
        | Policy::FixedFallback { .. } => Ok(members),
    }
}

/// Depth first without recursion: the depth comes from a file.
fn inside_first(groups: &[GroupSpec], members: &[Vec<Member>]) -> Result<Vec<usize>, BuildError> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; groups.len()];
    let mut order = Vec::with_capacity(groups.len());
    for root in 0..groups.len() {
        if marks[root] != Mark::New {
            continue;
        }
        // Each open group with the member it looks at next.
        let mut path = vec![(root, 0)];
        marks[root] = Mark::Open;
        while let Some((group, at)) = path.last_mut() {
            let group = *group;
            let Some(member) = members[group].get(*at) else {
                marks[group] = Mark::Done;
                order.push(group);
                path.pop();
                continue;
            };
            *at += 1;
            let Member::Group(inner) = *member else { continue };
            match marks[inner] {
                Mark::Done => {}
                Mark::New => {
                    marks[inner] = Mark::Open;
                    path.push((inner, 0));
                }
                Mark::Open => {
                    let from = path.iter().position(|(open, _)| *open == inner).unwrap_or(0);
                    let open = path[from..].iter().map(|(open, _)| *open).chain([inner]);
                    return Err(BuildError::Cycle { path: open.map(|g| groups[g].name.clone()).collect() });
                }
            }
        }
    }
    Ok(order)
}
