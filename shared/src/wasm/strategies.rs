//! Strategies in words, and their text.

use super::{Outcome, input};
use crate::best_exit::Settings;
use crate::best_exit::settings::RANGES;
use crate::policy::{self, Policy};
use crate::strategy::{Place, Protocol, Strategy, words};
use crate::topology::not_allowed;
use crate::words::{Lang, Text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One text of every strategy, in the order in which the page lists them and, after these, in that of the documentation.
const TEXTS: [&str; 15] = [
    "fifo",
    "round",
    "rand",
    "best",
    "hash",
    "hash(consistent)",
    "parallel",
    "lowestlatency",
    "selector",
    "urltest",
    "fixed(0)",
    "min",
    "min_avg10",
    "min_moving_avg",
    "fixed_fallback(0)",
];

/// A text in every language, by the language's tag.
pub type Said = BTreeMap<&'static str, String>;

fn said(text: Text, strategy: &Strategy) -> Said {
    let values = [("strategy", strategy.as_str())];
    Lang::ALL.into_iter().map(|lang| (lang.tag(), text.with(lang, &values))).collect()
}

/// A strategy for a list to choose from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Described {
    /// As it is stored and sent.
    pub strategy: String,
    /// This version knows it.
    pub known: bool,
    /// Groups that may have it: `hop`, `exit`, `targets`.
    pub places: Vec<&'static str>,
    /// What an agent has to report to be able to carry it out; null: nobody knows what it is.
    pub capability: Option<String>,
    /// What it is called.
    pub label: Said,
    /// One sentence on when to use it.
    pub when: Said,
}

impl Described {
    fn of(strategy: &Strategy) -> Self {
        let places = [(Place::Hop, "hop"), (Place::Exit, "exit"), (Place::Targets, "targets")];
        Self {
            strategy: strategy.as_str().to_owned(),
            known: !matches!(strategy, Strategy::Other(_)),
            places: places.iter().filter(|(at, _)| strategy.allowed_at(*at)).map(|(_, name)| *name).collect(),
            capability: strategy.capability(),
            label: said(words::name(strategy), strategy),
            when: said(words::when(strategy), strategy),
        }
    }
}

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choices {
    /// Every strategy, by an example of its text.
    pub strategies: Vec<Described>,
    /// Every protocol, as it is stored and sent.
    pub protocols: Vec<String>,
    /// The settings of deciding, as they are when nobody changed them.
    pub settings: Settings,
    /// What the numbers among them may be.
    pub ranges: Vec<Range>,
}

/// What a setting may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    field: &'static str,
    min: f64,
    max: f64,
}

/// Everything that can be chosen.
pub fn choices() -> Choices {
    let range = |range: crate::best_exit::settings::Range| Range {
        field: range.field,
        min: range.min,
        max: range.max,
    };
    Choices {
        strategies: TEXTS.iter().map(|text| Described::of(&Strategy::from(*text))).collect(),
        protocols: Protocol::KNOWN.iter().map(ToString::to_string).collect(),
        settings: Settings::default(),
        ranges: RANGES.into_iter().map(range).collect(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrategyText {
    strategy: String,
}

/// One strategy, known or not, by its text: `{ strategy }`.
pub fn describe(json: &str) -> Outcome<Described> {
    let StrategyText { strategy } = input::arguments(json)?;
    Ok(Described::of(&Strategy::from(strategy)))
}

/// A policy that was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadPolicy {
    /// Its name without options.
    pub name: &'static str,
    /// Complete and canonical: every option is written.
    pub policy: String,
    /// It is decided by tests or by a person, ahead of connections.
    pub decided_ahead: bool,
    /// What was changed, in words for whoever wrote it.
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyText {
    policy: String,
}

/// Reads a policy: `{ policy }`. The error says where (`params.at`, in characters from 1) and what would have been right.
pub fn parse(json: &str) -> Outcome<ReadPolicy> {
    let PolicyText { policy: text } = input::arguments(json)?;
    let parsed = policy::parse(&text).map_err(|_| not_allowed("policy", &Strategy::Other(text)))?;
    Ok(ReadPolicy {
        name: parsed.policy.name(),
        policy: parsed.policy.to_string(),
        decided_ahead: Policy::is_decided_ahead(&parsed.policy),
        warnings: parsed.warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_strategy_is_known_and_no_two_are_called_the_same() {
        let choices = choices();
        let mut labels = std::collections::BTreeSet::new();
        for described in &choices.strategies {
            assert!(described.known, "{}", described.strategy);
            assert!(described.capability.is_some());
            assert!(labels.insert(described.label.clone()), "{:?}", described.label);
        }
        for strategy in Strategy::KNOWN {
            assert!(choices.strategies.iter().any(|it| it.strategy == strategy.as_str()));
        }
    }

    #[test]
    fn an_unknown_strategy_is_called_by_its_text() {
        let described = describe(r#"{"strategy":"weighted(3)"}"#).unwrap();
        assert_eq!(described.label["en"], "weighted(3) (unknown)");
        assert_eq!((described.known, described.places.len(), described.capability), (false, 0, None));
    }

    #[test]
    fn a_policy_is_read_or_the_place_named() {
        let read = parse(r#"{"policy":"min_last_latency( tolerance = 20ms )"}"#).unwrap();
        assert_eq!((read.name, read.decided_ahead), ("min", true));
        assert!(read.policy.contains("tolerance=20ms"));
        let error = parse(r#"{"policy":"urltest(tolerance=soon)"}"#).unwrap_err();
        assert_eq!((error.field.as_str(), error.code.as_str()), ("policy", "strategy_syntax"));
        assert_eq!((error.params["at"].as_str(), error.params["found"].as_str()), ("19", "soon"));
    }
}
