use super::install::Installing;
use super::list::Asked;
use crate::api::live::use_live;
use crate::api::{Feed, client};
use crate::i18n::{Text, common, errors, lang, lang_now, nodes as words, t};
use crate::pages::loaded::loaded;
use crate::pages::question::closes;
use crate::reactive::{Effect, RwSignal, Signal, part, phrase};
use crate::ui::{Confirm, toast};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::Node;
use shared::testid;
use std::sync::Arc;

/// Asks before a node is deleted, with the names of what uses it.
#[component]
pub fn DeleteNode(asked: RwSignal<Option<Arc<Node>>>) -> AnyView {
    let live = use_live();
    let open = closes(asked);
    let busy = RwSignal::new(false);
    let in_use = RwSignal::new(true);
    let delete = move |()| {
        let Some(node) = asked.get_untracked() else { return };
        busy.set(true);
        spawn_local(async move {
            let answer = client::delete_node(node.id).await;
            let _ = busy.try_set(false);
            match answer {
                Ok(()) => {
                    let _ = asked.try_set(None);
                    toast::good(common::DELETED.with(lang_now(), &[("name", &node.name)]));
                    live.refresh_all();
                }
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    };
    view! {
        <Confirm open title=words::DELETE_TITLE action=common::DELETE on_confirm=Callback::new(delete)
            busy=Signal::derive(move || busy.get() || in_use.get())>
            {part(move || asked.get().map(|node| view! { <Preview node in_use /> }))}
        </Confirm>
    }
    .into_any()
}

#[component]
fn Preview(node: Arc<Node>, in_use: RwSignal<bool>) -> AnyView {
    let id = node.id;
    let preview = Feed::new(move || client::node_delete_preview(id));
    // A node that is part of a tunnel cannot go.
    Effect::run(move || in_use.set(preview.get().is_none_or(|preview| !preview.tunnels.is_empty())));
    let lead = move || words::DELETE_LEAD.with(lang(), &[("name", &node.name)]);
    let lost = move || {
        let Some(preview) = preview.get() else { return ().into_any() };
        if preview.tunnels.is_empty() && preview.forwards.is_empty() {
            return view! { <p>{t(words::DELETE_UNUSED)}</p> }.into_any();
        }
        view! {
            {names(words::DELETE_TUNNELS, &preview.tunnels)}
            {names(words::DELETE_FORWARDS, &preview.forwards)}
        }
        .into_any()
    };
    view! {
        <p>{phrase(lead)}</p>
        <div data-testid=testid::DELETE_PREVIEW>{loaded(preview, move || lost().into_any())}</div>
    }
    .into_any()
}

fn names(title: Text, names: &[String]) -> Option<AnyView> {
    let list = names.iter().map(|name| view! { <li>{name.clone()}</li> }).collect_view();
    (!names.is_empty()).then(|| view! { <p>{t(title)}</p> <ul class="names">{list}</ul> }.into_any())
}

/// Asks before a secret is replaced, and shows the new one.
#[component]
pub fn RotateSecret(asked: Asked) -> AnyView {
    let open = closes(asked.rotate);
    let busy = RwSignal::new(false);
    let rotate = move |()| {
        let Some(node) = asked.rotate.get_untracked() else { return };
        busy.set(true);
        spawn_local(async move {
            let answer = client::rotate_node_secret(node.id).await;
            let _ = busy.try_set(false);
            match answer {
                Ok(node) => {
                    let _ = asked.rotate.try_set(None);
                    let _ = asked.install.try_set(Some(Installing {
                        id: node.id,
                        name: node.name,
                        secret: node.secret,
                    }));
                }
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    };
    let hint = move || {
        let name = asked.rotate.with(|node| node.as_ref().map(|node| node.name.clone())).unwrap_or_default();
        words::ROTATE_HINT.with(lang(), &[("name", &name)])
    };
    view! {
        <Confirm open title=words::ROTATE_TITLE action=words::ROTATE on_confirm=Callback::new(rotate) busy>
            <p>{phrase(hint)}</p>
        </Confirm>
    }
    .into_any()
}
