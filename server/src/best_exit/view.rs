//! The decisions for people.

use super::legs::{OwnerKey, best_group};
use super::owner::{Owner, Seen, name_of};
use super::{BestExit, pins};
use crate::plan::{Intent, TunnelIntent, dial, names};
use shared::api::{
    self, BestExitOwner, CandidateDecision, DecisionState, ExitUse, OwnerDecision, PendingDecision,
    TunnelDecisions,
};
use shared::best_exit::{Candidate, Leg, MonoMs, Reason};
use shared::ids::{NodeId, TunnelId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One owner after its last evaluation.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) owner: Owner,
    /// Confirmations needed.
    pub(super) needed: u32,
    /// On the clock of the states.
    pub(super) cooldown_ends: Option<MonoMs>,
}

impl BestExit {
    /// Everything about a tunnel's decisions; `None` if it does not choose its exits by measuring, or is not planned
    /// (yet).
    pub async fn decisions(&self, tunnel: TunnelId) -> Option<TunnelDecisions> {
        let plans = self.inner.agents.plans()?;
        let stored = plans.intent.tunnels.get(&tunnel)?;
        best_group(stored)?;
        let pins = self.inner.db.pins().await.unwrap_or_else(|error| {
            tracing::error!(%error, "the pins could not be read");
            Vec::new()
        });
        let now = self.inner.clock.wall_ms();
        let owners: Vec<OwnerDecision> = stored
            .owners()
            .into_iter()
            .map(|owner| OwnerDecision {
                pin: pins::in_force(&pins, (tunnel, owner), now).cloned(),
                ..self.owner_decision(&plans.intent, stored, (tunnel, owner))
            })
            .collect();
        let exits: Vec<Option<NodeId>> = owners.iter().map(|owner| owner.applied_exit_node_id).collect();
        Some(TunnelDecisions { tunnel_id: tunnel, status: self.status(&exits), owners })
    }

    /// The short form for lists; `None` if there is nothing to choose.
    pub fn summary(&self, tunnel: TunnelId) -> Option<api::BestExit> {
        let plans = self.inner.agents.plans()?;
        let stored = plans.intent.tunnels.get(&tunnel)?;
        let exit = best_group(stored).filter(|exit| exit.nodes.len() >= 2)?;
        let owner = |owner: NodeId| {
            let view = self.view((tunnel, owner));
            let view = view.as_deref().map(|view| &view.owner);
            let first = view.and_then(|owner| owner.state.applied.order.first().copied());
            let exit_node_id = first.filter(|first| exit.nodes.iter().any(|member| member.node == *first));
            let reason = view.map_or(&Reason::NoDecision, |owner| &owner.state.reason);
            BestExitOwner {
                owner_node_id: owner,
                exit_node_id,
                reason: reason.code().to_owned(),
                since: view.and_then(|owner| owner.last_switch_at),
            }
        };
        let owners: Vec<BestExitOwner> = stored.owners().into_iter().map(owner).collect();
        let exits: Vec<Option<NodeId>> = owners.iter().map(|owner| owner.exit_node_id).collect();
        let common =
            exits.first().copied().flatten().filter(|first| exits.iter().all(|e| *e == Some(*first)));
        let summary = common.map(|exit| name_of(&plans.intent, exit)).unwrap_or_default();
        Some(api::BestExit { status: self.status(&exits), summary, owners })
    }

    fn status(&self, exits: &[Option<NodeId>]) -> DecisionState {
        if !self.inner.monitoring.load(Ordering::Acquire) {
            DecisionState::Paused
        } else if exits.iter().any(Option::is_none) {
            DecisionState::Waiting
        } else {
            DecisionState::Applied
        }
    }

    fn view(&self, key: OwnerKey) -> Option<Arc<View>> {
        self.inner.views().get(&key).cloned()
    }

    fn owner_decision(&self, intent: &Intent, tunnel: &TunnelIntent, key: OwnerKey) -> OwnerDecision {
        let view = self.view(key);
        let view = view.as_deref();
        let owner = view.map(|view| &view.owner);
        let saved: Vec<NodeId> = best_group(tunnel)
            .map(|exit| exit.nodes.iter().map(|member| member.node).collect())
            .unwrap_or_default();
        let applied = owner.map(|owner| owner.state.applied.clone()).unwrap_or_default();
        let applied_order = applied.complete(&saved);
        let known = applied.order.iter().any(|exit| saved.contains(exit));
        let pending = owner.and_then(|owner| owner.state.pending).map(|pending| PendingDecision {
            exit_node_id: pending.exit,
            rounds: pending.rounds,
            needed: view.map_or(0, |view| view.needed),
        });
        let now = self.inner.mono_ms();
        let cooldown_left = view.and_then(|view| view.cooldown_ends).and_then(|ends| ends.checked_sub(now));
        let next_switch = cooldown_left
            .filter(|left| *left > 0)
            .map(|left| self.inner.clock.wall_ms().saturating_add_unsigned(left));
        OwnerDecision {
            owner_node_id: key.1,
            owner_name: name_of(intent, key.1),
            online: self.inner.agents.is_online(key.1),
            applied_exit_node_id: applied_order.first().copied().filter(|_| known),
            applied_order,
            candidates: candidates(intent, owner, &saved),
            pending,
            reason: owner.map_or(Reason::NoDecision, |owner| owner.state.reason.clone()),
            next_switch_possible_at: next_switch,
            last_switch: owner.and_then(|owner| owner.last_switch.clone()),
            evaluated_at: owner.and_then(|owner| owner.evaluated_at),
            pin: None,
            in_use: self.in_use(intent, tunnel, key),
        }
    }

    /// How the exits are really used, as the owner's agent reports it.
    fn in_use(&self, intent: &Intent, tunnel: &TunnelIntent, key: OwnerKey) -> Vec<ExitUse> {
        let (Some(report), Some(exit), Some(owner)) =
            (self.inner.agents.report(key.1), best_group(tunnel), intent.nodes.get(&key.1))
        else {
            return Vec::new();
        };
        let chain = names::chain(key.0);
        let Some(chain) = report.chains.into_iter().find(|reported| reported.name == chain) else {
            return Vec::new();
        };
        let used = exit.nodes.iter().filter_map(|member| {
            let to = intent.nodes.get(&member.node)?;
            let address = dial::address(owner, to, member, tunnel.ip_preference).ok()?.to_string();
            let node = chain.nodes.iter().find(|node| node.addr == address)?;
            Some(ExitUse {
                exit_node_id: member.node,
                connections: node.connections,
                open: node.open,
                failures: node.failures,
                marked: node.marked,
            })
        });
        used.collect()
    }
}

/// In rank order of the last evaluated round; exits that were not in it follow in saved order.
fn candidates(intent: &Intent, owner: Option<&Owner>, saved: &[NodeId]) -> Vec<CandidateDecision> {
    let seen = owner.map_or(&[][..], |owner| &owner.candidates);
    let ranked = seen.iter().filter(|seen| saved.contains(&seen.candidate.exit));
    let new = saved.iter().filter(|exit| !seen.iter().any(|seen| seen.candidate.exit == **exit));
    let unmeasured = || Leg::Unmeasured { reason: "no round was evaluated yet".to_owned() };
    let new = new.map(|exit| {
        let candidate = Candidate { exit: *exit, leg_a: unmeasured(), leg_b: unmeasured() };
        Seen { candidate, score: None }.decision(intent)
    });
    ranked.map(|seen| seen.decision(intent)).chain(new).collect()
}
