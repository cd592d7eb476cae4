//! Who may log in: created, changed and deleted by administrators.

use crate::api::session::may_write;
use crate::api::{Feed, client, session};
use crate::format;
use crate::i18n::{common, errors, lang, lang_now, settings as words, t};
use crate::pages::loaded::loaded;
use crate::pages::question::closes;
use crate::pages::sending::{FormFoot, Sending};
use crate::reactive::{RwSignal, Show, Signal, StoredValue, each, part, phrase};
use crate::ui::field::Choice;
use crate::ui::{Button, Checked, Confirm, Dialog, FieldErrors, Look, SelectField, TextField, toast};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::{Role, UserChange, UserInput, UserRecord, password_problem};
use shared::testid;
use std::sync::Arc;

type Users = Feed<Vec<Arc<UserRecord>>>;

/// The form is open: for a new user or for one that is there.
#[derive(Clone, PartialEq)]
enum Editing {
    New,
    Existing(Arc<UserRecord>),
}

#[derive(Clone, Copy)]
struct Asked {
    users: Users,
    edit: RwSignal<Option<Editing>>,
    delete: RwSignal<Option<Arc<UserRecord>>>,
}

/// All users; only for those who may change them.
#[component]
pub fn UserSettings() -> AnyView {
    view! {
        <Show when=may_write>
            <Card />
        </Show>
    }
    .into_any()
}

#[component]
fn Card() -> AnyView {
    let users: Users = Feed::list(client::users);
    let asked = Asked { users, edit: RwSignal::new(None), delete: RwSignal::new(None) };
    let rows = move || {
        view! {
            <ul class="users">
                {each(move || users.get().unwrap_or_default().to_vec(), |user| (user.id.0, Arc::as_ptr(user) as usize),
                    move |user| view! { <Row user asked /> }.into_any())}
            </ul>
        }
        .into_any()
    };
    view! {
        <section class="card">
            <h2>{t(words::USERS)}</h2>
            {loaded(users, rows)}
            <p><Button text=words::USER_NEW testid=testid::USER_NEW
                on_press=Callback::new(move |()| asked.edit.set(Some(Editing::New))) /></p>
            <UserDialog asked />
            <DeleteUser asked />
        </section>
    }
    .into_any()
}

fn role_name(role: Role) -> crate::i18n::Text {
    match role {
        Role::Admin => words::ROLE_ADMIN,
        Role::Viewer => words::ROLE_VIEWER,
    }
}

#[component]
fn Row(user: Arc<UserRecord>, asked: Asked) -> AnyView {
    let id = user.id;
    let own = session::user().is_some_and(|me| me.id == id);
    let (role, created) = (role_name(user.role), user.created_at);
    let about = move || {
        let since = words::USER_SINCE.with(lang(), &[("time", &format::date_time(created, lang()))]);
        format!("{} · {since}", t(role)())
    };
    let name = user.username.clone();
    let user = StoredValue::new(user);
    view! {
        <li data-testid=testid::with(testid::USER_ROW, id)>
            <span class="row-name">
                <span class="row-title">{name}</span>
                <span class="muted small">{phrase(about)}</span>
            </span>
            <Show when=move || own>
                <span class="muted small">{t(words::USER_YOU)}</span>
            </Show>
            <Show when=move || !own>
                <span class="row-actions">
                    <Button text=common::EDIT look=Look::Quiet testid=testid::with(testid::USER_EDIT, id)
                        on_press=Callback::new(move |()| asked.edit.set(Some(Editing::Existing(user.get_value())))) />
                    <Button text=common::DELETE look=Look::Quiet testid=testid::with(testid::USER_DELETE, id)
                        on_press=Callback::new(move |()| asked.delete.set(Some(user.get_value()))) />
                </span>
            </Show>
        </li>
    }
    .into_any()
}

#[component]
fn UserDialog(asked: Asked) -> AnyView {
    let open = closes(asked.edit);
    let title = Signal::derive(move || match asked.edit.get() {
        Some(Editing::Existing(user)) => words::USER_EDIT_TITLE.with(lang(), &[("name", &user.username)]),
        _ => t(words::USER_NEW)().to_owned(),
    });
    view! {
        <Dialog open title>
            {part(move || asked.edit.get().map(|editing| view! { <UserForm editing asked open /> }))}
        </Dialog>
    }
    .into_any()
}

