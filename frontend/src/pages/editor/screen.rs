//! The screens of the page that the editor is shown on.

use crate::api::live::{Live, use_live};
use crate::i18n::{editor as words, lang_now, tunnels};
use crate::module::loader::{Given, on_demand};
use crate::router;
use crate::ui::field::said;
use crate::ui::{Heading, toast};
use js_sys::Reflect;
use leptos::prelude::*;
use shared::ids::TunnelId;
use std::cell::OnceCell;
use wasm_bindgen::JsValue;
use wasm_bindgen::closure::Closure;

/// As xtask names the bundle.
const MODULE: &str = "tunnel-editor";

/// The editor for a tunnel that is not there yet.
#[component]
pub fn NewTunnel() -> AnyView {
    view! {
        <Heading text=said(words::NEW_TITLE) />
        {editor(None)}
    }
    .into_any()
}

/// The editor for a tunnel that is there.
#[component]
pub fn EditTunnel(id: TunnelId) -> AnyView {
    view! {
        <Heading text=said(words::EDIT_TITLE) />
        {editor(Some(id))}
    }
    .into_any()
}

type OnSaved = Closure<dyn Fn(JsValue, bool)>;

thread_local! {
    /// Made once: a tunnel may be stored when its editor is long gone.
    static ON_SAVED: OnceCell<OnSaved> = const { OnceCell::new() };
    static ON_CANCEL: Closure<dyn Fn()> = Closure::new(|| router::go("/tunnels"));
}

/// Says that a tunnel was saved.
fn saved(live: Live, tunnel: &JsValue, shown: bool) {
    let name = Reflect::get(tunnel, &JsValue::from_str("name")).ok().and_then(|name| name.as_string());
    toast::good(tunnels::SAVED.with(lang_now(), &[("name", &name.unwrap_or_default())]));
    live.tunnels.refresh();
    // Only somebody who is still looking at the editor wants to be taken to the list.
    if shown {
        router::go("/tunnels");
    }
}

fn editor(id: Option<TunnelId>) -> AnyView {
    let live = use_live();
    let mut given = Given::new();
    given = ON_SAVED.with(|on_saved| {
        let closure = on_saved.get_or_init(|| Closure::new(move |tunnel, shown| saved(live, &tunnel, shown)));
        given.with("onSaved", closure.as_ref())
    });
    given = ON_CANCEL.with(|on_cancel| given.with("onCancel", on_cancel.as_ref()));
    if let Some(id) = id {
        given = given.with("tunnelId", &JsValue::from_f64(id.0 as f64));
    }
    on_demand(MODULE, given)
}
