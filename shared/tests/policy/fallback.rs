//! `fixed_fallback` to the millisecond.

use crate::rig::*;
use proptest::prelude::*;
use shared::policy::fallback::{Phase, Rules};
use shared::policy::spec::Fallback;
use shared::policy::{Effect, Event, Latency, Network, Outcome, Policy, Why};

/// As in configurations, but with any timeout: raising it is the parser's business.
fn exact(text: &str, timeout: u64) -> Policy {
    let mut policy = policy(text);
    if let Policy::FixedFallback { timeout_ms, .. } = &mut policy {
        *timeout_ms = timeout;
    }
    policy
}

/// Lets the fixed member (leaf `fixed`) die at `died` and stay dead; when was it probed until `until`?
fn probes(policy: Policy, fixed: usize, died: u64, until: u64) -> Vec<u64> {
    let mut forest = with_policy(3, policy);
    round(&mut forest, &[Some(30.0), Some(20.0), Some(25.0)], died - 1);
    let mut at = Vec::new();
    let note = |effects: &[Effect], now: u64, at: &mut Vec<u64>| {
        at.extend(tests(effects).iter().filter(|leaf| **leaf == fixed).map(|_| now));
    };
    note(&test(&mut forest, fixed, Outcome::Failed, died), died, &mut at);
    while let Some(due) = forest.due().filter(|due| *due <= until) {
        note(&forest.observe(&Event::Tick, due), due, &mut at);
    }
    at
}

/// The seed's table of retries, and its examples. Probes after the retries are used up are ours.
pub(crate) fn probe_times() {
    let table: [(&str, u64, usize, u64, &[u64]); 6] = [
        ("fixed_fallback(0, 3s, 3, random)", 3000, 0, 9000, &[0, 3000, 6000]),
        ("fixed_fallback(1, 5s, 2, min_moving_avg)", 5000, 1, 10_000, &[0, 5000]),
        ("fixed_fallback(0, 60s, 5)", 60_000, 0, 300_000, &[0, 60_000, 120_000, 180_000, 240_000]),
        ("fixed_fallback(0)", 3000, 0, 9000, &[0, 3000, 6000]),
        ("fixed_fallback(0, 3s, 1)", 3000, 0, 3000, &[0]),
        ("fixed_fallback(0, 2s, 3)", 500, 0, 1500, &[0, 500, 1000]),
    ];
    for (text, timeout, fixed, until, expected) in table {
        let died = 1_000_000;
        let expected: Vec<u64> = expected.iter().map(|ms| died + ms).collect();
        assert_eq!(probes(exact(text, timeout), fixed, died, died + until), expected, "{text}");
    }
}

/// `retries` 0: no probe of its own, ever.
pub(crate) fn no_retries() {
    assert_eq!(probes(policy("fixed_fallback(0, 3s, 0)"), 0, 1000, 10_000_000), Vec::<u64>::new());
    let mut forest = over(3, "fixed_fallback(0, 3s, 0)");
    round(&mut forest, &[None, Some(20.0), Some(25.0)], 1000);
    assert_eq!(forest.phase(0, TCP), Some(Phase::Exhausted { dead_since: 1000, probe: None }));
    assert_eq!(pick(&forest, TCP), Some(1));
    test(&mut forest, 0, Outcome::Ok(30.0), 31_000);
    assert_eq!(pick(&forest, TCP), Some(0));
}

/// After the retries: 6 s, 12 s, 24 s, then every interval of 30 s. (The source stops probing here, by accident.)
pub(crate) fn probing_goes_on() {
    let at = probes(policy("fixed_fallback(0, 3s, 1)"), 0, 100_000, 100_000 + 140_000);
    let after: Vec<u64> = at.iter().map(|at| at - 100_000).collect();
    assert_eq!(after, [0, 9_000, 21_000, 45_000, 75_000, 105_000, 135_000]);
}

