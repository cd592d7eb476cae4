//! Histories: the file, and what a replay makes of it.
#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use proptest::prelude::*;
use shared::api::{LegHistory, LegPoint};
use shared::best_exit::{DecisionRules, Leg, LegFailure, Settings};
use shared::ids::NodeId;
use shared::replay::history::{History, HistoryError, OwnerHistory, Recorded};
use shared::replay::report::{Outcome, ReplayError, Report, Request, replay, with_setting};

/// Rounds of 5 s over two exits; `leg_a(exit, round)` is the way there, and 20 ms are the rest.
fn history(rounds: i64, leg_a: impl Fn(usize, i64) -> Leg) -> History {
    let rest = || Recorded(Leg::Measured { latency_ms: 20.0, loss: 0.0 });
    let round =
        |n| (1_790_000_000_000 + n * 5000, (0..2).map(|exit| (Recorded(leg_a(exit, n)), rest())).collect());
    let owner = OwnerHistory {
        owner: "entry".into(),
        exits: vec!["a".into(), "b".into()],
        rounds: (0..rounds).map(round).collect(),
    };
    History { version: 1, name: "hk".into(), settings: Settings::default(), owners: vec![owner] }
}

fn ms(latency_ms: f64) -> Leg {
    Leg::Measured { latency_ms, loss: 0.0 }
}

fn outcome<'a>(report: &'a Report, policy: &str) -> &'a Outcome {
    report.policies.iter().find(|outcome| outcome.policy == policy).unwrap()
}

#[test]
fn the_documented_file_is_read_and_written_again() {
    let text = r#"{ "exitpilotHistory": 1, "name": "hk-best",
      "settings": { "roundIntervalMs": 5000, "pingCount": 4 },
      "owners": [ { "owner": "entry-1", "exits": ["hk-1", "hk-2"], "rounds": [
        [1785542400000, [ [[31.2, 0], [18.4, 0.25]], [[40.1, 0], "all_lost"] ]],
        [1785542405000, [ [[31.0, 0], [18.9, 0]], [[39.8, 0], null] ]] ] } ] }"#;
    let history = History::parse(text).unwrap();
    let exits = &history.owners[0].rounds[0].1;
    assert_eq!(exits[0].1.0, Leg::Measured { latency_ms: 18.4, loss: 0.25 });
    assert_eq!(exits[1].1.0, Leg::Failed { reason: LegFailure::AllLost });
    assert!(matches!(history.owners[0].rounds[1].1[1].1.0, Leg::Unmeasured { .. }));
    let written = serde_json::to_string(&history).unwrap();
    assert_eq!(History::parse(&written).unwrap(), history);
}

