//! What every bundle exports. It is made in each bundle's own program, because what a library exports would be in all.

/// Makes a program a bundle: `bundle!("what-if-", path::of::mount)`. The text sets the ids of its elements apart from those
/// of the page and of other bundles; the function shows the screen and answers with a
/// [`Mounted`](crate::module::guest::Mounted).
#[macro_export]
macro_rules! bundle {
    ($ids:literal, $mount:path) => {
        use ::wasm_bindgen::prelude::wasm_bindgen;

        fn main() {
            $crate::module::guest::start($ids);
        }

        /// A screen that is shown.
        #[wasm_bindgen]
        pub struct Screen($crate::module::guest::Mounted);

        #[wasm_bindgen]
        impl Screen {
            /// Takes the screen away; it is not to be used any more.
            pub fn unmount(self) {
                drop(self);
            }

            /// Changes the language.
            #[wasm_bindgen(js_name = setLanguage)]
            pub fn set_language(&self, tag: &str) {
                self.0.set_language(tag);
            }

            /// Fetches again what it shows.
            pub fn refresh(&self) {
                self.0.refresh();
            }
        }

        /// Shows the screen in an element.
        #[wasm_bindgen]
        pub fn mount(element: ::web_sys::HtmlElement, options: &::wasm_bindgen::JsValue) -> Screen {
            Screen($mount(element, options))
        }
    };
}
