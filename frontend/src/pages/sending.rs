//! Sending a form: one request at a time, and what comes back of it at its place.

use crate::api::ApiError;
use crate::i18n::{Text, common, editor, errors, lang};
use crate::reactive::{Memo, RwSignal, Show, Signal};
use crate::ui::button::Submit;
use crate::ui::{Button, FieldErrors, FormSummary};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::testid;
use std::pin::Pin;

/// A request under way. Boxed, so that everything around it is compiled once for all forms.
pub type Request<T = ()> = Pin<Box<dyn Future<Output = Result<T, ApiError>>>>;

/// Sending, as far as it is.
#[derive(Clone, Copy)]
pub struct Sending {
    /// What is wrong with the fields.
    pub wrong: FieldErrors,
    /// A request is on its way.
    pub busy: RwSignal<bool>,
    /// Why the last one was refused.
    pub failure: RwSignal<Option<ApiError>>,
}

impl Sending {
    /// For a form with these errors.
    pub fn new(wrong: FieldErrors) -> Self {
        Self { wrong, busy: RwSignal::new(false), failure: RwSignal::new(None) }
    }

    /// What a form does when it is sent: unless a field is wrong or a request is under way, `send` reads the form, makes the
    /// request and does what is to be done after its success. Whatever fails, what was typed stays.
    pub fn on_submit(self, send: impl Fn() -> Request + 'static) -> Box<dyn FnMut(SubmitEvent)> {
        let send: Box<dyn Fn() -> Request> = Box::new(send);
        Box::new(move |event| {
            event.prevent_default();
            if self.busy.get_untracked() || !self.wrong.may_send() {
                return;
            }
            let request = untrack(&send);
            self.busy.set(true);
            self.failure.set(None);
            spawn_local(async move {
                let answer = request.await;
                // The form may be gone with its screen.
                let _ = self.busy.try_set(false);
                if let Err(error) = answer
                    && self.failure.try_set(Some(error.clone())).is_none()
                {
                    self.wrong.refuse(error.fields());
                }
            });
        })
    }

    /// Words for a refusal that is about no field.
    pub fn words(self) -> Signal<Option<String>> {
        let failure = self.failure;
        Signal::derive(move || {
            let failure = failure.get().filter(|failure| failure.fields().is_empty());
            failure.map(|failure| errors::api(&failure, lang()))
        })
    }

    /// Somebody else changed what the form is about since it was opened.
    pub fn is_stale(self) -> Memo<bool> {
        let failure = self.failure;
        Memo::new(move |()| failure.with(|failure| failure.as_ref().is_some_and(ApiError::is_stale)))
    }
}

/// The end of a form in a dialog: what is wrong with it as a whole, and its buttons.
#[component]
pub fn FormFoot(sending: Sending, open: RwSignal<bool>, action: Text, testid: &'static str) -> AnyView {
    view! {
        <FormSummary errors=sending.wrong failure=sending.words() />
        <footer class="dialog-foot">
            <Button text=common::CANCEL on_press=Callback::new(move |()| open.set(false)) testid=testid::CANCEL />
            <Submit text=action busy=sending.busy testid />
        </footer>
    }
    .into_any()
}

/// After somebody else's edit: takes the version that is stored now, so that saving again overwrites it.
#[component]
pub fn KeepMine(
    sending: Sending,
    version: RwSignal<Option<i64>>,
    /// Fetches the stored version; `None` = what the form is about is gone.
    fetch: Box<dyn Fn() -> Request<Option<i64>> + Send + Sync>,
) -> AnyView {
    let stale = sending.is_stale();
    let fetch = StoredValue::new(fetch);
    let take = move |()| {
        let request = fetch.with_value(|fetch| fetch());
        spawn_local(async move {
            if let Ok(Some(stored)) = request.await {
                let _ = version.try_set(Some(stored));
                let _ = sending.failure.try_set(None);
            }
        });
    };
    view! {
        <Show when=move || stale.get()>
            <Button text=editor::KEEP_MINE on_press=Callback::new(take) testid=testid::EDITOR_KEEP_MINE />
        </Show>
    }
    .into_any()
}
