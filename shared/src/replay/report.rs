//! What ways of choosing would have made of a history.

use super::best::Best;
use super::groups::GroupRule;
use super::history::{History, HistoryError};
use super::run::{Rule, Run, run};
use super::suggest::{self, Suggestion};
use super::trace::Trace;
use crate::best_exit::{DecisionRules, Settings};
use crate::policy::ParseError;
use serde::Serialize;
use serde_json::Value;

/// Coming back to an exit within this time is a flap.
const FLAP_MS: u64 = 30 * 60_000;
const DAY_MS: f64 = 86_400_000.0;

/// Settings that decide. The others are about measuring, and what was measured is measured.
pub const DECIDING: [&str; 8] = [
    "decisionRules",
    "confirmations",
    "cooldownMs",
    "minAdvantageMs",
    "minAdvantageRatio",
    "lossPenaltyMsPerPercent",
    "applyRetryMs",
    "unmeasuredGraceMs",
];

/// What is to be replayed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Settings that differ from those of the history, as names and values.
    pub set: Vec<(String, String)>,
    /// Sets of rules; empty: both.
    pub rules: Vec<DecisionRules>,
    /// Policies of groups, as texts.
    pub policies: Vec<String>,
    /// Whether settings are to be suggested.
    pub suggest: bool,
}

/// Why nothing was replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The history.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A setting.
    #[error("{name}: {what}")]
    Setting {
        /// As written.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// A policy.
    #[error("policy `{text}`: {error}")]
    Policy {
        /// As written.
        text: String,
        /// What is wrong, with its place.
        error: ParseError,
    },
    /// A policy that the replay has no clients for.
    #[error("policy `{0}` is executed by an agent's chain, not by a group; it cannot be replayed")]
    NoGroup(String),
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The tunnel.
    pub name: String,
    /// Owners that had something to choose.
    pub owners: usize,
    /// Measured time over all owners, in days.
    pub days: f64,
    /// One for each way of choosing, those of the panel first.
    pub policies: Vec<Outcome>,
    /// Settings that would have done better, if they were wanted.
    pub suggestion: Option<Suggestion>,
}

/// What one way of choosing would have done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The way of choosing.
    pub policy: String,
    /// Mean excess of the true score over the best exit of each moment.
    pub mean_excess_ms: f64,
    /// 99th percentile of it.
    pub p99_excess_ms: f64,
    /// Time on an exit that did not work while another did.
    pub unusable_ms: u64,
    /// Changes of the exit.
    pub switches: usize,
    /// Of these, those after which the exit that was left was no worse for a minute.
    pub needless_switches: usize,
    /// Changes of the exit in a day.
    pub switches_per_day: f64,
    /// Of these, those back to an exit that was left within half an hour before.
    pub flaps_per_day: f64,
    /// Median time from the moment in which the exit in use became worse by 20 ms and 15 % until it was left; null: it
    /// never was.
    pub detection_ms: Option<u64>,
    /// Times of a minute and more in which it was worse by that and not left.
    pub undetected: usize,
}

impl Outcome {
    /// From the runs of all owners.
    pub fn of(policy: &str, traces: &[Trace], runs: &[Run]) -> Self {
        let known: f64 = traces.iter().map(|trace| trace.known_ms() as f64).sum();
        let days = (known / DAY_MS).max(1e-9);
        let mut excess: Vec<f32> = runs.iter().flat_map(|run| run.excess_ms.iter().copied()).collect();
        excess.sort_by(f32::total_cmp);
        let weighed =
            traces.iter().zip(runs).map(|(trace, run)| run.mean_excess_ms * trace.known_ms() as f64);
        let mut delays: Vec<u64> = runs.iter().flat_map(|run| run.delays_ms.iter().copied()).collect();
        delays.sort_unstable();
        let switches: usize = runs.iter().map(|run| run.switches.len()).sum();
        let flaps: usize = runs.iter().map(flaps).sum();
        Self {
            policy: policy.to_owned(),
            mean_excess_ms: weighed.sum::<f64>() / known.max(1.0),
            p99_excess_ms: excess.get(excess.len() * 99 / 100).copied().map_or(0.0, f64::from),
            unusable_ms: runs.iter().map(|run| run.unusable_ms).sum(),
            switches,
            needless_switches: runs.iter().map(Run::needless).sum(),
            switches_per_day: switches as f64 / days,
            flaps_per_day: flaps as f64 / days,
            detection_ms: delays.get(delays.len() / 2).copied(),
            undetected: runs.iter().map(|run| run.endured).sum(),
        }
    }
}

