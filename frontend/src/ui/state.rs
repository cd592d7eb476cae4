//! What stands in place of data: loading, nothing there, a failure.

use super::button::Button;
use crate::i18n::{Text, common, t};
use crate::reactive::{Effect, Signal, phrase};
use leptos::prelude::*;
use shared::testid;

/// The heading of a screen, with what can be done there.
#[component]
pub fn Heading(#[prop(into)] text: Signal<String>, #[prop(optional)] children: Option<Children>) -> AnyView {
    // The browser's tab and its history say where one is.
    Effect::run(move || document().set_title(&format!("{} · ExitPilot", text.get())));
    view! {
        <header class="page-head">
            <h1 data-testid=testid::PAGE_TITLE>{phrase(move || text.get())}</h1>
            {children.map(|children| view! { <div class="page-actions">{children()}</div> })}
        </header>
    }
    .into_any()
}

/// Data is on its way.
#[component]
pub fn Loading() -> AnyView {
    view! {
        <div class="state loading" role="status">
            <span class="spinner" aria-hidden="true"></span>
            {t(common::LOADING)}
        </div>
    }
    .into_any()
}

/// A list has no entries.
#[component]
pub fn Empty(
    text: Text,
    #[prop(optional)] hint: Option<Text>,
    #[prop(optional)] children: Option<Children>,
) -> AnyView {
    view! {
        <div class="state empty" data-testid=testid::EMPTY>
            <p class="state-title">{t(text)}</p>
            {hint.map(|hint| view! { <p>{t(hint)}</p> })}
            {children.map(|children| children())}
        </div>
    }
    .into_any()
}

/// Data could not be fetched.
#[component]
pub fn Problem(#[prop(into)] text: Signal<String>, on_retry: Callback<()>) -> AnyView {
    view! {
        <div class="state problem" role="alert" data-testid=testid::LOAD_ERROR>
            <p class="state-title">{phrase(move || text.get())}</p>
            <Button text=common::RETRY on_press=on_retry />
        </div>
    }
    .into_any()
}

/// Something is wrong and needs to be read.
#[component]
pub fn Alert(#[prop(optional, into)] testid: Option<String>, children: Children) -> AnyView {
    view! { <div class="alert" role="alert" data-testid=testid>{children()}</div> }.into_any()
}
