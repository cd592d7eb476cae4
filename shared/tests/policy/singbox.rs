//! sing-box's Selector and URLTest.

use crate::rig::*;
use shared::policy::*;
use std::collections::BTreeMap;

// Selector

fn selector(text: &str, choices: &[(&str, &str)]) -> Forest {
    let members = ["server-a", "server-b", "server-c"];
    Forest::new(leaves(&members), vec![group("proxy", &members, policy(text))], &stored(choices)).unwrap()
}

pub(crate) fn stored_then_default_then_first() {
    type Choices = &'static [(&'static str, &'static str)];
    let table: [(&str, Choices, usize); 4] = [
        ("selector(default=server-b)", &[("proxy", "server-c")], 2),
        ("selector(default=server-b)", &[], 1),
        ("selector", &[], 0),
        // No member any more: ignored, and still there should the member return.
        ("selector(default=server-b)", &[("proxy", "server-x")], 1),
    ];
    for (text, choices, expected) in table {
        let forest = selector(text, choices);
        assert_eq!(pick(&forest, TCP), Some(expected), "{text} {choices:?}");
        assert_eq!(pick(&forest, UDP), Some(expected));
    }
}

pub(crate) fn a_wrong_default_is_refused_also_behind_a_stored_choice() {
    let specs = vec![group("proxy", &["a"], policy("selector(default=x)"))];
    let error = Forest::new(leaves(&["a"]), specs, &stored(&[("proxy", "a")])).unwrap_err();
    assert_eq!(error, BuildError::DefaultNotMember { group: "proxy".into(), default: "x".into() });
}

pub(crate) fn missing_members_are_refused_with_their_place() {
    let error = |members: &[&str]| {
        let specs = vec![group("proxy", members, policy("selector"))];
        Forest::new(leaves(&["a", "b"]), specs, &BTreeMap::new()).unwrap_err().to_string()
    };
    assert_eq!(error(&[]), "proxy: has no members");
    assert_eq!(error(&["a", "x"]), "proxy: member 1 (x) does not exist");
    assert_eq!(error(&["a", "b", "a"]), "proxy: member 2 (a) is listed twice");
    let twice = Forest::new(leaves(&["a", "a"]), vec![], &BTreeMap::new()).unwrap_err();
    assert_eq!(twice.to_string(), "a: the name is used twice");
}

pub(crate) fn an_unknown_choice_changes_nothing() {
    let mut forest = selector("selector", &[]);
    let before = forest.clone();
    let error = forest.choose("proxy", "server-x", 1).unwrap_err();
    assert_eq!(error.to_string(), "proxy: server-x is not a member");
    assert!(forest.choose("nobody", "server-a", 1).is_err());
    assert_eq!(forest, before);
    let mut automatic = over(2, "urltest");
    assert_eq!(automatic.choose("g", "a", 1).unwrap_err().to_string(), "g is no selector");
}

pub(crate) fn a_choice_is_taken_stored_and_interrupts_what_was_left() {
    let mut forest = selector("selector(interrupt_exist_connections=true, drain=2s)", &[]);
    let effects = forest.choose("proxy", "server-c", 1).unwrap();
    assert_eq!(pick(&forest, TCP), Some(2));
    assert!(effects.contains(&Effect::Remember { group: 0, member: Some(2) }));
    let left: Vec<_> = Network::ALL.into_iter().map(|network| (network, 0)).collect();
    assert_eq!(interrupted(&effects), left, "the member left, in each network; never the new one");
    assert!(effects.iter().any(|e| matches!(e, Effect::Interrupt { drain_ms: 2000, .. })));
    // Not asked for, nothing is closed.
    let mut forest = selector("selector", &[]);
    assert_eq!(interrupted(&forest.choose("proxy", "server-c", 1).unwrap()), []);
}

pub(crate) fn choosing_the_current_one_is_stored_and_interrupts_nothing() {
    let mut forest = selector("selector(interrupt=on_switch)", &[]);
    let effects = forest.choose("proxy", "server-a", 1).unwrap();
    assert_eq!(effects, [Effect::Remember { group: 0, member: Some(0) }]);
}

pub(crate) fn a_choice_can_be_cleared() {
    let mut forest = selector("selector(default=server-b)", &[("proxy", "server-c")]);
    let effects = forest.clear("proxy", 1).unwrap();
    assert!(effects.contains(&Effect::Remember { group: 0, member: None }));
    assert_eq!(pick(&forest, TCP), Some(1));
}

