//! What ways of choosing would have made of a history.

use super::Outcome;
use super::input::{self, MAX_HISTORY_BYTES};
use crate::api::LegHistory;
use crate::best_exit::{DecisionRules, Settings};
use crate::field::FieldError;
use crate::policy;
use crate::replay::history::{History, HistoryError, OwnerHistory};
use crate::replay::report::{DECIDING, ReplayError, Report, Request, replay as replay_history};
use crate::strategy::Strategy;
use crate::topology::{MAX_GROUP_NODES, not_allowed};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Steps times exits of a replay, over all owners: a second or two for each policy, and years of one tunnel.
const MAX_STEPS: u64 = 20_000_000;
/// Policies in one replay.
const MAX_POLICIES: usize = 16;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    settings: Map<String, Value>,
    #[serde(default)]
    policies: Vec<String>,
    #[serde(default)]
    suggest: bool,
}

/// Replays a history: an object as `exitpilot export-history` writes it, or a list of legs as the panel answers. The
/// arguments are `{ settings?, policies?, suggest? }`; of the settings only those count that decide, and those that are
/// not given are as in the history. Without `decisionRules` both sets of rules are replayed.
pub fn replay(history: &str, json: &str) -> Outcome<Report> {
    let mut history = read_history(history).map_err(|error| input::within("history", error))?;
    let arguments: Arguments = input::arguments(json)?;
    let mut request = Request { suggest: arguments.suggest, ..Request::default() };
    if arguments.settings.contains_key("decisionRules") {
        request.rules = vec![DecisionRules::Classic];
    }
    history.settings =
        changed(&history.settings, arguments.settings).map_err(|error| input::within("settings", error))?;
    for rules in &mut request.rules {
        *rules = history.settings.decision_rules;
    }
    if arguments.policies.len() > MAX_POLICIES {
        let message = format!("at most {MAX_POLICIES} are possible here");
        return Err(FieldError::new("policies", "too_many", message).with("max", MAX_POLICIES));
    }
    for (i, text) in arguments.policies.iter().enumerate() {
        if policy::parse(text).is_err() {
            return Err(not_allowed(&format!("policies[{i}]"), &Strategy::Other(text.clone())));
        }
    }
    request.policies = arguments.policies;
    replay_history(&history, &request).map_err(|error| refusal(error, &request))
}

