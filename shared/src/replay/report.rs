//! What ways of choosing would have made of a history.

use super::best::Best;
use super::groups::GroupRule;
use super::history::{History, HistoryError, Subject};
use super::run::{Rule, Run, run_all};
use super::suggest::{self, Suggestion};
use super::trace::Trace;
use crate::api::WallMs;
use crate::best_exit::{DecisionRules, Settings};
use crate::policy::ParseError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Coming back to an exit within this time is a flap.
const FLAP_MS: u64 = 30 * 60_000;
const DAY_MS: f64 = 86_400_000.0;
/// Steps times ways of choosing that go on side by side; each takes 4 bytes until its way is through.
const MOST_AT_ONCE: u64 = 16_000_000;

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
    /// Whoever asked did not want to know any longer.
    #[error("the replay was given up")]
    Stopped,
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// When each of them would have chosen what, owner by owner.
    pub courses: Vec<Course>,
    /// Settings that would have done better, if they were wanted.
    pub suggestion: Option<Suggestion>,
}

/// What the ways of choosing would have chosen for one owner, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Course {
    /// The owner.
    pub owner: String,
    /// Names of the exits, in saved order.
    pub exits: Vec<String>,
    /// The first round.
    pub from: WallMs,
    /// A round's time after the last.
    pub to: WallMs,
    /// Stretches of which nothing is known.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Vec<i64>>))]
    pub unknown: Vec<(WallMs, WallMs)>,
    /// For each of the policies: from when on which exit, by its place in `exits`.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Vec<Vec<i64>>>))]
    pub choices: Vec<Vec<(WallMs, usize)>>,
}

