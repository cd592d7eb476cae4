//! Sending the editor's content, and what comes back.

use super::desk::Desk;
use super::form::Form;
use crate::api::{ApiError, Feed};
use crate::i18n::{errors, lang};
use crate::reactive::{Memo, RwSignal, Signal};
use crate::ui::FieldErrors;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::Tunnel;
use shared::ids::TunnelId;
use wasm_bindgen::JsCast as _;

/// Saving, as far as it is.
#[derive(Clone, Copy)]
pub struct Saving {
    desk: Desk,
    form: Form,
    id: Option<TunnelId>,
    errors: FieldErrors,
    /// A request is on its way.
    pub busy: RwSignal<bool>,
    /// Why the last one was refused.
    pub failure: RwSignal<Option<ApiError>>,
    /// Why what is stored could not be fetched.
    trouble: RwSignal<Option<ApiError>>,
}

impl Saving {
    /// For a form; `id` is none for a new tunnel.
    pub fn new(desk: Desk, form: Form, id: Option<TunnelId>, errors: FieldErrors) -> Self {
        Self {
            desk,
            form,
            id,
            errors,
            busy: RwSignal::new(false),
            failure: RwSignal::new(None),
            trouble: RwSignal::new(None),
        }
    }

    /// Words for a refusal that is about no field.
    pub fn words(self) -> Signal<Option<String>> {
        Signal::derive(move || {
            self.trouble
                .get()
                .or_else(|| self.failure.get())
                .filter(|error| error.fields().is_empty() && !error.is_stale())
                .map(|error| errors::api(&error, lang()))
        })
    }

    /// Somebody else changed the tunnel since it was opened.
    pub fn stale(self) -> Memo<bool> {
        let failure = self.failure;
        Memo::new(move |_| failure.with(|failure| failure.as_ref().is_some_and(ApiError::is_stale)))
    }

    /// What a form does when it is sent.
    pub fn on_submit(self) -> impl Fn(leptos::ev::SubmitEvent) + Clone + 'static {
        move |event: leptos::ev::SubmitEvent| {
            event.prevent_default();
            if let Some(form) = event.current_target().and_then(|form| form.dyn_into().ok()) {
                self.errors.are_in(form);
            }
            if self.busy.get_untracked() || !self.errors.may_send() {
                return;
            }
            let (input, _) = untrack(|| self.form.input());
            self.busy.set(true);
            self.failure.set(None);
            self.trouble.set(None);
            let line = self.desk.line();
            spawn_local(async move {
                let answer = line.save(self.id, &input).await;
                let _ = self.busy.try_set(false);
                match answer {
                    Ok(tunnel) => line.saved(&tunnel, self.busy.try_get_untracked().is_some()),
                    Err(error) => {
                        if self.failure.try_set(Some(error.clone())).is_none() {
                            self.errors.refuse(error.fields());
                        }
                    }
                }
            });
        }
    }

    /// Goes on from the version that is stored now, so that the next save overwrites it.
    pub fn keep_mine(self) {
        self.fetch(move |tunnel| {
            let _ = self.form.version.try_set(Some(tunnel.version));
            let _ = self.failure.try_set(None);
        });
    }

    /// Puts what is stored now into the place of what is typed.
    pub fn take_theirs(self, place: Feed<Tunnel>) {
        self.fetch(move |tunnel| place.put(tunnel));
    }

    fn fetch(self, take: impl FnOnce(Tunnel) + 'static) {
        let Some(id) = self.id else { return };
        let line = self.desk.line();
        spawn_local(async move {
            let _ = match line.tunnel(id).await {
                Ok(tunnel) => {
                    take(tunnel);
                    self.trouble.try_set(None)
                }
                Err(error) => self.trouble.try_set(Some(error)),
            };
        });
    }
}
