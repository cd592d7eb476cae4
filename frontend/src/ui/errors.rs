//! Which field of a form is wrong, from this side and from the panel's, in one place and in the same words.

use super::state::Alert;
use crate::browser;
use crate::i18n::{common, errors, lang};
use crate::reactive::{Memo, RwSignal, Show, Signal, part, phrase};
use leptos::prelude::*;
use serde_json::Value;
use shared::field::FieldError;
use shared::testid;
use std::sync::Arc;
use std::time::Duration;

/// A form's content as it would be sent, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// The JSON that would be sent.
    pub json: Value,
    /// What `shared` says about it.
    pub errors: Vec<FieldError>,
}

/// The errors of one form.
#[derive(Clone, Copy)]
pub struct FieldErrors {
    checked: Memo<Arc<Checked>>,
    tried: RwSignal<bool>,
    /// What the panel refused, with the value it refused.
    refused: RwSignal<Vec<(FieldError, Option<Value>)>>,
    /// Where the fields are, if that is known.
    form: StoredValue<Option<web_sys::Element>, LocalStorage>,
}

impl FieldErrors {
    /// For a form that `check` reads; it runs again whenever something it read changes.
    pub fn new(check: impl Fn() -> Checked + Send + Sync + 'static) -> Self {
        Self {
            checked: Memo::new(move |_| Arc::new(check())),
            tried: RwSignal::new(false),
            refused: RwSignal::new(Vec::new()),
            form: StoredValue::new_local(None),
        }
    }

    /// Where the fields are. The document sees none that are in a shadow tree.
    pub fn are_in(&self, form: web_sys::Element) {
        self.form.set_value(Some(form));
    }

    /// Whether the form may be sent. From the first try on, errors are shown and follow what is typed.
    pub fn may_send(&self) -> bool {
        self.tried.set(true);
        self.refused.set(Vec::new());
        let fine = self.checked.with_untracked(|checked| checked.errors.is_empty());
        if !fine {
            self.focus_first();
        }
        fine
    }

    /// Takes what the panel refused. Each is shown until that field's value changes.
    pub fn refuse(&self, errors: &[FieldError]) {
        let checked = self.checked.get_untracked();
        self.refused.set(errors.iter().map(|e| (e.clone(), value_at(&checked.json, &e.field))).collect());
        if !errors.is_empty() {
            self.focus_first();
        }
    }

    /// After the marks are drawn, so that there is something to find.
    fn focus_first(&self) {
        let form = self.form.try_get_value().flatten();
        set_timeout(move || browser::focus(form.as_ref(), "[aria-invalid=\"true\"]"), Duration::ZERO);
    }

    /// Forgets everything: the form has a new content.
    pub fn reset(&self) {
        self.tried.set(false);
        self.refused.set(Vec::new());
    }

    /// All errors that are to be shown now.
    pub fn all(&self) -> Vec<FieldError> {
        let checked = self.checked.get();
        let mut all = if self.tried.get() { checked.errors.clone() } else { Vec::new() };
        self.refused.with(|refused| {
            for (error, value) in refused {
                if value_at(&checked.json, &error.field) == *value && !all.contains(error) {
                    all.push(error.clone());
                }
            }
        });
        all
    }

    /// What to say at a field; `path` may change, because nodes move.
    pub fn at(&self, path: impl Fn() -> String + Send + Sync + 'static) -> Signal<Option<String>> {
        let errors = *self;
        Signal::derive(move || {
            let path = path();
            let said: Vec<String> =
                errors.all().iter().filter(|e| e.field == path).map(|e| errors::field(e, lang())).collect();
            (!said.is_empty()).then(|| said.join("; "))
        })
    }

    /// What to say at a field whose path never changes.
    pub fn of(&self, path: &'static str) -> Signal<Option<String>> {
        self.at(move || path.to_owned())
    }
}

/// The value at a field's path, `exit.nodes[1].port` for example.
fn value_at(json: &Value, path: &str) -> Option<Value> {
    let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
    json.pointer(&pointer).cloned()
}

/// The message under a field.
#[component]
pub fn FieldMessage(id: String, field: String, error: Signal<Option<String>>) -> AnyView {
    view! {
        <p id=id class="field-error" data-testid=testid::with(testid::FIELD_ERROR, field) hidden=move || error.get().is_none()>
            {phrase(move || error.get())}
        </p>
    }
    .into_any()
}

/// What is wrong with the form as a whole: a failed request, or how many fields need a change and why.
#[component]
pub fn FormSummary(errors: FieldErrors, #[prop(into)] failure: Signal<Option<String>>) -> AnyView {
    let fields = Memo::new(move |_| errors.all());
    let text = Signal::derive(move || {
        failure.get().or_else(|| {
            let count = fields.with(Vec::len);
            (count > 0).then(|| common::ERROR_INVALID.with(lang(), &[("count", &count.to_string())]))
        })
    });
    let list = move || {
        let mut said: Vec<String> = fields.get().iter().map(|error| errors::field(error, lang())).collect();
        said.dedup();
        said.into_iter().map(|text| view! { <li>{text}</li> }).collect_view()
    };
    view! {
        <Show when=move || text.get().is_some()>
            <Alert testid=testid::FORM_ERROR>
                <p>{phrase(move || text.get())}</p>
                <ul class="error-list">{part(list)}</ul>
            </Alert>
        </Show>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_of_fields_find_their_values() {
        let json = json!({ "name": "a", "exit": { "nodes": [{ "port": 1 }, { "port": 2 }] } });
        assert_eq!(value_at(&json, "name"), Some(json!("a")));
        assert_eq!(value_at(&json, "exit.nodes[1].port"), Some(json!(2)));
        assert_eq!(value_at(&json, "exit.nodes[2].port"), None);
        assert_eq!(value_at(&json, "hops[0].strategy"), None);
    }
}
