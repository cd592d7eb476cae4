//! Inputs with their label, hint and error.

use super::errors::FieldMessage;
use crate::i18n::{Text, t};
use crate::reactive::{RwSignal, Signal, part, phrase};
use leptos::prelude::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

static ID_PREFIX: OnceLock<&str> = OnceLock::new();

/// How the ids of [`fresh_id`] begin from now on. Code that shares a document with the page's must not repeat its ids.
pub fn name_ids(prefix: &'static str) {
    let _ = ID_PREFIX.set(prefix);
}

/// A new id for an element that another one refers to.
pub fn fresh_id() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("{}{}", ID_PREFIX.get().copied().unwrap_or("f"), LAST.fetch_add(1, Ordering::Relaxed))
}

fn frame(
    id: &str,
    label: Text,
    hint: Option<Signal<String>>,
    field: String,
    error: Signal<Option<String>>,
    input: AnyView,
) -> AnyView {
    view! {
        <div class="field" class:invalid=move || error.get().is_some()>
            <label for=id.to_owned()>{t(label)}</label>
            {input}
            {hint.map(|hint| view! { <p class="hint" id=format!("{id}-hint")>{phrase(move || hint.get())}</p> })}
            <FieldMessage id=format!("{id}-error") field error />
        </div>
    }
    .into_any()
}

/// Ids of what describes an input, for `aria-describedby`.
fn described_by(id: &str, has_hint: bool) -> String {
    if has_hint { format!("{id}-hint {id}-error") } else { format!("{id}-error") }
}

/// An error that never comes.
pub fn no_error() -> Signal<Option<String>> {
    Signal::stored(None)
}

/// A text as a signal.
pub fn said(text: Text) -> Signal<String> {
    Signal::derive(move || t(text)().to_owned())
}

/// A line of text.
#[component]
pub fn TextField(
    label: Text,
    value: RwSignal<String>,
    /// Path of the field, for its error and for tests.
    #[prop(into)]
    field: String,
    #[prop(optional, into)] error: Option<Signal<Option<String>>>,
    #[prop(optional, into)] hint: Option<Signal<String>>,
    #[prop(optional)] unit: Option<Text>,
    #[prop(default = "text")] kind: &'static str,
    #[prop(default = "off")] autocomplete: &'static str,
    /// `numeric` brings the digits up on a phone.
    #[prop(default = "text")]
    mode: &'static str,
    #[prop(optional)] placeholder: Option<Text>,
    #[prop(optional)] autofocus: bool,
    #[prop(optional, into)] disabled: Signal<bool>,
    #[prop(into)] testid: String,
) -> AnyView {
    let id = fresh_id();
    let error = error.unwrap_or_else(no_error);
    let input = view! {
        <span class="input-line">
            <input
                id=id.clone()
                type=kind
                class="input"
                inputmode=mode
                autocomplete=autocomplete
                autofocus=autofocus
                spellcheck="false"
                placeholder=move || placeholder.map(|text| t(text)())
                aria-describedby=described_by(&id, hint.is_some())
                aria-invalid=move || error.get().map(|_| "true")
                disabled=move || disabled.get()
                data-testid=testid
                prop:value=move || value.get()
                on:input=move |event| value.set(event_target_value(&event))
            />
            {unit.map(|unit| view! { <span class="unit">{t(unit)}</span> })}
        </span>
    };
    frame(&id, label, hint, field, error, input.into_any())
}

/// Several lines of text.
#[component]
pub fn TextArea(
    label: Text,
    value: RwSignal<String>,
    #[prop(into)] field: String,
    #[prop(into)] error: Signal<Option<String>>,
    #[prop(optional, into)] hint: Option<Signal<String>>,
    #[prop(default = 3)] rows: u32,
    #[prop(into)] testid: String,
) -> AnyView {
    let id = fresh_id();
    let input = view! {
        <textarea
            id=id.clone()
            class="input"
            rows=rows
            spellcheck="false"
            aria-describedby=described_by(&id, hint.is_some())
            aria-invalid=move || error.get().map(|_| "true")
            data-testid=testid
            prop:value=move || value.get()
            on:input=move |event| value.set(event_target_value(&event))
        ></textarea>
    };
    frame(&id, label, hint, field, error, input.into_any())
}

/// One choice of a select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is stored.
    pub value: String,
    /// What is read; a choice that cannot be taken says why in it.
    pub label: String,
    /// Can be taken.
    pub possible: bool,
}

impl Choice {
    /// One that can be taken.
    pub fn new(value: impl Into<String>, label: impl Into<String>) -> Self {
        Self { value: value.into(), label: label.into(), possible: true }
    }
}

/// One of several.
#[component]
pub fn SelectField(
    label: Text,
    #[prop(into)] value: Signal<String>,
    on_choose: Callback<String>,
    #[prop(into)] choices: Signal<Vec<Choice>>,
    #[prop(into)] field: String,
    #[prop(optional, into)] error: Option<Signal<Option<String>>>,
    #[prop(optional, into)] hint: Option<Signal<String>>,
    #[prop(optional, into)] disabled: Signal<bool>,
    #[prop(into)] testid: String,
) -> AnyView {
    let id = fresh_id();
    let error = error.unwrap_or_else(no_error);
    // The value is set through `selected` on the options: a value set before its option is there is lost.
    let options = move || {
        let current = value.get();
        choices
            .get()
            .into_iter()
            .map(|choice| {
                let selected = choice.value == current;
                view! {
                    <option value=choice.value disabled=!choice.possible && !selected prop:selected=selected>
                        {choice.label}
                    </option>
                }
            })
            .collect_view()
    };
    let input = view! {
        <select
            id=id.clone()
            class="input"
            aria-describedby=described_by(&id, hint.is_some())
            aria-invalid=move || error.get().map(|_| "true")
            disabled=move || disabled.get()
            data-testid=testid
            on:change=move |event| on_choose.run(event_target_value(&event))
        >
            {part(options)}
        </select>
    };
    frame(&id, label, hint, field, error, input.into_any())
}

/// On or off.
#[component]
pub fn Checkbox(
    label: Text,
    value: RwSignal<bool>,
    #[prop(optional, into)] hint: Option<Signal<String>>,
    #[prop(optional, into)] disabled: Signal<bool>,
    #[prop(into)] testid: String,
) -> AnyView {
    let id = fresh_id();
    view! {
        <div class="field check">
            <input
                id=id.clone()
                type="checkbox"
                aria-describedby=hint.map(|_| format!("{id}-hint"))
                disabled=move || disabled.get()
                data-testid=testid
                prop:checked=move || value.get()
                on:change=move |event| value.set(event_target_checked(&event))
            />
            <label for=id.clone()>{t(label)}</label>
            {hint.map(|hint| view! { <p class="hint" id=format!("{id}-hint")>{phrase(move || hint.get())}</p> })}
        </div>
    }
    .into_any()
}
