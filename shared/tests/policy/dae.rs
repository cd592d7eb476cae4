//! dae's `fixed`, `min`, `min_avg10`, `min_moving_avg`, and its health of members.

use crate::rig::*;
use proptest::prelude::*;
use shared::policy::health::State;
use shared::policy::*;
use std::collections::BTreeMap;

pub(crate) fn fixed_is_fixed() {
    let mut forest = over(3, "fixed(1)");
    round(&mut forest, &[Some(1.0), None, Some(1.0)], 1);
    for network in Network::ALL {
        assert_eq!(pick(&forest, network), Some(1));
    }
    // Nobody asks how it does.
    assert_eq!(forest.observe(&Event::Started, 0), []);
    assert_eq!(forest.due(), None);
    let specs = vec![group("g", &["a", "b"], policy("fixed(2)"))];
    let error = Forest::new(leaves(&["a", "b"]), specs, &BTreeMap::new()).unwrap_err();
    assert_eq!(error.to_string(), "g: there is no member 2; the last is 1");
}

pub(crate) fn each_min_looks_at_its_own_latency() {
    // Last: 40 and 5. Mean of ten: (9*10 + 40)/10 = 13 and (9*100 + 5)/10 = 90.5. Moving: 25 and 52.5.
    for (text, expected) in [("min", 1), ("min_avg10", 0), ("min_moving_avg", 0)] {
        let mut forest = over(2, text);
        for i in 0..9 {
            round(&mut forest, &[Some(10.0), Some(100.0)], i);
        }
        round(&mut forest, &[Some(40.0), Some(5.0)], 10);
        assert_eq!(pick(&forest, TCP), Some(expected), "{text}");
        let health = forest.health(0, 0, TCP).unwrap();
        assert_eq!(health.latency(Latency::Last), Some(40.0));
        assert_eq!(health.latency(Latency::Avg10), Some(13.0));
        assert_eq!(health.latency(Latency::Moving), Some(25.0));
    }
}

pub(crate) fn the_mean_is_over_ten_at_most_and_over_fewer_from_the_first() {
    let mut forest = over(1, "min_avg10");
    for i in 1u32..=12 {
        test(&mut forest, 0, Outcome::Ok(f64::from(i)), u64::from(i));
        let from = i.saturating_sub(9).max(1);
        let mean = f64::midpoint(f64::from(from), f64::from(i));
        assert_eq!(forest.health(0, 0, TCP).unwrap().latency(Latency::Avg10), Some(mean));
    }
}

/// dae starts at 0, so a new member looks twice as fast as it is and steals the choice.
pub(crate) fn averages_start_at_the_first_sample() {
    let mut forest = over(2, "min_moving_avg");
    round(&mut forest, &[Some(60.0)], 1);
    test(&mut forest, 1, Outcome::Ok(100.0), 2);
    assert_eq!(forest.health(0, 1, TCP).unwrap().latency(Latency::Moving), Some(100.0));
    assert_eq!(pick(&forest, TCP), Some(0));
}

pub(crate) fn one_failure_kills_and_one_success_revives() {
    let mut forest = over(2, "min");
    round(&mut forest, &[Some(10.0), Some(50.0)], 1);
    test(&mut forest, 0, Outcome::Failed, 2);
    assert_eq!(forest.health(0, 0, TCP).unwrap().state, State::Dead);
    assert_eq!(pick(&forest, TCP), Some(1));
    test(&mut forest, 0, Outcome::Ok(10.0), 3);
    assert_eq!(pick(&forest, TCP), Some(0));
}

pub(crate) fn fall_and_rise_can_be_set() {
    let mut forest = over(2, "min(fall=3, rise=2)");
    round(&mut forest, &[Some(10.0), Some(50.0)], 1);
    for (i, (outcome, expected)) in [
        (Outcome::Failed, 0),
        (Outcome::Failed, 0),
        (Outcome::Ok(10.0), 0),
        (Outcome::Failed, 0),
        (Outcome::Failed, 0),
        (Outcome::Failed, 1),
        (Outcome::Ok(10.0), 1),
        (Outcome::Ok(10.0), 0),
    ]
    .into_iter()
    .enumerate()
    {
        test(&mut forest, 0, outcome, 2 + i as u64);
        assert_eq!(pick(&forest, TCP), Some(expected), "step {i}");
    }
}

/// A failure is no sample of 10 s: the mean stays what the successes were.
pub(crate) fn failures_are_not_latencies() {
    let mut forest = over(1, "min_avg10");
    for outcome in [Outcome::Ok(10.0), Outcome::Failed, Outcome::Ok(20.0)] {
        test(&mut forest, 0, outcome, 1);
    }
    assert_eq!(forest.health(0, 0, TCP).unwrap().latency(Latency::Avg10), Some(15.0));
}

