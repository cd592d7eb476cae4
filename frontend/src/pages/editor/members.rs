//! The nodes of a group: in order, with what is typed for each.

use super::form::{Form, Member, relocate, shift};
use crate::i18n::{common, editor as words, lang, t};
use crate::pages::names::{Names, use_names};
use crate::reactive::{Memo, RwSignal, Signal, StoredValue, each, part, phrase};
use crate::ui::chip::{OnlineMark, exit_class};
use crate::ui::field::fresh_id;
use crate::ui::{Button, FieldErrors, Icon, Look, dot, icon};
use leptos::prelude::*;
use shared::ids::NodeId;
use shared::testid;

/// What a list of nodes needs to know.
#[derive(Clone)]
pub struct Listed {
    /// The form it is in.
    pub form: Form,
    /// The nodes.
    pub members: RwSignal<Vec<Member>>,
    /// Name in test ids: `entry`, `exit`, `hop-0`.
    pub group: String,
    /// Path of the group in the request.
    pub path: Signal<String>,
    /// The errors of the form.
    pub errors: FieldErrors,
    /// Ports and connect addresses: for hops and exits.
    pub relays: bool,
    /// Exits have colours.
    pub is_exit: bool,
}

/// The nodes of a group, and a select that adds one.
#[component]
pub fn Members(listed: Listed) -> AnyView {
    let names = use_names();
    let members = listed.members;
    let dragged = RwSignal::new(None::<NodeId>);
    let path = listed.path;
    let error = listed.errors.at(move || format!("{}.nodes", path.get()));
    let row = StoredValue::new(listed.clone());
    let ids = move || members.with(|members| members.to_vec());
    view! {
        <div class="members">
            <ol class="member-list">
                {each(ids, |member| (member.node.0, 0), move |member| view! {
                    <MemberRow listed=row.get_value() member names dragged />
                }.into_any())}
            </ol>
            <AddNode listed=listed.clone() names error />
        </div>
    }
    .into_any()
}

#[component]
fn MemberRow(listed: Listed, member: Member, names: Names, dragged: RwSignal<Option<NodeId>>) -> AnyView {
    let id = member.node;
    let members = listed.members;
    let group = listed.group.clone();
    let (path, errors) = (listed.path, listed.errors);
    let place = Memo::new(move |_| {
        members.with(|all| all.iter().position(|other| other.node == id)).unwrap_or_default()
    });
    let count = Memo::new(move |_| members.with(Vec::len));
    let error = errors.at(move || format!("{}.nodes[{}].nodeId", path.get(), place.get()));
    let label =
        |text: crate::i18n::Text| Signal::derive(move || text.with(lang(), &[("name", &names.of(id))]));
    let go = move |up| Callback::new(move |()| members.update(|all| shift(all, place.get_untracked(), up)));
    let remove = move |()| members.update(|all| all.retain(|other| other.node != id));
    let drop_here = move |event: web_sys::DragEvent| {
        event.prevent_default();
        let from = dragged.get_untracked();
        dragged.set(None);
        let from =
            from.and_then(|from| members.with_untracked(|all| all.iter().position(|m| m.node == from)));
        if let Some(from) = from {
            members.update(|all| relocate(all, from, place.get_untracked()));
        }
    };
    let drag_title = move || t(words::DRAG_HINT)();
    let online = move || names.node(id).map(|node| view! { <OnlineMark online=node.online /> });
    view! {
        <li
            class=format!("member {}", if listed.is_exit { exit_class(id) } else { String::new() })
            class:dragging=move || dragged.get() == Some(id)
            data-testid=testid::of(testid::EDITOR_NODE, &group, id)
            data-place=move || place.get().to_string()
            on:dragover=move |event| {
                if dragged.get_untracked().is_some() {
                    event.prevent_default();
                }
            }
            on:drop=drop_here
        >
            <span class="grip" draggable="true" title=drag_title
                on:dragstart=move |event: web_sys::DragEvent| {
                    if let Some(data) = event.data_transfer() {
                        // Firefox drags nothing without data.
                        let _ = data.set_data("text/plain", &id.to_string());
                    }
                    dragged.set(Some(id));
                }
                on:dragend=move |_| dragged.set(None)>
                {icon(Icon::Grip)}
            </span>
            <span class="place number">{phrase(move || place.get() + 1)}</span>
            <span class="member-name">
                {listed.is_exit.then(|| dot(id))}
                <span>{phrase(move || names.of(id))}</span>
                {part(online)}
            </span>
            {listed.relays.then(|| view! { <RelayInputs listed=listed.clone() member place count /> })}
            <span class="member-buttons">
                <Button text=common::MOVE_UP label=label(words::NODE_UP) on_press=go(true) look=Look::Quiet icon_of=Icon::Up
                    bare=true disabled=Signal::derive(move || place.get() == 0)
                    testid=testid::of(testid::EDITOR_NODE_UP, &group, id) />
                <Button text=common::MOVE_DOWN label=label(words::NODE_DOWN) on_press=go(false) look=Look::Quiet
                    icon_of=Icon::Down bare=true
                    disabled=Signal::derive(move || place.get() + 1 >= count.get())
                    testid=testid::of(testid::EDITOR_NODE_DOWN, &group, id) />
                <Button text=common::REMOVE label=label(words::REMOVE_NODE) on_press=Callback::new(remove) look=Look::Quiet
                    icon_of=Icon::Cross bare=true testid=testid::of(testid::EDITOR_NODE_REMOVE, &group, id) />
            </span>
            <p class="field-error member-error" hidden=move || error.get().is_none()>{phrase(move || error.get())}</p>
        </li>
    }
    .into_any()
}

