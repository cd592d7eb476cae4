//! The screen: fields above, what came of them below.

use super::adopt::adopt;
use super::answer::answer;
use super::ask::{Asked, fields};
use super::desk::Desk;
use super::worker::{Outcome, Replayer, Work};
use crate::api::ApiError;
use crate::clock;
use crate::format;
use crate::i18n::{errors, lang, t, what_if as words};
use crate::pages::loaded::loaded;
use crate::reactive::{Effect, Memo, RwSignal, Show, Signal, part, phrase};
use crate::ui::{Button, Empty, FieldErrors, Loading, Problem};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::replay::report::Report;
use shared::replay::suggest::Suggestion;
use shared::testid;
use std::sync::Arc;

/// The screen.
pub fn draw(desk: Desk) -> AnyView {
    desk.nodes.want();
    view! {
        <p class="lead">{t(words::LEAD)}</p>
        {loaded(desk.settings, move || content(desk))}
    }
    .into_any()
}

/// What came of the last question.
#[derive(Clone, PartialEq)]
enum Shown {
    /// The history is not here yet.
    Loading,
    /// There is none.
    Empty,
    Failed(ApiError),
    Report(Arc<Report>),
}

fn content(desk: Desk) -> AnyView {
    // Made once: what is typed stays, whatever is stored meanwhile.
    let Some(stored) = desk.settings.now() else { return ().into_any() };
    let asked = Asked::new(&stored.settings);
    let wrong = FieldErrors::new(move || asked.checked());
    wrong.may_send();
    let shown = RwSignal::new(Shown::Loading);
    let busy = RwSignal::new(true);
    let suggesting = RwSignal::new(false);
    let suggested = RwSignal::new(None::<Arc<Suggestion>>);
    // Changes with every history that is there to be asked about.
    let histories = RwSignal::new(0_u32);
    let owners = RwSignal::new(Vec::<String>::new());
    let line = desk.line();
    let told = move |work: &Work, outcome: Outcome| {
        let outcome = match outcome {
            Ok(None) => return histories.update(|count| *count += 1),
            Ok(Some(report)) => Ok(Arc::<Report>::from(report)),
            Err(error) => Err(error),
        };
        busy.set(false);
        match outcome {
            Ok(report) => {
                if let Work::Ask(question) = work
                    && question.get("owner").is_none()
                {
                    owners.set(report.courses.iter().map(|course| course.owner.clone()).collect());
                }
                if suggesting.get_untracked() {
                    suggesting.set(false);
                    if let Some(suggestion) = &report.suggestion {
                        suggested.set(Some(Arc::new(suggestion.clone())));
                        asked.fill(&suggestion.settings);
                    }
                }
                shown.set(Shown::Report(report));
            }
            Err(error) => {
                suggesting.set(false);
                if error.status == 401 {
                    let line = line.clone();
                    spawn_local(async move { line.look().await });
                }
                let empty = error.fields().iter().any(|field| field.code == "history_empty");
                shown.set(if empty { Shown::Empty } else { Shown::Failed(error) });
            }
        }
    };
    let replayer = Replayer::new(told);
    let load = move || {
        let to = clock::now() + 1;
        let from = to - asked.span_ms();
        shown.set(Shown::Loading);
        busy.set(true);
        let address = format!("/api/v1/tunnels/{}/history?from={from}&to={to}", desk.id);
        replayer.instead(Work::Load(address));
    };
    Effect::run(load);
    let question = Memo::new(move |_| {
        let checked = asked.checked();
        checked.errors.is_empty().then(|| asked.question(&checked.json, false))
    });
    Effect::run(move || {
        let ready = histories.get() > 0;
        let question = question.get();
        if let Some(question) = question.filter(|_| ready) {
            busy.set(true);
            suggesting.set(false);
            replayer.instead(Work::Ask(question));
        }
    });
    let suggest = move |()| {
        let checked = asked.checked();
        if checked.errors.is_empty() {
            busy.set(true);
            suggested.set(None);
            suggesting.set(true);
            replayer.instead(Work::Ask(asked.question(&checked.json, true)));
        }
    };
    let reset = move |()| {
        if let Some(stored) = desk.settings.now() {
            suggested.set(None);
            asked.fill(&stored.settings);
        }
    };
    let penalty = move || {
        let checked = asked.checked();
        checked.json.get("lossPenaltyMsPerPercent").and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN)
    };
    let result = move || match shown.get() {
        Shown::Loading => view! { <Loading /> }.into_any(),
        Shown::Empty => view! { <Empty text=words::EMPTY /> }.into_any(),
        Shown::Failed(error) => {
            let text = Signal::derive(move || errors::api(&error, lang()));
            view! { <Problem text on_retry=Callback::new(move |()| load()) /> }.into_any()
        }
        Shown::Report(report) => answer(desk, &report, untrack(penalty)),
    };
    let there = Memo::new(move |_| matches!(shown.get(), Shown::Report(_)));
    view! {
        <form class="card what-if" on:submit=|event: leptos::ev::SubmitEvent| event.prevent_default() novalidate>
            <h2>{t(words::CHANGED)}</h2>
            {fields(asked, wrong, owners.into())}
            <footer class="actions">
                <Button text=words::AS_IN_FORCE on_press=Callback::new(reset) testid=testid::WHAT_IF_RESET />
                <Button text=words::SUGGEST on_press=Callback::new(suggest) testid=testid::WHAT_IF_SUGGEST
                    disabled=Signal::derive(move || suggesting.get() || !there.get()) />
                <Show when=move || desk.may_write>
                    {adopt(desk, asked, Callback::new(move |()| untrack(load)))}
                </Show>
            </footer>
            <p class="hint" role="status">{phrase(move || said(suggesting.get(), suggested.get()))}</p>
        </form>
        <section class="card what-if-result" aria-busy=move || busy.get().to_string() data-testid=testid::WHAT_IF_RESULT>
            <h2>{t(words::RESULT)} " " <span class="muted" role="status">{phrase(move || {
                let going_on = busy.get() && there.get() && !suggesting.get();
                going_on.then(|| t(words::REPLAYING)())
            })}</span></h2>
            {part(result)}
        </section>
    }
    .into_any()
}

/// What is to be said about suggestions.
fn said(suggesting: bool, suggested: Option<Arc<Suggestion>>) -> String {
    if suggesting {
        return words::SUGGESTING.say(lang()).to_owned();
    }
    let Some(suggestion) = suggested else { return String::new() };
    match suggestion.tried.first() {
        Some(chosen) if !suggestion.changes.is_empty() => words::SUGGESTED.with(
            lang(),
            &[
                ("excess", &format::ms(chosen.outcome.mean_excess_ms)),
                ("switches", &format::fixed(chosen.outcome.switches_per_day, 1)),
                ("nothing", &format::fixed(chosen.false_switches_per_day, 1)),
            ],
        ),
        _ => words::SUGGESTED_NONE.say(lang()).to_owned(),
    }
}
