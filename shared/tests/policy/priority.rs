//! Priorities in bands of latency, as dae-next has them, with edges that do not flap.

use crate::rig::*;
use proptest::prelude::*;
use shared::policy::*;
use std::collections::BTreeMap;

const BANDS: &str = "0,2(,100ms),1(100ms,200ms)";

fn forest(text: &str, priorities: &[&str]) -> Forest {
    let names: Vec<String> = (0..priorities.len()).map(|i| format!("n{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut leaves = leaves(&names);
    for (leaf, priority) in leaves.iter_mut().zip(priorities) {
        leaf.priority = Priority::parse(priority).unwrap();
    }
    Forest::new(leaves, vec![group("g", &names, policy(text))], &BTreeMap::new()).unwrap()
}

pub(crate) fn bands_are_read_and_the_first_that_fits_counts() {
    let priority = Priority::parse(BANDS).unwrap();
    for (ms, expected) in [(0.0, 2), (100.0, 2), (100.1, 1), (200.0, 1), (200.1, 0), (1e9, 0)] {
        assert_eq!(priority.at(ms), expected, "{ms}");
    }
    assert_eq!(Priority::parse("7").unwrap(), Priority::fixed(7));
    assert_eq!(Priority::parse(" 1 , 3 ( 1s , ) ").unwrap().at(1000.0), 3);
    for text in [BANDS, "7", "1,3(1000ms,)"] {
        let priority = Priority::parse(text).unwrap();
        assert_eq!(Priority::parse(&priority.to_string()).unwrap(), priority);
    }
    for (text, at) in
        [("", 0), ("x", 0), ("1,", 2), ("1,2", 3), ("1,2(a,)", 4), ("1,2(9ms,1ms)", 8), ("1;", 1), ("-1", 0)]
    {
        assert_eq!(Priority::parse(text).unwrap_err().at, at, "{text}");
    }
}

/// "To a strictly higher priority immediately, no tolerance; at equal priority only if better by the tolerance; never down
/// while the old one is alive."
pub(crate) fn the_higher_priority_comes_first_whatever_the_latencies() {
    for text in ["min(tolerance=50ms)", "min_avg10", "urltest(tolerance=1000)"] {
        let mut forest = forest(text, &["0", "1", "1"]);
        round(&mut forest, &[Some(10.0), Some(300.0), Some(400.0)], 1);
        assert_eq!(pick(&forest, TCP), Some(1), "{text}");
        round(&mut forest, &[Some(10.0), None, Some(400.0)], 2);
        assert_eq!(pick(&forest, TCP), Some(2), "{text}");
        round(&mut forest, &[Some(10.0), None, None], 3);
        assert_eq!(pick(&forest, TCP), Some(0), "{text}: alive comes before priority");
        round(&mut forest, &[Some(10.0), None, Some(500.0)], 4);
        assert_eq!(pick(&forest, TCP), Some(2), "{text}");
        assert_eq!(forest.order(0, TCP).members, [2, 0, 1], "{text}");
    }
    let mut forest = forest("min(tolerance=50ms)", &["1", "1"]);
    round(&mut forest, &[Some(160.0), Some(60.0)], 1);
    assert_eq!(pick(&forest, TCP), Some(1));
    round(&mut forest, &[Some(20.0), Some(60.0)], 2);
    assert_eq!(pick(&forest, TCP), Some(1), "within the tolerance");
}

/// dae-next's edges are hard: there the choice moves with every one of these measurements.
pub(crate) fn a_latency_that_wanders_about_an_edge_does_not_flap() {
    let mut forest = forest("min", &[BANDS, "1"]);
    let mut picks = Vec::new();
    for (at, ms) in [99.0, 101.0, 98.0, 109.0, 95.0, 108.0].into_iter().enumerate() {
        round(&mut forest, &[Some(ms), Some(20.0)], at as u64);
        picks.push(pick(&forest, TCP));
    }
    assert_eq!(picks, [Some(0); 6]);
    // Well behind the edge it is left, and entered again at the edge.
    for (at, (ms, expected)) in [(115.0, 1), (101.0, 1), (100.0, 0)].into_iter().enumerate() {
        round(&mut forest, &[Some(ms), Some(20.0)], 10 + at as u64);
        assert_eq!(pick(&forest, TCP), Some(expected), "{ms}");
    }
}

pub(crate) fn a_fixed_one_is_not_bound_by_priorities_but_its_fallback_is() {
    let mut forest = forest("fixed_fallback(0)", &["0", "1", "2"]);
    round(&mut forest, &[Some(50.0), Some(10.0), Some(90.0)], 1);
    assert_eq!(pick(&forest, TCP), Some(0));
    round(&mut forest, &[None, Some(10.0), Some(90.0)], 2);
    assert_eq!(pick(&forest, TCP), Some(2));
    // The fixed one has the highest priority itself: the others are chosen all the same.
    let mut forest = self::forest("fixed_fallback(0)", &["9", "1", "0"]);
    round(&mut forest, &[None, Some(90.0), Some(10.0)], 1);
    assert_eq!(pick(&forest, TCP), Some(1));
}

proptest! {
    #[test]
    fn any_text_is_refused_or_read(text in "[0-9a-z(),. ]{0,24}") {
        if let Ok(priority) = Priority::parse(&text) {
            prop_assert_eq!(Priority::parse(&priority.to_string()).unwrap(), priority);
        }
    }

    /// Whatever is measured: nobody dead, and nobody with a lower priority at both edges of the doubt, while another lives.
    #[test]
    fn the_living_with_the_highest_priority(rounds in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.7, 1.0f64..400.0), 3), 1..12)) {
        let texts = ["1", BANDS, "0,3(150ms,)"];
        let mut forest = forest("min", &texts);
        for (at, delays) in rounds.iter().enumerate() {
            round(&mut forest, delays, at as u64);
            let Some(picked) = pick(&forest, TCP) else { return Err(TestCaseError::fail("nobody")) };
            if delays.iter().any(Option::is_some) {
                prop_assert!(delays[picked].is_some(), "{picked} is dead: {delays:?}");
                let now = |leaf: usize| Priority::parse(texts[leaf]).unwrap().at(delays[leaf].unwrap());
                let lowest = |leaf: usize| {
                    let priority = Priority::parse(texts[leaf]).unwrap();
                    let ms = delays[leaf].unwrap();
                    let margin = 10f64.max(ms * 0.1);
                    [ms - margin, ms, ms + margin].map(|ms| priority.at(ms)).into_iter().max().unwrap()
                };
                for other in (0..3).filter(|leaf| delays[*leaf].is_some()) {
                    prop_assert!(lowest(picked) >= now(other), "{picked} and {other}: {delays:?}");
                }
            }
        }
    }
}