/// Port and connect address of a node.
#[component]
fn RelayInputs(listed: Listed, member: Member, place: Memo<usize>, count: Memo<usize>) -> AnyView {
    let id = member.node;
    let group = listed.group;
    let (path, errors) = (listed.path, listed.errors);
    let at =
        |field: &'static str| errors.at(move || format!("{}.nodes[{}].{field}", path.get(), place.get()));
    // One that is there already can be seen and taken away.
    let possible = move || count.get() <= 1 || member.connect_ip.with(|text| !text.is_empty());
    let explained = Signal::derive(move || {
        let text = if possible() { words::CONNECT_IP_HINT } else { words::CONNECT_IP_ONE_NODE };
        text.say(lang()).to_owned()
    });
    view! {
        <SmallInput label=words::PORT value=member.port error=at("port") mode="numeric"
            hint=Signal::derive(|| words::PORT_AUTO.say(lang()).to_owned())
            field=Signal::derive(move || format!("{}.nodes[{}].port", path.get(), place.get()))
            testid=testid::of(testid::EDITOR_NODE_PORT, &group, id) />
        <SmallInput label=words::CONNECT_IP value=member.connect_ip error=at("connectIp") mode="text" hint=explained
            disabled=Signal::derive(move || !possible())
            field=Signal::derive(move || format!("{}.nodes[{}].connectIp", path.get(), place.get()))
            testid=testid::of(testid::EDITOR_NODE_CONNECT_IP, &group, id) />
    }
    .into_any()
}

#[component]
fn SmallInput(
    label: crate::i18n::Text,
    value: RwSignal<String>,
    error: Signal<Option<String>>,
    hint: Signal<String>,
    mode: &'static str,
    #[prop(optional, into)] disabled: Signal<bool>,
    field: Signal<String>,
    testid: String,
) -> AnyView {
    let id = fresh_id();
    view! {
        <div class="small-input">
            <label for=id.clone()>{t(label)}</label>
            <input id=id.clone() class="input" inputmode=mode autocomplete="off" spellcheck="false"
                placeholder=move || hint.get() title=move || hint.get()
                aria-describedby=format!("{id}-error") aria-invalid=move || error.get().map(|_| "true")
                disabled=move || disabled.get() data-testid=testid
                prop:value=move || value.get() on:input=move |event| value.set(event_target_value(&event)) />
            <p id=format!("{id}-error") class="field-error" hidden=move || error.get().is_none()
                data-testid=move || testid::with(testid::FIELD_ERROR, field.get())>
                {phrase(move || error.get())}
            </p>
        </div>
    }
    .into_any()
}

/// A select that adds a node of those that are not in the tunnel yet.
#[component]
fn AddNode(listed: Listed, names: Names, error: Signal<Option<String>>) -> AnyView {
    let id = fresh_id();
    let Listed { form, members, group, path, .. } = listed;
    let free = Memo::new(move |_| {
        let used = form.used();
        let all = names.all();
        all.values()
            .filter(|node| !used.contains(&node.id))
            .map(|node| (node.id, node.name.clone(), node.online))
            .collect::<Vec<_>>()
    });
    let first = move || {
        if names.all().is_empty() {
            return t(words::NO_NODES)();
        }
        let none_left = free.with(Vec::is_empty);
        t(if none_left { words::ALL_NODES_USED } else { words::ADD_NODE_CHOOSE })()
    };
    let options = move || {
        free.get()
            .into_iter()
            .map(|(id, name, online)| {
                let offline = (!online).then(|| format!(" ({})", t(common::OFFLINE)()));
                view! { <option value=id.to_string()>{name} {offline}</option> }
            })
            .collect_view()
    };
    let add = move |event: leptos::ev::Event| {
        if let Ok(node) = event_target_value(&event).parse::<NodeId>() {
            let member = form.keeping(|| Member::new(node));
            members.update(|all| all.push(member));
        }
        // Back to its first line, for the next node.
        event_target::<web_sys::HtmlSelectElement>(&event).set_value("");
    };
    view! {
        <div class="add-node">
            <label class="visually-hidden" for=id.clone()>{t(words::ADD_NODE)}</label>
            <select id=id.clone() class="input" data-testid=testid::with(testid::EDITOR_ADD_NODE, group)
                aria-describedby=format!("{id}-error") aria-invalid=move || error.get().map(|_| "true")
                disabled=move || free.with(Vec::is_empty) on:change=add>
                {part(move || view! { <option value="" selected>{first}</option> {options} })}
            </select>
            <p id=format!("{id}-error") class="field-error" hidden=move || error.get().is_none()
                data-testid=move || testid::with(testid::FIELD_ERROR, format!("{}.nodes", path.get()))>
                {phrase(move || error.get())}
            </p>
        </div>
    }
    .into_any()
}
