//! What does not answer at all.

use super::{
    FOREVER, HOUR, MINUTE, SECOND, Scenario, WARM, change_a, change_b, code_seen, left_once, most, never,
    onset, path, seconds, seeded, traces,
};
use crate::replay::run::Run;
use crate::replay::trace::{Dead, Trace, What};

pub(super) fn failures(some: u64) -> Vec<Scenario> {
    let silent = || What::Dead(Dead::Silent);
    vec![
        traces(
            "06",
            "A loses everything for one round",
            "0 switches",
            seeded(6, some * 2, |seed| {
                Trace::new(
                    seed,
                    WARM + 20 * MINUTE,
                    vec![
                        // One round and not two, whenever rounds start.
                        change_a(
                            path(90.0, 2.0),
                            WARM + seed % 5 * SECOND,
                            WARM + seed % 5 * SECOND + 4 * SECOND,
                            silent(),
                        ),
                        path(110.0, 2.0),
                    ],
                )
            }),
            |runs| {
                let (good, detail) = never(runs);
                let suspected = runs.iter().filter(|run| code_seen(run, "suspect") == 1).count();
                (good, format!("{detail}; suspected once in {suspected}"))
            },
        ),
        traces(
            "07",
            "A loses everything for 30 s",
            "left within 12 s, at most 2 switches",
            seeded(7, some * 2, |seed| {
                onset(
                    Trace::new(
                        seed,
                        WARM + 30 * MINUTE,
                        vec![change_a(path(90.0, 2.0), WARM, WARM + 30 * SECOND, silent()), path(115.0, 2.0)],
                    ),
                    WARM,
                )
            }),
            |runs| {
                let slowest =
                    runs.iter().map(|run| run.detection_ms.unwrap_or(FOREVER)).max().unwrap_or(FOREVER);
                (
                    slowest <= 12 * SECOND && most(runs) <= 2,
                    format!(
                        "slowest {}, most {}",
                        seconds(Some(slowest).filter(|s| *s != FOREVER)),
                        most(runs)
                    ),
                )
            },
        ),
        traces(
            "12",
            "A → target loses everything, owner → A is fine",
            "left within 12 s; the reason names the leg",
            seeded(12, some * 2, |seed| {
                onset(
                    Trace::new(
                        seed,
                        WARM + 20 * MINUTE,
                        vec![change_b(path(90.0, 2.0), WARM, FOREVER, silent()), path(110.0, 2.0)],
                    ),
                    WARM,
                )
            }),
            |runs| left_once(runs, 0, 12),
        ),
        traces(
            "13",
            "A's relay is dead behind an open port",
            "new connections leave A within 15 s of 3 failed dials (the agent's fail filter)",
            seeded(13, some, |seed| {
                let mut a = path(90.0, 2.0);
                a.relay_dead.push((WARM, FOREVER));
                onset(Trace::new(seed, WARM + 20 * MINUTE, vec![a, path(110.0, 2.0)]), WARM)
            }),
            |runs| {
                let slowest = runs.iter().map(|run| run.left_ms.unwrap_or(FOREVER)).max().unwrap_or(FOREVER);
                (
                    slowest <= 18 * SECOND,
                    format!("slowest {}", seconds(Some(slowest).filter(|s| *s != FOREVER))),
                )
            },
        ),
        traces(
            "14",
            "all exits fail at once for 5 min; A returns first",
            "0 switches",
            seeded(14, some, |seed| {
                Trace::new(
                    seed,
                    WARM + 30 * MINUTE,
                    vec![
                        change_a(path(90.0, 2.0), WARM, WARM + 5 * MINUTE, silent()),
                        change_a(path(110.0, 2.0), WARM, WARM + 6 * MINUTE, silent()),
                    ],
                )
            }),
            never,
        ),
        traces(
            "15",
            "the target is down for everyone for 5 min",
            "0 switches, and the reason says so",
            seeded(15, some, |seed| {
                Trace::new(
                    seed,
                    WARM + 30 * MINUTE,
                    vec![
                        change_b(path(90.0, 2.0), WARM, WARM + 5 * MINUTE, silent()),
                        change_b(path(110.0, 2.0), WARM, WARM + 5 * MINUTE, silent()),
                    ],
                )
            }),
            never,
        ),
        traces(
            "24",
            "A flaps up and down every 15 s",
            "at most 3 returns to A per hour",
            seeded(24, some, |seed| {
                Trace::new(
                    seed,
                    WARM + 2 * HOUR,
                    vec![change_a(path(90.0, 2.0), WARM, FOREVER, What::Flap(30 * SECOND)), path(130.0, 2.0)],
                )
            }),
            |runs| {
                let returns = |run: &Run| run.switches.iter().filter(|switch| switch.to == 0).count();
                let most = runs.iter().map(returns).max().unwrap_or(0);
                (most <= 6, format!("most {most} returns in 2 h"))
            },
        ),
        traces(
            "31",
            "A's port is closed (the service stopped)",
            "left within the round that sees it, 8 s",
            seeded(31, some * 2, |seed| {
                onset(
                    Trace::new(
                        seed,
                        WARM + 20 * MINUTE,
                        vec![
                            change_a(path(90.0, 2.0), WARM, FOREVER, What::Dead(Dead::Refused)),
                            path(110.0, 2.0),
                        ],
                    ),
                    WARM,
                )
            }),
            |runs| left_once(runs, 0, 8),
        ),
    ]
}
