use crate::api::{client, session};
use crate::i18n::{lang, lang_now, settings as words, t};
use crate::pages::sending::Sending;
use crate::reactive::{RwSignal, Signal, phrase};
use crate::ui::button::Submit;
use crate::ui::{Checked, FieldErrors, FormSummary, TextField, toast};
use leptos::prelude::*;
use serde_json::json;
use shared::api::{MIN_PASSWORD_CHARS, PasswordChange, Role};
use shared::field::FieldError;
use shared::testid;

/// Who is logged in, and a new password.
#[component]
pub fn Account() -> AnyView {
    let current = RwSignal::new(String::new());
    let new = RwSignal::new(String::new());
    let repeat = RwSignal::new(String::new());
    let wrong = FieldErrors::new(move || {
        let mut errors = Vec::new();
        if new.with(|new| new.chars().count() < MIN_PASSWORD_CHARS) {
            let error = FieldError::new("newPassword", "password_length", "the password is too short");
            errors.push(error.with("min", MIN_PASSWORD_CHARS));
        }
        if new.get() != repeat.get() {
            errors.push(FieldError::new("repeat", "passwords_differ", "the two passwords differ"));
        }
        let json = json!({ "currentPassword": current.get(), "newPassword": new.get() });
        Checked { json, errors }
    });
    let sending = Sending::new(wrong);
    let submit = sending.on_submit(move || {
        let change = PasswordChange { current_password: current.get(), new_password: new.get() };
        Box::pin(async move {
            client::change_password(&change).await?;
            toast::good(words::PASSWORD_CHANGED.say(lang_now()));
            // Unless the screen is gone.
            if current.try_set(String::new()).is_none() {
                new.set(String::new());
                repeat.set(String::new());
                wrong.reset();
            }
            Ok(())
        })
    });
    let who = move || {
        session::user().map(|user| {
            let role = t(match user.role {
                Role::Admin => words::ROLE_ADMIN,
                Role::Viewer => words::ROLE_VIEWER,
            })();
            format!("{} · {role}", words::LOGGED_IN_AS.with(lang(), &[("name", &user.username)]))
        })
    };
    let hint = Signal::derive(|| {
        words::NEW_PASSWORD_HINT.with(lang(), &[("count", &MIN_PASSWORD_CHARS.to_string())])
    });
    let id = |field: &str| testid::with(testid::PASSWORD_FIELD, field);
    view! {
        <form class="card form" on:submit=submit novalidate>
            <h2>{t(words::ACCOUNT)}</h2>
            <p class="muted">{phrase(who)}</p>
            <input type="text" class="visually-hidden" autocomplete="username" tabindex="-1" aria-hidden="true"
                readonly prop:value=move || session::user().map(|user| user.username.clone()) />
            <div class="field-row">
                <TextField label=words::CURRENT_PASSWORD value=current field="currentPassword" kind="password"
                    autocomplete="current-password" error=wrong.of("currentPassword") testid=id("currentPassword") />
                <TextField label=words::NEW_PASSWORD value=new field="newPassword" kind="password"
                    autocomplete="new-password" hint error=wrong.of("newPassword") testid=id("newPassword") />
                <TextField label=words::REPEAT_PASSWORD value=repeat field="repeat" kind="password"
                    autocomplete="new-password" error=wrong.of("repeat") testid=id("repeat") />
            </div>
            <FormSummary errors=wrong failure=sending.words() />
            <footer class="dialog-foot">
                <Submit text=words::CHANGE_PASSWORD busy=sending.busy testid=testid::PASSWORD_SAVE />
            </footer>
        </form>
    }
    .into_any()
}
