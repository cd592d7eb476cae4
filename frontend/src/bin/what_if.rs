//! The what-if screen as a bundle that the page loads when it is opened. What it exports is here, because what a library
//! exports would be in every bundle.

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

fn main() {
    frontend::module::guest::start("what-if-");
}

/// A what-if screen that is shown.
#[wasm_bindgen]
pub struct WhatIf(frontend::module::guest::Mounted);

#[wasm_bindgen]
impl WhatIf {
    /// Takes the screen away; it is not to be used any more.
    pub fn unmount(self) {
        drop(self);
    }

    /// Changes the language.
    #[wasm_bindgen(js_name = setLanguage)]
    pub fn set_language(&self, tag: &str) {
        self.0.set_language(tag);
    }

    /// Fetches the nodes again.
    pub fn refresh(&self) {
        self.0.refresh();
    }
}

/// Shows the screen in an element.
#[wasm_bindgen]
pub fn mount(element: web_sys::HtmlElement, options: &JsValue) -> WhatIf {
    WhatIf(frontend::pages::what_if::mount::mount(element, options))
}
