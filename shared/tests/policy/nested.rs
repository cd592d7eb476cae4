//! Groups in groups.

use crate::rig::*;
use proptest::prelude::*;
use shared::policy::*;
use std::collections::BTreeMap;

fn chain(depth: usize) -> Forest {
    let mut specs = Vec::new();
    for i in 0..depth {
        let inner = if i + 1 == depth { "b".to_owned() } else { format!("g{}", i + 1) };
        specs.push(group(&format!("g{i}"), &[&inner, "a"], policy("selector")));
    }
    Forest::new(leaves(&["a", "b"]), specs, &BTreeMap::new()).unwrap()
}

/// sing-box resolves one level.
pub(crate) fn any_depth_resolves_to_the_leaf() {
    for depth in [1, 2, 3, 50, 5000] {
        let forest = chain(depth);
        assert_eq!(pick(&forest, TCP), Some(1), "{depth}");
    }
}

pub(crate) fn cycles_are_refused_with_their_path() {
    let specs = vec![
        group("x", &["a", "p"], policy("min")),
        group("p", &["a", "q"], policy("selector")),
        group("q", &["r"], policy("urltest")),
        group("r", &["a", "p"], policy("fixed(0)")),
    ];
    let error = Forest::new(leaves(&["a"]), specs, &BTreeMap::new()).unwrap_err();
    assert_eq!(error.to_string(), "groups contain each other: p -> q -> r -> p");
    let itself = vec![group("x", &["x"], policy("min"))];
    let error = Forest::new(leaves(&["a"]), itself, &BTreeMap::new()).unwrap_err();
    assert_eq!(error, BuildError::Cycle { path: vec!["x".into(), "x".into()] });
    // The same group in two places is no cycle.
    let shared = vec![
        group("x", &["y", "z"], policy("selector")),
        group("y", &["z"], policy("selector")),
        group("z", &["a"], policy("selector")),
    ];
    assert!(Forest::new(leaves(&["a"]), shared, &BTreeMap::new()).is_ok());
}

fn auto_over_selector() -> Forest {
    let specs = vec![
        group("auto", &["manual", "c"], policy("urltest")),
        group("manual", &["a", "b"], policy("selector")),
    ];
    Forest::new(leaves(&["a", "b", "c"]), specs, &BTreeMap::new()).unwrap()
}

/// sing-box's group around a group deletes the group's own history, and so nothing.
pub(crate) fn a_failed_dial_counts_for_the_leaf() {
    let mut forest = auto_over_selector();
    for (leaf, ms) in [(0, 10.0), (2, 20.0)] {
        test(&mut forest, leaf, Outcome::Ok(ms), 1);
    }
    assert_eq!(pick(&forest, TCP), Some(0));
    forest.observe(&Event::DialFailed { leaf: 0, network: TCP }, 2);
    assert_eq!(pick(&forest, TCP), Some(2));
}

pub(crate) fn a_switch_inside_is_seen_outside_at_once() {
    let mut forest = auto_over_selector();
    for (leaf, ms) in [(0, 10.0), (1, 500.0), (2, 20.0)] {
        test(&mut forest, leaf, Outcome::Ok(ms), 1);
    }
    assert_eq!(pick(&forest, TCP), Some(0));
    forest.choose("manual", "b", 2).unwrap();
    assert_eq!(pick(&forest, TCP), Some(2), "500 ms through the new leaf");
}

pub(crate) fn a_new_leaf_inside_is_tested_without_waiting() {
    let mut forest = auto_over_selector();
    assert_eq!(tests(&forest.observe(&Event::Started, 0)), [0, 2]);
    for (leaf, ms) in [(0, 10.0), (2, 20.0)] {
        test(&mut forest, leaf, Outcome::Ok(ms), 1);
    }
    forest.choose("manual", "b", 5000).unwrap();
    assert_eq!(tests(&forest.observe(&Event::Tick, 5001)), [1]);
}

/// A group is as healthy as the member it uses, and it uses a living one while there is one.
pub(crate) fn a_group_lives_while_a_member_lives() {
    let specs =
        vec![group("outer", &["inner", "c"], policy("min")), group("inner", &["a", "b"], policy("min"))];
    let mut forest = Forest::new(leaves(&["a", "b", "c"]), specs, &BTreeMap::new()).unwrap();
    for (leaf, ms) in [(0, 10.0), (1, 20.0), (2, 90.0)] {
        test(&mut forest, leaf, Outcome::Ok(ms), 1);
    }
    test(&mut forest, 0, Outcome::Failed, 2);
    assert_eq!((forest.chosen(1, TCP), pick(&forest, TCP)), (Some(1), Some(1)));
}

proptest! {
    /// Any wiring: valid with a pick for every group, or an error; never a hang.
    #[test]
    fn any_wiring_ends(edges in prop::collection::vec(prop::collection::vec(0usize..12, 1..4), 1..10)) {
        let name = |i: usize| if i < 2 { ["a", "b"][i].to_owned() } else { format!("g{}", i - 2) };
        let specs: Vec<GroupSpec> = edges.iter().enumerate().map(|(i, members)| {
            let members: Vec<String> = members.iter().map(|member| name(*member)).collect();
            GroupSpec { name: format!("g{i}"), members, policy: policy("min") }
        }).collect();
        let count = specs.len();
        match Forest::new(leaves(&["a", "b"]), specs, &BTreeMap::new()) {
            Ok(forest) => for group in 0..count {
                let picked = forest.pick(group, Context { network: TCP, random: 0 });
                prop_assert!(picked.is_some());
            },
            Err(BuildError::Cycle { path }) => {
                prop_assert!(path.len() > 1 && path.first() == path.last());
                // Each step of the path is written in the group before it.
                for pair in path.windows(2) {
                    let at: usize = pair[0][1..].parse().unwrap();
                    prop_assert!(edges[at].iter().any(|member| name(*member) == pair[1]));
                }
            }
            Err(_) => {}
        }
    }
}
