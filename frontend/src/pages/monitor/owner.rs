use super::candidates::{Candidates, OwnerState};
use super::page::Monitored;
use super::pin::PinLine;
use super::words as say;
use crate::format;
use crate::i18n::{lang, monitor as words, reason, t};
use crate::reactive::{Memo, part, phrase};
use crate::ui::chip::{OnlineMark, exit_class};
use crate::ui::dot;
use leptos::prelude::*;
use shared::api::OwnerDecision;
use shared::ids::NodeId;
use shared::testid;
use std::sync::Arc;

/// One owner: the exit in force, the reason, what was measured, and what comes next.
#[component]
pub fn OwnerCard(shared: Monitored, owner: NodeId) -> AnyView {
    let state: OwnerState = Memo::new(move |_| {
        let decisions = shared.decisions.get()?;
        decisions.owners.iter().find(|state| state.owner_node_id == owner).cloned().map(Arc::new)
    });
    let pin = Memo::new(move |_| state.get().and_then(|state| state.pin.clone()));
    view! {
        <article class="card owner" data-testid=testid::with(testid::OWNER_CARD, owner)>
            <Head shared owner state />
            <ReasonText shared owner state />
            {part(move || view! { <PinLine shared owner pin=pin.get() /> })}
            <Candidates owner state />
            <Facts shared owner state />
        </article>
    }
    .into_any()
}

/// What an exit is called on this card.
pub fn exit_name(state: &OwnerDecision, shared: Monitored, id: NodeId) -> String {
    say::exit_name(&state.candidates, id).unwrap_or_else(|| shared.names.of(id))
}

#[component]
fn Head(shared: Monitored, owner: NodeId, state: OwnerState) -> AnyView {
    let name = Memo::new(move |_| state.get().map(|state| state.owner_name.clone()));
    let online = Memo::new(move |_| state.get().is_some_and(|state| state.online));
    let applied = Memo::new(move |_| {
        let state = state.get()?;
        let id = state.applied_exit_node_id?;
        Some((id, exit_name(&state, shared, id)))
    });
    let applied = move || {
        applied.get().map(|(id, name)| {
            view! {
                <span class=format!("applied-exit {}", exit_class(id))>
                    {dot(id)}
                    <span data-testid=testid::with(testid::OWNER_APPLIED, owner) data-exit=id.to_string()>{name}</span>
                </span>
            }
        })
    };
    view! {
        <header class="owner-head">
            <div>
                <span class="muted">{t(words::OWNER)}</span>
                <h2>{phrase(move || name.get())}</h2>
                {part(move || view! { <OnlineMark online=online.get() /> })}
            </div>
            <div class="owner-applied">
                <span class="muted">{t(words::APPLIED)}</span>
                {part(applied)}
            </div>
        </header>
    }
    .into_any()
}

/// The reason in words, its waits counting down.
#[component]
fn ReasonText(shared: Monitored, owner: NodeId, state: OwnerState) -> AnyView {
    let code = Memo::new(move |_| state.get().map_or("", |state| state.reason.code()));
    let text = move || {
        let state = state.get()?;
        let elapsed = state.evaluated_at.map_or(0, |at| shared.now.get() - at).max(0);
        Some(reason::sentence_at(&state.reason, lang(), &|id| exit_name(&state, shared, id), elapsed))
    };
    view! {
        <p class=move || format!("reason {}", reason_class(code.get())) data-code=move || code.get()
            data-testid=testid::with(testid::OWNER_REASON, owner)>
            {phrase(text)}
        </p>
    }
    .into_any()
}

/// Reasons that somebody should look at stand out.
fn reason_class(code: &str) -> &'static str {
    match code {
        "all_exits_failed" | "apply_failed" | "apply_retry_wait" | "pin_failed" => "bad",
        "owner_offline" | "current_unmeasured" | "confirming" | "cooldown" => "waiting",
        "switched" | "current_is_best" | "pinned" => "good",
        _ => "neutral",
    }
}

#[component]
fn Facts(shared: Monitored, owner: NodeId, state: OwnerState) -> AnyView {
    let say = move |what: fn(&OwnerDecision, Monitored) -> String| {
        move || state.get().map(|state| what(&state, shared))
    };
    view! {
        <dl class="facts">
            <div>
                <dt>{t(words::PENDING)}</dt>
                <dd data-testid=testid::with(testid::OWNER_PENDING, owner)>{phrase(say(pending))}</dd>
            </div>
            <div>
                <dt>{t(words::COOLDOWN)}</dt>
                <dd data-testid=testid::with(testid::OWNER_COOLDOWN, owner)>{phrase(say(cooldown))}</dd>
            </div>
            <div>
                <dt>{t(words::LAST_SWITCH)}</dt>
                <dd data-testid=testid::with(testid::OWNER_LAST_SWITCH, owner)>{phrase(say(last_switch))}</dd>
            </div>
            <div>
                <dt>{t(words::EVALUATED)}</dt>
                <dd>{phrase(say(evaluated))}</dd>
            </div>
            <div class="wide">
                <dt>{t(words::ORDER)}</dt>
                <dd>{phrase(say(order))}</dd>
            </div>
        </dl>
    }
    .into_any()
}

fn pending(state: &OwnerDecision, shared: Monitored) -> String {
    let Some(pending) = &state.pending else { return words::PENDING_NONE.say(lang()).to_owned() };
    let name = exit_name(state, shared, pending.exit_node_id);
    let (rounds, needed) = (pending.rounds.to_string(), pending.needed.to_string());
    words::PENDING_OF.with(lang(), &[("name", &name), ("rounds", &rounds), ("needed", &needed)])
}

fn evaluated(state: &OwnerDecision, _: Monitored) -> String {
    state.evaluated_at.map_or_else(|| "–".to_owned(), |at| format::time(at, lang()))
}

fn order(state: &OwnerDecision, shared: Monitored) -> String {
    let names: Vec<String> = state.applied_order.iter().map(|id| exit_name(state, shared, *id)).collect();
    names.join(" → ")
}

fn cooldown(state: &OwnerDecision, shared: Monitored) -> String {
    match state.next_switch_possible_at.map(|until| until - shared.now.get()).filter(|left| *left > 0) {
        Some(left) => format::countdown(left, lang()),
        None => words::COOLDOWN_NONE.say(lang()).to_owned(),
    }
}

fn last_switch(state: &OwnerDecision, shared: Monitored) -> String {
    let Some(last) = &state.last_switch else { return words::SWITCH_NONE.say(lang()).to_owned() };
    let from = last.from_exit_node_id.map_or_else(|| "–".to_owned(), |id| exit_name(state, shared, id));
    let to = exit_name(state, shared, last.to_exit_node_id);
    let what = words::SWITCH_FROM_TO.with(lang(), &[("from", &from), ("to", &to)]);
    let when = format::date_time(last.at, lang());
    if last.result == "applied" {
        return format!("{what} · {when}");
    }
    let refused = words::SWITCH_REFUSED.with(lang(), &[("error", &last.result)]);
    format!("{what} · {when} · {refused}")
}