/// Reads a history and checks that it can be replayed in reasonable time.
fn read_history(json: &str) -> Outcome<History> {
    let read = || -> Outcome<History> {
        if json.len() > MAX_HISTORY_BYTES {
            return input::read(json, MAX_HISTORY_BYTES);
        }
        if json.trim_start().starts_with('[') {
            let legs: Vec<LegHistory> = input::read(json, MAX_HISTORY_BYTES)?;
            return Ok(History::of_legs("", &Settings::default(), &legs, &|node| format!("node {}", node.0)));
        }
        // Again, and slowly, only to find the place of what is wrong.
        serde_json::from_str(json).or_else(|_| input::read(json, MAX_HISTORY_BYTES))
    };
    let history = read()?;
    if let Some(error) = history.settings.validate().into_iter().next() {
        return Err(input::within("settings", error));
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
    if steps > MAX_STEPS {
        let message = "the rounds stretch over too long a time; give a part of them";
        return Err(FieldError::new("owners", "too_long", message).with("max", MAX_STEPS));
    }
    Ok(history)
}

/// Steps that a replay of this owner takes, times its exits.
fn steps_of(owner: &OwnerHistory) -> u64 {
    let (Some((first, _)), Some((last, _))) = (owner.rounds.first(), owner.rounds.last()) else { return 0 };
    let step = owner.interval_ms().clamp(500, 60_000);
    let steps = last.abs_diff(*first) / step + owner.rounds.len() as u64;
    steps.saturating_mul(owner.exits.len() as u64)
}

/// The settings of the history with some changed.
fn changed(settings: &Settings, changes: Map<String, Value>) -> Outcome<Settings> {
    let internal = |error: serde_json::Error| FieldError::new("", "internal", error.to_string());
    let mut all = serde_json::to_value(settings).map_err(internal)?;
    for (name, value) in changes {
        if !DECIDING.contains(&name.as_str()) {
            let known = DECIDING.join(", ");
            let message = format!("is no setting of how to decide; these are: {known}");
            return Err(FieldError::new(name, "unknown_field", message));
        }
        all[name] = value;
    }
    let settings: Settings = input::arguments(&all.to_string())?;
    settings.validate().into_iter().next().map_or(Ok(settings), Err)
}

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

fn refusal(error: ReplayError, request: &Request) -> FieldError {
    let message = error.to_string();
    let place = |text: &str| {
        let place = request.policies.iter().position(|policy| policy == text).unwrap_or(0);
        format!("policies[{place}]")
    };
    match error {
        ReplayError::History(error) => input::within("history", broken(error)),
        ReplayError::Setting { name, what } => {
            FieldError::new(format!("settings.{name}"), "out_of_range", what)
        }
        ReplayError::Policy { text, .. } => not_allowed(&place(&text), &Strategy::Other(text)),
        ReplayError::NoGroup(text) => {
            FieldError::new(place(&text), "policy_no_group", message).with("strategy", text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(rounds: impl Iterator<Item = (i64, f64)>) -> String {
        let rounds: Vec<String> =
            rounds.map(|(at, ms)| format!("[{at},[[[{ms},0],[10,0]],[[20,0],[10,0]]]]")).collect();
        let rounds = rounds.join(",");
        format!(
            r#"{{"exitpilotHistory":1,"name":"hk","owners":[{{"owner":"a","exits":["x","y"],"rounds":[{rounds}]}}]}}"#
        )
    }

    fn wrong(history: &str, json: &str) -> String {
        let error = replay(history, json).unwrap_err();
        format!("{} {}", error.field, error.code)
    }

    #[test]
    fn settings_and_policies_are_replayed() {
        let history = history((0..200).map(|i| (i * 5000, if i < 100 { 20.0 } else { 300.0 })));
        let report = replay(&history, r#"{"policies":["fixed(0)"]}"#).unwrap();
        let switches: Vec<(&str, usize)> =
            report.policies.iter().map(|it| (it.policy.as_str(), it.switches)).collect();
        assert_eq!(switches, [("best, classic", 1), ("best, adaptive", 1), ("fixed(0)", 0)]);
        let slow = r#"{"settings":{"decisionRules":"classic","minAdvantageMs":1000}}"#;
        let report = replay(&history, slow).unwrap();
        assert_eq!((report.policies.len(), report.policies[0].switches), (1, 0));
        assert!(report.suggestion.is_none());
    }

    #[test]
    fn what_cannot_be_replayed_is_named() {
        let good = history((0..3).map(|i| (i * 5000, 20.0)));
        assert_eq!(wrong(&good, r#"{"settings":{"pingCount":3}}"#), "settings.pingCount unknown_field");
        assert_eq!(wrong(&good, r#"{"settings":{"cooldownMs":-1}}"#), "settings.cooldownMs out_of_range");
        assert_eq!(
            wrong(&good, r#"{"settings":{"decisionRules":7}}"#),
            "settings.decisionRules invalid_type"
        );
        assert_eq!(wrong(&good, r#"{"policies":["fifo","nonsense"]}"#), "policies[1] strategy_unknown");
        assert_eq!(wrong("{", "{}"), "history malformed");
        assert_eq!(
            wrong(&good.replace("[20,0]", "[20,\"x\"]"), "{}").split(' ').next_back(),
            Some("invalid_type")
        );
        assert_eq!(wrong(&good.replace("y\":1", "y\":2"), "{}"), "history.exitpilotHistory unknown_value");
        assert_eq!(
            wrong(&history([(5, 1.0), (4, 1.0)].into_iter()), "{}"),
            "history.owners[0].rounds[1] round_invalid"
        );
        // Years between two rounds would be years of steps.
        assert_eq!(wrong(&history([(0, 1.0), (1 << 60, 1.0)].into_iter()), "{}"), "history.owners too_long");
        assert_eq!(wrong("[]", "{}"), "history.owners history_empty");
    }
}
