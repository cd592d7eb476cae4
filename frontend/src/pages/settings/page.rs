use crate::i18n::{self, Lang, Text, lang, settings as words, t};
use crate::theme::{self, Theme};
use crate::ui::field::fresh_id;
use leptos::prelude::*;
use shared::testid;

/// Language and look of this page, kept in this browser.
#[component]
pub fn PageSettings() -> AnyView {
    let language = fresh_id();
    let languages = Lang::ALL.map(|choice| {
        let name = language.clone();
        let own_name = choice.own_name();
        radio(
            name,
            testid::with(testid::LANGUAGE, choice.tag()),
            move || own_name,
            move || lang() == choice,
            move || i18n::choose(choice),
        )
    });
    let look = fresh_id();
    let themes = Theme::ALL.map(|choice| {
        radio(
            look.clone(),
            testid::with(testid::THEME, choice.as_str()),
            move || t(choice.name())(),
            move || theme::current() == choice,
            move || theme::choose(choice),
        )
    });
    view! {
        <section class="card">
            <h2>{t(words::PAGE)}</h2>
            {group(words::LANGUAGE, languages.into_iter().collect_view().into_any())}
            {group(words::THEME, themes.into_iter().collect_view().into_any())}
        </section>
    }
    .into_any()
}

fn group(title: Text, options: AnyView) -> AnyView {
    view! {
        <fieldset class="field">
            <legend>{t(title)}</legend>
            <div class="options">{options}</div>
        </fieldset>
    }
    .into_any()
}

fn radio(
    name: String,
    testid: String,
    label: impl Fn() -> &'static str + Copy + Send + Sync + 'static,
    chosen: impl Fn() -> bool + Copy + Send + Sync + 'static,
    choose: impl Fn() + 'static,
) -> AnyView {
    let id = fresh_id();
    view! {
        <div class="option" class:chosen=chosen>
            <input type="radio" id=id.clone() name=name data-testid=testid prop:checked=chosen on:change=move |_| choose() />
            <label for=id.clone()>{label}</label>
        </div>
    }
    .into_any()
}
