use super::desk::Desk;
use super::form::Form;
use super::group::GroupFields;
use super::hops::Hops;
use super::members::{Listed, Members};
use super::save::Saving;
use crate::api::Feed;
use crate::i18n::{common, editor as words, lang, t, tunnels};
use crate::pages::loaded::{Loaded, loaded};
use crate::pages::names;
use crate::reactive::{Memo, Show, Signal, part};
use crate::ui::button::Submit;
use crate::ui::field::{fresh_id, said};
use crate::ui::{Alert, Button, Checkbox, Choice, FieldErrors, FormSummary, SelectField, TextField};
use leptos::prelude::*;
use shared::api::{IpPreference, Tunnel, TunnelInput, TunnelType};
use shared::ids::TunnelId;
use shared::strategy::Place;
use shared::testid;
use shared::topology::{KnownNode, World};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Draws the editor; `id` is none for a new tunnel.
pub fn draw(desk: Desk, id: Option<TunnelId>) -> AnyView {
    names::provide(desk.nodes);
    let Some(id) = id else {
        return view! { <WithWorld desk><Editor desk tunnel=None feed=None /></WithWorld> }.into_any();
    };
    // Fetched once: what others save meanwhile must not overwrite what is typed here.
    let line = desk.line();
    let tunnel = Feed::new(move || {
        let line = line.clone();
        async move { line.tunnel(id).await }
    });
    let editor =
        move || tunnel.get().map(|stored| view! { <Editor desk tunnel=Some(stored) feed=Some(tunnel) /> });
    view! { <WithWorld desk>{loaded(tunnel, move || part(editor))}</WithWorld> }.into_any()
}

/// Waits for the nodes and the other tunnels' names, which validation needs.
#[component]
fn WithWorld(desk: Desk, children: ChildrenFn) -> AnyView {
    desk.nodes.want();
    desk.tunnels.want();
    let ready = Signal::derive(move || desk.nodes.get().is_some() && desk.tunnels.get().is_some());
    let error = Signal::derive(move || desk.nodes.error().or_else(|| desk.tunnels.error()));
    view! { <Loaded ready error on_retry=Callback::new(move |()| desk.refresh())>{children()}</Loaded> }
        .into_any()
}

/// What validation needs to know; follows the lists.
fn world(desk: Desk, id: Option<TunnelId>) -> Memo<Arc<World>> {
    Memo::new(move |_| {
        let nodes = desk.nodes.get().unwrap_or_default();
        let tunnels = desk.tunnels.get().unwrap_or_default();
        // Filled one by one: collecting sorts first, and the code for that is not small.
        let mut world = World::default();
        for node in nodes.iter() {
            let known = KnownNode {
                name: node.name.clone(),
                port_range: node.port_range.clone(),
                capabilities: node.capabilities.clone(),
                seen: node.last_seen.is_some(),
                taken_ports: BTreeMap::new(),
            };
            world.nodes.insert(node.id, known);
        }
        for tunnel in tunnels.iter().filter(|tunnel| Some(tunnel.id) != id) {
            world.tunnel_names.insert(tunnel.name.clone());
        }
        Arc::new(world)
    })
}

#[component]
fn Editor(desk: Desk, tunnel: Option<Arc<Tunnel>>, feed: Option<Feed<Tunnel>>) -> AnyView {
    let id = tunnel.as_ref().map(|tunnel| tunnel.id);
    let input = tunnel.map(|tunnel| TunnelInput::from(tunnel.as_ref().clone()));
    let form = Form::new(input.as_ref());
    let world = world(desk, id);
    let errors = FieldErrors::new(move || world.with(|world| form.checked(world)));
    let saving = Saving::new(desk, form, id, errors);
    let is_tunnel = Memo::new(move |_| form.kind.get() == TunnelType::Tunnel);
    let holders = Signal::derive(move || form.holders(form.hops.with(Vec::len)));
    let entry = Listed {
        form,
        members: form.entry,
        group: "entry".into(),
        path: Signal::stored("entry".to_owned()),
        errors,
        relays: false,
        is_exit: false,
    };
    view! {
        <form class="editor" novalidate on:submit=saving.on_submit() data-testid=testid::EDITOR>
            <Basics form errors />
            <section class="card" aria-labelledby="entry-title">
                <header class="section-head">
                    <h2 id="entry-title">{t(words::ENTRY_TITLE)}</h2>
                    <p class="hint">{t(words::ENTRY_HINT)}</p>
                </header>
                <Members listed=entry />
            </section>
            <Show when=move || is_tunnel.get()>
                <Hops form errors />
                <section class="card" aria-labelledby="exit-title">
                    <header class="section-head">
                        <h2 id="exit-title">{t(words::EXIT_TITLE)}</h2>
                        <p class="hint">{t(words::EXIT_ORDER_HINT)}</p>
                    </header>
                    <GroupFields form group=form.exit place=Place::Exit holders name="exit".to_owned()
                        path=Signal::stored("exit".to_owned()) errors />
                </section>
            </Show>
            <StaleNotice saving feed />
            <FormSummary errors failure=saving.words() />
            <footer class="editor-foot">
                <Button text=common::CANCEL on_press=Callback::new(move |()| desk.line().cancel())
                    testid=testid::EDITOR_CANCEL />
                <Submit text=if id.is_some() { common::SAVE } else { common::CREATE } busy=saving.sending.busy
                    testid=testid::EDITOR_SAVE />
            </footer>
        </form>
    }
    .into_any()
}