/// What one way of choosing would have done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The way of choosing.
    pub policy: String,
    /// Mean excess of the true score over the best exit of each moment.
    pub mean_excess_ms: f64,
    /// 99th percentile of it.
    pub p99_excess_ms: f64,
    /// Mean latency of the exit in use while it worked; null: it never did.
    pub mean_latency_ms: Option<f64>,
    /// Share of the time (0 to 1) on the best exit, or on one whose score was no worse by a millisecond.
    pub best_share: f64,
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
    pub fn of(policy: &str, traces: &[&Trace], runs: &[&Run]) -> Self {
        let known: f64 = traces.iter().map(|trace| trace.known_ms() as f64).sum();
        let days = (known / DAY_MS).max(1e-9);
        let mut excess: Vec<f32> = runs.iter().flat_map(|run| run.excess_ms.iter().copied()).collect();
        excess.sort_by(f32::total_cmp);
        let weighed =
            traces.iter().zip(runs).map(|(trace, run)| run.mean_excess_ms * trace.known_ms() as f64);
        let latencies = traces.iter().zip(runs).filter_map(|(trace, run)| {
            let weight = trace.known_ms() as f64;
            Some((run.mean_latency_ms? * weight, weight))
        });
        let (latency, weight) = latencies.fold((0.0, 0.0), |sum, (ms, weight)| (sum.0 + ms, sum.1 + weight));
        let mut delays: Vec<u64> = runs.iter().flat_map(|run| run.delays_ms.iter().copied()).collect();
        delays.sort_unstable();
        let switches: usize = runs.iter().map(|run| run.switches.len()).sum();
        let flaps: usize = runs.iter().map(|run| flaps(run)).sum();
        Self {
            policy: policy.to_owned(),
            mean_excess_ms: weighed.sum::<f64>() / known.max(1.0),
            p99_excess_ms: excess.get(excess.len() * 99 / 100).copied().map_or(0.0, f64::from),
            mean_latency_ms: (weight > 0.0).then(|| latency / weight),
            best_share: runs.iter().map(|run| run.best_ms as f64).sum::<f64>() / known.max(1.0),
            unusable_ms: runs.iter().map(|run| run.unusable_ms).sum(),
            switches,
            needless_switches: runs.iter().map(|run| run.needless()).sum(),
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

/// A way of choosing, by its name in reports.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) name: String,
    pub(super) how: How,
}

#[derive(Clone, Debug)]
pub(super) enum How {
    Best(Settings),
    Group(GroupRule),
}

impl Way {
    /// The panel's, by the rules that the settings name.
    pub(super) fn best(settings: Settings) -> Self {
        Self { name: best_name(settings.decision_rules).to_owned(), how: How::Best(settings) }
    }

    /// A group's.
    pub(super) fn group(policy: &str) -> Result<Self, ReplayError> {
        let error = |error| ReplayError::Policy { text: policy.to_owned(), error };
        let rule = GroupRule::new(policy).map_err(error)?;
        if !rule.is_group() {
            return Err(ReplayError::NoGroup(policy.to_owned()));
        }
        Ok(Self { name: policy.to_owned(), how: How::Group(rule) })
    }

    fn rule(&self) -> Box<dyn Rule> {
        match &self.how {
            How::Best(settings) => Box::new(Best::new(&self.name, settings.clone())),
            How::Group(rule) => Box::new(rule.clone()),
        }
    }
}

/// Replays a history.
pub fn replay(history: &History, request: &Request) -> Result<Report, ReplayError> {
    history.check()?;
    let mut settings = history.settings.clone();
    for (name, value) in &request.set {
        settings = with_setting(&settings, name, value)?;
    }
    let both = [DecisionRules::Classic, DecisionRules::Adaptive];
    let rules = if request.rules.is_empty() { &both[..] } else { &request.rules };
    let best = rules.iter().map(|rules| Way::best(Settings { decision_rules: *rules, ..settings.clone() }));
    let groups = request.policies.iter().map(|text| Way::group(text));
    let ways: Vec<Way> = best.map(Ok).chain(groups).collect::<Result<_, _>>()?;
    let subjects = history.subjects();
    let subjects: Vec<&Subject> = subjects.iter().collect();
    let mut report =
        compare(&history.name, &subjects, &ways, settings.loss_penalty_ms_per_percent, &|| true)?;
    if request.suggest {
        report.suggestion = Some(suggest::suggest(&subjects, &settings, &|| true)?);
    }
    Ok(report)
}

/// What each way makes of what owners measured, by this penalty for a percent of loss. `proceed` is asked now and then.
pub(super) fn compare(
    name: &str,
    subjects: &[&Subject],
    ways: &[Way],
    penalty_ms_per_percent: f64,
    proceed: &dyn Fn() -> bool,
) -> Result<Report, ReplayError> {
    let traces: Vec<&Trace> = subjects.iter().map(|subject| &subject.trace).collect();
    let steps: u64 = traces.iter().map(|trace| trace.length_ms / trace.step_ms).sum();
    let at_once = usize::try_from(MOST_AT_ONCE / steps.max(1)).unwrap_or(usize::MAX).max(1);
    let mut policies = Vec::with_capacity(ways.len());
    let mut courses: Vec<Course> = subjects.iter().map(|subject| course(subject)).collect();
    for ways in ways.chunks(at_once) {
        let mut runs = Vec::with_capacity(traces.len());
        for (trace, (subject, course)) in traces.iter().zip(subjects.iter().zip(&mut courses)) {
            let mut rules: Vec<Box<dyn Rule>> = ways.iter().map(Way::rule).collect();
            let done = run_all(&mut rules, trace, penalty_ms_per_percent, proceed);
            let done = done.ok_or(ReplayError::Stopped)?;
            course.choices.extend(done.iter().map(|run| choices(subject, run)));
            runs.push(done);
        }
        for (i, way) in ways.iter().enumerate() {
            let own: Vec<&Run> = runs.iter().map(|runs| &runs[i]).collect();
            policies.push(Outcome::of(&way.name, &traces, &own));
        }
    }
    let days = traces.iter().map(|trace| trace.known_ms() as f64).sum::<f64>() / DAY_MS;
    Ok(Report { name: name.to_owned(), owners: traces.len(), days, policies, courses, suggestion: None })
}

/// The frame of a course, with no choices yet.
fn course(subject: &Subject) -> Course {
    let at = |ms: u64| subject.start.saturating_add_unsigned(ms);
    Course {
        owner: subject.owner.clone(),
        exits: subject.exits.clone(),
        from: at(0),
        to: at(subject.trace.length_ms),
        unknown: subject.trace.unknown.iter().map(|(from, to)| (at(*from), at(*to))).collect(),
        choices: Vec::new(),
    }
}

/// From when on which exit was used.
fn choices(subject: &Subject, run: &Run) -> Vec<(WallMs, usize)> {
    let at = |ms: u64| subject.start.saturating_add_unsigned(ms);
    let first = run.first.map(|exit| (at(0), exit));
    first.into_iter().chain(run.switches.iter().map(|switch| (at(switch.at), switch.to))).collect()
}

/// What the settings of the history, unchanged, are called in reports.
pub const IN_FORCE: &str = "in force";

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
