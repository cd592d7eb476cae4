//! Which screen an address stands for, and moving between them without loading the page anew.
//!
//! The page has eleven addresses; a general router weighs more than all their screens' frames together.

use crate::lasting::Lasting;
use leptos::prelude::*;
use shared::ids::TunnelId;
use std::sync::LazyLock;

/// A screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// `/`
    Overview,
    /// `/tunnels`
    Tunnels,
    /// `/tunnels/new`
    NewTunnel,
    /// `/tunnels/42/edit`
    EditTunnel(TunnelId),
    /// `/tunnels/42/monitor`
    Monitor(TunnelId),
    /// `/tunnels/42/what-if`
    WhatIf(TunnelId),
    /// `/forwards`
    Forwards,
    /// `/nodes`
    Nodes,
    /// `/settings`
    Settings,
    /// `/audit`
    Audit,
    /// Any other address.
    Unknown,
}

impl Screen {
    /// The screen of a path.
    pub fn of(path: &str) -> Self {
        let mut steps = path.split('/').filter(|step| !step.is_empty());
        let steps = [steps.next(), steps.next(), steps.next(), steps.next()];
        let tunnel = |id: &str, screen: fn(TunnelId) -> Screen| id.parse().map_or(Screen::Unknown, screen);
        match steps {
            [None, ..] => Screen::Overview,
            [Some("tunnels"), None, ..] => Screen::Tunnels,
            [Some("tunnels"), Some("new"), None, _] => Screen::NewTunnel,
            [Some("tunnels"), Some(id), Some("edit"), None] => tunnel(id, Screen::EditTunnel),
            [Some("tunnels"), Some(id), Some("monitor"), None] => tunnel(id, Screen::Monitor),
            [Some("tunnels"), Some(id), Some("what-if"), None] => tunnel(id, Screen::WhatIf),
            [Some("forwards"), None, ..] => Screen::Forwards,
            [Some("nodes"), None, ..] => Screen::Nodes,
            [Some("settings"), None, ..] => Screen::Settings,
            [Some("audit"), None, ..] => Screen::Audit,
            _ => Screen::Unknown,
        }
    }
}

/// The path in the address bar.
static PATH: LazyLock<Lasting<String>> = LazyLock::new(|| Lasting::new(address()));

fn address() -> String {
    window().location().pathname().unwrap_or_default()
}

/// The path in the address bar; whoever asks is run again when it changes.
pub fn path() -> String {
    PATH.get()
}

/// Follows the browser's buttons back and forth, as long as whoever asked for it lives.
pub fn follow_history() {
    let listener = window_event_listener_untyped("popstate", |_| PATH.set(address()));
    on_cleanup(move || listener.remove());
}

/// Goes to another screen.
pub fn go(path: &str) {
    let pushed = window()
        .history()
        .and_then(|history| history.push_state_with_url(&wasm_bindgen::JsValue::NULL, "", Some(path)));
    if pushed.is_ok() {
        PATH.set(path.to_owned());
        window().scroll_to_with_x_and_y(0.0, 0.0);
    }
}

/// Whether a path is that of a link, or of a screen below it.
fn leads_to(href: &str, path: &str) -> bool {
    path == href || (href != "/" && path.strip_prefix(href).is_some_and(|rest| rest.starts_with('/')))
}

/// A link to another screen. As a part of the navigation it says whether it leads to the present one.
#[component]
pub fn A(
    #[prop(into)] href: String,
    #[prop(optional, into)] class: Option<String>,
    #[prop(optional, into)] testid: Option<String>,
    #[prop(optional)] navigation: bool,
    children: Children,
) -> AnyView {
    let (target, place) = (href.clone(), href.clone());
    let press = move |event: leptos::ev::MouseEvent| {
        // Another tab, another window, a download: the browser knows.
        let plain = event.button() == 0
            && !(event.ctrl_key() || event.meta_key() || event.shift_key() || event.alt_key());
        if plain && !event.default_prevented() {
            event.prevent_default();
            go(&target);
        }
    };
    let current = move || (navigation && leads_to(&place, &path())).then_some("page");
    view! {
        <a href=href class=class data-testid=testid aria-current=current on:click=press>
            {children()}
        </a>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_its_screen() {
        for (path, screen) in [
            ("", Screen::Overview),
            ("/", Screen::Overview),
            ("/tunnels", Screen::Tunnels),
            ("/tunnels/", Screen::Tunnels),
            ("/tunnels/new", Screen::NewTunnel),
            ("/tunnels/42/edit", Screen::EditTunnel(TunnelId(42))),
            ("/tunnels/42/monitor", Screen::Monitor(TunnelId(42))),
            ("/tunnels/42/what-if", Screen::WhatIf(TunnelId(42))),
            ("/tunnels/42", Screen::Unknown),
            ("/tunnels/42/edit/more", Screen::Unknown),
            ("/tunnels/x/edit", Screen::Unknown),
            ("/forwards", Screen::Forwards),
            ("/nodes", Screen::Nodes),
            ("/nodes/1", Screen::Unknown),
            ("/settings", Screen::Settings),
            ("/audit", Screen::Audit),
            ("/login", Screen::Unknown),
        ] {
            assert_eq!(Screen::of(path), screen, "{path}");
        }
    }

    #[test]
    fn a_link_leads_to_its_screen_and_to_those_below() {
        assert!(leads_to("/tunnels", "/tunnels") && leads_to("/tunnels", "/tunnels/42/edit"));
        assert!(!leads_to("/tunnels", "/tunnels-old") && !leads_to("/", "/tunnels") && leads_to("/", "/"));
    }
}
