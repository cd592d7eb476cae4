use super::delete::{DeleteNode, RotateSecret};
use super::form::NodeDialog;
use super::install::{InstallDialog, Installing};
use crate::api::live::use_live;
use crate::api::session::may_write;
use crate::format;
use crate::i18n::{common, lang, nodes as words, t};
use crate::pages::attention::is_outdated;
use crate::pages::loaded::loaded;
use crate::reactive::{Memo, RwSignal, Show, Signal, StoredValue, each, phrase};
use crate::ui::chip::OnlineMark;
use crate::ui::field::said;
use crate::ui::growing::growing;
use crate::ui::search::{SearchBox, matches};
use crate::ui::{Button, Chip, Empty, Heading, Icon, Look, Tone};
use leptos::prelude::*;
use shared::api::Node;
use shared::testid;
use std::sync::Arc;

/// The form is open: for a new node or for one that is there.
#[derive(Clone, PartialEq)]
pub enum Editing {
    /// A new node.
    New,
    /// This one.
    Existing(Arc<Node>),
}

/// What a row can ask of the list.
#[derive(Clone, Copy)]
pub struct Asked {
    /// To open the form.
    pub edit: RwSignal<Option<Editing>>,
    /// To show how to install.
    pub install: RwSignal<Option<Installing>>,
    /// To rotate the secret.
    pub rotate: RwSignal<Option<Arc<Node>>>,
    /// To delete.
    pub delete: RwSignal<Option<Arc<Node>>>,
}

/// All nodes.
#[component]
pub fn NodeList() -> AnyView {
    let live = use_live();
    let asked = Asked {
        edit: RwSignal::new(None),
        install: RwSignal::new(None),
        rotate: RwSignal::new(None),
        delete: RwSignal::new(None),
    };
    view! {
        <Heading text=said(words::TITLE)>
            <NewNode asked />
        </Heading>
        {loaded(live.nodes, move || view! { <Rows asked /> }.into_any())}
        <NodeDialog asked />
        <InstallDialog asked=asked.install />
        <RotateSecret asked />
        <DeleteNode asked=asked.delete />
    }
    .into_any()
}

#[component]
fn NewNode(asked: Asked) -> AnyView {
    view! {
        <Show when=may_write>
            <Button text=words::NEW look=Look::Primary icon_of=Icon::Plus testid=testid::NODE_NEW
                on_press=Callback::new(move |()| asked.edit.set(Some(Editing::New))) />
        </Show>
    }
    .into_any()
}

#[component]
fn Rows(asked: Asked) -> AnyView {
    let live = use_live();
    let search = RwSignal::new(String::new());
    let none_at_all = Memo::new(move |_| live.nodes.get().is_none_or(|all| all.is_empty()));
    let found = Memo::new(move |_| {
        let all = live.nodes.get().unwrap_or_default();
        let search = search.get();
        let matching = |node: &&Arc<Node>| matches(&search, &[&node.name, &node.server_ip, &node.version]);
        all.iter().filter(matching).cloned().collect::<Vec<_>>()
    });
    let count = Signal::derive(move || found.with(Vec::len));
    let drawn = growing(search, count, Signal::stored(false));
    let shown = move || {
        let mut rows = found.get();
        rows.truncate(drawn.get());
        rows
    };
    view! {
        <Show when=move || !none_at_all.get() fallback=move || view! {
            <Empty text=words::EMPTY hint=words::EMPTY_HINT>
                <NewNode asked />
            </Empty>
        }>
            <div class="toolbar">
                <SearchBox value=search hint=common::SEARCH testid="node-search" />
            </div>
            <ul class="rows nodes">
                {each(shown, |node| (node.id.0, Arc::as_ptr(node) as usize), move |node| view! {
                    <NodeRow node asked />
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
fn NodeRow(node: Arc<Node>, asked: Asked) -> AnyView {
    let id = node.id;
    let seen = node.last_seen;
    let online = node.online;
    let last_seen = move || {
        // That it was never seen is said where its version would be.
        let at = seen.filter(|_| !online)?;
        Some(format!("{} {}", t(words::LAST_SEEN)(), format::date_time(at, lang())))
    };
    let never = node.version.is_empty();
    let version = node.version.clone();
    let version = move || {
        if never {
            words::VERSION_UNKNOWN.say(lang()).to_owned()
        } else {
            format!("v{}", version.trim_start_matches('v'))
        }
    };
    let old = is_outdated(&node).then(|| view! { <Chip text=said(words::VERSION_OLD) tone=Tone::Waiting /> });
    let (name, server_ip, port_range) = (node.name.clone(), node.server_ip.clone(), node.port_range.clone());
    view! {
        <li class="row" data-testid=testid::with(testid::NODE_ROW, id)>
            <div class="row-name">
                <span class="row-title">{name}</span>
                <span class="muted">{server_ip}</span>
            </div>
            <div class="node-state">
                <OnlineMark online testid=testid::with(testid::NODE_STATE, id) />
                <span class="muted small">{phrase(last_seen)}</span>
            </div>
            <div class="node-version">
                <span class="number">{phrase(version)} " " {old}</span>
                <span class="muted small">{port_range}</span>
            </div>
            <div class="row-actions">
                <Show when=may_write>
                    <RowButtons node=node.clone() asked />
                </Show>
            </div>
        </li>
    }
    .into_any()
}

#[component]
fn RowButtons(node: Arc<Node>, asked: Asked) -> AnyView {
    let id = node.id;
    let node = StoredValue::new(node);
    let install = move |()| {
        let node = node.get_value();
        asked.install.set(Some(Installing { id: node.id, name: node.name.clone(), secret: None }));
    };
    view! {
        <Button text=words::INSTALL look=Look::Quiet on_press=Callback::new(install)
            testid=testid::with(testid::NODE_INSTALL, id) />
        <Button text=common::EDIT look=Look::Quiet testid=testid::with(testid::NODE_EDIT, id)
            on_press=Callback::new(move |()| asked.edit.set(Some(Editing::Existing(node.get_value())))) />
        <Button text=words::ROTATE look=Look::Quiet testid=testid::with(testid::NODE_ROTATE, id)
            on_press=Callback::new(move |()| asked.rotate.set(Some(node.get_value()))) />
        <Button text=common::DELETE look=Look::Quiet testid=testid::with(testid::NODE_DELETE, id)
            on_press=Callback::new(move |()| asked.delete.set(Some(node.get_value()))) />
    }
    .into_any()
}
