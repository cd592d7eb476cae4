//! What is kept about one owner between rounds.

use super::legs::OwnerKey;
use crate::plan::Intent;
use crate::store::StoredDecision;
use shared::api::{CandidateDecision, SwitchRecord, WallMs};
use shared::best_exit::{Applied, Candidate, MonoMs, OwnerState, Ranked, Reason};
use shared::ids::NodeId;

/// What is kept about one owner between rounds.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) state: OwnerState,
    pub(super) last_switch_at: Option<WallMs>,
    /// The last switch or refused push.
    pub(super) last_switch: Option<SwitchRecord>,
    /// In rank order of the last evaluated round.
    pub(super) candidates: Vec<Seen>,
    pub(super) evaluated_at: Option<WallMs>,
    /// An order is on its way; nothing is decided until its end is known.
    pub(super) pushing: bool,
    /// A push with this exit in front was not answered: the agent runs the order before, or that one.
    pub(super) in_doubt: Option<NodeId>,
    /// What is stored is older than this.
    pub(super) unsaved: bool,
    /// It remembers the stored measurements.
    pub(super) warmed: bool,
    /// It had a stored state when the panel started.
    restored: bool,
    logged: Option<Mark>,
}

/// One exit as the last evaluated round saw it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) candidate: Candidate,
    pub(super) score: Option<shared::best_exit::Score>,
}

/// What makes a reason another one for the log: its code and the exit it speaks of.
type Mark = (String, Option<NodeId>);

impl Owner {
    /// An owner that is not known from before.
    pub(super) fn new(order: Vec<NodeId>) -> Self {
        Self {
            state: OwnerState::new(Applied { order, last_switch: None }),
            last_switch_at: None,
            last_switch: None,
            candidates: Vec::new(),
            evaluated_at: None,
            pushing: false,
            in_doubt: None,
            unsaved: false,
            warmed: false,
            restored: false,
            logged: None,
        }
    }

    /// An owner as it was stored. Its last switch is put on the monotonic clock by the time that has passed on the
    /// wall clock; should that have been set back, the switch counts as a new one, which only delays the next.
    pub(super) fn restore(stored: StoredDecision, wall_now: WallMs, now: MonoMs) -> Self {
        let last_switch = stored.last_switch_at.map(|at| {
            let ago = u64::try_from(wall_now.saturating_sub(at)).unwrap_or(0);
            now.saturating_sub(ago)
        });
        Self {
            state: OwnerState::new(Applied { order: stored.order, last_switch }),
            last_switch_at: stored.last_switch_at,
            last_switch: stored.last_switch,
            restored: true,
            ..Self::new(Vec::new())
        }
    }

    /// As it is to be stored.
    pub(super) fn stored(&self, key: OwnerKey) -> StoredDecision {
        StoredDecision {
            tunnel: key.0,
            owner: key.1,
            order: self.state.applied.order.clone(),
            proposed: None,
            last_switch_at: self.last_switch_at,
            last_switch: self.last_switch.clone(),
        }
    }

    /// Takes note of the reason; true if it is another one than before.
    pub(super) fn reason_is_new(&mut self) -> bool {
        let mark = mark(&self.state.reason);
        let new = self.logged.as_ref() != Some(&mark);
        self.logged = Some(mark);
        new
    }

    /// Whether a new reason goes into the log. After a restart of the panel the first ones say nothing new: nobody is
    /// connected, and then everything is as it was.
    pub(super) fn worth_logging(&self, evaluated_before: bool) -> bool {
        !self.restored
            || evaluated_before
            || matches!(self.state.reason, Reason::Switched { .. } | Reason::ApplyFailed { .. })
    }

    /// Keeps what the round saw.
    pub(super) fn see(&mut self, ranked: &[Ranked], candidates: Vec<Candidate>, at: WallMs) {
        let mut candidates = candidates;
        let mut seen = Vec::with_capacity(ranked.len());
        for place in ranked {
            if let Some(found) = candidates.iter().position(|c| c.exit == place.exit) {
                seen.push(Seen { candidate: candidates.swap_remove(found), score: place.score });
            }
        }
        self.candidates = seen;
        self.evaluated_at = Some(at);
    }

    /// The candidates for people, in rank order.
    pub(super) fn decisions(&self, intent: &Intent) -> Vec<CandidateDecision> {
        self.candidates.iter().map(|seen| seen.decision(intent)).collect()
    }
}

