use crate::api::json::parse;
use crate::api::session::may_write;
use crate::api::{Feed, client};
use crate::format;
use crate::i18n::{common, editor, errors, lang, lang_now, settings as words, t};
use crate::pages::sending::Sending;
use crate::reactive::{RwSignal, Show, Signal};
use crate::ui::button::Submit;
use crate::ui::field::said;
use crate::ui::{
    Alert, Button, Checkbox, Checked, Choice, FieldErrors, FormSummary, SelectField, TextField, toast,
};
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::{Map, Value};
use shared::api::{SettingsAnswer, SettingsInput};
use shared::best_exit::settings::{RANGES, Range};
use shared::best_exit::{DecisionRules, Settings};
use shared::field::FieldError;
use shared::testid;

/// Numbers that are about measuring; the others are about deciding.
const MEASURING: [&str; 4] = ["roundIntervalMs", "pingCount", "pingTimeoutMs", "retentionDays"];
/// Numbers that may have digits behind the point.
const FRACTIONS: [&str; 3] = ["minAdvantageMs", "minAdvantageRatio", "lossPenaltyMsPerPercent"];

#[derive(Clone, Copy)]
struct Typed {
    version: RwSignal<i64>,
    monitoring: RwSignal<bool>,
    probe_target: RwSignal<String>,
    numbers: [RwSignal<String>; RANGES.len()],
    rules: RwSignal<DecisionRules>,
}

impl Typed {
    fn new(stored: &SettingsAnswer) -> Self {
        let settings = &stored.settings;
        Self {
            version: RwSignal::new(stored.version),
            monitoring: RwSignal::new(settings.monitor_tunnel_quality_enabled),
            probe_target: RwSignal::new(settings.probe_target.clone()),
            numbers: RANGES.map(|range| RwSignal::new(format::plain(settings.number(range.field)))),
            rules: RwSignal::new(settings.decision_rules),
        }
    }

    fn fill(&self, settings: &Settings) {
        self.monitoring.set(settings.monitor_tunnel_quality_enabled);
        self.probe_target.set(settings.probe_target.clone());
        for (range, number) in RANGES.iter().zip(self.numbers) {
            number.set(format::plain(settings.number(range.field)));
        }
        self.rules.set(settings.decision_rules);
    }

    /// What would be sent, and what is wrong with it.
    fn checked(&self) -> Checked {
        let mut wrong = Vec::new();
        let mut json = Map::new();
        for (range, number) in RANGES.iter().zip(self.numbers) {
            match number_of(range, &number.get()) {
                Ok(value) => {
                    json.insert(range.field.to_owned(), value);
                }
                Err(error) => wrong.push(error),
            }
        }
        json.insert("version".into(), self.version.get().into());
        json.insert("monitorTunnelQualityEnabled".into(), self.monitoring.get().into());
        json.insert("probeTarget".into(), self.probe_target.get().trim().into());
        json.insert("decisionRules".into(), serde_json::to_value(self.rules.get()).unwrap_or_default());
        let json = Value::Object(json);
        // What is no number was said above and stays at its default here, which is valid.
        if let Ok(input) = serde_json::from_value::<SettingsInput>(json.clone()) {
            wrong.extend(input.over(Settings::default()).validate());
        }
        Checked { json, errors: wrong }
    }
}

/// The JSON number that a text stands for. One that does not fit its type is out of range.
pub fn number_of(range: &Range, text: &str) -> Result<Value, FieldError> {
    let out_of_range = || {
        FieldError::new(range.field, "out_of_range", "out of range")
            .with("min", format::plain(range.min))
            .with("max", format::plain(range.max))
    };
    let text = text.trim();
    if FRACTIONS.contains(&range.field) {
        let number = parse(text).and_then(|number| number.as_f64());
        let number =
            number.ok_or_else(|| FieldError::new(range.field, "number_invalid", "write a number"))?;
        return Ok(Value::from(number));
    }
    let number = text.parse::<i64>();
    let number = number.map_err(|_| FieldError::new(range.field, "whole_number", "write a whole number"))?;
    match u32::try_from(number) {
        Ok(number) => Ok(Value::from(number)),
        Err(_) => Err(out_of_range()),
    }
}