fn flaps(run: &Run) -> usize {
    let back = |(i, switch): (usize, &super::run::Switch)| {
        run.switches[..i].iter().any(|before| before.from == switch.to && switch.at - before.at <= FLAP_MS)
    };
    run.switches.iter().enumerate().filter(|(i, switch)| back((*i, switch))).count()
}

/// The settings with one of [`DECIDING`] changed.
pub fn with_setting(settings: &Settings, name: &str, text: &str) -> Result<Settings, ReplayError> {
    let error = |what: String| ReplayError::Setting { name: name.to_owned(), what };
    if !DECIDING.contains(&name) {
        let known = DECIDING.join(", ");
        return Err(error(format!("is no setting of how to decide; these are: {known}")));
    }
    let mut all = serde_json::to_value(settings).map_err(|e| error(e.to_string()))?;
    all[name] = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    let changed: Settings = serde_json::from_value(all).map_err(|e| error(e.to_string()))?;
    match changed.validate().into_iter().next() {
        None => Ok(changed),
        Some(wrong) => Err(ReplayError::Setting { name: wrong.field, what: wrong.message }),
    }
}

/// Replays a history.
pub fn replay(history: &History, request: &Request) -> Result<Report, ReplayError> {
    history.check()?;
    let mut settings = history.settings.clone();
    for (name, value) in &request.set {
        settings = with_setting(&settings, name, value)?;
    }
    let penalty = settings.loss_penalty_ms_per_percent;
    let traces = history.traces();
    let outcome = |name: &str, make: &dyn Fn() -> Box<dyn Rule>| {
        let runs: Vec<Run> = traces.iter().map(|trace| run(make().as_mut(), trace, penalty)).collect();
        Outcome::of(name, &traces, &runs)
    };
    let mut policies = Vec::new();
    let both = [DecisionRules::Classic, DecisionRules::Adaptive];
    for rules in if request.rules.is_empty() { &both[..] } else { &request.rules } {
        let settings = Settings { decision_rules: *rules, ..settings.clone() };
        let name = best_name(*rules);
        policies.push(outcome(name, &|| Box::new(Best::new(name, settings.clone()))));
    }
    for text in &request.policies {
        let error = |error| ReplayError::Policy { text: text.clone(), error };
        let rule = GroupRule::new(text).map_err(error)?;
        if !rule.is_group() {
            return Err(ReplayError::NoGroup(text.clone()));
        }
        policies.push(outcome(text, &|| Box::new(rule.clone())));
    }
    Ok(Report {
        name: history.name.clone(),
        owners: traces.len(),
        days: traces.iter().map(|trace| trace.known_ms() as f64).sum::<f64>() / DAY_MS,
        policies,
        suggestion: request.suggest.then(|| suggest::suggest(&traces, &settings)),
    })
}

/// What `best` with a set of rules is called in reports.
pub fn best_name(rules: DecisionRules) -> &'static str {
    match rules {
        DecisionRules::Classic => "best, classic",
        DecisionRules::Adaptive => "best, adaptive",
    }
}

impl Report {
    /// As a table for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{}: {} owner{}, {:.2} days measured\n\n{:<40} {:>10} {:>9} {:>10} {:>8} {:>8} {:>9} {:>9} {:>10} {:>10}\n",
            if self.name.is_empty() { "history" } else { &self.name },
            self.owners,
            if self.owners == 1 { "" } else { "s" },
            self.days,
            "policy",
            "excess ms",
            "p99 ms",
            "unusable s",
            "switches",
            "needless",
            "switch/d",
            "flaps/d",
            "detect. s",
            "undetected",
        );
        for policy in &self.policies {
            text += &format!(
                "{:<40} {:>10.1} {:>9.0} {:>10.0} {:>8} {:>8} {:>9.1} {:>9.1} {:>10} {:>10}\n",
                policy.policy,
                policy.mean_excess_ms,
                policy.p99_excess_ms,
                policy.unusable_ms as f64 / 1000.0,
                policy.switches,
                policy.needless_switches,
                policy.switches_per_day,
                policy.flaps_per_day,
                policy.detection_ms.map_or("-".to_owned(), |ms| format!("{:.0}", ms as f64 / 1000.0)),
                policy.undetected,
            );
        }
        if let Some(suggestion) = &self.suggestion {
            text += &suggestion.text();
        }
        text
    }
}
