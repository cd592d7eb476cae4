use super::button::{Button, Look};
use super::icon::Icon;
use super::toast;
use crate::browser;
use crate::i18n::{common, lang_now};
use crate::reactive::{Signal, phrase};
use leptos::prelude::*;
use leptos::task::spawn_local;

/// Copies a text.
#[component]
pub fn CopyButton(#[prop(into)] text: Signal<String>, #[prop(optional)] bare: bool) -> AnyView {
    let copy = move |()| {
        let text = text.get_untracked();
        spawn_local(async move {
            if browser::copy(&text).await {
                toast::good(common::COPIED.say(lang_now()));
            } else {
                toast::bad(common::COPY_FAILED.say(lang_now()));
            }
        });
    };
    view! { <Button text=common::COPY on_press=Callback::new(copy) look=Look::Quiet icon_of=Icon::Copy bare=bare /> }
        .into_any()
}

/// A text to be copied, shown whole and selectable.
#[component]
pub fn CopyBox(#[prop(into)] text: Signal<String>, #[prop(into)] testid: String) -> AnyView {
    view! {
        <div class="copy-box">
            <code data-testid=testid tabindex="0">{phrase(move || text.get())}</code>
            <CopyButton text=text />
        </div>
    }
    .into_any()
}
