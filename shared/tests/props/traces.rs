//! `classic` on every trace of [`shared::replay`]: in each round it says what its rules imply.

use crate::check_against_the_rules;
use crate::trace::{Answer, Step};
use shared::best_exit::Settings;
use shared::replay::best::Best;
use shared::replay::families::{HELD_OUT, TUNING};
use shared::replay::scenarios::{self, Judged};
use shared::replay::{Random, Trace, World};

/// The oracle asks the whole past in every round, so a trace's most interesting half hour has to do.
const ROUNDS: u64 = 360;

/// The rounds of a trace as the driver takes them.
fn steps(trace: &Trace, settings: &Settings) -> Vec<Step> {
    let mut random = Random::new(trace.seed);
    let best = Best::new("", settings.clone());
    let from = trace.onset.unwrap_or(1_200_000).saturating_sub(300_000);
    let mut refusals = trace.refusals;
    let mut after_ms = 0;
    let mut steps = Vec::new();
    for round in 0..ROUNDS {
        let now = from + round * settings.round_interval_ms;
        after_ms += settings.round_interval_ms;
        if now >= trace.length_ms || shared::replay::trace::within(&trace.gaps, now) {
            continue;
        }
        let pin = trace.pins.iter().find(|(from, to, _)| (*from..*to).contains(&now));
        let restart = trace.restarts.iter().any(|at| (now..now + settings.round_interval_ms).contains(at));
        let answer = if refusals > 0 { Answer::Refuse } else { Answer::Accept };
        steps.push(Step {
            after_ms,
            complete: true,
            monitoring: true,
            online: !shared::replay::trace::within(&trace.offline, now),
            candidates: best.measure(&World { trace, now, truths: &[] }, &mut random),
            pin: pin.map(|(_, _, exit)| shared::replay::best::node(*exit)),
            answer,
            restart,
        });
        after_ms = 0;
        // However many the trace wants to be refused, at most that many rounds refuse.
        refusals = refusals.saturating_sub(u32::from(now >= trace.onset.unwrap_or(0)));
    }
    steps
}

#[test]
fn classic_fulfils_its_spec_on_every_trace() {
    let settings = Settings::default();
    let mut count = 0;
    for scenario in scenarios::all(true) {
        let Judged::Traces(traces, _) = scenario.judged else { continue };
        for trace in traces.iter().take(2) {
            check_against_the_rules(settings.clone(), &steps(trace, &settings)).unwrap();
            count += 1;
        }
    }
    for family in TUNING.iter().chain(&HELD_OUT) {
        check_against_the_rules(settings.clone(), &steps(&(family.1)(3), &settings)).unwrap();
        count += 1;
    }
    assert!(count > 50, "{count}");
}
