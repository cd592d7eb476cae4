//! The adaptive rules remember rounds; after a restart of the panel they get them back from the stored history.

use super::decider::Decider;
use super::legs::OwnerPlan;
use crate::store::{LegHistoryQuery, LegKey};
use shared::api::{LegPoint, WallMs};
use shared::best_exit::{Candidate, DecisionRules, Leg, LegFailure, MonoMs};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds that are read: the longest window of the adaptive rules.
const ROUNDS: u32 = 64;

/// The history of some legs, by their number in the layout and then by time.
type History = BTreeMap<usize, BTreeMap<WallMs, Leg>>;

impl Decider {
    /// Lets every owner that remembers nothing yet remember what is stored. Without effect under the classic rules.
    pub(super) async fn warm(&mut self) {
        if self.settings.decision_rules != DecisionRules::Adaptive {
            return;
        }
        let layout = self.layout.clone();
        let cold: Vec<&OwnerPlan> = layout
            .owners
            .iter()
            .filter(|plan| self.owners.get(&plan.key).is_some_and(|owner| !owner.warmed))
            .collect();
        if cold.is_empty() {
            return;
        }
        let legs: BTreeSet<usize> = cold
            .iter()
            .flat_map(|plan| plan.candidates.iter().flat_map(|c| c.leg_a.into_iter().chain([c.leg_b])))
            .collect();
        let (wall, now) = (self.inner.clock.wall_ms(), self.now());
        let history = match self.read(&legs, wall).await {
            Ok(history) => history,
            Err(error) => {
                tracing::error!(%error, "the stored measurements could not be read; deciding starts without them");
                History::new()
            }
        };
        for plan in cold {
            let Some(owner) = self.owners.get_mut(&plan.key) else { continue };
            owner.warmed = true;
            let rounds = rounds(plan, &history, wall, now);
            let rounds: Vec<(MonoMs, &[Candidate])> =
                rounds.iter().map(|(at, candidates)| (*at, candidates.as_slice())).collect();
            owner.state.warm(&rounds, &self.settings);
        }
    }

    async fn read(&self, legs: &BTreeSet<usize>, wall: WallMs) -> crate::store::Result<History> {
        let interval = i64::try_from(self.settings.round_interval_ms).unwrap_or(i64::MAX);
        let from = wall.saturating_sub(interval.saturating_mul(2 * i64::from(ROUNDS)));
        let query = LegHistoryQuery { from, to: wall.saturating_add(1), step_ms: 1, max_points: ROUNDS };
        let mut tx = self.inner.db.read().await?;
        let mut history = History::new();
        for leg in legs {
            let stretch = &self.layout.legs[*leg];
            let key = LegKey { from: stretch.from, target: stretch.target.clone() };
            let points = tx.leg_history(&key, query).await?;
            history.insert(*leg, points.iter().map(|point| (point.at, leg_of(point))).collect());
        }
        Ok(history)
    }
}

/// What a stored point says; why a leg failed is not kept with it.
fn leg_of(point: &LegPoint) -> Leg {
    match (point.latency_ms, point.loss) {
        (Some(latency_ms), Some(loss)) => Leg::Measured { latency_ms, loss },
        (None, Some(_)) => Leg::Failed { reason: LegFailure::AllLost },
        _ => Leg::Unmeasured { reason: "not measured".to_owned() },
    }
}

/// An owner's rounds, oldest first, on the monotonic clock. All legs of a round are stored with the same time.
fn rounds(plan: &OwnerPlan, history: &History, wall: WallMs, now: MonoMs) -> Vec<(MonoMs, Vec<Candidate>)> {
    let times: BTreeSet<WallMs> = plan
        .candidates
        .iter()
        .filter_map(|candidate| history.get(&candidate.leg_b))
        .flat_map(|points| points.keys().copied())
        .collect();
    let round = |at: &WallMs| {
        let ago = u64::try_from(wall.saturating_sub(*at)).ok()?;
        let leg = |number: usize| {
            let found = history.get(&number).and_then(|points| points.get(at));
            found.cloned().unwrap_or_else(|| Leg::Unmeasured { reason: "not measured".to_owned() })
        };
        let candidate = |candidate: &super::legs::CandidatePlan| Candidate {
            exit: candidate.exit,
            leg_a: candidate.leg_a.map_or(Leg::Failed { reason: LegFailure::Unreachable }, leg),
            leg_b: leg(candidate.leg_b),
        };
        Some((now.checked_sub(ago)?, plan.candidates.iter().map(candidate).collect()))
    };
    times.iter().filter_map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::super::legs::CandidatePlan;
    use super::*;
    use shared::ids::{NodeId, TunnelId};

    #[test]
    fn rounds_come_back_in_order_and_on_the_monotonic_clock() {
        let candidate = |exit, leg_a, leg_b| CandidatePlan { exit: NodeId(exit), leg_a, leg_b };
        let plan = OwnerPlan {
            key: (TunnelId(1), NodeId(1)),
            complete: true,
            candidates: vec![candidate(30, Some(0), 1), candidate(31, None, 2)],
            saved: vec![NodeId(30), NodeId(31)],
        };
        let point = |at, latency_ms, loss| (at, leg_of(&LegPoint { at, latency_ms, loss }));
        let history = History::from([
            (0, BTreeMap::from([point(100, Some(5.0), Some(0.25)), point(200, None, Some(1.0))])),
            (1, BTreeMap::from([point(200, Some(7.0), Some(0.0)), point(100, None, None)])),
        ]);
        let rounds = rounds(&plan, &history, 1000, 50_000);
        assert_eq!(rounds.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [49_100, 49_200]);
        let (first, second) = (&rounds[0].1, &rounds[1].1);
        assert_eq!(first[0].leg_a, Leg::Measured { latency_ms: 5.0, loss: 0.25 });
        assert!(matches!(first[0].leg_b, Leg::Unmeasured { .. }));
        assert_eq!(second[0].leg_a, Leg::Failed { reason: LegFailure::AllLost });
        assert_eq!(second[0].leg_b, Leg::Measured { latency_ms: 7.0, loss: 0.0 });
        assert_eq!(second[1].leg_a, Leg::Failed { reason: LegFailure::Unreachable });
        assert!(matches!(second[1].leg_b, Leg::Unmeasured { .. }));
    }
}
