//! Panels, agents and persons that come and go.

use super::{
    FOREVER, MINUTE, SECOND, Scenario, WARM, change_a, left_once, most, never, onset, path, seconds, seeded,
    traces,
};
use crate::replay::run::Run;
use crate::replay::trace::{Dead, Trace, What};

pub(super) fn operation(some: u64) -> Vec<Scenario> {
    let plain = |seed: u64, length: u64| Trace::new(seed, length, vec![path(90.0, 2.0), path(110.0, 2.0)]);
    vec![
        traces(
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
        traces(
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
        traces(
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
        traces(
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
        traces(
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
        traces(
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
        traces(
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