#[test]
fn what_is_no_history_is_refused_with_its_place() {
    let mut wrong = history(3, |_, _| ms(10.0));
    wrong.owners[0].rounds[2].1.pop();
    assert_eq!(wrong.check().unwrap_err().to_string(), "owners[0].rounds[2]: 1 exits, not 2");
    let mut wrong = history(3, |_, _| ms(10.0));
    wrong.owners[0].rounds[2].0 = 0;
    assert!(wrong.check().unwrap_err().to_string().contains("owners[0].rounds[2]: not later"));
    assert_eq!(history(1, |_, _| ms(10.0)).check(), Err(HistoryError::Empty));
    assert!(
        History::parse(r#"{"exitpilotHistory":2,"name":"","owners":[]}"#)
            .unwrap_err()
            .to_string()
            .contains("version 2")
    );
    for text in ["", "{}", "[]", "[1]", r#"{"exitpilotHistory":1,"name":"","owners":[],"more":1}"#] {
        assert!(History::parse(text).is_err(), "{text}");
    }
    let wild = r#"{"exitpilotHistory":1,"name":"","settings":{"confirmations":0},"owners":[]}"#;
    assert!(History::parse(wild).unwrap_err().to_string().contains("settings.confirmations"));
}

/// The panel's own answer, as `GET /tunnels/{id}/quality` gives it.
#[test]
fn legs_are_put_together_to_rounds() {
    let leg = |from, exit, leg: &str, points: &[(i64, Option<f64>, Option<f64>)]| LegHistory {
        from_node_id: NodeId(from),
        target: String::new(),
        exit_node_id: NodeId(exit),
        leg: leg.into(),
        points: points
            .iter()
            .map(|(at, latency_ms, loss)| LegPoint { at: *at, latency_ms: *latency_ms, loss: *loss })
            .collect(),
    };
    let legs = [
        leg(1, 30, "a", &[(100, Some(5.0), Some(0.25)), (200, None, Some(1.0))]),
        leg(1, 31, "a", &[(100, Some(9.0), Some(0.0))]),
        leg(30, 30, "b", &[(50, Some(1.0), Some(0.0)), (100, Some(7.0), Some(0.0))]),
        leg(31, 31, "b", &[(100, None, None), (200, Some(8.0), Some(0.0))]),
    ];
    let history = History::parse(&serde_json::to_string(&legs).unwrap()).unwrap();
    let [owner] = &history.owners[..] else { panic!("{history:?}") };
    assert_eq!(
        (owner.owner.as_str(), &owner.exits[..]),
        ("node 1", &["node 30".to_owned(), "node 31".to_owned()][..])
    );
    let states: Vec<(i64, Vec<[bool; 2]>)> = owner
        .rounds
        .iter()
        .map(|(at, exits)| {
            (*at, exits.iter().map(|(a, b)| [a.0.numbers().is_some(), b.0.numbers().is_some()]).collect())
        })
        .collect();
    assert_eq!(
        states,
        [(100, vec![[true, true], [true, false]]), (200, vec![[false, false], [false, true]])]
    );
    assert_eq!(owner.rounds[1].1[0].0.0, Leg::Failed { reason: LegFailure::AllLost });
}

/// A is 10 ms and after half an hour 200 ms, B is 60 ms: an hour of rounds.
fn step() -> History {
    history(720, |exit, round| {
        ms(if exit == 1 {
            60.0
        } else if round < 360 {
            10.0
        } else {
            200.0
        })
    })
}

#[test]
fn a_replay_tells_what_each_way_of_choosing_costs() {
    let policies = ["fixed(0)".to_owned(), "min".to_owned()].to_vec();
    let report = replay(&step(), &Request { policies, ..Request::default() }).unwrap();
    assert!((report.days - 1.0 / 24.0).abs() < 1e-3 && report.owners == 1);
    let fixed = outcome(&report, "fixed(0)");
    assert!((fixed.mean_excess_ms - 70.0).abs() < 1.0, "half an hour 140 ms too long: {fixed:?}");
    assert_eq!((fixed.switches, fixed.detection_ms, fixed.undetected), (0, None, 0));
    let classic = outcome(&report, "best, classic");
    // Three rounds, the first of them at the step itself.
    assert_eq!(
        (classic.switches, classic.needless_switches, classic.detection_ms),
        (1, 0, Some(10_000)),
        "{classic:?}"
    );
    let adaptive = outcome(&report, "best, adaptive");
    assert_eq!(adaptive.switches, 1, "{adaptive:?}");
    assert!(adaptive.mean_excess_ms < 3.0 && classic.mean_excess_ms < 3.0);
    assert_eq!(outcome(&report, "min").switches, 1);
    assert!(report.table().contains("fixed(0)"));
}

#[test]
fn a_report_says_when_each_way_would_have_chosen_what() {
    let policies = vec!["fixed(1)".to_owned()];
    let report = replay(&step(), &Request { policies, ..Request::default() }).unwrap();
    let [course] = &report.courses[..] else { panic!("{:?}", report.courses) };
    let start = 1_790_000_000_000;
    assert_eq!((course.owner.as_str(), course.from, course.to), ("entry", start, start + 720 * 5000));
    // The step is in round 360; three rounds confirm it.
    let classic = vec![(start, 0), (start + 362 * 5000, 1)];
    assert_eq!((&course.choices[0], &course.choices[2]), (&classic, &vec![(start, 1)]));
    let classic = outcome(&report, "best, classic");
    let (fixed, share) = (outcome(&report, "fixed(1)"), classic.best_share);
    assert!((fixed.best_share - 0.5).abs() < 0.01 && (0.99..1.0).contains(&share), "{share} {fixed:?}");
    let mean = fixed.mean_latency_ms.unwrap();
    assert!((mean - 80.0).abs() < 0.1, "60 ms and the rest: {mean}");
}

/// Side by side or one after the other, what each would have done is the same.
#[test]
fn ways_of_choosing_do_not_see_each_other() {
    let history = noise(2000);
    let together = vec!["min".to_owned(), "urltest(tolerance=5ms)".to_owned()];
    let all = replay(&history, &Request { policies: together.clone(), ..Request::default() }).unwrap();
    for policy in together {
        let alone = replay(&history, &Request { policies: vec![policy.clone()], ..Request::default() });
        assert_eq!(outcome(&alone.unwrap(), &policy), outcome(&all, &policy));
    }
}

#[test]
fn time_on_what_does_not_work_is_counted_and_gaps_are_not() {
    let dead = |exit, round| {
        if exit == 0 && round >= 360 {
            Leg::Failed { reason: LegFailure::AllLost }
        } else {
            ms(10.0 + 50.0 * exit as f64)
        }
    };
    let mut history = history(720, dead);
    let policies = vec!["fixed(0)".to_owned()];
    let request = Request { policies, ..Request::default() };
    let unusable = |history: &History| outcome(&replay(history, &request).unwrap(), "fixed(0)").unusable_ms;
    assert_eq!(unusable(&history), 1_800_000);
    // Nothing was measured for ten minutes of it.
    history.owners[0]
        .rounds
        .retain(|(at, _)| !(at - 1_790_000_000_000 > 2_000_000 && at - 1_790_000_000_000 <= 2_600_000));
    assert_eq!(unusable(&history), 1_800_000 - 600_000);
}

#[test]
fn settings_are_changed_by_name_and_only_those_that_decide() {
    let all = Settings::default();
    assert_eq!(with_setting(&all, "cooldownMs", "60000").unwrap().cooldown_ms, 60_000);
    assert_eq!(
        with_setting(&all, "decisionRules", "adaptive").unwrap().decision_rules,
        DecisionRules::Adaptive
    );
    for (name, value, says) in [
        ("pingCount", "3", "no setting of how to decide"),
        ("confirmations", "0", "between 1 and 100"),
        ("confirmations", "many", "invalid type"),
        ("decisionRules", "wild", "unknown variant"),
    ] {
        let error = with_setting(&all, name, value).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}: ")) && error.contains(says), "{error}");
    }
    let slow = [("confirmations".to_owned(), "30".to_owned())].to_vec();
    let report = replay(&step(), &Request { set: slow, ..Request::default() }).unwrap();
    assert_eq!(outcome(&report, "best, classic").detection_ms, Some(145_000));
}

