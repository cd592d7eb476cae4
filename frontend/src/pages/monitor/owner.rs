use super::candidates::candidates;
use super::page::Monitored;
use super::pin::PinLine;
use super::words as say;
use crate::format;
use crate::i18n::{lang, monitor as words, reason, t};
use crate::ui::chip::{OnlineMark, exit_class};
use crate::ui::dot;
use leptos::prelude::*;
use shared::api::{OwnerDecision, WallMs};
use shared::ids::NodeId;
use shared::testid;
use std::sync::Arc;

/// One owner: the exit in force, the reason, what was measured, and what comes next.
#[component]
pub fn OwnerCard(shared: Monitored, owner: NodeId) -> AnyView {
    let state = Memo::new(move |_| {
        let decisions = shared.decisions.get()?;
        decisions.owners.iter().find(|state| state.owner_node_id == owner).cloned().map(Arc::new)
    });
    // The card goes together with its owner; until then there is one.
    let with = move |view: fn(&OwnerDecision, Monitored) -> AnyView| {
        move || state.get().map(|state| view(&state, shared))
    };
    view! {
        <article class="card owner" data-testid=testid::with(testid::OWNER_CARD, owner)>
            {with(head)}
            {move || state.get().map(|state| view! { <ReasonText shared state /> })}
            {with(|state, shared| view! { <PinLine shared owner=state.owner_node_id pin=state.pin.clone() /> }.into_any())}
            {with(|state, _| candidates(state))}
            {with(facts)}
        </article>
    }
    .into_any()
}

/// What an exit is called on this card.
pub fn exit_name(state: &OwnerDecision, shared: Monitored, id: NodeId) -> String {
    say::exit_name(&state.candidates, id).unwrap_or_else(|| shared.names.of(id))
}

fn head(state: &OwnerDecision, shared: Monitored) -> AnyView {
    let owner = state.owner_node_id;
    let applied = state.applied_exit_node_id.map(|id| {
        let name = exit_name(state, shared, id);
        view! {
            <span class=format!("applied-exit {}", exit_class(id))>
                {dot(id)}
                <span data-testid=testid::with(testid::OWNER_APPLIED, owner) data-exit=id.to_string()>{name}</span>
            </span>
        }
    });
    view! {
        <header class="owner-head">
            <div>
                <span class="muted">{t(words::OWNER)}</span>
                <h2>{state.owner_name.clone()}</h2>
                <OnlineMark online=state.online />
            </div>
            <div class="owner-applied">
                <span class="muted">{t(words::APPLIED)}</span>
                {applied}
            </div>
        </header>
    }
    .into_any()
}

/// The reason in words, its waits counting down.
#[component]
fn ReasonText(shared: Monitored, state: Arc<OwnerDecision>) -> AnyView {
    let owner = state.owner_node_id;
    let code = state.reason.code();
    let text = move || {
        let elapsed = state.evaluated_at.map_or(0, |at| shared.now.get() - at).max(0);
        reason::sentence_at(&state.reason, lang(), &|id| exit_name(&state, shared, id), elapsed)
    };
    view! {
        <p class=format!("reason {}", reason_class(code)) data-testid=testid::with(testid::OWNER_REASON, owner) data-code=code>
            {text}
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

fn facts(state: &OwnerDecision, shared: Monitored) -> AnyView {
    let owner = state.owner_node_id;
    let pending = match &state.pending {
        Some(pending) => {
            let name = exit_name(state, shared, pending.exit_node_id);
            let (rounds, needed) = (pending.rounds.to_string(), pending.needed.to_string());
            words::PENDING_OF.with(lang(), &[("name", &name), ("rounds", &rounds), ("needed", &needed)])
        }
        None => words::PENDING_NONE.say(lang()).to_owned(),
    };
    let order: Vec<String> = state.applied_order.iter().map(|id| exit_name(state, shared, *id)).collect();
    let evaluated = state.evaluated_at.map_or_else(|| "–".to_owned(), |at| format::time(at, lang()));
    view! {
        <dl class="facts">
            <div>
                <dt>{t(words::PENDING)}</dt>
                <dd data-testid=testid::with(testid::OWNER_PENDING, owner)>{pending}</dd>
            </div>
            <div>
                <dt>{t(words::COOLDOWN)}</dt>
                <dd data-testid=testid::with(testid::OWNER_COOLDOWN, owner)>
                    {cooldown(shared, state.next_switch_possible_at)}
                </dd>
            </div>
            <div>
                <dt>{t(words::LAST_SWITCH)}</dt>
                <dd data-testid=testid::with(testid::OWNER_LAST_SWITCH, owner)>{last_switch(state, shared)}</dd>
            </div>
            <div>
                <dt>{t(words::EVALUATED)}</dt>
                <dd>{evaluated}</dd>
            </div>
            <div class="wide">
                <dt>{t(words::ORDER)}</dt>
                <dd>{order.join(" → ")}</dd>
            </div>
        </dl>
    }
    .into_any()
}

fn cooldown(shared: Monitored, until: Option<WallMs>) -> impl Fn() -> String + Send + 'static {
    move || match until.map(|until| until - shared.now.get()).filter(|left| *left > 0) {
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