pub(crate) fn a_selector_carries_what_its_choice_carries() {
    let mut members = leaves(&["a", "b"]);
    members[1].udp = false;
    let specs = vec![group("g", &["a", "b"], policy("selector"))];
    let mut forest = Forest::new(members, specs, &BTreeMap::new()).unwrap();
    assert_eq!(pick(&forest, UDP), Some(0));
    forest.choose("g", "b", 1).unwrap();
    assert_eq!((pick(&forest, TCP), pick(&forest, UDP)), (Some(1), None));
}

pub(crate) fn a_failed_dial_leaves_a_selector_alone() {
    let mut forest = selector("selector(interrupt=on_death)", &[]);
    assert_eq!(forest.observe(&Event::DialFailed { leaf: 0, network: TCP }, 1), []);
    assert_eq!(pick(&forest, TCP), Some(0));
}

// URLTest

pub(crate) fn hysteresis_at_every_place_in_the_list() {
    for current in 0..3 {
        for rival in (0..3).filter(|rival| *rival != current) {
            for (gain, switches) in [(0.0, false), (49.9, false), (50.0, false), (50.1, true)] {
                let mut forest = over(3, "urltest");
                let mut delays = [Some(900.0); 3];
                delays[current] = Some(200.0);
                round(&mut forest, &delays, 1);
                assert_eq!(pick(&forest, TCP), Some(current));
                delays[rival] = Some(200.0 - gain);
                round(&mut forest, &delays, 2);
                let expected = if switches { rival } else { current };
                assert_eq!(pick(&forest, TCP), Some(expected), "{current} {rival} {gain}");
            }
        }
    }
}

/// 200, 149, 100 with the first in use: sing-box picks 149, the last that beat a running best by the tolerance.
pub(crate) fn the_fastest_wins_not_the_last_that_beat_a_running_best() {
    // In whatever order the answers of one round come in.
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]] {
        for (delays, expected) in
            [([200.0, 149.0, 100.0], 2), ([140.0, 149.0, 100.0], 0), ([151.0, 100.0, 101.0], 1)]
        {
            let mut forest = over(3, "urltest");
            assert_eq!(tests(&forest.observe(&Event::Started, 0)), [0, 1, 2]);
            for leaf in 0..3 {
                test(&mut forest, leaf, Outcome::Ok([90.0, 500.0, 500.0][leaf]), 10);
            }
            assert_eq!(pick(&forest, TCP), Some(0));
            assert_eq!(tests(&forest.observe(&Event::TestNow { group: 0 }, 20)), [0, 1, 2]);
            for leaf in order {
                test(&mut forest, leaf, Outcome::Ok(delays[leaf]), 30);
            }
            assert_eq!(pick(&forest, TCP), Some(expected), "{order:?} {delays:?}");
        }
    }
}

pub(crate) fn sums_do_not_wrap() {
    let mut forest = over(2, "urltest(tolerance=65500)");
    round(&mut forest, &[Some(200.0), Some(100.0)], 1);
    assert_eq!(pick(&forest, TCP), Some(0));
    round(&mut forest, &[Some(65_000.0), Some(100.0)], 2);
    assert_eq!(pick(&forest, TCP), Some(0));
    round(&mut forest, &[Some(65_601.0), Some(100.0)], 3);
    assert_eq!(pick(&forest, TCP), Some(1));
}

pub(crate) fn zero_is_a_delay_and_a_tolerance() {
    let mut forest = over(2, "urltest(tolerance=0)");
    round(&mut forest, &[Some(0.0), Some(1.0)], 1);
    assert_eq!(pick(&forest, TCP), Some(0));
    round(&mut forest, &[Some(2.0), Some(1.0)], 2);
    assert_eq!(pick(&forest, TCP), Some(1));
}

pub(crate) fn a_failed_test_costs_the_incumbency() {
    let mut forest = over(2, "urltest");
    round(&mut forest, &[Some(100.0), Some(140.0)], 1);
    let effects = test(&mut forest, 0, Outcome::Failed, 2);
    assert_eq!(pick(&forest, TCP), Some(1));
    assert!(effects.iter().any(|e| matches!(e, Effect::Switched { why: Why::Died, .. })));
    // It must win back by more than the tolerance.
    test(&mut forest, 0, Outcome::Ok(100.0), 3);
    assert_eq!(pick(&forest, TCP), Some(1));
    test(&mut forest, 0, Outcome::Ok(80.0), 4);
    assert_eq!(pick(&forest, TCP), Some(0));
}

