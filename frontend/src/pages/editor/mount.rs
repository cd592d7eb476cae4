//! The editor as a bundle offers it.

use super::desk::Desk;
use super::page;
use crate::module::guest::{Mounted, Options};
use shared::ids::TunnelId;
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// Shows the editor in an element. Its options are those of all bundles, `tunnelId` for a tunnel that is there,
/// `onSaved(tunnel, stillShown)` and `onCancel()`.
pub fn mount(element: web_sys::HtmlElement, options: &JsValue) -> Mounted {
    let options = Options::new(options);
    Mounted::new(element, move || {
        let desk = Desk::new(&options);
        let id = options.number("tunnelId").map(TunnelId);
        (page::draw(desk, id), Rc::new(move || desk.refresh()))
    })
}
