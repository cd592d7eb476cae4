//! Putting the settings in force, after a question: they are those of the whole panel.

use super::ask::{Asked, is_asked};
use super::desk::Desk;
use crate::format;
use crate::i18n::{common, errors, lang, lang_now, settings, t, what_if as words};
use crate::pages::settings::decisions::rules_text;
use crate::reactive::{RwSignal, Show, part, phrase};
use crate::ui::field::said;
use crate::ui::{Alert, Button, Dialog, Look};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::{SettingsAnswer, SettingsInput};
use shared::best_exit::Settings;
use shared::best_exit::settings::RANGES;
use shared::testid;

/// What would change, in words: name, before, after.
fn changes(before: &Settings, after: &Settings) -> Vec<String> {
    let say = |name: &str, before: String, after: String| {
        words::USE_CHANGE.with(lang(), &[("name", name), ("before", &before), ("after", &after)])
    };
    let numbers = RANGES.iter().filter(|range| is_asked(range.field)).filter_map(|range| {
        let (was, is) = (before.number(range.field), after.number(range.field));
        let (label, _, unit) = settings::number(range.field)?;
        let with_unit = |value: f64| match unit {
            Some(unit) => format!("{} {}", format::plain(value), unit.say(lang())),
            None => format::plain(value),
        };
        (was != is).then(|| say(label.say(lang()), with_unit(was), with_unit(is)))
    });
    let (was, is) = (rules_text(before.decision_rules), rules_text(after.decision_rules));
    let rules = (was != is).then(|| say(settings::RULES.say(lang()), was.to_owned(), is.to_owned()));
    numbers.chain(rules).collect()
}

/// The settings that are asked about, above those in force.
fn wanted(stored: &SettingsAnswer, asked: Asked) -> Option<(SettingsInput, Settings)> {
    let checked = asked.checked();
    let mut input = serde_json::from_value::<SettingsInput>(checked.json).ok()?;
    let all = input.clone().over(stored.settings.clone());
    input.version = Some(stored.version);
    (checked.errors.is_empty() && all.validate().is_empty()).then_some((input, all))
}

/// The button and its question. `on_used` is called when the settings are stored.
pub fn adopt(desk: Desk, asked: Asked, on_used: Callback<()>) -> AnyView {
    let open = RwSignal::new(false);
    let busy = RwSignal::new(false);
    let failure = RwSignal::new(None::<String>);
    let now = move || desk.settings.get().and_then(|stored| wanted(&stored, asked).map(|it| (stored, it)));
    let differs = move || now().is_some_and(|(stored, (_, all))| all != stored.settings);
    let list = move || {
        let all = now().map(|(stored, (_, all))| changes(&stored.settings, &all)).unwrap_or_default();
        all.into_iter().map(|change| view! { <li>{change}</li> }).collect_view()
    };
    let confirm = move |()| {
        let stored = desk.settings.now();
        let Some((input, _)) = stored.and_then(|stored| wanted(&stored, asked)) else { return };
        let line = desk.line();
        busy.set(true);
        spawn_local(async move {
            let answer = line.adopt(&input).await;
            let _ = busy.try_set(false);
            match answer {
                Ok(answer) => {
                    if open.try_set(false).is_none() {
                        failure.set(None);
                        desk.settings.put(answer);
                        on_used.run(());
                    }
                }
                Err(error) => {
                    if failure.try_set(Some(errors::api(&error, lang_now()))).is_none() && error.is_stale() {
                        // What is in force now is what the question is about.
                        desk.settings.refresh();
                    }
                }
            }
        });
    };
    view! {
        <Button text=words::USE look=Look::Primary disabled=crate::reactive::Signal::derive(move || !differs())
            on_press=Callback::new(move |()| { failure.set(None); open.set(true); }) testid=testid::WHAT_IF_USE />
        <Dialog open title=said(words::USE_TITLE)>
            <p>{t(words::USE_LEAD)}</p>
            <ul class="changes">{part(list)}</ul>
            <Show when=move || failure.with(Option::is_some)>
                <Alert><p>{phrase(move || failure.get())}</p></Alert>
            </Show>
            <footer class="dialog-foot">
                <Button text=common::CANCEL on_press=Callback::new(move |()| open.set(false)) testid=testid::CANCEL />
                <Button text=words::USE look=Look::Primary disabled=busy on_press=Callback::new(confirm) testid=testid::CONFIRM />
            </footer>
        </Dialog>
    }
    .into_any()
}
