//! The traces that rules are judged by, with what is accepted.

use super::run::Run;
use super::trace::{Dead, Exit, Script, Trace, What};
use crate::best_exit::{Leg, Reason};
use crate::link::Sample;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
/// When things start to happen, so that rules with a memory have one.
const WARM: u64 = 20 * MINUTE;
const FOREVER: u64 = u64::MAX;

/// One scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its number.
    pub id: &'static str,
    /// What happens.
    pub what: &'static str,
    /// What is accepted, in words.
    pub accept: &'static str,
    /// How it is judged.
    pub judged: Judged,
}

/// How a scenario is judged.
#[derive(Clone, Debug)]
pub enum Judged {
    /// By these traces. The judge sees the runs, and says whether they are accepted and what it saw.
    Traces(Vec<Trace>, fn(&[Run]) -> (bool, String)),
    /// By a look at one value that no rule takes part in.
    Value(bool, String),
    /// It is no matter of rules; proved there.
    Elsewhere(&'static str),
}

/// A path with this mean latency over both legs.
fn path(total_ms: f64, jitter_ms: f64) -> Exit {
    Exit::new(
        Script::new(total_ms * 0.55 - jitter_ms, jitter_ms),
        Script::new(total_ms * 0.45 - jitter_ms, jitter_ms),
    )
}

fn change_a(mut exit: Exit, from: u64, to: u64, what: What) -> Exit {
    exit.a = exit.a.with(from, to, what);
    exit
}

fn change_b(mut exit: Exit, from: u64, to: u64, what: What) -> Exit {
    exit.b = exit.b.with(from, to, what);
    exit
}

fn lossy(mut exit: Exit, per_direction: f64) -> Exit {
    exit.a = exit.a.lossy(per_direction);
    exit.b = exit.b.lossy(per_direction);
    exit
}

fn onset(mut trace: Trace, at: u64) -> Trace {
    trace.onset = Some(at);
    trace
}

fn seconds(ms: Option<u64>) -> String {
    ms.map_or_else(|| "never".to_owned(), |ms| format!("{} s", ms / SECOND))
}

fn switches(runs: &[Run]) -> usize {
    runs.iter().map(|run| run.switches.len()).sum()
}

fn most(runs: &[Run]) -> usize {
    runs.iter().map(|run| run.switches.len()).max().unwrap_or(0)
}

/// Nobody switches in any run.
fn never(runs: &[Run]) -> (bool, String) {
    let count = switches(runs);
    (count == 0, format!("{count} switches in {} runs", runs.len()))
}

/// Left once within these seconds of the onset, and then stayed.
fn left_once(runs: &[Run], from_s: u64, to_s: u64) -> (bool, String) {
    let good = |run: &&Run| {
        run.switches.len() == 1
            && run.detection_ms.is_some_and(|ms| (from_s * SECOND..=to_s * SECOND).contains(&ms))
    };
    let count = runs.iter().filter(good).count();
    let slowest =
        runs.iter().map(|run| run.detection_ms.unwrap_or(FOREVER)).max().filter(|ms| *ms != FOREVER);
    let detail =
        format!("{count} of {} runs, slowest {}, most switches {}", runs.len(), seconds(slowest), most(runs));
    (count == runs.len(), detail)
}

/// Median and 95th percentile of the detection.
fn delays(runs: &[Run]) -> (Option<u64>, Option<u64>) {
    let mut all: Vec<u64> = runs.iter().map(|run| run.detection_ms.unwrap_or(FOREVER)).collect();
    all.sort_unstable();
    let at = |share: usize| {
        all.get((all.len() * share / 100).min(all.len() - 1)).copied().filter(|ms| *ms != FOREVER)
    };
    (at(50), at(95))
}

fn code_seen(run: &Run, code: &str) -> usize {
    run.reasons.iter().filter(|(_, reason)| reason.code() == code).count()
}

/// All of them. `quick`: a day becomes two hours, and few runs stand for many.
pub fn all(quick: bool) -> Vec<Scenario> {
    let day = if quick { 2 * HOUR } else { 24 * HOUR };
    let (many, some) = if quick { (8, 2) } else { (40, 5) };
    let mut scenarios = latency(day, some);
    scenarios.extend(failures(some));
    scenarios.extend(loss(day, many, some));
    scenarios.extend(operation(some));
    scenarios.extend(elsewhere());
    scenarios.sort_by_key(|scenario| scenario.id);
    scenarios
}

/// `count` traces with their seeds.
fn seeded(scenario: u64, count: u64, make: impl Fn(u64) -> Trace) -> Vec<Trace> {
    (0..count).map(|i| make(scenario * 1000 + i)).collect()
}

fn latency(day: u64, some: u64) -> Vec<Scenario> {
    let scenario = |id, what, accept, traces, judge| Scenario {
        id,
        what,
        accept,
        judged: Judged::Traces(traces, judge),
    };
    vec![
        scenario(
            "01",
            "A 90 ms, B 110 ms, both clean, a day",
            "0 switches",
            seeded(1, some.min(2), |seed| Trace::new(seed, day, vec![path(90.0, 2.0), path(110.0, 2.0)])),
            never,
        ),
        scenario(
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
        scenario(
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
        scenario(
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
        scenario(
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
        scenario(
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
        scenario(
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
        scenario(
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

fn failures(some: u64) -> Vec<Scenario> {
    let scenario = |id, what, accept, traces, judge| Scenario {
        id,
        what,
        accept,
        judged: Judged::Traces(traces, judge),
    };
    let silent = || What::Dead(Dead::Silent);
    vec![
        scenario(
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
        scenario(
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
        scenario(
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
        scenario(
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
        scenario(
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
        scenario(
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
        scenario(
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
        scenario(
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

fn loss(day: u64, many: u64, some: u64) -> Vec<Scenario> {
    let scenario = |id, what, accept, traces, judge| Scenario {
        id,
        what,
        accept,
        judged: Judged::Traces(traces, judge),
    };
    vec![
        scenario(
            "02",
            "A and B identical, 1 % loss per direction, jitter 15 ms, a day",
            "at most 2 switches, none within 10 min of another",
            seeded(2, some, |seed| {
                Trace::new(seed, day, vec![lossy(path(100.0, 15.0), 0.01), lossy(path(100.0, 15.0), 0.01)])
            }),
            |runs| {
                let close =
                    |run: &Run| run.switches.windows(2).any(|pair| pair[1].at - pair[0].at < 10 * MINUTE);
                (most(runs) <= 2 && !runs.iter().any(close), format!("most {}", most(runs)))
            },
        ),
        scenario(
            "05",
            "A starts to lose 10 % per direction",
            "median at most 90 s, 95 % within 150 s",
            seeded(5, many, |seed| {
                onset(
                    Trace::new(
                        seed,
                        WARM + 20 * MINUTE,
                        vec![
                            change_a(path(90.0, 2.0), WARM, FOREVER, What::Loss(super::trace::both(0.1))),
                            path(110.0, 2.0),
                        ],
                    ),
                    WARM,
                )
            }),
            |runs| {
                let (median, p95) = delays(runs);
                let good =
                    median.is_some_and(|ms| ms <= 90 * SECOND) && p95.is_some_and(|ms| ms <= 150 * SECOND);
                (
                    good && most(runs) <= 1,
                    format!(
                        "median {}, 95 % {}, most switches {}",
                        seconds(median),
                        seconds(p95),
                        most(runs)
                    ),
                )
            },
        ),
        scenario(
            "25",
            "A and B 110 ms, C 60 ms but loses 5 % of its samples",
            "at most one switch: stable",
            seeded(25, some, |seed| {
                let mut c = path(60.0, 2.0);
                c.a.base.loss = 0.05;
                Trace::new(seed, 2 * HOUR, vec![path(110.0, 2.0), path(110.0, 2.0), c])
            }),
            |runs| (most(runs) <= 1, format!("most {}", most(runs))),
        ),
    ]
}

fn operation(some: u64) -> Vec<Scenario> {
    let scenario = |id, what, accept, traces, judge| Scenario {
        id,
        what,
        accept,
        judged: Judged::Traces(traces, judge),
    };
    let plain = |seed: u64, length: u64| Trace::new(seed, length, vec![path(90.0, 2.0), path(110.0, 2.0)]);
    vec![
        scenario(
            "16",
            "the owner is offline for 10 min",
            "0 switches",
            seeded(16, some, |seed| {
                let mut trace = plain(seed, WARM + 30 * MINUTE);
                trace.offline.push((WARM, WARM + 10 * MINUTE));
                trace
            }),
            never,
        ),
        scenario(
            "17",
            "A's agent is away, its data path is fine",
            "no switch for 3 min",
            seeded(17, some, |seed| {
                let mut trace = plain(seed, WARM + 30 * MINUTE);
                trace.exits[0].away.push((WARM, FOREVER));
                onset(trace, WARM)
            }),
            |runs| {
                let soonest = runs.iter().filter_map(|run| run.detection_ms).min();
                (soonest.is_none_or(|ms| ms >= 178 * SECOND), format!("soonest {}", seconds(soonest)))
            },
        ),
        scenario(
            "19",
            "no rounds for 10 min; meanwhile A becomes 250 ms",
            "no switch before 20 fresh samples per leg",
            seeded(19, some, |seed| {
                let mut trace = plain(seed, WARM + 30 * MINUTE);
                trace.exits[0] = change_a(trace.exits[0].clone(), WARM, FOREVER, What::Add(160.0));
                trace.gaps.push((WARM, WARM + 10 * MINUTE));
                onset(trace, WARM + 10 * MINUTE)
            }),
            |runs| left_once(runs, 20, 45),
        ),
        scenario(
            "21",
            "two pushes are refused, then they work; A 90 → 250 ms",
            "one switch, after 30 s and 60 s more",
            seeded(21, some, |seed| {
                let mut trace = plain(seed, WARM + 30 * MINUTE);
                trace.exits[0] = change_a(trace.exits[0].clone(), WARM, FOREVER, What::Add(160.0));
                trace.refusals = 2;
                onset(trace, WARM)
            }),
            |runs| left_once(runs, 70, 125),
        ),
        scenario(
            "22",
            "the panel restarts",
            "0 switches",
            seeded(22, some, |seed| {
                let mut trace = plain(seed, WARM + 30 * MINUTE);
                trace.restarts = vec![WARM, WARM + 3 * MINUTE, WARM + 3 * MINUTE + 7 * SECOND];
                trace
            }),
            never,
        ),
        scenario(
            "23",
            "a far better exit is added",
            "not used in its first 20 s",
            seeded(23, some, |seed| {
                let mut trace = plain(seed, WARM + 30 * MINUTE);
                trace.exits.push(path(30.0, 2.0));
                trace.exits[2].added = WARM;
                onset(trace, WARM)
            }),
            |runs| left_once(runs, 20, 90),
        ),
        scenario(
            "29",
            "A is pinned, dies for 5 min, revives",
            "two switches: away and back",
            seeded(29, some, |seed| {
                let mut trace = plain(seed, WARM + 40 * MINUTE);
                trace.pins.push((MINUTE, FOREVER, 0));
                trace.exits[0] =
                    change_a(trace.exits[0].clone(), WARM, WARM + 5 * MINUTE, What::Dead(Dead::Silent));
                onset(trace, WARM)
            }),
            |runs| {
                let good = |run: &&Run| run.switches.len() == 2 && run.switches[1].to == 0;
                let count = runs.iter().filter(good).count();
                (count == runs.len(), format!("{count} of {} runs, most {}", runs.len(), most(runs)))
            },
        ),
    ]
}

fn elsewhere() -> Vec<Scenario> {
    let other =
        |id, what, proof| Scenario { id, what, accept: "proved elsewhere", judged: Judged::Elsewhere(proof) };
    let leg = Leg::from_samples(&[
        Sample::Ok { ms: 40.0, retransmits: 0 },
        Sample::Ok { ms: 1041.0, retransmits: 1 },
        Sample::Ok { ms: 42.0, retransmits: 0 },
    ]);
    let good = leg.numbers().is_some_and(|(ms, loss)| ms == 41.0 && (loss - 1.0 / 3.0).abs() < 1e-9);
    vec![
        Scenario {
            id: "26",
            what: "one retransmission in a round",
            accept: "counted lost, latency unchanged",
            judged: Judged::Value(good, format!("{leg:?}")),
        },
        other(
            "18",
            "the wall clock jumps",
            "rules see monotonic time only (MonoMs); server/src/best_exit/owner.rs tests the restart",
        ),
        other(
            "20",
            "doubled, reordered and late answers",
            "answers are matched to their round: server/src/best_exit/round_tests.rs",
        ),
        other(
            "27",
            "200 tunnels share 10 exits",
            "legs are shared: server/src/best_exit/legs.rs and its tests",
        ),
        other(
            "28",
            "one dead exit and deadlines of 900 ms",
            "legs run side by side: agent/src/probe and its tests",
        ),
        other(
            "30",
            "IPv6 dies, IPv4 is fine",
            "a leg has one address; per-family state is the policies': shared/tests/policy/dae.rs",
        ),
    ]
}
