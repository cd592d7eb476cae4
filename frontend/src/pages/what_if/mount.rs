//! The screen as a bundle offers it.

use super::desk::Desk;
use super::page;
use crate::module::guest::{Mounted, Options};
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// Shows the screen in an element. Its options are those of all bundles and those of [`Desk::new`].
pub fn mount(element: web_sys::HtmlElement, options: &JsValue) -> Mounted {
    let options = Options::new(options);
    Mounted::new(element, move || {
        let desk = Desk::new(&options);
        (page::draw(desk), Rc::new(move || desk.nodes.refresh_if_wanted()))
    })
}