/// Measuring on or off, and all numbers that govern it.
#[component]
pub fn DecisionSettings(stored: Feed<SettingsAnswer>) -> AnyView {
    // Made once: another operator's save must not overwrite what is typed here. It is noticed when saving.
    let Some(first) = stored.now() else { return ().into_any() };
    let typed = Typed::new(&first);
    let wrong = FieldErrors::new(move || typed.checked());
    let sending = Sending::new(wrong);
    let take = move |answer: &SettingsAnswer| {
        // Unless the screen is gone.
        if typed.version.try_set(answer.version).is_none() {
            typed.fill(&answer.settings);
            wrong.reset();
            sending.failure.set(None);
        }
    };
    let submit = sending.on_submit(move || {
        let input = serde_json::from_value::<SettingsInput>(typed.checked().json);
        Box::pin(async move {
            // What may be sent can be read.
            let Ok(input) = input else { return Ok(()) };
            let answer = client::update_settings(&input).await?;
            toast::good(words::SAVED.say(lang_now()));
            take(&answer);
            stored.refresh();
            Ok(())
        })
    });
    let reload = move |()| {
        spawn_local(async move {
            match client::settings().await {
                Ok(answer) => take(&answer),
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    };
    let (stale, said) = (sending.is_stale(), sending.words());
    let failed = Signal::derive(move || said.get().filter(|_| !stale.get()));
    view! {
        <form class="card settings-form" on:submit=submit novalidate>
            <Measuring typed wrong />
            <Deciding typed wrong />
            <Show when=move || stale.get()>
                <Alert testid=testid::EDITOR_STALE>
                    <p>{t(common::ERROR_STALE)} " " {t(common::ERROR_STALE_HINT)}</p>
                    <Button text=editor::LOAD_THEIRS on_press=Callback::new(reload) testid=testid::EDITOR_LOAD_THEIRS />
                </Alert>
            </Show>
            <FormSummary errors=wrong failure=failed />
            <Show when=may_write>
                <footer class="dialog-foot">
                    <Button text=words::USE_DEFAULTS on_press=Callback::new(move |()| typed.fill(&Settings::default())) />
                    <Submit text=common::SAVE busy=sending.busy testid=testid::SETTINGS_SAVE />
                </footer>
            </Show>
        </form>
    }
    .into_any()
}

#[component]
fn Measuring(typed: Typed, wrong: FieldErrors) -> AnyView {
    let id = |field: &str| testid::with(testid::SETTINGS_FIELD, field);
    let target_hint = Signal::derive(|| {
        let default = Settings::default().probe_target;
        let default = words::DEFAULT_HINT.with(lang(), &[("default", &default)]);
        format!("{} {default}", t(words::PROBE_TARGET_HINT)())
    });
    view! {
        <h2>{t(words::MEASURING)}</h2>
        <Checkbox label=words::MONITORING value=typed.monitoring hint=said(words::MONITORING_HINT)
            testid=id("monitorTunnelQualityEnabled") />
        <div class="field-row">
            <TextField label=words::PROBE_TARGET value=typed.probe_target field="probeTarget"
                error=wrong.of("probeTarget") hint=target_hint testid=id("probeTarget") />
            {numbers(typed, wrong, true)}
        </div>
    }
    .into_any()
}

#[component]
fn Deciding(typed: Typed, wrong: FieldErrors) -> AnyView {
    view! {
        <h2>{t(words::DECIDING)}</h2>
        <div class="field-row">
            {numbers(typed, wrong, false)}
            {rules_field(typed.rules, wrong, testid::with(testid::SETTINGS_FIELD, "decisionRules"))}
        </div>
    }
    .into_any()
}

/// The choice of the rules.
pub fn rules_field(rules: RwSignal<DecisionRules>, wrong: FieldErrors, testid: String) -> AnyView {
    let value = Signal::derive(move || rules_text(rules.get()).to_owned());
    let choices = Signal::derive(|| {
        vec![
            Choice::new(rules_text(DecisionRules::Classic), words::RULES_CLASSIC.say(lang())),
            Choice::new(rules_text(DecisionRules::Adaptive), words::RULES_ADAPTIVE.say(lang())),
        ]
    });
    let choose = move |value: String| {
        rules.set(if value == "adaptive" { DecisionRules::Adaptive } else { DecisionRules::Classic });
    };
    view! {
        <SelectField label=words::RULES value choices on_choose=Callback::new(choose) field="decisionRules"
            error=wrong.of("decisionRules") testid />
    }
    .into_any()
}

/// A set of rules as it is stored.
pub fn rules_text(rules: DecisionRules) -> &'static str {
    match rules {
        DecisionRules::Classic => "classic",
        DecisionRules::Adaptive => "adaptive",
    }
}

fn numbers(typed: Typed, wrong: FieldErrors, measuring: bool) -> AnyView {
    let defaults = Settings::default();
    RANGES
        .iter()
        .zip(typed.numbers)
        .filter(|(range, _)| MEASURING.contains(&range.field) == measuring)
        .filter_map(|(range, value)| {
            let (label, hint, unit) = words::number(range.field)?;
            let default = format::plain(defaults.number(range.field));
            let (min, max) = (format::plain(range.min), format::plain(range.max));
            let hint = Signal::derive(move || {
                let values = [("default", default.as_str()), ("min", min.as_str()), ("max", max.as_str())];
                let range = words::RANGE_HINT.with(lang(), &values);
                match hint {
                    Some(hint) => format!("{}{} {range}", t(hint)(), stop(lang())),
                    None => range,
                }
            });
            let testid = testid::with(testid::SETTINGS_FIELD, range.field);
            Some(number_field(label, value, range.field, wrong, hint, unit, testid))
        })
        .collect_view()
        .into_any()
}

/// What ends a sentence.
fn stop(lang: crate::i18n::Lang) -> &'static str {
    match lang {
        crate::i18n::Lang::Zh => "。",
        crate::i18n::Lang::En => ".",
    }
}

fn number_field(
    label: crate::i18n::Text,
    value: RwSignal<String>,
    field: &'static str,
    wrong: FieldErrors,
    hint: Signal<String>,
    unit: Option<crate::i18n::Text>,
    testid: String,
) -> AnyView {
    let error = wrong.of(field);
    match unit {
        Some(unit) => view! {
            <TextField label value field error hint unit mode="decimal" testid />
        }
        .into_any(),
        None => view! { <TextField label value field error hint mode="decimal" testid /> }.into_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(field: &str) -> Range {
        RANGES.into_iter().find(|range| range.field == field).unwrap()
    }

    #[test]
    fn texts_become_numbers_or_errors_with_words() {
        assert_eq!(number_of(&range("confirmations"), " 5 "), Ok(Value::from(5)));
        assert_eq!(number_of(&range("minAdvantageRatio"), "0.25"), Ok(Value::from(0.25)));
        let code = |field: &str, text: &str| number_of(&range(field), text).unwrap_err().code;
        assert_eq!(code("confirmations", "2.5"), "whole_number");
        assert_eq!(code("confirmations", "-1"), "out_of_range");
        assert_eq!(code("cooldownMs", "99999999999"), "out_of_range");
        assert_eq!(code("minAdvantageMs", "NaN"), "number_invalid");
        assert_eq!(code("minAdvantageMs", ""), "number_invalid");
    }

    #[test]
    fn the_form_sends_what_was_stored() {
        let owner = Owner::new();
        owner.set();
        let stored = SettingsAnswer {
            version: 4,
            settings: Settings { min_advantage_ratio: 0.3, confirmations: 7, ..Settings::default() },
        };
        let typed = Typed::new(&stored);
        let checked = typed.checked();
        assert_eq!(checked.errors, []);
        let input: SettingsInput = serde_json::from_value(checked.json).unwrap();
        assert_eq!(input.version, Some(4));
        assert_eq!(input.over(Settings::default()), stored.settings);
        typed.fill(&Settings { ping_count: 0, ..Settings::default() });
        assert_eq!(typed.checked().errors[0].field, "pingCount");
    }
}
