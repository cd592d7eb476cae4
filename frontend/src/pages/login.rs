use crate::api::session::{self, Session};
use crate::api::{ApiError, client};
use crate::format;
use crate::i18n::{Lang, common, errors, lang, t};
use crate::reactive::{Effect, RwSignal, Signal, phrase};
use crate::ui::TextField;
use crate::ui::button::Submit;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::LoginRequest;
use shared::testid;
use std::sync::Arc;

/// The screen for somebody who is not logged in. The address stays: after the login its screen comes.
#[component]
pub fn LoginPage() -> AnyView {
    Effect::run(|| document().set_title(&format!("{} · ExitPilot", t(common::LOGIN_TITLE)())));
    view! {
        <main class="login">
            <section class="login-card">
                <h1 class="brand">{t(common::PRODUCT)}</h1>
                <p class="lead">{t(common::LOGIN_LEAD)}</p>
                <LoginForm username="" />
                <LanguageLinks />
            </section>
        </main>
    }
    .into_any()
}

/// What went wrong with a login, in words.
fn login_error(error: &ApiError, lang: Lang) -> String {
    match (error.status, error.retry_after_s) {
        (401, _) => common::LOGIN_WRONG.say(lang).to_owned(),
        (429, Some(seconds)) => {
            let wait = format::duration(i64::from(seconds) * 1000, lang);
            common::LOGIN_THROTTLED.with(lang, &[("wait", &wait)])
        }
        (429, None) => common::LOGIN_THROTTLED_SOME.say(lang).to_owned(),
        _ => errors::api(error, lang),
    }
}

/// Asks for name and password.
#[component]
pub fn LoginForm(#[prop(into)] username: String) -> AnyView {
    let known = !username.is_empty();
    let username = RwSignal::new(username);
    let password = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let failure = RwSignal::new(None::<Option<ApiError>>);
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        let request = LoginRequest { username: username.get_untracked(), password: password.get_untracked() };
        if request.username.is_empty() || request.password.is_empty() {
            failure.set(Some(None));
            return;
        }
        busy.set(true);
        spawn_local(async move {
            let answer = client::login(&request).await;
            let _ = busy.try_set(false);
            match answer {
                Ok(answer) => session::set(Session::Active(Arc::new(answer.user))),
                Err(error) => {
                    let _ = failure.try_set(Some(Some(error)));
                }
            }
        });
    };
    let text = Signal::derive(move || {
        failure.get().map(|failure| match failure {
            Some(error) => login_error(&error, lang()),
            None => common::LOGIN_EMPTY.say(lang()).to_owned(),
        })
    });
    view! {
        <form class="form" on:submit=submit novalidate>
            <TextField label=common::USERNAME value=username field="username" autocomplete="username" autofocus=!known
                testid=testid::LOGIN_USERNAME />
            <TextField label=common::PASSWORD value=password field="password" kind="password"
                autocomplete="current-password" autofocus=known testid=testid::LOGIN_PASSWORD />
            <div role="alert" data-testid=testid::LOGIN_ERROR class="login-error">{phrase(move || text.get())}</div>
            <Submit text=common::LOGIN_TITLE busy testid=testid::LOGIN_SUBMIT />
        </form>
    }
    .into_any()
}

/// Switches the language before anybody is logged in.
#[component]
fn LanguageLinks() -> AnyView {
    let links = Lang::ALL.map(|choice| {
        view! {
            <button type="button" class="link" lang=choice.tag() aria-pressed=move || (lang() == choice).to_string()
                data-testid=testid::with(testid::LANGUAGE, choice.tag()) on:click=move |_| crate::i18n::choose(choice)>
                {choice.own_name()}
            </button>
        }
    });
    view! { <p class="languages">{links.into_iter().collect_view()}</p> }.into_any()
}
