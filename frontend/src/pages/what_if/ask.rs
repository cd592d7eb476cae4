//! What is asked: settings, policies, time, owner.

use super::slider::slider;
use crate::format;
use crate::i18n::{lang, t, what_if as words};
use crate::pages::settings::decisions::{number_of, rules_field};
use crate::reactive::{RwSignal, Signal, part};
use crate::ui::field::no_error;
use crate::ui::{Checked, Choice, FieldErrors, SelectField};
use leptos::prelude::*;
use serde_json::{Map, Value};
use shared::api::SettingsInput;
use shared::best_exit::settings::RANGES;
use shared::best_exit::{DecisionRules, Settings};
use shared::replay::report::DECIDING;
use shared::testid;

/// Policies of other systems that can be compared with.
pub const POLICIES: [&str; 6] =
    ["urltest(tolerance=50)", "min", "min_avg10", "min_moving_avg", "fixed_fallback(0)", "fixed(0)"];
const HOUR_MS: i64 = 3_600_000;
/// Hours of history, with their words.
const SPANS: [(i64, crate::i18n::Text); 3] =
    [(1, words::SPAN_HOUR), (24, words::SPAN_DAY), (24 * 7, words::SPAN_WEEK)];

/// Whether a numeric setting is about deciding.
pub fn is_asked(field: &str) -> bool {
    DECIDING.contains(&field)
}

/// What is asked, as it is typed.
#[derive(Clone, Copy)]
pub struct Asked {
    numbers: [RwSignal<String>; RANGES.len()],
    rules: RwSignal<DecisionRules>,
    policies: [RwSignal<bool>; POLICIES.len()],
    /// The owner; empty: all.
    pub owner: RwSignal<String>,
    hours: RwSignal<i64>,
}

impl Asked {
    /// The settings in force, for a day, beside one policy.
    pub fn new(settings: &Settings) -> Self {
        let asked = Self {
            numbers: RANGES.map(|_| RwSignal::new(String::new())),
            rules: RwSignal::new(settings.decision_rules),
            policies: [true, false, false, false, false, false].map(RwSignal::new),
            owner: RwSignal::new(String::new()),
            hours: RwSignal::new(24),
        };
        asked.fill(settings);
        asked
    }

    /// Puts settings into the fields.
    pub fn fill(self, settings: &Settings) {
        for (range, number) in RANGES.iter().zip(self.numbers) {
            number.set(format::plain(settings.number(range.field)));
        }
        self.rules.set(settings.decision_rules);
    }

    /// How far back, in milliseconds.
    pub fn span_ms(self) -> i64 {
        self.hours.get() * HOUR_MS
    }

    /// The settings that decide, as they would be stored, and what is wrong with them.
    pub fn checked(self) -> Checked {
        let (mut json, mut errors) = (Map::new(), Vec::new());
        for (range, number) in RANGES.iter().zip(self.numbers).filter(|(range, _)| is_asked(range.field)) {
            match number_of(range, &number.get()) {
                Ok(value) => {
                    json.insert(range.field.to_owned(), value);
                }
                Err(error) => errors.push(error),
            }
        }
        json.insert("decisionRules".into(), serde_json::to_value(self.rules.get()).unwrap_or_default());
        let json = Value::Object(json);
        if let Ok(input) = serde_json::from_value::<SettingsInput>(json.clone()) {
            errors.extend(input.over(Settings::default()).validate());
        }
        Checked { json, errors }
    }

    /// The question, as JSON.
    pub fn question(self, settings: &Value, suggest: bool) -> Value {
        let policies = POLICIES.iter().zip(self.policies).filter(|(_, chosen)| chosen.get());
        let policies: Vec<Value> = policies.map(|(policy, _)| Value::from(*policy)).collect();
        let mut question = Map::new();
        question.insert("settings".into(), settings.clone());
        question.insert("policies".into(), Value::Array(policies));
        question.insert("inForce".into(), Value::Bool(true));
        let owner = self.owner.get();
        if !owner.is_empty() {
            question.insert("owner".into(), Value::String(owner));
        }
        if suggest {
            question.insert("suggest".into(), Value::Bool(true));
        }
        Value::Object(question)
    }
}

/// The fields.
pub fn fields(asked: Asked, wrong: FieldErrors, owners: Signal<Vec<String>>) -> AnyView {
    let hours = Signal::derive(move || asked.hours.get().to_string());
    let spans = Signal::derive(|| {
        SPANS.iter().map(|(hours, text)| Choice::new(hours.to_string(), text.say(lang()))).collect::<Vec<_>>()
    });
    let choose_hours = move |text: String| asked.hours.set(text.parse().unwrap_or(24));
    let owner = move || {
        let choices = Signal::derive(move || {
            let all = Choice::new("", words::OWNERS_ALL.say(lang()));
            std::iter::once(all)
                .chain(owners.get().into_iter().map(|name| Choice::new(name.clone(), name)))
                .collect::<Vec<_>>()
        });
        (owners.get().len() > 1).then(|| {
            view! {
                <SelectField label=words::OWNER value=Signal::derive(move || asked.owner.get()) choices
                    on_choose=Callback::new(move |name| asked.owner.set(name)) field="owner"
                    testid=testid::with(testid::WHAT_IF_FIELD, "owner") />
            }
        })
    };
    let sliders = RANGES
        .iter()
        .zip(asked.numbers)
        .filter(|(range, _)| is_asked(range.field))
        .filter_map(|(range, value)| slider(*range, value, wrong.of(range.field)))
        .collect_view();
    let boxes = POLICIES.iter().zip(asked.policies).map(|(policy, chosen)| {
        view! {
            <label class="check-line">
                <input type="checkbox" data-testid=testid::with(testid::WHAT_IF_POLICY, policy)
                    prop:checked=move || chosen.get()
                    on:change=move |event| chosen.set(event_target_checked(&event)) />
                <code>{*policy}</code>
            </label>
        }
    });
    view! {
        <div class="field-row">
            <SelectField label=words::SPAN value=hours choices=spans on_choose=Callback::new(choose_hours) field="span"
                error=no_error() testid=testid::with(testid::WHAT_IF_FIELD, "span") />
            {part(owner)}
            {rules_field(asked.rules, wrong, testid::with(testid::WHAT_IF_FIELD, "decisionRules"))}
        </div>
        <div class="field-row sliders">{sliders}</div>
        <fieldset class="policies">
            <legend>{t(words::POLICIES)}</legend>
            <p class="hint">{t(words::POLICIES_HINT)}</p>
            <div class="check-lines">{boxes.collect_view()}</div>
        </fieldset>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_can_be_replayed() {
        let round = |at: i64| format!("[{at},[[[1,0],[1,0]],[[2,0],[2,0]]]]");
        let text = format!(
            r#"{{"exitpilotHistory":1,"name":"","owners":[{{"owner":"a","exits":["x","y"],"rounds":[{},{}]}}]}}"#,
            round(0),
            round(5000)
        );
        let history = shared::replay::history::History::parse(&text).unwrap();
        let history = shared::replay::question::Replayable::new(&history, 1000).unwrap();
        let policies = POLICIES.map(str::to_owned).to_vec();
        let question = shared::replay::question::Question { policies, in_force: true, ..Default::default() };
        assert_eq!(history.answer(&question, &|| true).unwrap().policies.len(), 3 + POLICIES.len());
    }
}
