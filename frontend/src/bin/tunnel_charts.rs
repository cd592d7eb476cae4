//! The charts of the monitor as a bundle that the page loads when it needs them.

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

fn main() {
    frontend::module::guest::start("tunnel-charts-");
}

/// Charts that are shown.
#[wasm_bindgen]
pub struct TunnelCharts(frontend::module::guest::Mounted);

#[wasm_bindgen]
impl TunnelCharts {
    /// Takes the charts away; they are not to be used any more.
    pub fn unmount(self) {
        drop(self);
    }

    /// Changes the language.
    #[wasm_bindgen(js_name = setLanguage)]
    pub fn set_language(&self, tag: &str) {
        self.0.set_language(tag);
    }

    /// Fetches again what they show.
    pub fn refresh(&self) {
        self.0.refresh();
    }
}

/// Shows the charts of a tunnel in an element.
#[wasm_bindgen]
pub fn mount(element: web_sys::HtmlElement, options: &JsValue) -> TunnelCharts {
    TunnelCharts(frontend::pages::monitor::chart::mount::mount(element, options))
}
