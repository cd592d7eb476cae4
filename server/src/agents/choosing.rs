//! What persons have chosen, brought to the agents that carry it out.
//!
//! Level-triggered like everything that is sent: what is wanted is compared with what the agent is known to have. An
//! agent keeps a choice, so usually there is nothing to do.

use super::Agents;
use super::board::Key;
use super::driver::COMMAND_DEADLINE;
use super::session::{CallError, Session};
use super::slot::Slot;
use crate::plan::{GroupIntent, Intent, NodePlan, names, next_group};
use shared::api::{ChoiceRecord, GroupInUse, GroupMember, OwnerGroup};
use shared::ids::{NodeId, TunnelId};
use shared::link::{ChooseMember, Command, GroupState, Report, group_of_hop};
use shared::policy::Policy;
use shared::policy::health::State;
use std::collections::{BTreeMap, BTreeSet};

/// A refused choice is tried again after this long: what stood in its way may be gone.
const RETRY_MS: u64 = 10_000;

/// The choices of one node's groups, by tunnel: such a node chooses in one group of a tunnel.
#[derive(Debug, Default)]
pub(super) struct Choosing {
    /// Members that the agent is known to have; `None`: no choice.
    known: BTreeMap<TunnelId, Option<String>>,
    in_flight: BTreeSet<TunnelId>,
    refused: BTreeMap<TunnelId, Refused>,
    /// Choice and members in use of each group, as last reported.
    in_use: BTreeMap<String, (Option<String>, Vec<String>)>,
}

#[derive(Debug)]
struct Refused {
    member: Option<String>,
    reason: String,
    retry_at_ms: u64,
}

/// A choice on its way.
pub(super) struct Sent {
    pub(super) tunnel: TunnelId,
    pub(super) member: Option<String>,
}

impl Choosing {
    /// A new connection: nothing is known.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The group was replaced by an update of its chain.
    pub(super) fn replaced(&mut self, chain: &str) {
        if let Some(tunnel) = names::tunnel_of_chain(chain) {
            self.known.remove(&tunnel);
            self.refused.remove(&tunnel);
        }
    }

    /// What the agent says itself. Whether it is something new about who is in use.
    pub(super) fn heard(&mut self, report: &Report) -> bool {
        let mut in_use = BTreeMap::new();
        for group in &report.groups {
            let now = group.now.values().map(|used| used.member.clone()).collect();
            in_use.insert(group.name.clone(), (group.choice.clone(), now));
            let tunnel = group.name.strip_prefix("chain/").and_then(|rest| rest.split('/').next());
            if let Some(tunnel) = tunnel.and_then(names::tunnel_of_chain)
                && !self.in_flight.contains(&tunnel)
            {
                self.known.insert(tunnel, group.choice.clone());
            }
        }
        let news = in_use != self.in_use;
        self.in_use = in_use;
        news
    }

    /// What is to be sent now, and at which time there is more.
    fn due(&mut self, wanted: &[(TunnelId, Option<String>)], now_ms: u64) -> (Vec<Sent>, Option<u64>) {
        let (mut due, mut next) = (Vec::new(), None);
        for (tunnel, member) in wanted {
            // A choice that was taken back is sent in any case: the answer says that it may be forgotten.
            let has = member.is_some() && self.known.get(tunnel) == Some(member);
            if has || self.in_flight.contains(tunnel) {
                continue;
            }
            let refused = self.refused.get(tunnel).filter(|refused| refused.member == *member);
            match refused.map(|refused| refused.retry_at_ms).filter(|at| *at > now_ms) {
                Some(at) => next = Some(next.map_or(at, |next: u64| next.min(at))),
                None => {
                    self.in_flight.insert(*tunnel);
                    due.push(Sent { tunnel: *tunnel, member: member.clone() });
                }
            }
        }
        (due, next)
    }

    /// The agent has answered, or not.
    fn ended(&mut self, Sent { tunnel, member }: Sent, result: Result<(), String>, now_ms: u64) {
        self.in_flight.remove(&tunnel);
        match result {
            Ok(()) => {
                self.refused.remove(&tunnel);
                self.known.insert(tunnel, member);
            }
            Err(reason) => {
                self.known.remove(&tunnel);
                self.refused.insert(tunnel, Refused { member, reason, retry_at_ms: now_ms + RETRY_MS });
            }
        }
    }
}

