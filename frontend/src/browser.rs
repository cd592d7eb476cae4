//! The few things of the browser that Leptos has no words for. All are harmless outside a browser, so that pure code
//! that touches them can be tested natively.

use wasm_bindgen::{JsCast as _, JsValue};

/// Whether there is a browser at all.
fn present() -> bool {
    cfg!(target_arch = "wasm32")
}

fn storage() -> Option<web_sys::Storage> {
    if !present() {
        return None;
    }
    web_sys::window()?.local_storage().ok()?
}

/// A value kept in this browser.
pub fn stored(key: &str) -> Option<String> {
    storage()?.get_item(key).ok()?
}

/// Keeps a value in this browser; a browser that refuses (private mode) forgets it at the next load.
pub fn store(key: &str, value: &str) {
    if let Some(storage) = storage() {
        let _ = storage.set_item(key, value);
    }
}

/// The language the browser asks for.
pub fn language() -> Option<String> {
    if !present() {
        return None;
    }
    web_sys::window()?.navigator().language()
}

/// Sets an attribute of `<html>`, or takes it away.
pub fn set_root_attribute(name: &str, value: Option<&str>) {
    let Some(root) = web_sys::window().and_then(|w| w.document()).and_then(|d| d.document_element()) else {
        return;
    };
    let _ = match value {
        Some(value) => root.set_attribute(name, value),
        None => root.remove_attribute(name),
    };
}

/// Where the page comes from, `https://panel.example:6365`.
pub fn origin() -> String {
    web_sys::window().and_then(|w| w.location().origin().ok()).unwrap_or_default()
}

/// Path of the page with its query.
pub fn path() -> String {
    let Some(location) = web_sys::window().map(|w| w.location()) else { return String::new() };
    location.pathname().unwrap_or_default() + &location.search().unwrap_or_default()
}

/// Copies a text to the clipboard. Over plain HTTP the browser offers no clipboard to pages; the old command still
/// works there.
pub async fn copy(text: &str) -> bool {
    let Some(window) = web_sys::window() else { return false };
    let offered = js_sys::Reflect::has(&window.navigator(), &JsValue::from_str("clipboard")).unwrap_or(false)
        && window.is_secure_context();
    if offered {
        let written = wasm_bindgen_futures::JsFuture::from(window.navigator().clipboard().write_text(text));
        if written.await.is_ok() {
            return true;
        }
    }
    copy_by_selection(text).unwrap_or(false)
}

fn copy_by_selection(text: &str) -> Option<bool> {
    let document = web_sys::window()?.document()?.dyn_into::<web_sys::HtmlDocument>().ok()?;
    let area = document.create_element("textarea").ok()?.dyn_into::<web_sys::HtmlTextAreaElement>().ok()?;
    area.set_value(text);
    area.set_class_name("visually-hidden");
    // Inside an open dialog everything outside it is inert and cannot be selected.
    let parent: web_sys::Node = match document.query_selector("dialog[open]").ok()? {
        Some(dialog) => dialog.into(),
        None => document.body()?.into(),
    };
    parent.append_child(&area).ok()?;
    area.select();
    let copied = document.exec_command("copy").ok();
    let _ = parent.remove_child(&area);
    copied
}

/// Moves the focus to the first element that matches, in an element or in the whole document, if there is one.
pub fn focus(within: Option<&web_sys::Element>, selector: &str) {
    let found = match within {
        Some(element) => element.query_selector(selector),
        None => match web_sys::window().and_then(|w| w.document()) {
            Some(document) => document.query_selector(selector),
            None => return,
        },
    };
    let found = found.ok().flatten();
    if let Some(element) = found.and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok()) {
        let _ = element.focus();
    }
}

/// Tells the script that was there before the page that the page has failed. Nothing of the page can be relied on any
/// more, so the message is not drawn by it.
pub fn announce_panic() {
    if let (Some(window), Ok(event)) = (web_sys::window(), web_sys::Event::new("exitpilot-panic")) {
        let _ = window.dispatch_event(&event);
    }
}

/// Loads the page anew.
pub fn reload() {
    if let Some(window) = web_sys::window() {
        let _ = window.location().reload();
    }
}