pub(crate) fn all_failed_keeps_the_choice() {
    let mut forest = over(3, "urltest");
    round(&mut forest, &[Some(300.0), Some(100.0), Some(300.0)], 1);
    round(&mut forest, &[None, Some(100.0), None], 2);
    assert_eq!(pick(&forest, TCP), Some(1));
    let effects = round(&mut forest, &[None, None, None], 3);
    assert_eq!(pick(&forest, TCP), Some(1));
    assert!(!effects.iter().any(|e| matches!(e, Effect::Switched { .. })));
}

pub(crate) fn without_results_the_first_that_carries_the_network() {
    let mut members = leaves(&["a", "b"]);
    members[0].udp = false;
    let forest =
        Forest::new(members, vec![group("g", &["a", "b"], policy("urltest"))], &BTreeMap::new()).unwrap();
    assert_eq!((pick(&forest, TCP), pick(&forest, UDP)), (Some(0), Some(1)));
}

pub(crate) fn tcp_and_udp_choose_apart() {
    let mut members = leaves(&["a", "b"]);
    members[1].udp = false;
    let specs = vec![group("g", &["a", "b"], policy("urltest"))];
    let mut forest = Forest::new(members, specs, &BTreeMap::new()).unwrap();
    round(&mut forest, &[Some(200.0), Some(20.0)], 1);
    assert_eq!((pick(&forest, TCP), pick(&forest, UDP)), (Some(1), Some(0)));
    // With measurements of its own, UDP follows those.
    let mut forest = over(2, "urltest");
    let both = |tcp, udp| [Some(Outcome::Ok(tcp)), None, Some(Outcome::Ok(udp)), None];
    forest.observe(&Event::Tested { group: 0, leaf: 0, outcomes: both(20.0, 200.0) }, 1);
    forest.observe(&Event::Tested { group: 0, leaf: 1, outcomes: both(200.0, 20.0) }, 1);
    assert_eq!((pick(&forest, TCP), pick(&forest, UDP)), (Some(0), Some(1)));
}

/// Answers what a group asks for with 20 ms, one ms later; returns what was asked for, with the time.
fn live(forest: &mut Forest, events: &[(u64, Event)], until: u64) -> Vec<(u64, Vec<usize>)> {
    let mut asked = Vec::new();
    let mut events = events.to_vec();
    loop {
        let due = forest.due();
        let next = events.first().map(|(at, _)| *at);
        let now = match (due, next) {
            (Some(due), Some(next)) => due.min(next),
            (due, next) => match due.or(next) {
                Some(now) => now,
                None => break,
            },
        };
        if now > until {
            break;
        }
        let event = if next == Some(now) { events.remove(0).1 } else { Event::Tick };
        let mut open = tests(&forest.observe(&event, now));
        if !open.is_empty() {
            asked.push((now, open.clone()));
        }
        while let Some(leaf) = open.pop() {
            open.extend(tests(&test(forest, leaf, Outcome::Ok(20.0), now + 1)));
        }
    }
    asked
}

pub(crate) fn one_round_at_the_start_then_only_with_use() {
    let mut forest = over(2, "urltest");
    assert_eq!(live(&mut forest, &[(0, Event::Started)], 10_000_000), [(0, vec![0, 1])]);
}

pub(crate) fn use_wakes_and_idleness_stops() {
    let minute = 60_000;
    let mut forest = over(1, "urltest(interval=3m, idle_timeout=7m)");
    let used = |at| (at, Event::Used { group: 0 });
    let events = [(0, Event::Started), used(minute), used(30 * minute), used(31 * minute)];
    let asked: Vec<u64> = live(&mut forest, &events, 60 * minute).iter().map(|(at, _)| at / minute).collect();
    // Woken at 1, tests at 4 and 7, idle for more than 7 minutes at 10; woken at 30 with an old result: at once, and
    // from then on by its interval until 38 is past.
    assert_eq!(asked, [0, 4, 7, 30, 33, 36]);
}

/// sing-box stamps results when they come in, so its healthy members miss every second tick.
pub(crate) fn healthy_members_are_tested_every_interval() {
    let mut forest = over(1, "urltest(interval=10s, idle_timeout=60s)");
    let events = [(0, Event::Started), (1, Event::Used { group: 0 })];
    let asked: Vec<u64> = live(&mut forest, &events, 35_000).iter().map(|(at, _)| *at).collect();
    assert_eq!(asked, [0, 10_001, 20_001, 30_001]);
}

