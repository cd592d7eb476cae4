//! A bundle's side: it shares nothing with the page but the document, so everything it needs comes as options.

use crate::api::Access;
use crate::i18n::{self, Lang};
use crate::ui::field;
use leptos::prelude::*;
use std::any::Any;
use std::rc::Rc;
use wasm_bindgen::{JsCast as _, JsValue};

/// Prepares a bundle; `name` sets the ids of its elements apart from those of the page and of other bundles.
pub fn start(name: &'static str) {
    field::name_ids(name);
    std::panic::set_hook(Box::new(|info| {
        console_error_panic_hook::hook(info);
        crate::browser::announce_panic();
    }));
}

/// What whoever shows a bundle's screen says about it: an object.
///
/// All bundles know `fetch`, the way to the panel (see [`Access`]), and `language`, a BCP 47 tag.
pub struct Options(JsValue);

impl Options {
    /// From the object. Its language is in force from now on.
    pub fn new(object: &JsValue) -> Self {
        let options = Self(object.clone());
        if let Some(tag) = options.text("language") {
            i18n::follow(Lang::from_tag(&tag));
        }
        options
    }

    fn get(&self, name: &str) -> JsValue {
        js_sys::Reflect::get(&self.0, &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED)
    }

    /// A text; absent when it is none.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).as_string()
    }

    /// A whole number, an id for example; absent when it is none.
    pub fn number(&self, name: &str) -> Option<i64> {
        let number = self.get(name).as_f64()?;
        (number.fract() == 0.0 && number.abs() <= js_sys::Number::MAX_SAFE_INTEGER).then_some(number as i64)
    }

    /// Who is called when something has happened.
    pub fn callback(&self, name: &str) -> Told {
        Told(self.get(name).dyn_into().ok())
    }

    /// The way to the panel.
    pub fn access(&self) -> Access {
        self.get("fetch").dyn_into().map_or_else(|_| Access::default(), Access::by)
    }
}

/// Somebody who wants to know; nobody, perhaps.
#[derive(Clone, Default)]
pub struct Told(Option<js_sys::Function>);

impl Told {
    /// That it has happened.
    pub fn tell(&self) {
        self.tell_with(&JsValue::UNDEFINED, &JsValue::UNDEFINED);
    }

    /// That it has happened, and what.
    pub fn tell_with(&self, first: &JsValue, second: &JsValue) {
        if let Some(listener) = &self.0
            && let Err(thrown) = listener.call2(&JsValue::UNDEFINED, first, second)
        {
            // Nobody here can do anything about it; so the browser tells its owner.
            let _ = js_sys::Promise::reject(&thrown);
        }
    }
}

/// A screen that is shown. It goes, and everything of it, with this value.
pub struct Mounted {
    view: Option<Box<dyn Any>>,
    refresh: Rc<dyn Fn()>,
}

impl Mounted {
    /// Shows a screen in an element; `draw` also says how what the screen fetched is fetched again.
    pub fn new(
        element: web_sys::HtmlElement,
        draw: impl FnOnce() -> (AnyView, Rc<dyn Fn()>) + 'static,
    ) -> Self {
        let refresh: Rc<std::cell::OnceCell<Rc<dyn Fn()>>> = Rc::default();
        let set = refresh.clone();
        let view = leptos::mount::mount_to(element, move || {
            let (view, refresh) = draw();
            let _ = set.set(refresh);
            view
        });
        let refresh = refresh.get().cloned().unwrap_or_else(|| Rc::new(|| ()));
        Self { view: Some(Box::new(view)), refresh }
    }

    /// Changes the language, without anything typed being lost. All screens of a bundle speak the same one.
    pub fn set_language(&self, tag: &str) {
        i18n::follow(Lang::from_tag(tag));
    }

    /// Fetches what may have changed.
    pub fn refresh(&self) {
        (self.refresh)();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.view = None;
    }
}
