//! The fields of a hop or of the exits.

use super::capability;
use super::form::{Form, GroupForm};
use super::members::{Listed, Members};
use super::strategy::StrategyPicker;
use crate::i18n::{editor as words, lang, t};
use crate::pages::names::use_names;
use crate::reactive::{Memo, RwSignal, Show, Signal, phrase};
use crate::ui::{FieldErrors, SelectField, TextField};
use leptos::prelude::*;
use shared::ids::NodeId;
use shared::policy::Policy;
use shared::strategy::{Place, Protocol, Strategy};
use shared::testid;

/// Nodes, protocol, strategy, and what is advanced.
#[component]
pub fn GroupFields(
    form: Form,
    group: GroupForm,
    place: Place,
    /// The nodes of the group before: their agents choose among these nodes.
    holders: Signal<Vec<NodeId>>,
    /// Name in test ids: `exit`, `hop-0`.
    name: String,
    /// Path in the request; hops move.
    path: Signal<String>,
    errors: FieldErrors,
) -> AnyView {
    let names = use_names();
    let at = |field: &'static str| errors.at(move || format!("{}.{field}", path.get()));
    let protocols = Signal::derive(move || {
        let members: Vec<NodeId> = group.members.with(|all| all.iter().map(|member| member.node).collect());
        group.protocol.with(|current| capability::protocols(names, &members, current))
    });
    let listed = Listed {
        form,
        members: group.members,
        group: name.clone(),
        path,
        errors,
        relays: true,
        is_exit: place == Place::Exit,
    };
    let strategy_path = Signal::derive(move || format!("{}.strategy", path.get()));
    let protocol = Signal::derive(move || group.protocol.with(|protocol| protocol.as_str().to_owned()));
    view! {
        <div class="group-fields">
            <Members listed />
            <BestHint group place />
            <StrategyPicker value=group.strategy place holders group=name.clone() path=strategy_path error=at("strategy") />
            <div class="field-row">
                <SelectField label=words::PROTOCOL value=protocol choices=protocols
                    on_choose=Callback::new(move |value: String| group.protocol.set(Protocol::from(value)))
                    field=format!("{}.protocol", path.get_untracked()) error=at("protocol")
                    testid=testid::with(testid::EDITOR_PROTOCOL, &name) />
            </div>
            // Who decides ahead of connections does not go by failures of connections.
            <Show when=move || group.strategy.with(|strategy| !strategy.policy().is_some_and(Policy::is_decided_ahead))>
                <Advanced group name=name.clone() path errors />
            </Show>
        </div>
    }
    .into_any()
}

#[component]
fn Advanced(group: GroupForm, name: String, path: Signal<String>, errors: FieldErrors) -> AnyView {
    let at = |field: &'static str| errors.at(move || format!("{}.{field}", path.get()));
    let (max_fails, fail_timeout) = (at("maxFails"), at("failTimeoutMs"));
    // An error must not hide in what is closed.
    let wrong = Memo::new(move |_| max_fails.get().is_some() || fail_timeout.get().is_some());
    let opened = RwSignal::new(false);
    view! {
        <details class="advanced" prop:open=move || opened.get() || wrong.get()>
            <summary data-testid=testid::with(testid::EDITOR_ADVANCED, &name)
                on:click=move |event| {
                    event.prevent_default();
                    opened.update(|open| *open = !*open);
                }>
                {t(words::ADVANCED)}
            </summary>
            <div class="field-row">
                <TextField label=words::MAX_FAILS value=group.max_fails mode="numeric" error=max_fails
                    field=format!("{}.maxFails", path.get_untracked())
                    testid=testid::with(testid::EDITOR_MAX_FAILS, &name) />
                <TextField label=words::FAIL_TIMEOUT value=group.fail_timeout mode="numeric" error=fail_timeout
                    field=format!("{}.failTimeoutMs", path.get_untracked())
                    testid=testid::with(testid::EDITOR_FAIL_TIMEOUT, &name) />
            </div>
        </details>
    }
    .into_any()
}

/// With 最优 and fewer than two exits nothing is chosen.
#[component]
fn BestHint(group: GroupForm, place: Place) -> AnyView {
    let shown = move || {
        place == Place::Exit
            && group.strategy.with(|strategy| *strategy == Strategy::Best)
            && group.members.with(|members| members.len() < 2)
    };
    view! {
        <Show when=shown>
            <p class="note" role="status" data-testid=testid::EDITOR_BEST_HINT>
                {phrase(move || words::BEST_TWO_EXITS.say(lang()))}
            </p>
        </Show>
    }
    .into_any()
}