#[component]
fn Basics(form: Form, errors: FieldErrors) -> AnyView {
    let families = Signal::derive(|| {
        [("auto", words::IP_AUTO), ("v4", words::IP_V4), ("v6", words::IP_V6)]
            .map(|(value, text)| Choice::new(value, text.say(lang())))
            .to_vec()
    });
    let family = Signal::derive(move || {
        match form.ip_preference.get() {
            IpPreference::Auto => "auto",
            IpPreference::V4 => "v4",
            IpPreference::V6 => "v6",
        }
        .to_owned()
    });
    let choose_family = move |value: String| {
        form.ip_preference.set(match value.as_str() {
            "v4" => IpPreference::V4,
            "v6" => IpPreference::V6,
            _ => IpPreference::Auto,
        });
    };
    view! {
        <section class="card">
            <div class="field-row">
                <TextField label=words::NAME value=form.name field="name" error=errors.of("name")
                    hint=said(words::NAME_HINT) testid=testid::EDITOR_NAME />
                <SelectField label=words::IP_PREFERENCE value=family choices=families field="ipPreference"
                    on_choose=Callback::new(choose_family) testid=testid::EDITOR_IP_PREFERENCE />
            </div>
            <TypePicker form />
            <Checkbox label=words::ENABLED value=form.enabled testid=testid::EDITOR_ENABLED />
        </section>
    }
    .into_any()
}

#[component]
fn TypePicker(form: Form) -> AnyView {
    let name = fresh_id();
    let kinds = [
        (TunnelType::Tunnel, "tunnel", tunnels::TYPE_TUNNEL, words::TYPE_TUNNEL_HINT),
        (TunnelType::Port, "port", tunnels::TYPE_PORT, words::TYPE_PORT_HINT),
    ];
    let options = kinds.map(|(kind, value, text, hint)| {
        let id = fresh_id();
        let chosen = move || form.kind.get() == kind;
        view! {
            <div class="option" class:chosen=chosen>
                <input type="radio" id=id.clone() name=name.clone() value=value aria-describedby=format!("{id}-hint")
                    data-testid=testid::with(testid::EDITOR_TYPE, value) prop:checked=chosen
                    on:change=move |_| form.kind.set(kind) />
                <label for=id.clone()>{t(text)}</label>
                <p class="hint" id=format!("{id}-hint")>{t(hint)}</p>
            </div>
        }
    });
    view! {
        <fieldset class="field">
            <legend>{t(words::TYPE)}</legend>
            <div class="options">{options.into_iter().collect_view()}</div>
        </fieldset>
    }
    .into_any()
}

/// Somebody else was faster: nothing is lost, and the choice is the operator's.
#[component]
fn StaleNotice(saving: Saving, feed: Option<Feed<Tunnel>>) -> AnyView {
    let stale = saving.sending.is_stale();
    let take_theirs = move |()| {
        if let Some(feed) = feed {
            saving.take_theirs(feed);
        }
    };
    view! {
        <Show when=move || stale.get()>
            <Alert testid=testid::EDITOR_STALE>
                <p>{t(common::ERROR_STALE)} " " {t(common::ERROR_STALE_HINT)}</p>
                <Button text=words::LOAD_THEIRS on_press=Callback::new(take_theirs) testid=testid::EDITOR_LOAD_THEIRS />
                <Button text=words::KEEP_MINE on_press=Callback::new(move |()| saving.keep_mine())
                    testid=testid::EDITOR_KEEP_MINE />
                <p class="hint">{t(words::KEEP_MINE_HINT)}</p>
            </Alert>
        </Show>
    }
    .into_any()
}
