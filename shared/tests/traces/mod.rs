//! The recorded runs as scenarios; what they are is in README.md.

use shared::replay::Run;
use shared::replay::history::History;
use shared::replay::scenarios::{Judged, Scenario};

/// Which, what happens, what is accepted, and the file.
type Recording = (&'static str, &'static str, &'static str, fn(&[Run]) -> (bool, String), &'static str);

const RECORDINGS: [Recording; 5] = [
    (
        "recorded latency",
        "A takes 90 ms more for 5 min",
        "left within 20 s, at most 2 switches",
        |runs| judge(runs, 2, 20),
        include_str!("latency.json"),
    ),
    (
        "recorded loss",
        "A loses 8 % per direction for 5 min",
        "left within 60 s, at most 4 switches",
        |runs| judge(runs, 4, 60),
        include_str!("loss.json"),
    ),
    (
        "recorded bursts",
        "A loses 10 % per direction in bursts for 5 min",
        "left within 60 s, at most 4 switches",
        |runs| judge(runs, 4, 60),
        include_str!("bursts.json"),
    ),
    (
        "recorded death",
        "A is dead for 2 min, and for 7 s",
        "left within 20 s, at most 4 switches",
        |runs| judge(runs, 4, 20),
        include_str!("death.json"),
    ),
    (
        "recorded oscillation",
        "A takes 100 ms more in every second 20 s",
        "left within 20 s, at most 4 switches",
        |runs| judge(runs, 4, 20),
        include_str!("oscillation.json"),
    ),
];

fn judge(runs: &[Run], switches: usize, seconds: u64) -> (bool, String) {
    let most = runs.iter().map(|run| run.switches.len()).max().unwrap_or(0);
    let first = runs.iter().map(|run| run.delays_ms.first().copied()).max().flatten();
    let in_time = runs.iter().all(|run| run.delays_ms.first().is_some_and(|ms| *ms <= seconds * 1000));
    let left = first.map_or("never left".to_owned(), |ms| format!("left after {} s", ms / 1000));
    (in_time && most <= switches, format!("{left}, {most} switches"))
}

pub(crate) fn scenarios() -> Vec<Scenario> {
    let scenario = |(id, what, accept, judge, text): Recording| {
        let history = History::parse(text).expect("a recorded run");
        Scenario { id, what, accept, judged: Judged::Traces(history.traces(), judge) }
    };
    RECORDINGS.map(scenario).into()
}