#[component]
fn UserForm(editing: Editing, asked: Asked, open: RwSignal<bool>) -> AnyView {
    let existing = match editing {
        Editing::New => None,
        Editing::Existing(user) => Some(user),
    };
    let id = existing.as_ref().map(|user| user.id);
    let username = RwSignal::new(String::new());
    let password = RwSignal::new(String::new());
    let role = RwSignal::new(existing.map_or(Role::Viewer, |user| user.role));
    let input = move || UserInput { username: username.get(), password: password.get(), role: role.get() };
    let change = move || {
        let new = password.get();
        UserChange { role: Some(role.get()), password: (!new.is_empty()).then_some(new) }
    };
    let wrong = FieldErrors::new(move || {
        let input = input();
        let errors = match id {
            None => input.problems(),
            // Left empty it stays.
            Some(_) if input.password.is_empty() => Vec::new(),
            Some(_) => password_problem("password", &input.password).into_iter().collect(),
        };
        Checked { json: serde_json::to_value(&input).unwrap_or_default(), errors }
    });
    let sending = Sending::new(wrong);
    let submit = sending.on_submit(move || {
        let (input, change) = (input(), change());
        Box::pin(async move {
            match id {
                Some(id) => client::update_user(id, &change).await?,
                None => client::create_user(&input).await?,
            };
            asked.users.refresh();
            let _ = open.try_set(false);
            toast::good(common::SAVED.say(lang_now()));
            Ok(())
        })
    });
    let action = if id.is_some() { common::SAVE } else { common::CREATE };
    let roles = Signal::derive(move || {
        let choice = |role: Role| Choice::new(role.as_str(), t(role_name(role))());
        vec![choice(Role::Viewer), choice(Role::Admin)]
    });
    let choose = move |value: String| {
        role.set(if value == Role::Admin.as_str() { Role::Admin } else { Role::Viewer });
    };
    let hint = Signal::derive(move || {
        t(if id.is_some() { words::USER_PASSWORD_KEEP } else { words::USER_PASSWORD_HINT })().to_owned()
    });
    let field = |name: &str| testid::with(testid::USER_FIELD, name);
    view! {
        <form class="form" on:submit=submit novalidate>
            {id.is_none().then(|| view! {
                <TextField label=common::USERNAME value=username field="username" error=wrong.of("username")
                    autofocus=true testid=field("username") />
            })}
            <SelectField label=words::USER_ROLE value=Signal::derive(move || role.get().as_str().to_owned())
                on_choose=Callback::new(choose) choices=roles field="role" testid=field("role") />
            <TextField label=common::PASSWORD value=password field="password" kind="password" hint
                autocomplete="new-password" error=wrong.of("password") testid=field("password") />
            <FormFoot sending open action testid=testid::USER_SAVE />
        </form>
    }
    .into_any()
}

#[component]
fn DeleteUser(asked: Asked) -> AnyView {
    let open = closes(asked.delete);
    let busy = RwSignal::new(false);
    let delete = move |()| {
        let Some(user) = asked.delete.get_untracked() else { return };
        busy.set(true);
        spawn_local(async move {
            let answer = client::delete_user(user.id).await;
            let _ = busy.try_set(false);
            match answer {
                Ok(()) => {
                    let _ = asked.delete.try_set(None);
                    asked.users.refresh();
                    toast::good(common::DELETED.with(lang_now(), &[("name", &user.username)]));
                }
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    };
    let lead = move || {
        let name =
            asked.delete.with(|user| user.as_ref().map(|user| user.username.clone())).unwrap_or_default();
        words::USER_DELETE_LEAD.with(lang(), &[("name", &name)])
    };
    view! {
        <Confirm open title=words::USER_DELETE_TITLE action=common::DELETE on_confirm=Callback::new(delete) busy>
            <p>{phrase(lead)}</p>
        </Confirm>
    }
    .into_any()
}
