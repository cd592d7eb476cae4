//! Which screen is shown: by the session first, by the address then.

use crate::api::session::{self, Session};
use crate::api::{ApiError, Live, client};
use crate::i18n::{errors, lang};
use crate::pages;
use crate::reactive::{Effect, Memo, Signal, part};
use crate::ui::{Loading, Problem, toast};
use crate::{browser, i18n, router};
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;

#[derive(Clone, PartialEq)]
enum Screen {
    Checking,
    Unreachable(ApiError),
    Login,
    /// A session that has expired stays here: what was typed stays, and a dialog asks for a new login.
    Inside,
}

/// The whole page.
#[component]
pub fn App() -> impl IntoView {
    let live = Live::unopened();
    provide_context(live);
    live.follow_visibility();
    Effect::run(|| browser::set_root_attribute("lang", Some(lang().tag())));
    Effect::run(move || match session::current() {
        Session::Active(_) => live.connect(),
        Session::Checking | Session::Unreachable(_) | Session::Anonymous | Session::Expired(_) => {
            live.disconnect();
        }
    });
    router::follow_history();
    check_session();
    let screen = Memo::new(|_| match session::current() {
        Session::Checking => Screen::Checking,
        Session::Unreachable(error) => Screen::Unreachable(error),
        Session::Anonymous => Screen::Login,
        Session::Active(_) | Session::Expired(_) => Screen::Inside,
    });
    view! {
            {part(move || match screen.get() {
                Screen::Checking => view! { <Loading /> }.into_any(),
                Screen::Unreachable(error) => {
                    let text = Signal::derive(move || errors::api(&error, i18n::lang()));
                    view! { <Problem text on_retry=Callback::new(|()| check_session()) /> }.into_any()
                }
                Screen::Login => view! { <pages::login::LoginPage /> }.into_any(),
                Screen::Inside => view! { <pages::shell::Shell /> }.into_any(),
            })}
            <toast::ToastRegion />
    }
}

/// Asks the panel who is logged in.
fn check_session() {
    session::set(Session::Checking);
    spawn_local(async {
        match client::me().await {
            Ok(user) => session::set(Session::Active(Arc::new(user))),
            Err(error) if error.status == 401 => session::set(Session::Anonymous),
            Err(error) => session::set(Session::Unreachable(error)),
        }
    });
}
