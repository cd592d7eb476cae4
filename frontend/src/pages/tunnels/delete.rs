use crate::api::live::use_live;
use crate::api::{Feed, client};
use crate::i18n::{common, errors, lang, lang_now, t, tunnels as words};
use crate::pages::loaded::loaded;
use crate::pages::question::closes;
use crate::reactive::{RwSignal, part, phrase};
use crate::ui::{Confirm, toast};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::Tunnel;
use shared::testid;
use std::sync::Arc;

/// Asks before a tunnel is deleted, with the names of the forwards that go with it.
#[component]
pub fn DeleteTunnel(asked: RwSignal<Option<Arc<Tunnel>>>) -> AnyView {
    let live = use_live();
    let open = closes(asked);
    let busy = RwSignal::new(false);
    let delete = move |()| {
        let Some(tunnel) = asked.get_untracked() else { return };
        busy.set(true);
        spawn_local(async move {
            let answer = client::delete_tunnel(tunnel.id).await;
            let _ = busy.try_set(false);
            match answer {
                Ok(()) => {
                    let _ = asked.try_set(None);
                    toast::good(common::DELETED.with(lang_now(), &[("name", &tunnel.name)]));
                    live.tunnels.refresh();
                    live.forwards.refresh_if_wanted();
                }
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    };
    view! {
        <Confirm open title=words::DELETE_TITLE action=common::DELETE on_confirm=Callback::new(delete) busy>
            {part(move || asked.get().map(|tunnel| view! { <Preview tunnel /> }))}
        </Confirm>
    }
    .into_any()
}

#[component]
fn Preview(tunnel: Arc<Tunnel>) -> AnyView {
    let id = tunnel.id;
    let name = tunnel.name.clone();
    let preview = Feed::new(move || client::tunnel_delete_preview(id));
    let lead = move || words::DELETE_LEAD.with(lang(), &[("name", &name)]);
    let lost = move || {
        let forwards = preview.get().map(|preview| preview.forwards.clone()).unwrap_or_default();
        if forwards.is_empty() {
            return view! { <p>{t(words::DELETE_NO_FORWARDS)}</p> }.into_any();
        }
        let names = forwards.into_iter().map(|name| view! { <li>{name}</li> }).collect_view();
        view! { <p>{t(words::DELETE_FORWARDS)}</p> <ul class="names">{names}</ul> }.into_any()
    };
    view! {
        <p>{phrase(lead)}</p>
        <div data-testid=testid::DELETE_PREVIEW>{loaded(preview, move || lost().into_any())}</div>
    }
    .into_any()
}