impl Seen {
    pub(super) fn decision(&self, intent: &Intent) -> CandidateDecision {
        CandidateDecision {
            exit_node_id: self.candidate.exit,
            exit_name: name_of(intent, self.candidate.exit),
            leg_a: self.candidate.leg_a.clone(),
            leg_b: self.candidate.leg_b.clone(),
            score: self.score,
        }
    }
}

/// A node's name; its number if it is gone.
pub(super) fn name_of(intent: &Intent, node: NodeId) -> String {
    intent.nodes.get(&node).map_or_else(|| format!("#{node}"), |node| node.name.clone())
}

/// The exit that a reason speaks of.
pub(super) fn exit_of(reason: &Reason) -> Option<NodeId> {
    match reason {
        Reason::InsufficientAdvantage { exit, .. }
        | Reason::Confirming { exit, .. }
        | Reason::Cooldown { exit, .. }
        | Reason::ApplyRetryWait { exit, .. }
        | Reason::Pinned { exit }
        | Reason::PinFailed { exit, .. }
        | Reason::Suspect { exit, .. }
        | Reason::Held { exit, .. }
        | Reason::ApplyFailed { exit, .. } => Some(*exit),
        Reason::Switched { to, .. } => Some(*to),
        Reason::NoDecision
        | Reason::SingleExit
        | Reason::Incomplete
        | Reason::Paused
        | Reason::OwnerOffline
        | Reason::AllExitsFailed
        | Reason::OwnerLine
        | Reason::TargetFailed
        | Reason::CurrentUnmeasured { .. }
        | Reason::CurrentIsBest => None,
    }
}

fn mark(reason: &Reason) -> Mark {
    match reason {
        Reason::PinFailed { exit, among_others } => {
            let (inner, _) = mark(among_others);
            (format!("{}/{inner}", reason.code()), Some(*exit))
        }
        // Two exits that are equal but for noise change places all the time. Neither is news: the exit is kept.
        Reason::CurrentIsBest | Reason::InsufficientAdvantage { .. } => ("kept".to_owned(), None),
        _ => (reason.code().to_owned(), exit_of(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::best_exit::Settings;
    use shared::ids::TunnelId;

    fn stored(last_switch_at: Option<WallMs>) -> StoredDecision {
        StoredDecision {
            tunnel: TunnelId(1),
            owner: NodeId(2),
            order: vec![NodeId(31), NodeId(30)],
            proposed: None,
            last_switch_at,
            last_switch: None,
        }
    }

    #[test]
    fn the_rest_of_the_cooldown_survives_a_restart() {
        let settings = Settings::default();
        let now = 1 << 40;
        let left = |switched_at, wall_now| {
            let owner = Owner::restore(stored(switched_at), wall_now, now);
            owner.state.cooldown_ends(now, &settings).map(|ends| ends - now)
        };
        assert_eq!(left(None, 50_000), None);
        assert_eq!(left(Some(40_000), 50_000), Some(20_000));
        assert_eq!(left(Some(10_000), 50_000), None);
        assert_eq!(left(Some(60_000), 50_000), Some(30_000), "the wall clock was set back");
        let owner = Owner::restore(stored(Some(40_000)), 50_000, now);
        assert_eq!(owner.stored((TunnelId(1), NodeId(2))), stored(Some(40_000)));
    }

    #[test]
    fn a_reason_is_new_when_its_code_or_its_exit_changes() {
        let mut owner = Owner::new(vec![]);
        let confirming = |exit, rounds| Reason::Confirming { exit: NodeId(exit), rounds, needed: 3 };
        let steps = [
            (Reason::CurrentIsBest, true),
            (Reason::CurrentIsBest, false),
            (Reason::InsufficientAdvantage { exit: NodeId(1), have_ms: 1.0, need_ms: 20.0 }, false),
            (Reason::InsufficientAdvantage { exit: NodeId(2), have_ms: 1.0, need_ms: 20.0 }, false),
            (confirming(1, 1), true),
            (confirming(1, 2), false),
            (confirming(2, 1), true),
            (Reason::PinFailed { exit: NodeId(3), among_others: Box::new(Reason::CurrentIsBest) }, true),
            (Reason::PinFailed { exit: NodeId(3), among_others: Box::new(Reason::AllExitsFailed) }, true),
        ];
        for (reason, new) in steps {
            owner.state.reason = reason.clone();
            assert_eq!(owner.reason_is_new(), new, "{reason:?}");
        }
    }
}