pub(crate) fn new_traffic_leaves_at_once_without_traffic() {
    let mut forest = over(3, "fixed_fallback(0, 3s, 3, min_moving_avg)");
    round(&mut forest, &[Some(30.0), Some(20.0), Some(25.0)], 10);
    assert_eq!(pick(&forest, TCP), Some(0), "the fixed one, though slower");
    let effects = test(&mut forest, 0, Outcome::Failed, 1000);
    assert_eq!(pick(&forest, TCP), Some(1));
    assert!(effects.iter().any(|e| matches!(e, Effect::Switched { from: 0, to: 1, why: Why::Died, .. })));
    assert_eq!(forest.phase(0, TCP), Some(Phase::Retrying { dead_since: 1000, retries: 1, next: 4000 }));
}

pub(crate) fn it_returns_in_the_moment_it_lives() {
    for at in [1001, 4000, 9_999_999] {
        let mut forest = over(2, "fixed_fallback(0, 3s, 3)");
        round(&mut forest, &[None, Some(20.0)], 1000);
        while let Some(due) = forest.due().filter(|due| *due < at) {
            forest.observe(&Event::Tick, due);
        }
        assert_eq!(pick(&forest, TCP), Some(1));
        let effects = test(&mut forest, 0, Outcome::Ok(90.0), at);
        assert_eq!(pick(&forest, TCP), Some(0));
        assert_eq!(forest.phase(0, TCP), Some(Phase::Primary));
        assert!(
            effects.iter().any(|e| matches!(e, Effect::Switched { why: Why::Returned, .. })),
            "{effects:?}"
        );
    }
}

pub(crate) fn traffic_is_no_retry() {
    let mut forest = over(2, "fixed_fallback(0, 3s, 3)");
    round(&mut forest, &[None, Some(20.0)], 1000);
    let before = forest.phase(0, TCP);
    for now in 1001..1200 {
        forest.observe(&Event::Used { group: 0 }, now);
        forest.observe(&Event::DialFailed { leaf: 0, network: TCP }, now);
        pick(&forest, TCP);
    }
    assert_eq!(forest.phase(0, TCP), before);
}

/// A failed dial is enough: no periodic check has to come first.
pub(crate) fn traffic_finds_the_death() {
    let mut forest = over(2, "fixed_fallback(0, 3s, 3)");
    round(&mut forest, &[Some(30.0), Some(20.0)], 1000);
    let effects = forest.observe(&Event::DialFailed { leaf: 0, network: TCP }, 5000);
    assert_eq!(tests(&effects), [0]);
    assert_eq!(pick(&forest, TCP), Some(1));
}

/// The source keeps one state for all networks: UDP alive and TCP dead restart each other's count for ever.
pub(crate) fn one_state_per_network() {
    let mut forest = over(2, "fixed_fallback(0, 3s, 3)");
    let ok = Some(Outcome::Ok(20.0));
    forest.observe(&Event::Tested { group: 0, leaf: 1, outcomes: [ok; 4] }, 900);
    let outcomes = [Some(Outcome::Failed), ok, ok, None];
    forest.observe(&Event::Tested { group: 0, leaf: 0, outcomes }, 1000);
    forest.observe(&Event::Tick, 4000);
    assert_eq!(forest.phase(0, TCP), Some(Phase::Retrying { dead_since: 1000, retries: 2, next: 7000 }));
    for (network, leaf) in [(TCP, 1), (Network::Tcp6, 0), (UDP, 0), (Network::Udp6, 0)] {
        assert_eq!(pick(&forest, network), Some(leaf), "{network:?}");
    }
}

pub(crate) fn a_new_death_starts_anew_after_exhaustion() {
    let mut forest = over(2, "fixed_fallback(0, 3s, 1)");
    round(&mut forest, &[None, Some(20.0)], 1000);
    forest.observe(&Event::Tick, 4000);
    assert!(matches!(forest.phase(0, TCP), Some(Phase::Exhausted { dead_since: 1000, .. })));
    test(&mut forest, 0, Outcome::Ok(1.0), 5000);
    let effects = test(&mut forest, 0, Outcome::Failed, 6000);
    assert_eq!(tests(&effects), [0], "the probe at once");
    assert_eq!(forest.phase(0, TCP), Some(Phase::Retrying { dead_since: 6000, retries: 1, next: 9000 }));
}

