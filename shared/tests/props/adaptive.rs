//! What must be true of the adaptive rules on every trace, whatever happens.

use crate::trace::{self, Driver, Step};
use proptest::prelude::*;
use shared::best_exit::{DecisionRules, Leg, OwnerState, Reason, Settings};
use shared::ids::NodeId;
use std::collections::BTreeSet;

fn settings() -> impl Strategy<Value = Settings> {
    trace::settings().prop_map(|settings| Settings { decision_rules: DecisionRules::Adaptive, ..settings })
}

fn failed(leg: &Leg) -> bool {
    matches!(leg, Leg::Failed { .. })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A push moves away from the current exit, to one that works in this very round, with every exit in the order.
    #[test]
    fn pushes_lead_to_what_works(settings in settings(), steps in trace::trace(trace::leg(), true)) {
        let mut driver = Driver::new(settings);
        for step in &steps {
            let seen = driver.step(step).clone();
            let Some(order) = &seen.verdict.push else { continue };
            prop_assert_ne!(Some(order[0]), seen.current);
            let to = step.candidates.iter().find(|c| c.exit == order[0]).unwrap();
            let pinned = step.pin == Some(order[0]);
            prop_assert!(pinned || !(failed(&to.leg_a) || failed(&to.leg_b)), "{:?}", to);
            let saved: BTreeSet<NodeId> = step.candidates.iter().map(|c| c.exit).collect();
            prop_assert_eq!(order.len(), saved.len());
            prop_assert_eq!(&order.iter().copied().collect::<BTreeSet<_>>(), &saved);
            let told = match &seen.verdict.reason {
                Reason::PinFailed { among_others, .. } => among_others.code(),
                other => other.code(),
            };
            prop_assert_eq!(told, "switched");
        }
    }

    /// When every exit fails nothing is sent and nothing is blamed.
    #[test]
    fn all_failed_sends_nothing(settings in settings(), steps in trace::trace(trace::leg(), false)) {
        let mut driver = Driver::new(settings);
        for step in &steps {
            let seen = driver.step(step).clone();
            if step.candidates.iter().all(|c| failed(&c.leg_a) || failed(&c.leg_b)) {
                prop_assert_eq!(&seen.verdict.push, &None);
            }
        }
    }

    /// The same round twice is one round.
    #[test]
    fn a_repeated_round_changes_nothing(settings in settings(), steps in trace::trace(trace::leg(), false)) {
        let mut driver = Driver::new(settings.clone());
        for step in &steps {
            driver.step(step);
            let before = driver.state.clone();
            let again = Step { after_ms: 0, restart: false, ..step.clone() };
            let verdict = driver.step(&again).verdict.clone();
            prop_assert_eq!(verdict.push, None);
            if matches!(before.reason, Reason::ApplyFailed { .. }) || !crate::oracle::was_evaluated(&driver.seen[driver.seen.len() - 1]) {
                continue;
            }
            prop_assert_eq!(&driver.state, &before);
        }
    }

    /// Stored and read back in the middle, it goes on the same way.
    #[test]
    fn replay_is_exact(settings in settings(), steps in trace::trace(trace::leg(), true), stored_at in 0usize..40) {
        let (mut first, mut again) = (Driver::new(settings.clone()), Driver::new(settings));
        for (i, step) in steps.iter().enumerate() {
            if i == stored_at {
                again.state = serde_json::from_str(&serde_json::to_string(&again.state).unwrap()).unwrap();
            }
            let a = first.step(step).verdict.clone();
            let b = again.step(step).verdict.clone();
            prop_assert_eq!(a.push, b.push);
            prop_assert_eq!(a.reason.code(), b.reason.code());
        }
    }

    /// Whatever numbers come in: no panic, and only possible numbers come out.
    #[test]
    fn no_impossible_number_escapes(settings in settings(), steps in trace::trace(trace::wild_leg(), true)) {
        let mut driver = Driver::new(settings);
        for step in &steps {
            let verdict = driver.step(step).verdict.clone();
            for score in verdict.ranked.iter().filter_map(|r| r.score) {
                for number in [score.latency_ms, score.loss, score.loss_penalty_ms, score.total_ms] {
                    prop_assert!(number.is_finite() && number >= 0.0, "{score:?}");
                }
                prop_assert!(score.loss <= 1.0, "{score:?}");
            }
            let text = serde_json::to_string(&driver.state).unwrap();
            prop_assert!(serde_json::from_str::<OwnerState>(&text).is_ok(), "{text}");
        }
    }
}
