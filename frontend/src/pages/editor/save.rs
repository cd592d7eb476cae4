//! Sending the editor's content, and what comes back.

use super::form::Form;
use crate::api::live::use_live;
use crate::api::{ApiError, client};
use crate::i18n::{errors, lang, lang_now, tunnels};
use crate::reactive::{Memo, RwSignal, Signal};
use crate::router;
use crate::ui::{FieldErrors, toast};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::ids::TunnelId;

/// Saving, as far as it is.
#[derive(Clone, Copy)]
pub struct Saving {
    form: Form,
    id: Option<TunnelId>,
    errors: FieldErrors,
    /// A request is on its way.
    pub busy: RwSignal<bool>,
    /// Why the last one was refused.
    pub failure: RwSignal<Option<ApiError>>,
}

impl Saving {
    /// For a form; `id` is none for a new tunnel.
    pub fn new(form: Form, id: Option<TunnelId>, errors: FieldErrors) -> Self {
        Self { form, id, errors, busy: RwSignal::new(false), failure: RwSignal::new(None) }
    }

    /// Words for a refusal that is about no field.
    pub fn words(self) -> Signal<Option<String>> {
        let failure = self.failure;
        Signal::derive(move || {
            failure
                .get()
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
        let live = use_live();
        move |event: leptos::ev::SubmitEvent| {
            event.prevent_default();
            if self.busy.get_untracked() || !self.errors.may_send() {
                return;
            }
            let (input, _) = untrack(|| self.form.input());
            self.busy.set(true);
            self.failure.set(None);
            spawn_local(async move {
                let answer = match self.id {
                    Some(id) => client::update_tunnel(id, &input).await,
                    None => client::create_tunnel(&input).await,
                };
                let _ = self.busy.try_set(false);
                match answer {
                    Ok(tunnel) => {
                        toast::good(tunnels::SAVED.with(lang_now(), &[("name", &tunnel.name)]));
                        live.tunnels.refresh();
                        // Only somebody who is still looking at the editor wants to be taken to the list.
                        if self.busy.try_get_untracked().is_some() {
                            router::go("/tunnels");
                        }
                    }
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
        let Some(id) = self.id else { return };
        spawn_local(async move {
            match client::tunnel(id).await {
                Ok(tunnel) => {
                    let _ = self.form.version.try_set(Some(tunnel.version));
                    let _ = self.failure.try_set(None);
                }
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    }
}
