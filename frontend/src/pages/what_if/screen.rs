//! The screen of the page that the bundle is shown on.

use crate::api::live::use_live;
use crate::api::session::may_write;
use crate::i18n::{lang, lang_now, tunnels, what_if as words};
use crate::module::loader::{Given, on_demand};
use crate::reactive::Signal;
use crate::ui::{Heading, LinkButton, toast};
use leptos::prelude::*;
use shared::ids::TunnelId;
use wasm_bindgen::JsValue;
use wasm_bindgen::closure::Closure;

/// As xtask names the bundle.
const MODULE: &str = "what-if";

thread_local! {
    /// Made once: settings may be stored when the screen is long gone.
    static ON_USED: Closure<dyn Fn()> = Closure::new(|| toast::good(words::USED.say(lang_now())));
}

/// A tunnel's history under other settings.
#[component]
pub fn WhatIf(id: TunnelId) -> AnyView {
    let live = use_live();
    live.tunnels.want();
    let title = Signal::derive(move || {
        let all = live.tunnels.get();
        let tunnel = all.as_ref().and_then(|all| all.iter().find(|tunnel| tunnel.id == id));
        let name = tunnel.map_or_else(|| format!("#{id}"), |tunnel| tunnel.name.clone());
        words::TITLE.with(lang(), &[("name", &name)])
    });
    let given = Given::new()
        .with("tunnelId", &JsValue::from_f64(id.0 as f64))
        .with("mayWrite", &JsValue::from_f64(f64::from(may_write())));
    let given = ON_USED.with(|on_used| given.with("onUsed", on_used.as_ref()));
    view! {
        <Heading text=title>
            <LinkButton text=tunnels::MONITOR href=format!("/tunnels/{id}/monitor") />
        </Heading>
        {on_demand(MODULE, given)}
    }
    .into_any()
}