pub(crate) fn random_fallback_uses_all_that_live() {
    let mut forest = over(4, "fixed_fallback(0, 3s, 3, random)");
    round(&mut forest, &[None, Some(20.0), None, Some(90.0)], 1000);
    let picked = |random| forest.pick(0, shared::policy::Context { network: TCP, random });
    assert_eq!((0..4).map(picked).collect::<Vec<_>>(), [Some(1), Some(3), Some(1), Some(3)]);
}

pub(crate) fn rise_and_return_delay_hold_a_flapping_one() {
    let mut forest = over(2, "fixed_fallback(0, 3s, 3, rise=2, return_delay=5s)");
    round(&mut forest, &[None, Some(20.0)], 1000);
    test(&mut forest, 0, Outcome::Ok(1.0), 2000);
    assert_eq!(pick(&forest, TCP), Some(1), "one success of two");
    test(&mut forest, 0, Outcome::Ok(1.0), 3000);
    assert_eq!(pick(&forest, TCP), Some(1), "alive, but not for 5 s");
    forest.observe(&Event::Tick, 7999);
    assert_eq!(pick(&forest, TCP), Some(1));
    assert!(forest.due().is_some_and(|due| due <= 8000));
    forest.observe(&Event::Tick, 8000);
    assert_eq!(pick(&forest, TCP), Some(0));
}

/// Everybody dead: the fixed one, never nobody.
pub(crate) fn nobody_lives() {
    let mut forest = over(3, "fixed_fallback(0, 3s, 3)");
    round(&mut forest, &[None, None, None], 1000);
    assert_eq!(pick(&forest, TCP), Some(0));
}

pub(crate) fn the_fallback_policy_is_the_one_written() {
    for (fallback, expected) in [("min", 2), ("min_avg10", 1), ("min_moving_avg", 2)] {
        let mut forest = over(3, &format!("fixed_fallback(0, 3s, 3, {fallback})"));
        // Member 1: 10, then 40. Member 2: 100 nine times, then 5.
        for i in 0..9 {
            round(&mut forest, &[Some(1.0), Some(10.0), Some(60.0)], i);
        }
        round(&mut forest, &[None, Some(40.0), Some(5.0)], 10);
        // min: 40 and 5; mean of ten: 13 and 54.5; moving: 25 and 32.5.
        let expected = if fallback == "min_moving_avg" { 1 } else { expected };
        assert_eq!(pick(&forest, TCP), Some(expected), "{fallback}");
    }
    let Policy::FixedFallback { fallback, .. } = policy("fixed_fallback(0)") else { panic!() };
    assert_eq!(fallback, Fallback::Min(Latency::Moving));
}

proptest! {
    /// One runner at most: between two news of life, retries are spaced by the timeout and no more than allowed.
    #[test]
    fn never_two_runners(
        events in prop::collection::vec((0u64..3000, prop::option::of(any::<bool>())), 0..80),
        timeout_ms in 1u64..3000,
        retries in 0u32..5,
    ) {
        let rules = Rules { timeout_ms, retries, interval_ms: 30_000 };
        let mut phase = Phase::Primary;
        let (mut now, mut last, mut count) = (0u64, None::<u64>, 0u32);
        for (after, event) in events {
            let until = now + after;
            while let Some(due) = phase.due().filter(|due| *due <= until) {
                now = due;
                let retrying = matches!(phase, Phase::Retrying { .. });
                if phase.tick(now, rules) {
                    prop_assert!(last.is_none_or(|last| now - last >= timeout_ms));
                    last = Some(now);
                    if retrying { count += 1; }
                    prop_assert!(count <= retries);
                }
            }
            now = until;
            match event {
                Some(true) => {
                    prop_assert!(!phase.observe(true, now, rules));
                    prop_assert_eq!(phase, Phase::Primary);
                    (last, count) = (None, 0);
                }
                Some(false) => {
                    let primary = phase == Phase::Primary;
                    let probed = phase.observe(false, now, rules);
                    prop_assert_eq!(probed, primary && retries > 0, "only the first bad news starts a runner");
                    if probed { (last, count) = (Some(now), 1); }
                }
                None => {}
            }
        }
    }
}
