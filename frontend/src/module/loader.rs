//! The page's side of a screen whose code is loaded when it is first opened.

use crate::api::live::use_live;
use crate::api::{http, session};
use crate::browser;
use crate::i18n::{common, lang, lang_now, t};
use crate::reactive::{Effect, RwSignal, part};
use crate::ui::field::said;
use crate::ui::{Alert, Button, Loading, Problem};
use js_sys::{Array, Function, Object, Reflect};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::testid;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::{JsFuture, future_to_promise};

/// The name of the function with which boot.js loads a bundle. An import is a part of JavaScript's grammar and nothing
/// that could be called from here.
const LOAD: &str = "exitpilotModule";

/// How far the code of a screen is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Loading,
    Shown,
    /// The panel does not answer.
    Unreachable,
    /// The panel has other code by now.
    Gone,
}

/// Options of a bundle: `fetch` and `language`, and what is added here.
pub struct Given(Object);

impl Given {
    /// The options that all bundles have.
    pub fn new() -> Self {
        let given = Self(Object::new());
        FETCH.with(|fetch| given.with("fetch", fetch.as_ref()))
    }

    /// With another one.
    pub fn with(self, name: &str, value: &JsValue) -> Self {
        // An object of our own takes every property.
        let _ = Reflect::set(&self.0, &JsValue::from_str(name), value);
        self
    }
}

impl Default for Given {
    fn default() -> Self {
        Self::new()
    }
}

thread_local! {
    /// One for all screens: there is nothing in it that belongs to one, and a request may outlive the screen that sent it.
    static FETCH: Closure<dyn Fn(String, web_sys::RequestInit) -> js_sys::Promise> = Closure::new(ask);
}

/// Asks the panel in the name of a bundle, and looks whether the session is over.
fn ask(path: String, options: web_sys::RequestInit) -> js_sys::Promise {
    future_to_promise(async move {
        let response = JsFuture::from(http::own_fetch(&path, &options)?).await?;
        let status = Reflect::get(&response, &JsValue::from_str("status"))?;
        if status.as_f64() == Some(401.0) {
            session::lost();
        }
        Ok(response)
    })
}

/// Loads a bundle unless it is there.
async fn load(name: &str) -> Result<JsValue, State> {
    let window = web_sys::window().ok_or(State::Gone)?;
    let load =
        Reflect::get(&window, &JsValue::from_str(LOAD)).ok().and_then(|it| it.dyn_into::<Function>().ok());
    let coming =
        load.and_then(|load| load.call1(&window, &JsValue::from_str(name)).ok()).ok_or(State::Gone)?;
    JsFuture::from(js_sys::Promise::resolve(&coming)).await.map_err(|why| {
        // boot.js says `gone` where the panel has answered that there is no such file.
        if why.as_string().as_deref() == Some("gone") { State::Gone } else { State::Unreachable }
    })
}

fn call(object: &JsValue, name: &str, arguments: &Array) -> Result<JsValue, JsValue> {
    let function: Function = Reflect::get(object, &JsValue::from_str(name))?.dyn_into()?;
    function.apply(object, arguments)
}

/// The screen of a bundle: `mount(element, options)` of it draws the screen and answers with an object that has
/// `unmount()`, `setLanguage(tag)` and `refresh()`. The last is called whenever nodes or tunnels may have changed.
pub fn on_demand(name: &'static str, options: Given) -> AnyView {
    let live = use_live();
    let state = RwSignal::new(State::Loading);
    let place = NodeRef::<leptos::html::Div>::new();
    let options = StoredValue::new_local(options.0);
    let shown = StoredValue::new_local(None::<JsValue>);
    let tell = move |what: &str, arguments: &Array| {
        if let Some(screen) = shown.try_get_value().flatten() {
            let _ = call(&screen, what, arguments);
        }
    };
    let show = move || {
        state.set(State::Loading);
        spawn_local(async move {
            let loaded = load(name).await;
            // Whoever asked may have gone on to another screen.
            let (Some(element), Some(options)) =
                (place.try_get_untracked().flatten(), options.try_get_value())
            else {
                return;
            };
            let mounted = loaded.and_then(|module| {
                let _ = Reflect::set(
                    &options,
                    &JsValue::from_str("language"),
                    &JsValue::from_str(lang_now().tag()),
                );
                call(&module, "mount", &Array::of2(&element, &options)).map_err(|_| State::Gone)
            });
            let _ = match mounted {
                Ok(screen) => {
                    shown.set_value(Some(screen));
                    state.try_set(State::Shown)
                }
                Err(why) => state.try_set(why),
            };
        });
    };
    show();
    Effect::run(move || tell("setLanguage", &Array::of1(&JsValue::from_str(lang().tag()))));
    Effect::run(move || {
        live.lists.track();
        tell("refresh", &Array::new());
    });
    on_cleanup(move || tell("unmount", &Array::new()));
    view! {
        {part(move || match state.get() {
            State::Loading => view! { <Loading /> }.into_any(),
            State::Shown => ().into_any(),
            State::Unreachable => {
                let text = said(common::ERROR_UNREACHABLE);
                view! { <Problem text on_retry=Callback::new(move |()| show()) /> }.into_any()
            }
            State::Gone => view! {
                <Alert testid=testid::SCREEN_GONE>
                    <p>{t(common::SCREEN_GONE)}</p>
                    <Button text=common::RELOAD on_press=Callback::new(|()| browser::reload())
                        testid=testid::SCREEN_RELOAD />
                </Alert>
            }
            .into_any(),
        })}
        <div node_ref=place></div>
    }
    .into_any()
}