/// The group in which a node chooses a node for a tunnel, if its choice is made ahead of connections.
fn group_of(intent: &Intent, tunnel: TunnelId, owner: NodeId) -> Option<&GroupIntent> {
    let group = next_group(intent.tunnels.get(&tunnel)?, owner)?;
    group.strategy.policy().is_some_and(Policy::is_decided_ahead).then_some(group)
}

fn group_name(tunnel: TunnelId) -> String {
    group_of_hop(&names::chain(tunnel), &names::hop(tunnel))
}

impl Slot {
    /// The choices that the agent is to be told now, and at which time there is more to do. Only those whose group it
    /// runs.
    pub(super) fn choices_due(
        &self,
        intent: &Intent,
        plan: &NodePlan,
        now_ms: u64,
    ) -> (Vec<Sent>, Option<u64>) {
        let mut wanted = Vec::new();
        for ((tunnel, owner), choice) in &intent.choices {
            let Some(group) = group_of(intent, *tunnel, self.node).filter(|_| *owner == self.node) else {
                continue;
            };
            let Some(chain) = self.desired_chain(intent, plan, *tunnel) else { continue };
            let key = Key::Chain(names::chain(*tunnel));
            if self.board().known_digest(&key) != Some(chain.digest.as_str()) {
                continue;
            }
            let place = choice.node_id.map(|node| group.nodes.iter().position(|member| member.node == node));
            match place {
                None => wanted.push((*tunnel, None)),
                Some(Some(place)) => wanted.push((*tunnel, Some(names::member(place)))),
                // Its node has left the group; the edit has removed the choice, and the next plan will know.
                Some(None) => {}
            }
        }
        self.choosing().due(&wanted, now_ms)
    }

    /// Tells the agent of a choice. `Ok`: it has it.
    pub(super) async fn choose(session: &Session, sent: &Sent) -> Result<(), String> {
        let choice = ChooseMember { group: group_name(sent.tunnel), member: sent.member.clone() };
        let answer = session.call(&Command::ChooseMember(choice), COMMAND_DEADLINE).await;
        let state = answer.map_err(|error: CallError| error.to_string())?;
        if let Ok(state) = serde_json::from_value::<GroupState>(state) {
            session.told(state);
        }
        Ok(())
    }

    /// Notes how that ended.
    pub(super) fn chosen(&self, sent: Sent, result: Result<(), String>, now_ms: u64) {
        if let Err(reason) = &result {
            tracing::warn!(
                node.id = self.node.0,
                tunnel.id = sent.tunnel.0,
                reason,
                "a choice was not accepted"
            );
        }
        self.choosing().ended(sent, result, now_ms);
    }
}

impl Agents {
    /// The nodes that choose in groups of a tunnel ahead of connections, in order, with what their agents say.
    /// `choices`: what is stored.
    pub fn groups(&self, tunnel: TunnelId, choices: &BTreeMap<NodeId, ChoiceRecord>) -> Vec<OwnerGroup> {
        let Some(plans) = self.plans() else { return Vec::new() };
        let intent = &plans.intent;
        let Some(stored) = intent.tunnels.get(&tunnel) else { return Vec::new() };
        let hops = stored.hops.iter().flat_map(|hop| hop.nodes.iter().map(|member| member.node));
        let owners = stored.entry.iter().copied().chain(hops);
        let mut answer = Vec::new();
        for owner in owners {
            let (Some(group), Some(node)) = (group_of(intent, tunnel, owner), intent.nodes.get(&owner))
            else {
                continue;
            };
            let hop = stored.hops.iter().position(|hop| std::ptr::eq(hop, group));
            let slot = self.inner.existing(owner);
            let report = self.report(owner);
            let name = group_name(tunnel);
            let state =
                report.as_ref().and_then(|report| report.groups.iter().find(|group| group.name == name));
            let wanted = choices.get(&owner).cloned();
            let (applied, error) = standing(slot.as_deref(), tunnel, group, wanted.as_ref());
            answer.push(OwnerGroup {
                owner_node_id: owner,
                owner_name: node.name.clone(),
                online: slot.is_some_and(|slot| slot.is_online()),
                group: hop.map_or_else(|| "exit".to_owned(), |hop| format!("hops[{hop}]")),
                strategy: group.strategy.clone(),
                wanted,
                applied,
                error,
                choice: state.and_then(|state| member(group, state.choice.as_deref()?)),
                now: state.map(|state| in_use(group, state)).unwrap_or_default(),
                members: members(group, state),
            });
        }
        answer
    }
}

