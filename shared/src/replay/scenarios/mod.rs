//! The traces that rules are judged by, with what is accepted.
//!
//! - [`latency`], [`loss`], [`failures`]: what happens to exits
//! - [`operation`]: what happens to the panel and to agents
//! - [`elsewhere`]: scenarios in which no rule takes part

mod elsewhere;
mod failures;
mod latency;
mod loss;
mod operation;

use super::run::Run;
use super::trace::{Exit, Script, Trace, What};

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
    let mut scenarios = latency::latency(day, some);
    scenarios.extend(failures::failures(some));
    scenarios.extend(loss::loss(day, many, some));
    scenarios.extend(operation::operation(some));
    scenarios.extend(elsewhere::elsewhere());
    scenarios.sort_by_key(|scenario| scenario.id);
    scenarios
}

/// `count` traces with their seeds.
fn seeded(scenario: u64, count: u64, make: impl Fn(u64) -> Trace) -> Vec<Trace> {
    (0..count).map(|i| make(scenario * 1000 + i)).collect()
}

/// A scenario that is judged by traces.
fn traces(
    id: &'static str,
    what: &'static str,
    accept: &'static str,
    traces: Vec<Trace>,
    judge: fn(&[Run]) -> (bool, String),
) -> Scenario {
    Scenario { id, what, accept, judged: Judged::Traces(traces, judge) }
}