pub(crate) fn six_domains_are_kept_apart() {
    let mut forest = over(2, "min");
    let outcomes =
        [Some(Outcome::Ok(10.0)), Some(Outcome::Failed), Some(Outcome::Failed), Some(Outcome::Ok(10.0))];
    forest.observe(&Event::Tested { group: 0, leaf: 0, outcomes }, 1);
    forest.observe(&Event::Tested { group: 0, leaf: 1, outcomes: [Some(Outcome::Ok(50.0)); 4] }, 1);
    let picked = Network::ALL.map(|network| pick(&forest, network));
    assert_eq!(picked, [Some(0), Some(1), Some(1), Some(0)]);
}

pub(crate) fn untested_udp_follows_tcp_of_its_family() {
    let mut forest = over(2, "min");
    round(&mut forest, &[None, Some(50.0)], 1);
    assert_eq!(pick(&forest, UDP), Some(1));
}

/// dae counts a member without IPv6 as alive there.
pub(crate) fn a_lacking_family_is_neither_alive_nor_dead() {
    let mut forest = over(2, "min");
    let outcomes = [Some(Outcome::Ok(1.0)), Some(Outcome::NotApplicable), None, None];
    forest.observe(&Event::Tested { group: 0, leaf: 0, outcomes }, 1);
    forest.observe(&Event::Tested { group: 0, leaf: 1, outcomes: [Some(Outcome::Ok(90.0)); 4] }, 1);
    assert_eq!(pick(&forest, Network::Tcp4), Some(0));
    assert_eq!(pick(&forest, Network::Tcp6), Some(1));
    assert_eq!(forest.health(0, 0, Network::Tcp6).unwrap().state, State::NotApplicable);
}

pub(crate) fn one_member_is_used_dead_or_alive() {
    let mut forest = over(1, "min");
    round(&mut forest, &[None], 1);
    assert_eq!(pick(&forest, TCP), Some(0));
}

/// dae answers with an error; an error for every connection is no better than a member that may be back.
pub(crate) fn nobody_alive_keeps_the_choice_and_tests_all_with_traffic() {
    let mut forest = over(3, "min");
    round(&mut forest, &[Some(30.0), Some(10.0), Some(20.0)], 1);
    round(&mut forest, &[None, Some(10.0), None], 2);
    round(&mut forest, &[None, None, None], 3);
    assert_eq!(pick(&forest, TCP), Some(1));
    let mut asked = tests(&forest.observe(&Event::DialFailed { leaf: 1, network: TCP }, 10_000));
    asked.sort_unstable();
    assert_eq!(asked, [0, 1, 2]);
}

/// dae drops the tolerance when the best is faster than it.
pub(crate) fn tolerance_holds_for_fast_members_too() {
    for base in [10.0, 200.0] {
        for (gain, switches) in [(49.9, false), (50.0, true)] {
            let mut forest = over(2, "min(tolerance=50ms)");
            round(&mut forest, &[Some(base + gain), Some(base + 500.0)], 1);
            round(&mut forest, &[Some(base + gain), Some(base)], 2);
            assert_eq!(pick(&forest, TCP), Some(usize::from(switches)), "{base} {gain}");
        }
    }
    // With a tolerance of 0 an equal member does not take over.
    let mut forest = over(2, "min");
    round(&mut forest, &[Some(10.0), Some(10.0)], 1);
    assert_eq!(pick(&forest, TCP), Some(0));
}

pub(crate) fn add_latency_counts_everywhere() {
    let mut members = leaves(&["a", "b"]);
    members[0].add_latency_ms = 100.0;
    members[1].add_latency_ms = -10.0;
    let specs = vec![group("g", &["a", "b"], policy("min"))];
    let mut forest = Forest::new(members, specs, &BTreeMap::new()).unwrap();
    round(&mut forest, &[Some(20.0), Some(110.0)], 1);
    assert_eq!(pick(&forest, TCP), Some(1), "120 and 100");
    assert_eq!(pick(&forest, UDP), Some(1));
}

pub(crate) fn checks_every_interval() {
    let mut forest = over(2, "min(interval=30s)");
    assert_eq!(tests(&forest.observe(&Event::Started, 0)), [0, 1]);
    round(&mut forest, &[Some(1.0), Some(1.0)], 5);
    assert_eq!(forest.due(), Some(30_000));
    assert_eq!(tests(&forest.observe(&Event::Tick, 30_000)), [0, 1]);
}

proptest! {
    /// A latency that cannot be is a failure.
    #[test]
    fn impossible_latencies_kill(ms in any::<f64>()) {
        let mut forest = over(2, "min");
        test(&mut forest, 0, Outcome::Ok(ms), 1);
        let alive = forest.health(0, 0, TCP).unwrap().state == State::Alive;
        prop_assert_eq!(alive, ms.is_finite() && ms >= 0.0);
    }
}
