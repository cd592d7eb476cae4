//! Short messages that go away by themselves.

use crate::lasting::Lasting;
use crate::reactive::each;
use leptos::prelude::*;
use shared::testid;
use std::sync::LazyLock;
use std::time::Duration;
use wasm_bindgen::JsCast as _;

/// Long enough to read a sentence with a name in it.
const SHOWN_FOR: Duration = Duration::from_secs(6);
/// Id of the place where they appear.
const REGION: &str = "toasts";
/// More than these at once is noise.
const AT_ONCE: usize = 4;

#[derive(Clone, PartialEq)]
struct Toast {
    id: u64,
    text: String,
    good: bool,
}

#[derive(Default)]
struct Toasts {
    last: u64,
    shown: Vec<Toast>,
}

static TOASTS: LazyLock<Lasting<Toasts>> = LazyLock::new(|| Lasting::new(Toasts::default()));

/// Something was done.
pub fn good(text: impl Into<String>) {
    show(text.into(), true);
}

/// Something was not done.
pub fn bad(text: impl Into<String>) {
    show(text.into(), false);
}

fn show(text: String, good: bool) {
    let mut id = 0;
    TOASTS.update(|toasts| {
        toasts.last += 1;
        id = toasts.last;
        toasts.shown.push(Toast { id, text, good });
        let surplus = toasts.shown.len().saturating_sub(AT_ONCE);
        toasts.shown.drain(..surplus);
    });
    set_timeout(raise, Duration::ZERO);
    set_timeout(move || TOASTS.update(|toasts| toasts.shown.retain(|toast| toast.id != id)), SHOWN_FOR);
}

/// Puts the messages in front of a dialog: of what is on the browser's top layer, the last shown is in front.
fn raise() {
    if let Some(region) = document().get_element_by_id(REGION) {
        let region: web_sys::HtmlElement = region.unchecked_into();
        let _ = region.hide_popover();
        let _ = region.show_popover();
    }
}

/// Where the messages appear.
#[component]
pub fn ToastRegion() -> AnyView {
    // There before the first message, so that screen readers notice it.
    set_timeout(raise, Duration::ZERO);
    view! {
        <div id=REGION class="toasts" role="status" aria-live="polite" popover="manual">
            {each(|| TOASTS.with(|toasts| toasts.shown.clone()), |toast| (toast.id as i64, 0), move |toast| view! {
                <div class="toast" class:good=toast.good class:bad=!toast.good data-testid=testid::TOAST>
                    {toast.text}
                </div>
            }.into_any())}
        </div>
    }
    .into_any()
}
