use super::page::Monitored;
use crate::api::live::use_live;
use crate::api::session::may_write;
use crate::api::{ApiError, client};
use crate::clock;
use crate::format;
use crate::i18n::{common, errors, lang, lang_now, monitor as words, t};
use crate::pages::question::closes;
use crate::reactive::{RwSignal, Show, Signal, part, phrase};
use crate::ui::button::Submit;
use crate::ui::field::said;
use crate::ui::{
    Button, Checked, Choice, Dialog, FieldErrors, FormSummary, Icon, Look, SelectField, TextField, icon,
    toast,
};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::{PinInput, PinRecord};
use shared::field::FieldError;
use shared::ids::NodeId;
use shared::testid;

/// What the dialog starts with.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct PinSubject {
    /// The exit, if one was meant.
    pub exit: Option<NodeId>,
    /// The owner, if one was meant.
    pub owner: Option<NodeId>,
}

/// Longest reason; the panel has the same limit.
const REASON_CHARS: usize = 200;

/// The ends on offer, in hours; 0 = none.
const HOURS: [(i64, crate::i18n::Text); 4] =
    [(0, words::PIN_FOREVER), (1, words::PIN_1H), (8, words::PIN_8H), (24, words::PIN_24H)];

/// Asks what to pin, for whom, for how long and why.
#[component]
pub fn PinDialog(shared: Monitored) -> AnyView {
    let open = closes(shared.pin);
    view! {
        <Dialog open title=said(words::PIN_TITLE)>
            {part(move || shared.pin.get().map(|subject| view! { <PinForm shared subject open /> }))}
        </Dialog>
    }
    .into_any()
}

