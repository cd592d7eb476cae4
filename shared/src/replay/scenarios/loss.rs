//! What loses a part.

use super::{
    FOREVER, HOUR, MINUTE, SECOND, Scenario, WARM, change_a, delays, lossy, most, onset, path, seconds,
    seeded, traces,
};
use crate::replay::run::Run;
use crate::replay::trace::{Trace, What, both};

pub(super) fn loss(day: u64, many: u64, some: u64) -> Vec<Scenario> {
    vec![
        traces(
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
        traces(
            "05",
            "A starts to lose 10 % per direction",
            "median at most 90 s, 95 % within 150 s",
            seeded(5, many, |seed| {
                onset(
                    Trace::new(
                        seed,
                        WARM + 20 * MINUTE,
                        vec![
                            change_a(path(90.0, 2.0), WARM, FOREVER, What::Loss(both(0.1))),
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
        traces(
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
