//! What must hold for every policy, whatever happens.

use crate::rig::*;
use proptest::prelude::*;
use shared::policy::fallback::{Phase, Rules};
use shared::policy::health::State;
use shared::policy::*;
use std::collections::BTreeMap;

const POLICIES: [&str; 9] = [
    "selector",
    "urltest(tolerance=10)",
    "fixed(1)",
    "min(tolerance=5ms)",
    "min_avg10(fall=2, rise=2)",
    "min_moving_avg",
    "fixed_fallback(1, 3s, 2, random)",
    "fixed_fallback(0, 3s, 0, min)",
    "fixed_fallback(2, 3s, 3, min_avg10, return_delay=4s)",
];

fn outcome() -> impl Strategy<Value = Option<Outcome>> {
    prop_oneof![
        4 => (0.0..400.0).prop_map(|ms| Some(Outcome::Ok(ms))),
        3 => Just(Some(Outcome::Failed)),
        1 => Just(None),
        1 => any::<f64>().prop_map(|ms| Some(Outcome::Ok(ms))),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let network = prop::sample::select(Network::ALL.to_vec());
    prop_oneof![
        6 => (0usize..4, [outcome(), outcome(), outcome(), outcome()])
            .prop_map(|(leaf, outcomes)| Event::Tested { group: 0, leaf, outcomes }),
        1 => (0usize..4, network).prop_map(|(leaf, network)| Event::DialFailed { leaf, network }),
        2 => Just(Event::Tick),
        1 => Just(Event::Used { group: 0 }),
        1 => Just(Event::TestNow { group: 0 }),
        1 => Just(Event::Started),
    ]
}

fn state(forest: &Forest, leaf: usize, network: Network) -> State {
    for evidence in network.evidence() {
        match forest.health(0, leaf, *evidence).map_or(State::NoData, |health| health.state) {
            State::NoData => {}
            state => return state,
        }
    }
    State::NoData
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A group always has a member; no automatic one picks a member known dead while another is known alive.
    #[test]
    fn never_nobody_and_never_the_dead(
        text in prop::sample::select(POLICIES.to_vec()),
        events in prop::collection::vec((0u64..5000, event()), 1..60),
        random in any::<u64>(),
    ) {
        let mut forest = over(4, text);
        let mut now = 0;
        for (after, event) in events {
            now += after;
            forest.observe(&event, now);
            for network in Network::ALL {
                let picked = forest.pick(0, Context { network, random });
                let Some(picked) = picked else { return Err(TestCaseError::fail("nobody")) };
                let manual = text.starts_with("selector") || text.starts_with("fixed(");
                let alive = (0..4).any(|leaf| state(&forest, leaf, network) == State::Alive);
                // For the return delay a fixed one that lives again is not used yet; nobody else may be alive then.
                let others = (0..4).any(|leaf| leaf != 2 && state(&forest, leaf, network) == State::Alive);
                if !manual && alive && (others || !text.contains("return_delay")) {
                    prop_assert_ne!(state(&forest, picked, network), State::Dead, "{} {:?}", text, network);
                }
            }
        }
    }

    /// Every test that is asked for was not under way, except the runner's, whose spacing the state machine proves.
    #[test]
    fn tests_are_bounded(events in prop::collection::vec((0u64..5000, event()), 1..60)) {
        let mut forest = over(15, "urltest");
        let mut open = std::collections::BTreeSet::new();
        let mut now = 0;
        for (after, event) in events {
            now += after;
            if let Event::Tested { leaf, .. } = &event {
                open.remove(leaf);
            }
            for leaf in tests(&forest.observe(&event, now)) {
                prop_assert!(open.insert(leaf), "{leaf} is already under way");
            }
            prop_assert!(open.len() <= 10);
        }
    }

    /// The same members in another order: the same choice, except among equals.
    #[test]
    fn order_does_not_matter(
        text in prop::sample::select(vec!["urltest(tolerance=0)", "min", "min_avg10", "min_moving_avg"]),
        rounds in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.8, 1.0..500.0), 4), 1..8),
        shuffle in Just((0usize..4).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let (mut plain, mut shuffled) = (over(4, text), over(4, text));
        for (at, delays) in rounds.iter().enumerate() {
            let now = at as u64;
            round(&mut plain, delays, now);
            let moved: Vec<Option<f64>> = shuffle.iter().map(|leaf| delays[*leaf]).collect();
            round(&mut shuffled, &moved, now);
            if delays.iter().any(Option::is_some) {
                let picked = pick(&shuffled, TCP).map(|place| shuffle[place]);
                prop_assert_eq!(pick(&plain, TCP), picked);
            }
        }
    }

    /// A plain value: written down and read back in the middle, it goes on the same way.
    #[test]
    fn state_survives_being_stored(
        text in prop::sample::select(POLICIES.to_vec()),
        events in prop::collection::vec((0u64..5000, event()), 1..40),
        stored_at in 0usize..40,
    ) {
        let (mut first, mut again) = (over(4, text), over(4, text));
        let mut now = 0;
        for (i, (after, event)) in events.into_iter().enumerate() {
            now += after;
            if i == stored_at {
                again = serde_json::from_str(&serde_json::to_string(&again).unwrap()).unwrap();
            }
            let moment = now;
            let (a, b) = (first.observe(&event, moment), again.observe(&event, moment));
            prop_assert_eq!(&a, &b);
            // Evidence older than any answer: a repeated tick asks for nothing new.
            if matches!(event, Event::Tick) {
                prop_assert_eq!(first.observe(&event, moment), vec![]);
                again.observe(&event, moment);
            }
        }
    }

    /// Groups in groups, whatever wiring: the outermost has somebody while a leaf below it exists, and nobody dead while
    /// its members know of somebody alive.
    #[test]
    fn nested_groups_never_use_the_dead_while_somebody_lives(
        texts in prop::collection::vec(prop::sample::select(vec!["min", "urltest(tolerance=10)", "min_avg10", "fixed_fallback(0)"]), 3),
        rounds in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.6, 1.0f64..300.0), 6), 1..10),
    ) {
        let specs = vec![
            group("outer", &["middle", "n0", "n1"], policy(texts[0])),
            group("middle", &["inner", "n2", "n3"], policy(texts[1])),
            group("inner", &["n4", "n5"], policy(texts[2])),
        ];
        let names = ["n0", "n1", "n2", "n3", "n4", "n5"];
        let mut forest = Forest::new(leaves(&names), specs, &BTreeMap::new()).unwrap();
        for (at, delays) in rounds.iter().enumerate() {
            // Twice, since a group around learns of a leaf inside when that is used.
            for now in [2 * at as u64, 2 * at as u64 + 1] {
                for group in 0..3 {
                    for (leaf, delay) in delays.iter().enumerate() {
                        let outcome = delay.map_or(Outcome::Failed, Outcome::Ok);
                        forest.observe(&Event::Tested { group, leaf, outcomes: tcp(outcome) }, now);
                    }
                }
            }
            let picked = forest.pick(0, Context { network: TCP, random: 7 });
            let Some(picked) = picked else { return Err(TestCaseError::fail("nobody")) };
            if delays.iter().any(Option::is_some) {
                prop_assert!(delays[picked].is_some(), "{picked} of {texts:?}: {delays:?}");
            }
        }
    }

    /// Any event at any time, the clock standing still, jumping or at its end: no panic, and always somebody.
    #[test]
    fn any_time_is_survived(
        text in prop::sample::select(POLICIES.to_vec()),
        events in prop::collection::vec((prop_oneof![Just(0u64), any::<u64>(), Just(u64::MAX), 0u64..100_000], event()), 1..40),
    ) {
        let mut forest = over(4, text);
        for (now, event) in events {
            forest.observe(&event, now);
            let picked = forest.pick(0, Context { network: TCP, random: now });
            prop_assert!(picked.is_some());
            let order = forest.order(0, TCP);
            prop_assert!(order.equals <= order.members.len() && !order.members.is_empty());
            let _ = (forest.due(), forest.round_due(), forest.phase_due());
        }
    }

    /// One runner at most: while the member stays dead its probes are a timeout apart, however often it is seen dead and
    /// however late or doubled the ticks come, and no more than the retries are made at that pace.
    #[test]
    fn fixed_fallback_has_one_runner(
        timeout_ms in 1u64..5000, retries in 0u32..6, interval_ms in 1u64..60_000,
        steps in prop::collection::vec((0u64..4000, 0u8..6), 1..200),
    ) {
        let rules = Rules { timeout_ms, retries, interval_ms };
        let mut phase = Phase::default();
        let (mut now, mut last, mut in_row) = (0u64, None::<u64>, 0u32);
        for (after, what) in steps {
            now += after;
            let probes = match what {
                0 => phase.observe(true, now, rules),
                1 | 2 => phase.observe(false, now, rules),
                _ => phase.tick(now, rules),
            };
            if phase == Phase::Primary {
                prop_assert!(!probes);
                (last, in_row) = (None, 0);
            } else if probes {
                let least = if in_row < retries { timeout_ms } else { timeout_ms.min(interval_ms) };
                prop_assert!(last.is_none_or(|last| now - last >= least), "{now} {last:?} {phase:?}");
                (last, in_row) = (Some(now), in_row + 1);
            }
            if let Phase::Retrying { retries: made, .. } = phase {
                prop_assert!(made <= retries && made == in_row, "{phase:?} {in_row}");
            }
        }
    }
}
