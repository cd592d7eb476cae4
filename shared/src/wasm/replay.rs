//! What ways of choosing would have made of a history.

use super::Outcome;
use super::input::{self, MAX_HISTORY_BYTES};
use crate::api::LegHistory;
use crate::best_exit::Settings;
use crate::field::FieldError;
use crate::replay::history::History;
use crate::replay::question::{MAX_STEPS, Question, Replayable};
use crate::replay::report::Report;

/// Replays a history: an object as `exitpilot export-history` writes it, or a list of legs as the panel answers. The
/// arguments are a [`Question`]; of the settings only those count that decide, and those that are not given are as in the
/// history.
pub fn replay(history: &str, json: &str) -> Outcome<Report> {
    prepare(history)?.answer(&input::arguments(json)?, &|| true)
}

/// Reads a history for any number of questions.
pub fn prepare(history: &str) -> Outcome<Replayable> {
    let ready = |history: History| Replayable::new(&history, MAX_STEPS);
    read_history(history).and_then(ready).map_err(|error: FieldError| error.within("history"))
}

/// Answers one of them.
pub fn answer(history: &Replayable, json: &str) -> Outcome<Report> {
    history.answer(&input::arguments::<Question>(json)?, &|| true)
}

fn read_history(json: &str) -> Outcome<History> {
    if json.len() > MAX_HISTORY_BYTES {
        return input::read(json, MAX_HISTORY_BYTES);
    }
    if json.trim_start().starts_with('[') {
        let legs: Vec<LegHistory> = input::read(json, MAX_HISTORY_BYTES)?;
        return Ok(History::of_legs("", &Settings::default(), &legs, &|node| format!("node {}", node.0)));
    }
    // Again, and slowly, only to find the place of what is wrong.
    serde_json::from_str(json).or_else(|_| input::read(json, MAX_HISTORY_BYTES))
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

    /// Two settings beside each other, of one owner, judged alike.
    #[test]
    fn what_is_in_force_is_replayed_beside_what_is_asked() {
        let history = history((0..200).map(|i| (i * 5000, if i < 100 { 20.0 } else { 300.0 })));
        let history = prepare(&history).unwrap();
        let ask = |json: &str| answer(&history, json);
        let slow =
            r#"{"inForce":true,"owner":"a","settings":{"decisionRules":"classic","minAdvantageMs":1000}}"#;
        let report = ask(slow).unwrap();
        let switches: Vec<(&str, usize)> =
            report.policies.iter().map(|it| (it.policy.as_str(), it.switches)).collect();
        assert_eq!(switches, [("in force", 1), ("best, classic", 0)]);
        assert_eq!((report.courses.len(), report.courses[0].choices.len()), (1, 2));
        let asked = ask(r#"{"settings":{"decisionRules":"classic","lossPenaltyMsPerPercent":7}}"#).unwrap();
        assert_eq!(asked.policies.len(), 1, "asked again of the same history");
        assert_eq!(ask(r#"{"owner":"b"}"#).unwrap_err().field, "owner");
        assert_eq!(ask(r#"{"policies":["min","rand"]}"#).unwrap_err().code, "policy_no_group");
    }

    #[test]
    fn a_replay_that_nobody_waits_for_ends() {
        let history = prepare(&history((0..200).map(|i| (i * 5000, 20.0)))).unwrap();
        let suggest = Question { suggest: true, ..Question::default() };
        assert_eq!(history.answer(&suggest, &|| false).unwrap_err().code, "stopped");
        let asked = std::cell::Cell::new(0);
        // The ways of choosing are through; what is left are the settings that are tried.
        let twice = || asked.replace(asked.get() + 1) < 2;
        assert_eq!(history.answer(&suggest, &twice).unwrap_err().code, "stopped");
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
        assert_eq!(wrong(&good, r#"{"policies":["min","nonsense"]}"#), "policies[1] strategy_unknown");
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
