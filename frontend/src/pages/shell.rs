//! The frame around all screens: navigation, banners, and the dialog that asks for a new login.

use super::login::LoginForm;
use super::{audit, editor, forwards, monitor, names, nodes, overview, settings, tunnels, what_if};
use crate::api::client;
use crate::api::live::{Connection, Live, use_live};
use crate::api::session::{self, Session};
use crate::browser;
use crate::i18n::{Text, common, t};
use crate::reactive::{Effect, Memo, RwSignal, Show, part, phrase};
use crate::router::{self, A, Screen};
use crate::ui::field::said;
use crate::ui::{Dialog, Empty, Heading, Icon, LinkButton, icon};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::testid;

const SCREENS: [(&str, &str, Text, Icon); 6] = [
    ("/", "overview", common::NAV_OVERVIEW, Icon::Gauge),
    ("/tunnels", "tunnels", common::NAV_TUNNELS, Icon::Route),
    ("/forwards", "forwards", common::NAV_FORWARDS, Icon::Arrow),
    ("/nodes", "nodes", common::NAV_NODES, Icon::Server),
    ("/settings", "settings", common::NAV_SETTINGS, Icon::Sliders),
    ("/audit", "audit", common::NAV_AUDIT, Icon::List),
];

/// The frame, with the screen of the address in it.
#[component]
pub fn Shell() -> AnyView {
    let menu_open = RwSignal::new(false);
    // On a phone the menu covers the screen that was just chosen.
    Effect::run(move || {
        router::path();
        menu_open.set(false);
    });
    view! {
        <a class="skip" href="#content">{t(common::SKIP_TO_CONTENT)}</a>
        <div class="shell" data-testid=testid::SHELL class:menu-open=move || menu_open.get()>
            <Navigation menu_open />
            <div class="main">
                <OfflineBanner />
                <main id="content" tabindex="-1">
                    <Screens />
                </main>
            </div>
        </div>
        <SessionDialog />
    }
    .into_any()
}

/// The screen of the address. Another tunnel is another screen: nothing of the one before stays.
#[component]
fn Screens() -> AnyView {
    let screen = Memo::new(move |()| Screen::of(&router::path()));
    let live = use_live();
    part(move || draw(screen.get(), live))
}

fn draw(screen: Screen, live: Live) -> AnyView {
    // Anew for each screen, so that what it read of the names goes with it.
    names::provide(live.nodes);
    match screen {
        Screen::Overview => view! { <overview::Overview /> }.into_any(),
        Screen::Tunnels => view! { <tunnels::list::TunnelList /> }.into_any(),
        Screen::NewTunnel => view! { <editor::NewTunnel /> }.into_any(),
        Screen::EditTunnel(id) => view! { <editor::EditTunnel id /> }.into_any(),
        Screen::Monitor(id) => view! { <monitor::Monitor id /> }.into_any(),
        Screen::WhatIf(id) => view! { <what_if::WhatIf id /> }.into_any(),
        Screen::Forwards => view! { <forwards::list::ForwardList /> }.into_any(),
        Screen::Nodes => view! { <nodes::list::NodeList /> }.into_any(),
        Screen::Settings => view! { <settings::SettingsPage /> }.into_any(),
        Screen::Audit => view! { <audit::AuditPage /> }.into_any(),
        Screen::Unknown => view! { <NotFound /> }.into_any(),
    }
}

#[component]
fn Navigation(menu_open: RwSignal<bool>) -> AnyView {
    let links = SCREENS.map(|(href, name, text, symbol)| {
        view! {
            <li>
                <A href navigation=true testid=testid::with(testid::NAV, name)>
                    {icon(symbol)}
                    <span>{t(text)}</span>
                </A>
            </li>
        }
    });
    let log_out = move |_| {
        spawn_local(async {
            // A session that is over already is as good.
            let _ = client::logout().await;
            // Everything that was fetched goes with it.
            browser::reload();
        });
    };
    let name = move || session::user().map(|user| user.username.clone());
    let label = said(common::MAIN_NAVIGATION);
    view! {
        <header class="side">
            <div class="side-head">
                <A href="/" class="brand">{t(common::PRODUCT)}</A>
                <button type="button" class="button quiet nav-toggle" data-testid=testid::NAV_TOGGLE
                    aria-expanded=move || menu_open.get().to_string() aria-controls="navigation"
                    on:click=move |_| menu_open.update(|open| *open = !*open)>
                    {icon(Icon::Menu)} <span>{t(common::MENU)}</span>
                </button>
            </div>
            <nav id="navigation" aria-label=move || label.get()>
                <ul>{links.into_iter().collect_view()}</ul>
                <div class="side-foot">
                    <span class="who" title=move || (!session::may_write()).then(|| t(common::VIEWER_HINT)())>{phrase(name)}</span>
                    <button type="button" class="button quiet" data-testid=testid::LOGOUT on:click=log_out>
                        {icon(Icon::Leave)} <span>{t(common::LOG_OUT)}</span>
                    </button>
                </div>
            </nav>
        </header>
    }
    .into_any()
}

#[component]
fn OfflineBanner() -> AnyView {
    let live = use_live();
    view! {
        <Show when=move || live.connection.get() == Connection::Lost>
            <p class="banner" role="status" data-testid=testid::OFFLINE_BANNER>{t(common::STREAM_LOST)}</p>
        </Show>
    }
    .into_any()
}

/// Asks for a new login without touching what is on the screen.
#[component]
fn SessionDialog() -> AnyView {
    let open = RwSignal::new(false);
    let live = use_live();
    Effect::with_before(move |before: Option<bool>| {
        let expired = matches!(session::current(), Session::Expired(_));
        open.set(expired);
        if before == Some(true) && !expired {
            live.refresh_all();
        }
        expired
    });
    view! {
        <Dialog open title=said(common::SESSION_ENDED) insistent=true testid=testid::SESSION_DIALOG>
            <p>{t(common::SESSION_ENDED_HINT)}</p>
            <LoginForm username=session::username_now() />
        </Dialog>
    }
    .into_any()
}

/// An address without a screen.
#[component]
pub fn NotFound() -> AnyView {
    view! {
        <Heading text=said(common::NOT_FOUND) />
        <Empty text=common::NOT_FOUND_HINT>
            <LinkButton text=common::BACK_TO_START href="/" />
        </Empty>
    }
    .into_any()
}
