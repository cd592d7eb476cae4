//! The charts as a bundle offers them.

use super::history::{Board, History};
use crate::module::guest::{Mounted, Options};
use leptos::prelude::*;
use shared::ids::TunnelId;
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// Shows the charts of a tunnel in an element. Its options are those of all bundles, and `tunnelId`.
pub fn mount(element: web_sys::HtmlElement, options: &JsValue) -> Mounted {
    let options = Options::new(options);
    Mounted::new(element, move || {
        let id = TunnelId(options.number("tunnelId").unwrap_or_default());
        let board = Board::new(id, options.access());
        (view! { <History board /> }.into_any(), Rc::new(move || board.refresh()))
    })
}
