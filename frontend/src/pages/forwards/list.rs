use super::form::{Editing, ForwardDialog};
use super::row::{DeleteForward, ForwardRow};
use crate::api::live::use_live;
use crate::api::session::may_write;
use crate::i18n::{forwards as words, lang};
use crate::pages::diagnose::{DiagnoseDialog, Subject};
use crate::pages::loaded::loaded;
use crate::pages::names::use_names;
use crate::reactive::{Memo, RwSignal, Show, each, phrase};
use crate::ui::field::said;
use crate::ui::search::{SearchBox, matches};
use crate::ui::{Button, Empty, Heading, Icon, LinkButton, Look};
use leptos::prelude::*;
use shared::api::{Forward, Tunnel};
use shared::ids::TunnelId;
use shared::testid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a row can ask of the list.
#[derive(Clone, Copy)]
pub struct Asked {
    /// To open the form.
    pub edit: RwSignal<Option<Editing>>,
    /// To delete.
    pub delete: RwSignal<Option<Arc<Forward>>>,
    /// To diagnose.
    pub diagnose: RwSignal<Option<Subject>>,
}

/// The tunnels by id, for their names.
pub type Tunnels = Memo<Arc<BTreeMap<TunnelId, Arc<Tunnel>>>>;

/// All forwards.
#[component]
pub fn ForwardList() -> AnyView {
    let live = use_live();
    live.tunnels.want();
    // Their names are in the states of deployments.
    use_names();
    let asked =
        Asked { edit: RwSignal::new(None), delete: RwSignal::new(None), diagnose: RwSignal::new(None) };
    let tunnels: Tunnels = Memo::new(move |_| {
        let all = live.tunnels.get().unwrap_or_default();
        let mut index = BTreeMap::new();
        for tunnel in all.iter() {
            index.insert(tunnel.id, tunnel.clone());
        }
        Arc::new(index)
    });
    view! {
        <Heading text=said(words::TITLE)>
            <NewForward tunnels asked />
        </Heading>
        {loaded(live.forwards, move || view! { <Rows tunnels asked /> }.into_any())}
        <ForwardDialog asked=asked.edit tunnels />
        <DeleteForward asked=asked.delete />
        <DiagnoseDialog asked=asked.diagnose />
    }
    .into_any()
}

#[component]
fn NewForward(tunnels: Tunnels, asked: Asked) -> AnyView {
    let none = Memo::new(move |_| tunnels.with(|all| all.is_empty()));
    view! {
        <Show when=may_write>
            <Button text=words::NEW look=Look::Primary icon_of=Icon::Plus testid=testid::FORWARD_NEW disabled=none
                on_press=Callback::new(move |()| asked.edit.set(Some(Editing::New))) />
        </Show>
    }
    .into_any()
}

#[component]
fn Rows(tunnels: Tunnels, asked: Asked) -> AnyView {
    let live = use_live();
    let search = RwSignal::new(String::new());
    let none_at_all = Memo::new(move |_| live.forwards.get().is_none_or(|all| all.is_empty()));
    let found = Memo::new(move |_| {
        let all = live.forwards.get().unwrap_or_default();
        let search = search.get();
        let tunnels = tunnels.get();
        let matching = |forward: &&Arc<Forward>| {
            let tunnel =
                tunnels.get(&forward.tunnel_id).map(|tunnel| tunnel.name.as_str()).unwrap_or_default();
            let addresses = forward.addresses.iter().chain(&forward.targets).map(String::as_str);
            let texts: Vec<&str> = [forward.name.as_str(), tunnel].into_iter().chain(addresses).collect();
            matches(&search, &texts)
        };
        all.iter().filter(matching).cloned().collect::<Vec<_>>()
    });
    view! {
        <Show when=move || !none_at_all.get() fallback=move || view! { <NoForwards tunnels asked /> }>
            <div class="toolbar">
                <SearchBox value=search hint=words::SEARCH_HINT testid="forward-search" />
            </div>
            <ul class="rows forwards">
                {each(move || found.get(), |forward| (forward.id.0, Arc::as_ptr(forward) as usize), move |forward| view! {
                    <ForwardRow forward tunnels asked />
                }.into_any())}
            </ul>
            <Show when=move || found.with(Vec::is_empty)>
                <Empty text=words::NONE_FOUND />
            </Show>
        </Show>
    }
    .into_any()
}

#[component]
fn NoForwards(tunnels: Tunnels, asked: Asked) -> AnyView {
    let no_tunnel = Memo::new(move |_| tunnels.with(|all| all.is_empty()));
    view! {
        <Empty text=words::EMPTY hint=words::EMPTY_HINT>
            <Show when=move || no_tunnel.get() fallback=move || view! { <NewForward tunnels asked /> }>
                <p>{phrase(move || words::EMPTY_NEEDS_TUNNEL.say(lang()))}</p>
                <LinkButton text=crate::i18n::tunnels::NEW href="/tunnels/new" />
            </Show>
        </Empty>
    }
    .into_any()
}
