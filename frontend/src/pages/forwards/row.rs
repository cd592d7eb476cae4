use super::form::Editing;
use super::list::{Asked, Tunnels};
use crate::api::client;
use crate::api::live::use_live;
use crate::api::session::may_write;
use crate::i18n::{common, errors, forwards as words, lang, lang_now, t};
use crate::pages::diagnose::Subject;
use crate::pages::names::use_names;
use crate::pages::question::closes;
use crate::pages::tunnels::row::deployment;
use crate::reactive::{RwSignal, Show, Signal, StoredValue, part, phrase};
use crate::router::A;
use crate::ui::field::said;
use crate::ui::{Button, Chip, Confirm, CopyButton, Look, Tone, toast};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::Forward;
use shared::testid;
use std::sync::Arc;

/// One forward of the list.
#[component]
pub fn ForwardRow(forward: Arc<Forward>, tunnels: Tunnels, asked: Asked) -> AnyView {
    let names = use_names();
    let id = forward.id;
    let tunnel = forward.tunnel_id;
    let tunnel_name =
        move || tunnels.with(|all| all.get(&tunnel).map_or_else(|| format!("#{tunnel}"), |t| t.name.clone()));
    let enabled = forward.enabled;
    let state = if enabled {
        {
            let nodes = forward.deployment.clone();
            part(move || deployment(format!("forward-state:{id}"), true, &nodes, names))
        }
    } else {
        view! { <Chip text=said(words::PAUSED) tone=Tone::Neutral testid=format!("forward-state:{id}") /> }
            .into_any()
    };
    let (name, targets) = (forward.name.clone(), forward.targets.join(", "));
    let addresses = addresses(&forward);
    view! {
        <li class="row" class:off=!enabled data-testid=testid::with(testid::FORWARD_ROW, id)>
            <div class="row-name">
                <span class="row-title">{name}</span>
                <A href=format!("/tunnels/{tunnel}/edit") class="muted">{phrase(tunnel_name)}</A>
            </div>
            <div class="row-path">
                <span class="addresses" data-testid=testid::with(testid::FORWARD_ADDRESS, id)>{addresses}</span>
                <span class="muted targets">"→ " {targets}</span>
            </div>
            <div class="row-state">{state}</div>
            <div class="row-actions">
                <Show when=may_write>
                    <Actions forward=forward.clone() asked />
                </Show>
            </div>
        </li>
    }
    .into_any()
}

/// The addresses to connect to, each to be copied; before the panel knows them, the port.
fn addresses(forward: &Forward) -> AnyView {
    if forward.addresses.is_empty() {
        return view! { <code>{format!(":{}", forward.listen_port)}</code> }.into_any();
    }
    let each = forward.addresses.iter().cloned().map(|address| {
        view! {
            <span class="address">
                <code>{address.clone()}</code>
                <CopyButton text=Signal::stored(address) bare=true />
            </span>
        }
    });
    each.collect_view().into_any()
}

#[component]
fn Actions(forward: Arc<Forward>, asked: Asked) -> AnyView {
    let live = use_live();
    let id = forward.id;
    let enabled = forward.enabled;
    let forward = StoredValue::new(forward);
    let busy = RwSignal::new(false);
    let set_running = move |running: bool| {
        busy.set(true);
        spawn_local(async move {
            let answer = client::set_forward_running(id, running).await;
            let _ = busy.try_set(false);
            let name = forward.try_get_value().map(|forward| forward.name.clone()).unwrap_or_default();
            match answer {
                Ok(()) => {
                    let text = if running { words::DID_RESUME } else { words::DID_PAUSE };
                    toast::good(text.with(lang_now(), &[("name", &name)]));
                    live.forwards.refresh();
                }
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    };
    let (text, name) = if enabled {
        (words::PAUSE, testid::with(testid::FORWARD_PAUSE, id))
    } else {
        (words::RESUME, testid::with(testid::FORWARD_RESUME, id))
    };
    let diagnose = move |()| {
        asked.diagnose.set(Some(Subject::Forward(id, forward.get_value().name.clone())));
    };
    view! {
        <Button text=text look=Look::Quiet on_press=Callback::new(move |()| set_running(!enabled)) disabled=busy testid=name />
        <Button text=common::EDIT look=Look::Quiet testid=testid::with(testid::FORWARD_EDIT, id)
            on_press=Callback::new(move |()| asked.edit.set(Some(Editing::Existing(forward.get_value())))) />
        <Button text=common::DIAGNOSE look=Look::Quiet on_press=Callback::new(diagnose)
            testid=testid::with(testid::FORWARD_DIAGNOSE, id) />
        <Button text=common::DELETE look=Look::Quiet testid=testid::with(testid::FORWARD_DELETE, id)
            on_press=Callback::new(move |()| asked.delete.set(Some(forward.get_value()))) />
    }
    .into_any()
}

/// Asks before a forward is deleted.
#[component]
pub fn DeleteForward(asked: RwSignal<Option<Arc<Forward>>>) -> AnyView {
    let live = use_live();
    let open = closes(asked);
    let busy = RwSignal::new(false);
    let delete = move |()| {
        let Some(forward) = asked.get_untracked() else { return };
        busy.set(true);
        spawn_local(async move {
            let answer = client::delete_forward(forward.id).await;
            let _ = busy.try_set(false);
            match answer {
                Ok(()) => {
                    let _ = asked.try_set(None);
                    toast::good(common::DELETED.with(lang_now(), &[("name", &forward.name)]));
                    live.forwards.refresh();
                }
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    };
    let lead = move || {
        asked.get().map(|forward| {
            let port = forward.listen_port.to_string();
            words::DELETE_LEAD.with(lang(), &[("name", &forward.name), ("port", &port)])
        })
    };
    view! {
        <Confirm open title=words::DELETE_TITLE action=common::DELETE on_confirm=Callback::new(delete) busy>
            <p data-testid=testid::DELETE_PREVIEW>{phrase(lead)}</p>
            <p class="muted">
                {t(words::CONNECT_TO)} " "
                {phrase(move || asked.get().map(|forward| forward.addresses.join(", ")))}
            </p>
        </Confirm>
    }
    .into_any()
}
