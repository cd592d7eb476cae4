//! What must be true of every trace, whatever happens on it.
#![cfg(not(target_arch = "wasm32"))]

mod adaptive;
mod oracle;
mod trace;
mod traces;

use oracle::{Expected, Past};
use proptest::prelude::*;
use shared::best_exit::{Applied, Candidate, Leg, Reason, Settings, rank};
use shared::ids::NodeId;
use shared::link::Sample;
use std::collections::BTreeSet;
use trace::{Driver, Step};

/// A verdict's reason as the oracle tells it.
fn told(reason: &Reason, push: Option<&Vec<NodeId>>) -> Expected {
    let (reason, pin_failed) = match reason {
        Reason::PinFailed { among_others, .. } => (&**among_others, true),
        other => (other, false),
    };
    Expected { code: reason.code(), pin_failed, switch_to: push.map(|order| order[0]) }
}

fn check_against_the_rules(settings: Settings, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut driver = Driver::new(settings.clone());
    for step in steps {
        driver.step(step);
        let verdict = &driver.seen[driver.seen.len() - 1].verdict;
        let expected = Past::new(&driver.seen, &settings).expect();
        prop_assert_eq!(
            told(&verdict.reason, verdict.push.as_ref()),
            expected,
            "round {}",
            driver.seen.len()
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Switches happen exactly when rules 1 to 6 allow them, and every other round has the reason of its row.
    #[test]
    fn switches_and_reasons_are_what_the_past_implies(
        settings in trace::settings(),
        steps in trace::trace(trace::leg(), false),
    ) {
        check_against_the_rules(settings, &steps)?;
    }

    #[test]
    fn the_same_with_pins(settings in trace::settings(), steps in trace::trace(trace::leg(), true)) {
        check_against_the_rules(settings, &steps)?;
    }

    /// Two switches of one owner are never closer than the cooldown, unless a person asked for one.
    #[test]
    fn switches_keep_their_distance(settings in trace::settings(), steps in trace::trace(trace::leg(), false)) {
        let mut driver = Driver::new(settings.clone());
        let mut last = None;
        for step in &steps {
            let seen = driver.step(step);
            let Some(_) = &seen.verdict.push else { continue };
            if let Some(last) = last {
                prop_assert!(seen.now - last >= settings.cooldown_ms);
            }
            if matches!(step.answer, trace::Answer::Accept) {
                last = Some(seen.now);
            }
        }
    }

    /// The order pushed and the order applied are permutations of the candidates: nothing lost, nothing twice.
    #[test]
    fn orders_are_permutations(settings in trace::settings(), steps in trace::trace(trace::leg(), true)) {
        let mut driver = Driver::new(settings);
        for step in &steps {
            driver.step(step);
            let saved: BTreeSet<NodeId> = step.candidates.iter().map(|c| c.exit).collect();
            let seen = &driver.seen[driver.seen.len() - 1];
            if let Some(order) = &seen.verdict.push {
                prop_assert_eq!(order.len(), saved.len());
                prop_assert_eq!(&order.iter().copied().collect::<BTreeSet<_>>(), &saved);
                // The new best, then the others by rank.
                let by_rank = seen.verdict.ranked.iter().map(|r| r.exit).filter(|exit| *exit != order[0]);
                prop_assert_eq!(order[1..].to_vec(), by_rank.collect::<Vec<_>>());
            }
            let in_saved_order: Vec<NodeId> = step.candidates.iter().map(|c| c.exit).collect();
            let complete = driver.state.applied.complete(&in_saved_order);
            prop_assert_eq!(complete.len(), saved.len());
            prop_assert_eq!(&complete.into_iter().collect::<BTreeSet<_>>(), &saved);
        }
    }

    /// A skipped round changes nothing but the reason.
    #[test]
    fn skipped_rounds_leave_no_trace(settings in trace::settings(), steps in trace::trace(trace::leg(), true)) {
        let mut driver = Driver::new(settings);
        for step in &steps {
            let step = Step { restart: false, ..step.clone() };
            let before = driver.state.clone();
            driver.step(&step);
            if !oracle::was_evaluated(&driver.seen[driver.seen.len() - 1]) {
                let mut after = driver.state.clone();
                after.reason = before.reason.clone();
                prop_assert_eq!(after, before);
            }
        }
    }

    /// The same trace gives the same verdicts, also when the state was written down and read back in between.
    #[test]
    fn replay_is_exact(
        settings in trace::settings(),
        steps in trace::trace(trace::leg(), true),
        stored_at in 0usize..40,
    ) {
        let mut first = Driver::new(settings.clone());
        let mut again = Driver::new(settings);
        for (i, step) in steps.iter().enumerate() {
            if i == stored_at {
                let text = serde_json::to_string(&again.state).unwrap();
                again.state = serde_json::from_str(&text).unwrap();
            }
            let a = first.step(step).verdict.clone();
            let b = again.step(step).verdict.clone();
            prop_assert_eq!(a, b);
        }
        prop_assert_eq!(first.state, again.state);
    }

    /// Whatever numbers come in: no panic, and only possible numbers come out.
    #[test]
    fn no_impossible_number_escapes(
        settings in trace::settings(),
        steps in trace::trace(trace::wild_leg(), true),
    ) {
        let mut driver = Driver::new(settings);
        for step in &steps {
            let verdict = driver.step(step).verdict.clone();
            for score in verdict.ranked.iter().filter_map(|r| r.score) {
                for number in [score.latency_ms, score.loss, score.loss_penalty_ms, score.total_ms] {
                    prop_assert!(number.is_finite() && number >= 0.0, "{score:?}");
                }
                prop_assert!(score.loss <= 1.0, "{score:?}");
            }
            let reason = match &verdict.reason {
                Reason::PinFailed { among_others, .. } => among_others,
                other => other,
            };
            match reason {
                Reason::InsufficientAdvantage { have_ms, need_ms, .. } => {
                    prop_assert!(have_ms.is_finite() && *have_ms >= 0.0 && need_ms.is_finite());
                }
                Reason::Switched { advantage_ms: Some(ms), .. } => prop_assert!(ms.is_finite()),
                _ => {}
            }
            // JSON has no NaN: what cannot be read back was not possible.
            let text = serde_json::to_string(&driver.state).unwrap();
            prop_assert!(serde_json::from_str::<shared::best_exit::OwnerState>(&text).is_ok(), "{text}");
        }
    }

    /// Total: every candidate once, scores ascending, the failed ones behind. Stable: equals in saved order.
    #[test]
    fn ranking_is_total_and_stable(
        legs in prop::collection::vec((trace::wild_leg(), trace::wild_leg()), 0..9),
        penalty in 0.0..10_000.0,
    ) {
        let candidates = candidates(legs);
        let ranked = rank(&candidates, penalty);
        prop_assert_eq!(ranked.len(), candidates.len());
        let place = |exit: NodeId| candidates.iter().position(|c| c.exit == exit);
        for pair in ranked.windows(2) {
            let in_order = match (pair[0].score, pair[1].score) {
                (Some(a), Some(b)) if a.total_ms == b.total_ms => place(pair[0].exit) < place(pair[1].exit),
                (Some(a), Some(b)) => a.total_ms < b.total_ms,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => place(pair[0].exit) < place(pair[1].exit),
            };
            prop_assert!(in_order, "{pair:?}");
        }
        let exits: BTreeSet<NodeId> = ranked.iter().map(|r| r.exit).collect();
        prop_assert_eq!(exits.len(), candidates.len());
    }

    /// The saved order decides between equals and nothing else.
    #[test]
    fn ranking_does_not_depend_on_the_saved_order(
        (candidates, shuffled) in prop::collection::vec((trace::leg(), trace::leg()), 0..9).prop_flat_map(|legs| {
            let candidates = candidates(legs);
            (Just(candidates.clone()), Just(candidates).prop_shuffle())
        }),
        penalty in 0u32..200,
    ) {
        let (a, b) = (rank(&candidates, f64::from(penalty)), rank(&shuffled, f64::from(penalty)));
        let total = |r: &shared::best_exit::Ranked| r.score.map(|s| s.total_ms);
        prop_assert_eq!(a.iter().map(total).collect::<Vec<_>>(), b.iter().map(total).collect::<Vec<_>>());
        for ranked in &a {
            let other = b.iter().find(|r| r.exit == ranked.exit);
            prop_assert_eq!(Some(ranked), other);
        }
    }

    /// Exits added and removed in any way: the order to render has every exit of the tunnel once, and those that
    /// stayed keep their order.
    #[test]
    fn completing_an_order_keeps_what_stayed(
        applied in prop::sample::subsequence((1..9).collect::<Vec<i64>>(), 0..=8).prop_shuffle(),
        saved in prop::sample::subsequence((1..9).collect::<Vec<i64>>(), 0..=8).prop_shuffle(),
    ) {
        let nodes = |ids: &[i64]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
        let (order, saved) = (nodes(&applied), nodes(&saved));
        let complete = Applied { order: order.clone(), last_switch: None }.complete(&saved);
        prop_assert_eq!(complete.len(), saved.len());
        prop_assert!(saved.iter().all(|exit| complete.contains(exit)));
        let stayed = |exit: &&NodeId| order.contains(exit) && saved.contains(exit);
        prop_assert_eq!(
            complete.iter().filter(stayed).collect::<Vec<_>>(),
            order.iter().filter(stayed).collect::<Vec<_>>()
        );
    }

    /// A leg from whatever an agent answers is possible, or failed.
    #[test]
    fn legs_are_possible_or_failed(
        samples in prop::collection::vec(sample(), 0..24),
        (success, average, loss) in (any::<bool>(), any::<f64>(), any::<f64>()),
        (sent, received, rtts) in (0u32..30, 0u32..30, prop::collection::vec(any::<f64>(), 0..30)),
    ) {
        let legs = [
            Leg::from_samples(&samples),
            Leg::from_average(success, average, loss),
            Leg::from_counts(sent, received, &rtts),
        ];
        for leg in legs {
            if let Leg::Measured { latency_ms, loss } = leg {
                prop_assert!(latency_ms.is_finite() && latency_ms >= 0.0, "{leg:?}");
                prop_assert!((0.0..1.0).contains(&loss), "{leg:?}");
            }
        }
        let measured = Leg::from_average(success, average, loss).numbers().is_some();
        prop_assert!(success || !measured);
        let refused = samples.iter().any(|s| matches!(s, Sample::Refused | Sample::Unresolved | Sample::Unreachable));
        prop_assert!(!refused || Leg::from_samples(&samples).numbers().is_none());
    }
}

fn candidates(legs: Vec<(Leg, Leg)>) -> Vec<Candidate> {
    let numbered = (1..).map(NodeId).zip(legs);
    numbered.map(|(exit, (leg_a, leg_b))| Candidate { exit, leg_a, leg_b }).collect()
}

fn sample() -> impl Strategy<Value = Sample> {
    prop_oneof![
        4 => (0.0..2000.0, Just(0u32)).prop_map(|(ms, retransmits)| Sample::Ok { ms, retransmits }),
        1 => (any::<f64>(), any::<u32>()).prop_map(|(ms, retransmits)| Sample::Ok { ms, retransmits }),
        4 => Just(Sample::Lost),
        1 => prop_oneof![Just(Sample::Refused), Just(Sample::Unresolved), Just(Sample::Unreachable)],
    ]
}

/// The generators reach what the properties are about; a property over traces without switches would say nothing.
#[test]
fn traces_reach_every_reason() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut codes = BTreeSet::new();
    for _ in 0..400 {
        let settings = trace::settings().new_tree(&mut runner).unwrap().current();
        let steps = trace::trace(trace::leg(), true).new_tree(&mut runner).unwrap().current();
        let mut driver = Driver::new(settings);
        for step in &steps {
            let verdict = driver.step(step).verdict.clone();
            codes.insert(verdict.reason.code());
            codes.insert(driver.state.reason.code());
        }
    }
    // The adaptive rules know more; their traces are in tests/replay.rs.
    let adaptive = ["suspect", "held", "owner_line", "target_failed"];
    // The state before the first round is the only one no verdict has.
    let all: BTreeSet<&str> =
        Reason::CODES.into_iter().filter(|code| *code != "no_decision" && !adaptive.contains(code)).collect();
    assert_eq!(codes, all);
}