/// Whether the agent has what is wanted, and why not.
fn standing(
    slot: Option<&Slot>,
    tunnel: TunnelId,
    group: &GroupIntent,
    wanted: Option<&ChoiceRecord>,
) -> (bool, Option<String>) {
    let (Some(slot), Some(wanted)) = (slot, wanted) else { return (false, None) };
    let place = wanted.node_id.and_then(|node| group.nodes.iter().position(|member| member.node == node));
    let choosing = slot.choosing();
    let applied = place.is_some() && choosing.known.get(&tunnel) == Some(&place.map(names::member));
    let refused = choosing.refused.get(&tunnel).filter(|refused| refused.member == place.map(names::member));
    (applied, refused.map(|refused| refused.reason.clone()))
}

fn member(group: &GroupIntent, name: &str) -> Option<NodeId> {
    let place = (0..group.nodes.len()).find(|place| names::member(*place) == name)?;
    Some(group.nodes[place].node)
}

fn in_use(group: &GroupIntent, state: &GroupState) -> Vec<GroupInUse> {
    let of = |(network, used): (&String, &shared::link::MemberInUse)| {
        let change = used.change.as_ref();
        Some(GroupInUse {
            network: network.clone(),
            node_id: member(group, &used.member)?,
            why: used.why,
            changed_from: change.and_then(|change| member(group, &change.from)),
            changed_why: change.map(|change| change.why),
            changed_ago_ms: change.map(|change| change.ago_ms),
        })
    };
    state.now.iter().filter_map(of).collect()
}

fn members(group: &GroupIntent, state: Option<&GroupState>) -> Vec<GroupMember> {
    let of = |(place, node): (usize, NodeId)| {
        let name = names::member(place);
        let known = state.and_then(|state| state.members.iter().find(|member| member.name == name));
        GroupMember {
            node_id: node,
            state: known.map_or(State::NoData, |known| known.state),
            latency_ms: known.and_then(|known| known.latency_ms),
            average_ms: known.and_then(|known| known.average_ms),
            age_ms: known.and_then(|known| known.age_ms),
            failures: known.map_or(0, |known| known.failures),
        }
    };
    group.nodes.iter().map(|member| member.node).enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TUNNEL: TunnelId = TunnelId(1);

    fn sent(choosing: &mut Choosing, member: Option<&str>, now: u64) -> Option<Sent> {
        let wanted = [(TUNNEL, member.map(str::to_owned))];
        choosing.due(&wanted, now).0.pop()
    }

    #[test]
    fn what_is_wanted_is_sent_until_the_agent_has_it() {
        let mut choosing = Choosing::default();
        let first = sent(&mut choosing, Some("a"), 0).unwrap();
        assert!(sent(&mut choosing, Some("b"), 0).is_none(), "one at a time");
        choosing.ended(first, Ok(()), 0);
        assert!(sent(&mut choosing, Some("a"), 0).is_none());
        let second = sent(&mut choosing, Some("b"), 0).unwrap();
        choosing.ended(second, Err("no".into()), 0);
        assert!(sent(&mut choosing, Some("b"), RETRY_MS - 1).is_none());
        assert_eq!(choosing.due(&[(TUNNEL, Some("b".into()))], 5).1, Some(RETRY_MS));
        // Another wish does not wait for that.
        let third = sent(&mut choosing, Some("a"), 1).unwrap();
        choosing.ended(third, Ok(()), 1);
        choosing.replaced("chains_1");
        assert!(sent(&mut choosing, Some("a"), 1).is_some());
    }

    #[test]
    fn what_was_chosen_at_the_agent_is_changed_back_and_what_was_taken_back_is_told() {
        let mut choosing = Choosing::default();
        let report = |choice: Option<&str>| {
            let state = GroupState {
                name: "chain/chains_1/hop_1".into(),
                policy: "selector".into(),
                now: BTreeMap::new(),
                choice: choice.map(str::to_owned),
                members: Vec::new(),
            };
            Report { groups: vec![state], ..Report::default() }
        };
        choosing.heard(&report(Some("a")));
        assert!(sent(&mut choosing, Some("a"), 0).is_none());
        choosing.heard(&report(Some("b")));
        let again = sent(&mut choosing, Some("a"), 0).unwrap();
        // A report from before the answer says nothing.
        choosing.heard(&report(Some("b")));
        choosing.ended(again, Ok(()), 0);
        assert!(sent(&mut choosing, Some("a"), 0).is_none());
        choosing.heard(&report(None));
        assert!(sent(&mut choosing, None, 0).is_some());
    }
}
