//! The tunnel editor as a bundle that pages load when they need it. What it exports is here, because what a library
//! exports would be in every bundle.

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

fn main() {
    frontend::module::guest::start("tunnel-editor-");
}

/// An editor that is shown.
#[wasm_bindgen]
pub struct TunnelEditor(frontend::module::guest::Mounted);

#[wasm_bindgen]
impl TunnelEditor {
    /// Takes the editor away; it is not to be used any more.
    pub fn unmount(self) {
        drop(self);
    }

    /// Changes the language.
    #[wasm_bindgen(js_name = setLanguage)]
    pub fn set_language(&self, tag: &str) {
        self.0.set_language(tag);
    }

    /// Fetches the nodes and the other tunnels again.
    pub fn refresh(&self) {
        self.0.refresh();
    }
}

/// Shows the editor in an element.
#[wasm_bindgen]
pub fn mount(element: web_sys::HtmlElement, options: &JsValue) -> TunnelEditor {
    TunnelEditor(frontend::pages::editor::mount::mount(element, options))
}
