//! Sending the editor's content, and what comes back.

use super::desk::Desk;
use super::form::Form;
use crate::api::{ApiError, Feed};
use crate::i18n::{errors, lang};
use crate::pages::sending::Sending;
use crate::reactive::{RwSignal, Signal};
use crate::ui::FieldErrors;
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
    /// The request, and what came back of it.
    pub sending: Sending,
    /// Why what is stored could not be fetched.
    trouble: RwSignal<Option<ApiError>>,
}

impl Saving {
    /// For a form; `id` is none for a new tunnel.
    pub fn new(desk: Desk, form: Form, id: Option<TunnelId>, errors: FieldErrors) -> Self {
        Self { desk, form, id, sending: Sending::new(errors), trouble: RwSignal::new(None) }
    }

    /// Words for a refusal that is about no field, and for what could not be fetched. Of somebody else's change a notice
    /// of its own tells.
    pub fn words(self) -> Signal<Option<String>> {
        Signal::derive(move || {
            self.trouble
                .get()
                .or_else(|| self.sending.failure.get())
                .filter(|error| error.fields().is_empty() && !error.is_stale())
                .map(|error| errors::api(&error, lang()))
        })
    }

    /// What a form does when it is sent.
    pub fn on_submit(self) -> impl FnMut(leptos::ev::SubmitEvent) + 'static {
        let mut send = self.sending.on_submit(move || {
            self.trouble.set(None);
            let (input, _) = self.form.input();
            let line = self.desk.line();
            Box::pin(async move {
                let tunnel = line.save(self.id, &input).await?;
                line.saved(&tunnel, self.sending.busy.try_get_untracked().is_some());
                Ok(())
            })
        });
        move |event: leptos::ev::SubmitEvent| {
            if let Some(form) = event.current_target().and_then(|form| form.dyn_into().ok()) {
                self.sending.wrong.are_in(form);
            }
            send(event);
        }
    }

    /// Goes on from the version that is stored now, so that the next save overwrites it.
    pub fn keep_mine(self) {
        self.fetch(move |tunnel| {
            let _ = self.form.version.try_set(Some(tunnel.version));
            let _ = self.sending.failure.try_set(None);
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