pub(crate) fn recent_results_are_not_repeated_unless_forced() {
    let mut forest = over(2, "urltest");
    live(&mut forest, &[(0, Event::Started)], 10);
    assert_eq!(tests(&forest.observe(&Event::TestNow { group: 0 }, 20)), [0, 1]);
    // Under way: never twice at once.
    assert_eq!(tests(&forest.observe(&Event::TestNow { group: 0 }, 21)), [] as [usize; 0]);
}

pub(crate) fn ten_tests_at_once() {
    let mut forest = over(12, "urltest");
    let first = tests(&forest.observe(&Event::Started, 0));
    assert_eq!(first, (0..10).collect::<Vec<_>>());
    assert_eq!(tests(&test(&mut forest, 3, Outcome::Ok(1.0), 5)), [10]);
    assert_eq!(tests(&test(&mut forest, 4, Outcome::Failed, 6)), [11]);
}

pub(crate) fn a_failed_dial_moves_on_and_tests_again_at_once() {
    let mut forest = over(2, "urltest(interrupt=on_death)");
    round(&mut forest, &[Some(20.0), Some(40.0)], 1);
    let effects = forest.observe(&Event::DialFailed { leaf: 0, network: TCP }, 5000);
    assert_eq!(tests(&effects), [0]);
    assert_eq!(pick(&forest, TCP), Some(1), "within the same moment");
    assert!(interrupted(&effects).contains(&(TCP, 0)));
    test(&mut forest, 0, Outcome::Failed, 5100);
    // A storm of failed dials is no storm of tests.
    let storm =
        (5101..6999).flat_map(|at| tests(&forest.observe(&Event::DialFailed { leaf: 0, network: TCP }, at)));
    assert_eq!(storm.count(), 0);
    assert_eq!(tests(&forest.observe(&Event::DialFailed { leaf: 0, network: TCP }, 7000)), [0]);
}

pub(crate) fn the_first_choice_interrupts_nothing_and_switches_do() {
    let mut forest = over(2, "urltest(interrupt_exist_connections=true)");
    assert_eq!(interrupted(&round(&mut forest, &[Some(20.0), Some(90.0)], 1)), []);
    let effects = round(&mut forest, &[Some(200.0), Some(90.0)], 2);
    assert_eq!(interrupted(&effects), Network::ALL.map(|network| (network, 0)));
}

pub(crate) fn groups_with_other_urls_do_not_share_numbers() {
    let specs = vec![
        group("g", &["a", "b"], policy("urltest(url=http://one)")),
        group("h", &["a", "b"], policy("urltest(url=http://two)")),
        group("i", &["a", "b"], policy("urltest(url=http://one)")),
    ];
    let mut forest = Forest::new(leaves(&["a", "b"]), specs, &BTreeMap::new()).unwrap();
    let effects = forest.observe(&Event::Started, 0);
    assert_eq!(effects.len(), 4, "one test serves both groups with the same target: {effects:?}");
    for (leaf, ms) in [(0, 200.0), (1, 20.0)] {
        forest.observe(&Event::Tested { group: 0, leaf, outcomes: tcp(Outcome::Ok(ms)) }, 1);
    }
    let chosen: Vec<_> = (0..3).map(|group| forest.chosen(group, TCP)).collect();
    assert_eq!(chosen, [Some(1), Some(0), Some(1)]);
}

/// The two configurations of the seed, in our syntax.
pub(crate) fn the_examples() {
    let members = ["server-a", "server-b", "server-c"];
    let specs = vec![
        group("proxy", &members, policy("selector(default=server-a, interrupt_exist_connections=true)")),
        group(
            "auto",
            &members,
            policy(
                "urltest(url=https://www.gstatic.com/generate_204, interval=3m, tolerance=50, idle_timeout=30m, \
                 interrupt_exist_connections=true)",
            ),
        ),
    ];
    let mut forest = Forest::new(leaves(&members), specs, &BTreeMap::new()).unwrap();
    assert_eq!(pick(&forest, TCP), Some(0));
    assert!(!interrupted(&forest.choose("proxy", "server-b", 1).unwrap()).is_empty());
    for (leaf, ms) in [(0, 120.0), (1, 80.0), (2, 60.0)] {
        forest.observe(&Event::Tested { group: 1, leaf, outcomes: tcp(Outcome::Ok(ms)) }, 2);
    }
    assert_eq!((forest.chosen(0, TCP), forest.chosen(1, TCP)), (Some(1), Some(2)));
}