#[component]
fn PinForm(shared: Monitored, subject: PinSubject, open: RwSignal<bool>) -> AnyView {
    let live = use_live();
    let decisions = shared.decisions.now();
    let owners: Vec<(NodeId, String)> = decisions
        .iter()
        .flat_map(|decisions| &decisions.owners)
        .map(|owner| (owner.owner_node_id, owner.owner_name.clone()))
        .collect();
    // In saved or rank order of the first owner; all owners have the same exits.
    let exits: Vec<(NodeId, String)> = decisions
        .iter()
        .filter_map(|decisions| decisions.owners.first())
        .flat_map(|owner| &owner.candidates)
        .map(|candidate| (candidate.exit_node_id, candidate.exit_name.clone()))
        .collect();
    let first = subject.exit.or_else(|| exits.first().map(|(id, _)| *id));
    let exit = RwSignal::new(first.map(|id| id.to_string()).unwrap_or_default());
    let owner = RwSignal::new(subject.owner.map(|id| id.to_string()).unwrap_or_default());
    let hours = RwSignal::new("0".to_owned());
    let reason = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let failure = RwSignal::new(None::<ApiError>);

    let input = move || {
        let hours: i64 = hours.get().parse().unwrap_or(0);
        PinInput {
            exit_node_id: exit.get().parse().unwrap_or(NodeId(0)),
            owner_node_id: owner.get().parse().ok(),
            until: (hours > 0).then(|| clock::now() + hours * 3_600_000),
            reason: reason.get().trim().to_owned(),
        }
    };
    let errors_of = FieldErrors::new(move || {
        let input = input();
        let mut errors = Vec::new();
        if !(1..=REASON_CHARS).contains(&input.reason.chars().count()) {
            let error = FieldError::new("reason", "reason_length", "give a reason of 1 to 200 characters");
            errors.push(error.with("max", REASON_CHARS));
        }
        Checked { json: serde_json::to_value(&input).unwrap_or_default(), errors }
    });
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() || !errors_of.may_send() {
            return;
        }
        let input = untrack(input);
        busy.set(true);
        failure.set(None);
        spawn_local(async move {
            let answer = client::pin(shared.id, &input).await;
            let _ = busy.try_set(false);
            match answer {
                Ok(()) => {
                    let name = shared.names.now(input.exit_node_id);
                    toast::good(words::PIN_SAVED.with(lang_now(), &[("name", &name)]));
                    live.decisions.update(|count| *count += 1);
                    let _ = open.try_set(false);
                }
                Err(error) => {
                    errors_of.refuse(error.fields());
                    let _ = failure.try_set(Some(error));
                }
            }
        });
    };
    let exit_choices: Vec<Choice> =
        exits.iter().map(|(id, name)| Choice::new(id.to_string(), name.clone())).collect();
    let owner_choices = Signal::derive(move || {
        let all = Choice::new("", words::PIN_SCOPE_ALL.say(lang()));
        let each = owners.iter().map(|(id, name)| Choice::new(id.to_string(), name.clone()));
        std::iter::once(all).chain(each).collect::<Vec<_>>()
    });
    let hour_choices = Signal::derive(|| {
        HOURS.map(|(hours, text)| Choice::new(hours.to_string(), text.say(lang()))).to_vec()
    });
    let choose = |signal: RwSignal<String>| Callback::new(move |value: String| signal.set(value));
    let failed = Signal::derive(move || {
        failure.get().filter(|error| error.fields().is_empty()).map(|error| errors::api(&error, lang()))
    });
    view! {
        <form class="form" on:submit=submit novalidate>
            <p class="hint">{t(words::PIN_HINT)}</p>
            <SelectField label=words::EXIT value=exit on_choose=choose(exit) choices=Signal::stored(exit_choices)
                field="exitNodeId" error=errors_of.of("exitNodeId") testid=testid::PIN_EXIT />
            <SelectField label=words::PIN_SCOPE value=owner on_choose=choose(owner) choices=owner_choices
                field="ownerNodeId" error=errors_of.of("ownerNodeId") testid=testid::PIN_OWNER />
            <SelectField label=words::PIN_UNTIL value=hours on_choose=choose(hours) choices=hour_choices
                field="until" error=errors_of.of("until") testid=testid::PIN_UNTIL />
            <TextField label=words::PIN_REASON value=reason field="reason" error=errors_of.of("reason")
                hint=said(words::PIN_REASON_HINT) testid=testid::PIN_REASON />
            <FormSummary errors=errors_of failure=failed />
            <footer class="dialog-foot">
                <Button text=common::CANCEL on_press=Callback::new(move |()| open.set(false)) testid=testid::CANCEL />
                <Submit text=words::PIN busy testid=testid::PIN_SAVE />
            </footer>
        </form>
    }
    .into_any()
}

/// The pin in force for an owner, with who set it and why.
#[component]
pub fn PinLine(shared: Monitored, owner: NodeId, pin: Option<PinRecord>) -> AnyView {
    let live = use_live();
    let Some(pin) = pin else { return ().into_any() };
    let scope = pin.owner_node_id;
    let remove = move |()| {
        spawn_local(async move {
            match client::unpin(shared.id, scope).await {
                Ok(()) => {
                    toast::good(words::UNPINNED.say(lang_now()));
                    live.decisions.update(|count| *count += 1);
                }
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    };
    let text = move || {
        let created = format::date_time(pin.created_at, lang());
        let by = words::PIN_BY
            .with(lang(), &[("author", &pin.author), ("time", &created), ("reason", &pin.reason)]);
        match pin.until {
            Some(until) => {
                let ends = words::PIN_ENDS.with(lang(), &[("time", &format::date_time(until, lang()))]);
                format!("{by} · {ends}")
            }
            None => by,
        }
    };
    view! {
        <div class="pin-line">
            {icon(Icon::Pin)}
            <span>{phrase(text)}</span>
            <Show when=may_write>
                <Button text=words::UNPIN look=Look::Quiet on_press=Callback::new(remove)
                    testid=testid::with(testid::UNPIN, owner) />
            </Show>
        </div>
    }
    .into_any()
}
