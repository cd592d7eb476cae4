//! Steps, drift, oscillation and days: latency alone.

use super::{
    FOREVER, HOUR, MINUTE, SECOND, Scenario, WARM, change_a, left_once, most, never, onset, path, seeded,
    traces,
};
use crate::best_exit::Reason;
use crate::replay::run::Run;
use crate::replay::trace::{Exit, Trace, What};

pub(super) fn latency(day: u64, some: u64) -> Vec<Scenario> {
    vec![
        traces(
            "01",
            "A 90 ms, B 110 ms, both clean, a day",
            "0 switches",
            seeded(1, some.min(2), |seed| Trace::new(seed, day, vec![path(90.0, 2.0), path(110.0, 2.0)])),
            never,
        ),
        traces(
            "03",
            "A 90 → 190 ms, B 110 ms",
            "one switch after 10 to 25 s, then none for an hour",
            seeded(3, some * 2, |seed| {
                onset(
                    Trace::new(
                        seed,
                        WARM + HOUR,
                        vec![change_a(path(90.0, 2.0), WARM, FOREVER, What::Add(100.0)), path(110.0, 2.0)],
                    ),
                    WARM,
                )
            }),
            |runs| left_once(runs, 10, 25),
        ),
        traces(
            "04",
            "A 90 → 115 ms, B 110 ms",
            "0 switches, the reason says 5 ms of the margin",
            seeded(4, some, |seed| {
                Trace::new(
                    seed,
                    WARM + HOUR,
                    vec![change_a(path(90.0, 1.0), WARM, FOREVER, What::Add(25.0)), path(110.0, 1.0)],
                )
            }),
            |runs| {
                let told = |run: &Run| {
                    run.reasons.iter().any(|(_, reason)| matches!(reason,
                    Reason::InsufficientAdvantage { have_ms, need_ms, .. } if *have_ms < *need_ms && *need_ms >= 17.0))
                };
                let (good, detail) = never(runs);
                let told = runs.iter().filter(|run| told(run)).count();
                (good, format!("{detail}; margin told in {told}"))
            },
        ),
        traces(
            "08",
            "A flips 70/170 ms every 40 s, B 110 ms, a day",
            "at most 6 switches",
            seeded(8, some.min(2), |seed| {
                Trace::new(
                    seed,
                    day,
                    vec![
                        change_a(path(70.0, 2.0), WARM, FOREVER, What::Square(40 * SECOND, 100.0)),
                        path(110.0, 2.0),
                    ],
                )
            }),
            |runs| (most(runs) <= 6, format!("most {}", most(runs))),
        ),
        traces(
            "09",
            "A 90 ms + 1 ms per minute for 3 h, B 110 ms",
            "one switch within 10 rounds of A passing the margin",
            // 20 ms and 15 % of A are passed at 130 ms.
            seeded(9, some, |seed| {
                onset(
                    Trace::new(
                        seed,
                        WARM + 3 * HOUR,
                        vec![change_a(path(90.0, 1.0), WARM, FOREVER, What::Ramp(1.0)), path(110.0, 1.0)],
                    ),
                    WARM,
                )
            }),
            |runs| {
                let crossing = WARM + 40 * MINUTE;
                let good = |run: &&Run| {
                    run.switches.len() == 1 && run.switches[0].at.abs_diff(crossing) <= 52 * SECOND
                };
                let offs: Vec<i64> = runs
                    .iter()
                    .flat_map(|run| &run.switches)
                    .map(|switch| (switch.at as i64 - crossing as i64) / 5000)
                    .collect();
                (
                    runs.iter().filter(good).count() == runs.len(),
                    format!("rounds after the crossing: {offs:?}"),
                )
            },
        ),
        traces(
            "10",
            "A +120 ms from 19:00 to 23:00 each day, B 110 ms, two days",
            "two switches a day, no more",
            seeded(10, some.min(2), |seed| {
                let days = [19 * HOUR, 43 * HOUR];
                let mut a = path(70.0, 2.0);
                for from in days {
                    a = change_a(a, from, from + 4 * HOUR, What::Add(120.0));
                }
                Trace::new(seed, 48 * HOUR, vec![a, path(110.0, 2.0)])
            }),
            |runs| {
                (runs.iter().all(|run| run.switches.len() == 4), format!("most {} in two days", most(runs)))
            },
        ),
        traces(
            "11",
            "20 % of A's samples +200 ms, B 110 ms",
            "left within 150 s",
            seeded(11, some * 2, |seed| {
                onset(
                    Trace::new(
                        seed,
                        WARM + 20 * MINUTE,
                        vec![
                            change_a(path(90.0, 2.0), WARM, FOREVER, What::Mode(0.2, 200.0)),
                            path(110.0, 2.0),
                        ],
                    ),
                    WARM,
                )
            }),
            |runs| left_once(runs, 0, 150),
        ),
        traces(
            "32",
            "the owner's uplink is saturated: all candidates +150 ms and jitter 30",
            "0 switches",
            seeded(32, some, |seed| {
                let saturated = |exit: Exit| {
                    let exit = change_a(exit, WARM, WARM + 20 * MINUTE, What::Add(150.0));
                    change_a(exit, WARM, WARM + 20 * MINUTE, What::Jitter(30.0))
                };
                Trace::new(seed, WARM + HOUR, vec![saturated(path(90.0, 2.0)), saturated(path(100.0, 2.0))])
            }),
            never,
        ),
    ]
}
