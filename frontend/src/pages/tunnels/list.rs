use super::delete::DeleteTunnel;
use super::row::TunnelRow;
use crate::api::live::use_live;
use crate::api::session::may_write;
use crate::i18n::{common, lang, tunnels as words};
use crate::pages::diagnose::{DiagnoseDialog, Subject};
use crate::pages::loaded::loaded;
use crate::pages::names::{Names, use_names};
use crate::reactive::{Memo, RwSignal, Show, Signal, each, phrase};
use crate::ui::field::said;
use crate::ui::growing::growing;
use crate::ui::search::{SearchBox, matches};
use crate::ui::{Empty, Heading, Icon, LinkButton, Look};
use leptos::prelude::*;
use shared::api::Tunnel;
use shared::ids::TunnelId;
use shared::testid;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows drawn at first. More are drawn when asked for: a screenful is what people look at.
const FIRST_ROWS: usize = 100;

/// What a row can ask of the list.
#[derive(Clone, Copy)]
pub struct Asked {
    /// To delete this tunnel.
    pub delete: RwSignal<Option<Arc<Tunnel>>>,
    /// To diagnose it.
    pub diagnose: RwSignal<Option<Subject>>,
}

/// The tunnels that the search has found.
pub type Found = Memo<Arc<BTreeSet<TunnelId>>>;

/// All tunnels.
#[component]
pub fn TunnelList() -> AnyView {
    let live = use_live();
    let names = use_names();
    let search = RwSignal::new(String::new());
    let asked = Asked { delete: RwSignal::new(None), diagnose: RwSignal::new(None) };
    view! {
        <Heading text=said(words::TITLE)>
            <Show when=may_write>
                <LinkButton text=words::NEW href="/tunnels/new" look=Look::Primary icon_of=Icon::Plus testid=testid::TUNNEL_NEW />
            </Show>
        </Heading>
        {loaded(live.tunnels, move || view! { <Rows search names asked /> }.into_any())}
        <DeleteTunnel asked=asked.delete />
        <DiagnoseDialog asked=asked.diagnose />
    }
    .into_any()
}

#[component]
fn Rows(search: RwSignal<String>, names: Names, asked: Asked) -> AnyView {
    let live = use_live();
    let all_rows = RwSignal::new(false);
    let found = Memo::new(move |_| {
        let all = live.tunnels.get().unwrap_or_default();
        let search = search.get();
        if search.trim().is_empty() {
            return all.to_vec();
        }
        all.iter().filter(|tunnel| found(tunnel, &search, names)).cloned().collect::<Vec<_>>()
    });
    let wanted = Signal::derive(move || {
        if all_rows.get() {
            return live.tunnels.get().map_or(0, |all| all.len());
        }
        found.with(Vec::len).min(FIRST_ROWS)
    });
    let drawn = growing(search, wanted, all_rows.into());
    let shown = move || {
        // Once all rows are there, a search only hides some: drawing a thousand again takes longer than typing.
        let mut rows =
            if all_rows.get() { live.tunnels.get().unwrap_or_default().to_vec() } else { found.get() };
        rows.truncate(drawn.get().min(wanted.get()));
        rows
    };
    let found_ids = Memo::new(move |_| {
        let mut ids = BTreeSet::new();
        found.with(|found| found.iter().for_each(|tunnel| _ = ids.insert(tunnel.id)));
        Arc::new(ids)
    });
    let count = Memo::new(move |_| found.with(Vec::len));
    let none_at_all = Memo::new(move |_| live.tunnels.get().is_none_or(|all| all.is_empty()));
    let more = Signal::derive(move || common::SHOW_ALL.with(lang(), &[("count", &count.get().to_string())]));
    view! {
        <Show when=move || !none_at_all.get() fallback=|| view! { <NoTunnels /> }>
            <div class="toolbar">
                <SearchBox value=search hint=words::SEARCH_HINT testid=testid::TUNNEL_SEARCH />
            </div>
            <ul class="rows tunnels">
                // A changed tunnel is another pointer, so only its row is drawn again.
                {each(shown, |tunnel| (tunnel.id.0, Arc::as_ptr(tunnel) as usize), move |tunnel| view! {
                    <TunnelRow tunnel names asked found=found_ids />
                }.into_any())}
            </ul>
            <Show when=move || count.get() == 0>
                <Empty text=words::NONE_FOUND />
            </Show>
            <Show when=move || !all_rows.get() && { count.get() > FIRST_ROWS }>
                <p class="more">
                    <button type="button" class="button" on:click=move |_| all_rows.set(true)>
                        {phrase(move || more.get())}
                    </button>
                </p>
            </Show>
        </Show>
    }
    .into_any()
}

#[component]
fn NoTunnels() -> AnyView {
    view! {
        <Empty text=words::EMPTY hint=words::EMPTY_HINT>
            <Show when=may_write>
                <LinkButton text=words::NEW href="/tunnels/new" look=Look::Primary icon_of=Icon::Plus />
            </Show>
        </Empty>
    }
    .into_any()
}

fn found(tunnel: &Tunnel, search: &str, names: Names) -> bool {
    let nodes: Vec<String> = tunnel
        .entry
        .nodes
        .iter()
        .map(|node| node.node_id)
        .chain(
            tunnel
                .hops
                .iter()
                .chain(&tunnel.exit)
                .flat_map(|group| group.nodes.iter().map(|node| node.node_id)),
        )
        .map(|id| names.of(id))
        .collect();
    let texts: Vec<&str> =
        std::iter::once(tunnel.name.as_str()).chain(nodes.iter().map(String::as_str)).collect();
    matches(search, &texts)
}