#[test]
fn policies_that_no_group_executes_are_refused() {
    let with = |text: &str| replay(&step(), &Request { policies: vec![text.into()], ..Request::default() });
    assert!(matches!(with("fifo"), Err(ReplayError::NoGroup(_))));
    assert_eq!(
        with("min(").unwrap_err().to_string(),
        "policy `min(`: at character 5: expected a value, but the text ends"
    );
}

/// Two equal exits that lose one sample in 50 at random: the classic rules move all the time, and for nothing.
fn noise(rounds: i64) -> History {
    let mut random = shared::replay::Random::new(5);
    let mut legs: Vec<Leg> = Vec::new();
    for _ in 0..rounds * 2 {
        let loss = if random.chance(0.08) { 0.25 } else { 0.0 };
        legs.push(Leg::Measured { latency_ms: 50.0 + random.between(0.0, 4.0), loss });
    }
    history(rounds, move |exit, round| legs[usize::try_from(round).unwrap() * 2 + exit].clone())
}

#[test]
fn a_suggestion_says_why() {
    let report = replay(&noise(17_280), &Request { suggest: true, ..Request::default() }).unwrap();
    let suggestion = report.suggestion.unwrap();
    let in_force = suggestion.tried.iter().find(|tried| {
        tried.decision_rules == DecisionRules::Classic
            && tried.confirmations == 3
            && tried.cooldown_ms == 30_000
            && tried.min_advantage_ratio == 0.15
    });
    assert!(in_force.unwrap().false_switches_per_day > 1.0, "{in_force:?}");
    let chosen = &suggestion.tried[0];
    assert!(chosen.false_switches_per_day <= 1.0, "{chosen:?}");
    assert!(
        !suggestion.changes.is_empty() && suggestion.why.starts_with("Suggested: "),
        "{}",
        suggestion.why
    );
    let named: Vec<&str> = suggestion.changes.iter().map(|change| change.name.as_str()).collect();
    let mut settings = Settings::default();
    for change in &suggestion.changes {
        settings = with_setting(&settings, &change.name, &change.to).unwrap();
    }
    assert_eq!(settings, suggestion.settings, "{named:?}");
}

