//! Two legs → one number, and the ranking of an owner's candidates.

use super::leg::Leg;
use super::machine::Candidate;
use crate::ids::NodeId;
use serde::{Deserialize, Serialize};

/// What a candidate costs, in milliseconds; lower is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Score {
    /// Sum of the legs' latencies.
    pub latency_ms: f64,
    /// Combined loss of both legs, 0 to 1.
    pub loss: f64,
    /// What the loss adds.
    pub loss_penalty_ms: f64,
    /// `latency_ms + loss_penalty_ms`.
    pub total_ms: f64,
}

impl Score {
    /// The score of a candidate, or `None` if one of its legs has no numbers.
    ///
    /// `loss = 1 - (1 - a)(1 - b)`: a packet arrives when it survives both legs.
    /// `total = latency + loss * 100 * penalty`, the penalty being per percent.
    pub fn of(leg_a: &Leg, leg_b: &Leg, loss_penalty_ms_per_percent: f64) -> Option<Self> {
        let ((latency_a, loss_a), (latency_b, loss_b)) = (leg_a.numbers()?, leg_b.numbers()?);
        let latency_ms = latency_a + latency_b;
        let loss = 1.0 - (1.0 - loss_a) * (1.0 - loss_b);
        let loss_penalty_ms = loss * 100.0 * loss_penalty_ms_per_percent;
        let total_ms = latency_ms + loss_penalty_ms;
        total_ms.is_finite().then_some(Self { latency_ms, loss, loss_penalty_ms, total_ms })
    }
}

/// A candidate in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The exit.
    pub exit: NodeId,
    /// `None`: failed, or one leg unmeasured.
    pub score: Option<Score>,
}

/// Ranks candidates given in saved order: those with a score ascending, ties in saved order, then the failed ones in
/// saved order. Total and stable.
pub fn rank(candidates: &[Candidate], loss_penalty_ms_per_percent: f64) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> = candidates
        .iter()
        .map(|c| Ranked { exit: c.exit, score: Score::of(&c.leg_a, &c.leg_b, loss_penalty_ms_per_percent) })
        .collect();
    // sort_by is stable, which keeps the saved order of equals.
    ranked.sort_by(|a, b| match (&a.score, &b.score) {
        (Some(a), Some(b)) => a.total_ms.total_cmp(&b.total_ms),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => std::cmp::Ordering::Equal,
    });
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::best_exit::LegFailure;

    fn leg(latency_ms: f64, loss: f64) -> Leg {
        Leg::Measured { latency_ms, loss }
    }

    #[test]
    fn score_table() {
        let table = [
            (30.0, 0.0, 20.0, 0.0, 50.0),
            (30.0, 0.02, 20.0, 0.03, 544.0),
            (10.0, 0.25, 10.0, 0.0, 2520.0),
            (180.0, 0.0, 90.0, 0.0, 270.0),
            (1.0, 0.5, 1.0, 0.5, 7502.0),
        ];
        for (a_ms, a_loss, b_ms, b_loss, expected) in table {
            let score = Score::of(&leg(a_ms, a_loss), &leg(b_ms, b_loss), 100.0).unwrap();
            assert!((score.total_ms - expected).abs() < 1e-9, "{score:?} {expected}");
            assert!((score.latency_ms + score.loss_penalty_ms - score.total_ms).abs() < 1e-9);
        }
    }

    #[test]
    fn no_numbers_no_score() {
        let failed = Leg::Failed { reason: LegFailure::Refused };
        let unmeasured = Leg::Unmeasured { reason: String::new() };
        for bad in [failed, unmeasured] {
            assert_eq!(Score::of(&bad, &leg(1.0, 0.0), 100.0), None);
            assert_eq!(Score::of(&leg(1.0, 0.0), &bad, 100.0), None);
        }
        assert_eq!(Score::of(&leg(f64::MAX, 0.0), &leg(f64::MAX, 0.0), 100.0), None);
    }

    #[test]
    fn ties_and_failures_keep_the_saved_order() {
        let candidate = |exit, leg_b| Candidate { exit: NodeId(exit), leg_a: leg(10.0, 0.0), leg_b };
        let failed = Leg::Failed { reason: LegFailure::AllLost };
        let order: Vec<_> = rank(
            &[
                candidate(5, failed.clone()),
                candidate(4, leg(20.0, 0.0)),
                candidate(3, failed),
                candidate(2, leg(20.0, 0.0)),
                candidate(1, leg(5.0, 0.0)),
            ],
            100.0,
        )
        .into_iter()
        .map(|r| r.exit.0)
        .collect();
        assert_eq!(order, [1, 4, 2, 5, 3]);
    }
}
