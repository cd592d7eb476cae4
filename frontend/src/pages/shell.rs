//! The frame around all screens: navigation, banners, and the dialog that asks for a new login.

use super::login::LoginForm;
use super::{audit, editor, forwards, monitor, nodes, overview, settings, tunnels};
use crate::api::client;
use crate::api::live::{Connection, use_live};
use crate::api::session::{self, Session};
use crate::browser;
use crate::i18n::{Text, common, t};
use crate::reactive::{Effect, RwSignal, Show, follow, phrase};
use crate::ui::field::said;
use crate::ui::{Dialog, Empty, Icon, LinkButton, icon};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::components::{A, FlatRoutes, Route};
use leptos_router::hooks::use_location;
use leptos_router::path;
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
    let location = use_location();
    // On a phone the menu covers the screen that was just chosen.
    Effect::new(move || {
        location.pathname.track();
        menu_open.set(false);
    });
    view! {
        <a class="skip" href="#content">{t(common::SKIP_TO_CONTENT)}</a>
        <div class="shell" data-testid=testid::SHELL class:menu-open=follow(move || menu_open.get())>
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

#[component]
fn Screens() -> AnyView {
    view! {
        <FlatRoutes fallback=|| view! { <NotFound /> }.into_any()>
            <Route path=path!("/") view=|| view! { <overview::Overview /> }.into_any() />
            <Route path=path!("/nodes") view=|| view! { <nodes::list::NodeList /> }.into_any() />
            <Route path=path!("/forwards") view=|| view! { <forwards::list::ForwardList /> }.into_any() />
            <Route path=path!("/settings") view=|| view! { <settings::SettingsPage /> }.into_any() />
            <Route path=path!("/audit") view=|| view! { <audit::AuditPage /> }.into_any() />
            <Route path=path!("/tunnels") view=|| view! { <tunnels::list::TunnelList /> }.into_any() />
            <Route path=path!("/tunnels/new") view=|| view! { <editor::NewTunnel /> }.into_any() />
            <Route path=path!("/tunnels/:id/edit") view=|| view! { <editor::EditTunnel /> }.into_any() />
            <Route path=path!("/tunnels/:id/monitor") view=|| view! { <monitor::MonitorPage /> }.into_any() />
        </FlatRoutes>
    }
    .into_any()
}

#[component]
fn Navigation(menu_open: RwSignal<bool>) -> AnyView {
    let links = SCREENS.map(|(href, name, text, symbol)| {
        view! {
            <li>
                <A href=href exact=href == "/" attr:data-testid=testid::with(testid::NAV, name)>
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
        <div class="side">
            <div class="side-head">
                <A href="/" attr:class="brand">{t(common::PRODUCT)}</A>
                <button type="button" class="button quiet nav-toggle" data-testid=testid::NAV_TOGGLE
                    aria-expanded=follow(move || menu_open.get().to_string()) aria-controls="navigation"
                    on:click=move |_| menu_open.update(|open| *open = !*open)>
                    {icon(Icon::Menu)} <span>{t(common::MENU)}</span>
                </button>
            </div>
            <nav id="navigation" aria-label=follow(move || label.get())>
                <ul>{links.into_iter().collect_view()}</ul>
                <div class="side-foot">
                    <span class="who" title=follow(move || (!session::may_write()).then(|| t(common::VIEWER_HINT)()))>{phrase(name)}</span>
                    <button type="button" class="button quiet" data-testid=testid::LOGOUT on:click=log_out>
                        {icon(Icon::Leave)} <span>{t(common::LOG_OUT)}</span>
                    </button>
                </div>
            </nav>
        </div>
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
        <Empty text=common::NOT_FOUND hint=common::NOT_FOUND_HINT>
            <LinkButton text=common::BACK_TO_START href="/" />
        </Empty>
    }
    .into_any()
}