/// Nothing to gain: what is in force stays, and a short history says that it is short.
#[test]
fn good_settings_stay() {
    let quiet = history(720, |exit, _| ms(30.0 + 40.0 * exit as f64));
    let report = replay(&quiet, &Request { suggest: true, ..Request::default() }).unwrap();
    let suggestion = report.suggestion.clone().unwrap();
    assert_eq!((suggestion.changes.len(), suggestion.settings), (0, Settings::default()));
    assert!(
        suggestion.why.starts_with("The settings that were replayed stay")
            && suggestion.why.contains("1.0 hours"),
        "{}",
        suggestion.why
    );
    assert!(report.table().contains("suggestion"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any text: an error or a history that can be replayed, and never a panic; numbers stay possible.
    #[test]
    fn any_history_is_refused_or_replayed(
        rounds in prop::collection::vec((0i64..100_000, prop::collection::vec((0u8..6, 0.0f64..2000.0, 0.0f64..1.0), 6)), 2..60),
    ) {
        let leg = |(kind, ms, loss): (u8, f64, f64)| match kind {
            0 => Leg::Unmeasured { reason: String::new() },
            1 => Leg::Failed { reason: LegFailure::Refused },
            2 => Leg::Failed { reason: LegFailure::AllLost },
            _ => Leg::Measured { latency_ms: ms, loss },
        };
        let mut at = 0;
        let mut history = history(0, |_, _| ms(1.0));
        history.owners[0].exits.push("c".into());
        for (after, legs) in rounds {
            at += after + 1;
            let exits = legs.chunks(2).map(|pair| (Recorded(leg(pair[0])), Recorded(leg(pair[1])))).collect();
            history.owners[0].rounds.push((at, exits));
        }
        let text = serde_json::to_string(&history).unwrap();
        let read = History::parse(&text).unwrap();
        let policies = vec!["urltest".to_owned(), "fixed_fallback(1)".to_owned()];
        let report = replay(&read, &Request { policies, ..Request::default() }).unwrap();
        for outcome in &report.policies {
            prop_assert!(outcome.mean_excess_ms.is_finite() && outcome.mean_excess_ms >= 0.0, "{outcome:?}");
            prop_assert!(outcome.needless_switches <= outcome.switches);
        }
    }

    #[test]
    fn wild_texts_do_not_panic(text in ".{0,200}") {
        let _ = History::parse(&text);
    }
}
