use super::button::{Button, Look};
use super::icon::Icon;
use crate::i18n::{Text, common};
use crate::reactive::{Effect, RwSignal, Show, Signal, phrase};
use leptos::html;
use leptos::prelude::*;
use shared::testid;
use std::cell::RefCell;
use wasm_bindgen::JsCast as _;

thread_local! {
    /// What had the focus before a dialog opened, until it has it again.
    static LAST_OPENER: RefCell<Option<web_sys::HtmlElement>> = const { RefCell::new(None) };
}

/// A modal dialog: the browser's own, so that focus, Escape and what is behind it are taken care of. Its content is
/// made when it opens and goes when it closes.
#[component]
pub fn Dialog(
    open: RwSignal<bool>,
    #[prop(into)] title: Signal<String>,
    #[prop(optional)] wide: bool,
    /// Cannot be closed by Escape or the cross.
    #[prop(optional)]
    insistent: bool,
    #[prop(optional, into)] testid: Option<String>,
    children: ChildrenFn,
) -> AnyView {
    let children = StoredValue::new(children);
    let testid = StoredValue::new(testid);
    view! {
        <Show when=move || open.get()>
            <Frame open title wide insistent testid=testid.get_value()>
                {children.with_value(|children| children())}
            </Frame>
        </Show>
    }
    .into_any()
}

#[component]
fn Frame(
    open: RwSignal<bool>,
    title: Signal<String>,
    wide: bool,
    insistent: bool,
    testid: Option<String>,
    children: Children,
) -> AnyView {
    let element = NodeRef::<html::Dialog>::new();
    let before = opener();
    LAST_OPENER.set(before.clone());
    let before = StoredValue::new_local(before);
    Effect::run(move || {
        if let Some(dialog) = element.get()
            && !dialog.open()
        {
            let _ = dialog.show_modal();
        }
    });
    // The browser returns the focus only when a dialog is closed, and this one is taken away.
    on_cleanup(move || {
        let element = before.try_get_value().flatten();
        // While the dialog is there, nothing outside it takes the focus.
        let back = move || {
            if let Some(element) = element {
                let _ = element.focus();
                // Refused while another dialog is open: then that one gives it back.
                if document().active_element().as_ref() == Some(element.as_ref()) {
                    LAST_OPENER.set(None);
                }
            }
        };
        set_timeout(back, std::time::Duration::ZERO);
    });
    view! {
        <dialog
            node_ref=element
            class=if wide { "dialog wide" } else { "dialog" }
            aria-label=move || title.get()
            data-testid=testid
            on:cancel=move |event: leptos::ev::Event| {
                event.prevent_default();
                if !insistent {
                    open.set(false);
                }
            }
        >
            <header class="dialog-head">
                <h2>{phrase(move || title.get())}</h2>
                {(!insistent)
                    .then(|| {
                        view! {
                            <Button
                                text=common::CLOSE
                                on_press=Callback::new(move |()| open.set(false))
                                look=Look::Quiet
                                icon_of=Icon::Cross
                                bare=true
                            />
                        }
                    })}
            </header>
            <div class="dialog-body">{children()}</div>
        </dialog>
    }
    .into_any()
}

/// What a dialog gives the focus back to: what has it now, or what had it before the dialog that this one follows.
fn opener() -> Option<web_sys::HtmlElement> {
    let active = document()
        .active_element()
        .filter(|e| e.tag_name() != "BODY" && e.closest("dialog").ok().flatten().is_none());
    active.and_then(|e| e.dyn_into().ok()).or_else(|| LAST_OPENER.with_borrow(Clone::clone))
}

/// Asks before something is destroyed. The body says what is lost.
#[component]
pub fn Confirm(
    open: RwSignal<bool>,
    title: Text,
    action: Text,
    on_confirm: Callback<()>,
    #[prop(into)] busy: Signal<bool>,
    children: ChildrenFn,
) -> AnyView {
    let children = StoredValue::new(children);
    view! {
        <Dialog open title=Signal::derive(move || crate::i18n::t(title)().to_owned())>
            {children.with_value(|children| children())}
            <footer class="dialog-foot">
                <Button text=common::CANCEL on_press=Callback::new(move |()| open.set(false)) testid=testid::CANCEL />
                <Button text=action on_press=on_confirm look=Look::Danger disabled=busy testid=testid::CONFIRM />
            </footer>
        </Dialog>
    }
    .into_any()
}
