//! The rules of `best` on the traces of [`shared::replay`].
#![cfg(not(target_arch = "wasm32"))]

use shared::best_exit::{DecisionRules, Settings};
use shared::replay::best::Best;
use shared::replay::families::{HELD_OUT, TUNING};
use shared::replay::groups::GroupRule;
use shared::replay::scenarios::{self, Judged};
use shared::replay::{Exit, Rule, Script, Trace, run};

const PENALTY: f64 = 100.0;

fn adaptive() -> Best {
    let settings = Settings { decision_rules: DecisionRules::Adaptive, ..Settings::default() };
    Best::new("adaptive", settings)
}

#[test]
fn adaptive_is_accepted_in_every_scenario() {
    for scenario in scenarios::all(true) {
        let (accepted, detail) = match scenario.judged {
            Judged::Traces(traces, judge) => {
                let runs: Vec<_> = traces.iter().map(|trace| run(&mut adaptive(), trace, PENALTY)).collect();
                judge(&runs)
            }
            Judged::Value(accepted, detail) => (accepted, detail),
            Judged::Elsewhere(_) => continue,
        };
        assert!(accepted, "{} {}: {detail}; accepted is: {}", scenario.id, scenario.what, scenario.accept);
    }
}

/// A judge that accepts everything would prove nothing: who never moves is refused wherever moving is right.
#[test]
fn who_never_moves_is_refused_where_moving_is_right() {
    let mut refused = Vec::new();
    for scenario in scenarios::all(true) {
        let Judged::Traces(traces, judge) = scenario.judged else { continue };
        let fixed = || GroupRule::new("fixed(0)").unwrap();
        let runs: Vec<_> = traces.iter().map(|trace| run(&mut fixed(), trace, PENALTY)).collect();
        if !judge(&runs).0 {
            refused.push(scenario.id);
        }
    }
    assert_eq!(refused, ["03", "05", "07", "09", "10", "11", "12", "13", "19", "21", "23", "29", "31"]);
}

/// And who goes to and fro is refused wherever staying is right.
#[test]
fn who_goes_to_and_fro_is_refused_everywhere() {
    struct Nervous;
    impl Rule for Nervous {
        fn name(&self) -> &str {
            "nervous"
        }
        fn second(
            &mut self,
            world: &shared::replay::World<'_>,
            _random: &mut shared::replay::Random,
        ) -> shared::replay::Pick {
            shared::replay::Pick::plain(usize::from(world.now / 1000 % 2 == 1))
        }
    }
    for scenario in scenarios::all(true) {
        let Judged::Traces(traces, judge) = scenario.judged else { continue };
        let runs: Vec<_> = traces.iter().map(|trace| run(&mut Nervous, trace, PENALTY)).collect();
        // The relay that is dead behind an open port is about leaving it only.
        assert!(!judge(&runs).0 || ["13", "17"].contains(&scenario.id), "{}", scenario.id);
    }
}

#[test]
fn switches_name_the_leg_and_the_margin() {
    let reasons = |id: &str| {
        let scenario = scenarios::all(true).into_iter().find(|scenario| scenario.id == id).unwrap();
        let Judged::Traces(traces, _) = scenario.judged else { panic!("{id}") };
        let run = run(&mut adaptive(), &traces[0], PENALTY);
        let told = run.reasons.iter().filter(|(_, reason)| reason.code() == "switched");
        told.map(|(_, reason)| reason.describe(&|exit| format!("#{exit}"))).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(reasons("12"), "switched from #0, which had failed, to #1 (exit -> target does not work)");
    assert!(reasons("03").contains("(owner -> exit rose for 3 rounds, "), "{}", reasons("03"));
    assert!(reasons("05").contains("owner -> exit loses more than before"), "{}", reasons("05"));
}

#[test]
fn the_same_seed_gives_the_same_result() {
    for family in TUNING.iter().chain(&HELD_OUT) {
        let mut trace = (family.1)(7);
        trace.length_ms = trace.length_ms.min(3_600_000);
        let (a, b) = (run(&mut adaptive(), &trace, PENALTY), run(&mut adaptive(), &trace, PENALTY));
        assert_eq!(a.switches, b.switches, "{}", family.0);
        assert_eq!(a.mean_excess_ms.to_bits(), b.mean_excess_ms.to_bits(), "{}", family.0);
    }
}

#[test]
fn to_and_fro_between_equals_is_rarer_than_by_the_classic_rules() {
    let (mut adaptive_switches, mut classic_switches) = (0, 0);
    for seed in 1..5 {
        let trace = (TUNING[0].1)(seed);
        adaptive_switches += run(&mut adaptive(), &trace, PENALTY).switches.len();
        classic_switches +=
            run(&mut Best::new("classic", Settings::default()), &trace, PENALTY).switches.len();
    }
    assert!(adaptive_switches * 20 < classic_switches, "{adaptive_switches} and {classic_switches}");
}

/// An exit that loses a lot from the first round on, before anything is known of it: what is certain is enough, however
/// young the memory. 16 rounds show it, or half as many more where few of their samples are lost.
#[test]
fn a_heavy_loss_from_the_very_beginning_is_left_soon() {
    let settings = Settings { decision_rules: DecisionRules::Adaptive, ping_count: 2, ..Settings::default() };
    let limit_ms = settings.round_interval_ms * 24;
    for seed in 0..50 {
        let exit = |ms: f64| Exit::new(Script::new(ms, 0.5), Script::new(5.0, 0.5));
        let mut first = exit(5.0);
        first.a = first.a.lossy(0.3);
        let trace = Trace::new(seed, 1_800_000, vec![first, exit(15.0), exit(40.0)]);
        let run = run(&mut Best::new("adaptive", settings.clone()), &trace, PENALTY);
        let [switch] = run.switches[..] else { panic!("seed {seed}: {:?}", run.switches) };
        assert_eq!((switch.from, switch.to), (0, 1), "seed {seed}");
        assert!(switch.at <= limit_ms, "seed {seed}: after {} ms", switch.at);
    }
}
