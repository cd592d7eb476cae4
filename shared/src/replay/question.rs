//! A replay as it is asked for from outside, with everything that can be wrong about it as the error of a field.

use super::history::{History, HistoryError, OwnerHistory, Subject};
use super::report::{DECIDING, IN_FORCE, ReplayError, Report, Way, compare};
use super::suggest;
use crate::best_exit::{DecisionRules, Settings};
use crate::field::FieldError;
use crate::policy;
use crate::strategy::Strategy;
use crate::topology::{MAX_GROUP_NODES, not_allowed};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Steps times exits of a replay, over all owners: a second or two for each policy, and years of one tunnel.
pub const MAX_STEPS: u64 = 20_000_000;
/// Policies in one replay.
pub const MAX_POLICIES: usize = 16;

/// What is to be replayed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Question {
    /// Settings that decide and differ from those of the history. Without `decisionRules` both sets of rules are replayed.
    pub settings: Map<String, Value>,
    /// Policies of groups beside them, as texts.
    pub policies: Vec<String>,
    /// Only this owner, by its name; without it all of them.
    pub owner: Option<String>,
    /// Also the settings of the history as they are, as the first way of choosing. What is true is judged by the changed
    /// settings, for all of them alike.
    pub in_force: bool,
    /// Whether settings are to be suggested.
    pub suggest: bool,
}

/// A history that is ready to be replayed, and replayed again.
#[derive(Clone, Debug)]
pub struct Replayable {
    name: String,
    settings: Settings,
    subjects: Vec<Subject>,
}

impl Replayable {
    /// Checks that the history can be replayed in reasonable time: at most `most_steps` steps times exits.
    pub fn new(history: &History, most_steps: u64) -> Result<Self, FieldError> {
        if let Some(error) = history.settings.validate().into_iter().next() {
            return Err(error.within("settings"));
        }
        history.check().map_err(broken)?;
        let mut steps = 0u64;
        for (i, owner) in history.owners.iter().enumerate() {
            if owner.exits.len() > MAX_GROUP_NODES {
                let message = format!("at most {MAX_GROUP_NODES} are possible here");
                let error = FieldError::new(format!("owners[{i}].exits"), "too_many", message);
                return Err(error.with("max", MAX_GROUP_NODES));
            }
            steps = steps.saturating_add(steps_of(owner));
        }
        if steps > most_steps {
            let message = "the rounds stretch over too long a time; give a part of them";
            return Err(FieldError::new("owners", "too_long", message).with("max", most_steps));
        }
        Ok(Self {
            name: history.name.clone(),
            settings: history.settings.clone(),
            subjects: history.subjects(),
        })
    }

    /// The settings of the history.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Answers a question. `proceed` is asked now and then whether anybody still wants to know.
    pub fn answer(&self, question: &Question, proceed: &dyn Fn() -> bool) -> Result<Report, FieldError> {
        let settings =
            changed(&self.settings, &question.settings).map_err(|error| error.within("settings"))?;
        let both = [DecisionRules::Classic, DecisionRules::Adaptive];
        let one = [settings.decision_rules];
        let rules = if question.settings.contains_key("decisionRules") { &one[..] } else { &both[..] };
        let best = rules.iter().map(|rules| Settings { decision_rules: *rules, ..settings.clone() });
        let mut ways = Vec::new();
        if question.in_force {
            ways.push(Way { name: IN_FORCE.to_owned(), ..Way::best(self.settings.clone()) });
        }
        ways.extend(best.map(Way::best));
        if question.policies.len() > MAX_POLICIES {
            let message = format!("at most {MAX_POLICIES} are possible here");
            return Err(FieldError::new("policies", "too_many", message).with("max", MAX_POLICIES));
        }
        for (i, text) in question.policies.iter().enumerate() {
            ways.push(way(text).map_err(|error| error.within(&format!("policies[{i}]")))?);
        }
        let wanted = |subject: &&Subject| question.owner.as_ref().is_none_or(|owner| subject.owner == *owner);
        let subjects: Vec<&Subject> = self.subjects.iter().filter(wanted).collect();
        if subjects.is_empty() {
            let message = "no owner of this name has something to choose in the history";
            return Err(FieldError::new("owner", "unknown_value", message));
        }
        let penalty = settings.loss_penalty_ms_per_percent;
        let mut report =
            compare(&self.name, &subjects, &ways, penalty, proceed).map_err(|error| refusal(&error))?;
        if question.suggest {
            let suggestion =
                suggest::suggest(&subjects, &settings, proceed).map_err(|error| refusal(&error))?;
            report.suggestion = Some(suggestion);
        }
        Ok(report)
    }
}

/// Steps that a replay of this owner takes, times its exits.
fn steps_of(owner: &OwnerHistory) -> u64 {
    let (Some((first, _)), Some((last, _))) = (owner.rounds.first(), owner.rounds.last()) else { return 0 };
    let step = owner.interval_ms().clamp(500, 60_000);
    let steps = last.abs_diff(*first) / step + owner.rounds.len() as u64;
    steps.saturating_mul(owner.exits.len() as u64)
}

/// The settings with some changed.
fn changed(settings: &Settings, changes: &Map<String, Value>) -> Result<Settings, FieldError> {
    let internal = |error: serde_json::Error| FieldError::new("", "internal", error.to_string());
    let mut together = serde_json::to_value(settings).map_err(internal)?;
    let mut settings = settings.clone();
    for (name, value) in changes {
        if !DECIDING.contains(&name.as_str()) {
            let known = DECIDING.join(", ");
            let message = format!("is no setting of how to decide; these are: {known}");
            return Err(FieldError::new(name, "unknown_field", message));
        }
        together[name] = value.clone();
        // One by one: what does not fit then is the last.
        settings = serde_json::from_value(together.clone())
            .map_err(|error| FieldError::misfit(name, &error.to_string()))?;
    }
    settings.validate().into_iter().next().map_or(Ok(settings), Err)
}

/// A policy as a way of choosing.
fn way(text: &str) -> Result<Way, FieldError> {
    let unknown = || not_allowed("", &Strategy::Other(text.to_owned()));
    if policy::parse(text).is_err() {
        return Err(unknown());
    }
    Way::group(text).map_err(|error| match error {
        ReplayError::NoGroup(_) => {
            FieldError::new("", "policy_no_group", error.to_string()).with("strategy", text)
        }
        _ => unknown(),
    })
}

/// What is wrong with a history, as the error of a field of it.
fn broken(error: HistoryError) -> FieldError {
    let message = error.to_string();
    match error {
        HistoryError::Form(_) => FieldError::new("", "invalid_type", message),
        HistoryError::Version(_) => FieldError::new("exitpilotHistory", "unknown_value", message),
        HistoryError::Empty => FieldError::new("owners", "history_empty", message),
        HistoryError::TooLong(_) => FieldError::new("owners", "too_large", message),
        HistoryError::Round { owner, round, what } => {
            FieldError::new(format!("owners[{owner}].rounds[{round}]"), "round_invalid", what)
        }
    }
}

/// Of what is left to go wrong once the ways are known.
fn refusal(error: &ReplayError) -> FieldError {
    let code = if *error == ReplayError::Stopped { "stopped" } else { "internal" };
    FieldError::new("", code, error.to_string())
}
