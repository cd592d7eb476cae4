use super::words as say;
use crate::format;
use crate::i18n::{lang, monitor as words, t};
use crate::reactive::{Memo, Show, each, part, phrase};
use crate::ui::chip::exit_class;
use crate::ui::{Icon, dot, icon};
use leptos::prelude::*;
use shared::api::{CandidateDecision, ExitUse, OwnerDecision};
use shared::best_exit::{Leg, Score};
use shared::ids::NodeId;
use shared::testid;
use std::sync::Arc;

/// An owner's state as long as it has one.
pub type OwnerState = Memo<Option<Arc<OwnerDecision>>>;

/// The candidates of an owner in rank order. A row stays the same element while its numbers change and it moves.
#[component]
pub fn Candidates(owner: NodeId, state: OwnerState) -> AnyView {
    let order = Memo::new(move |_| {
        let state = state.get();
        let candidates = state.iter().flat_map(|state| &state.candidates);
        candidates.map(|candidate| candidate.exit_node_id).collect::<Vec<_>>()
    });
    let reports_use = Memo::new(move |_| state.get().is_some_and(|state| !state.in_use.is_empty()));
    view! {
        <div class="table-scroll">
            <table class="candidates">
                <thead>
                    <tr>
                        <th scope="col" class="narrow">{t(words::RANK)}</th>
                        <th scope="col">{t(words::EXIT)}</th>
                        <th scope="col">{t(words::LEG_A)}</th>
                        <th scope="col">{t(words::LEG_B)}</th>
                        <th scope="col" class="score-column">
                            {t(words::SCORE)}
                            <span class="legend">
                                <span class="key latency" aria-hidden="true"></span>
                                {t(words::LEGEND_LATENCY)}
                                <span class="key penalty" aria-hidden="true"></span>
                                {t(words::LEGEND_PENALTY)}
                            </span>
                        </th>
                        {part(move || reports_use.get().then(|| view! { <th scope="col" class="number">{t(words::IN_USE)}</th> }))}
                    </tr>
                </thead>
                <tbody>
                    {each(move || order.get(), |exit| (exit.0, 0), move |exit| view! {
                        <Row owner exit state reports_use />
                    }.into_any())}
                </tbody>
            </table>
        </div>
    }
    .into_any()
}

/// What one row shows.
#[derive(Clone, PartialEq)]
struct Shown {
    rank: usize,
    candidate: CandidateDecision,
    applied: bool,
    pinned: bool,
    in_use: Option<ExitUse>,
    /// Bars are drawn against the worst score, so that they can be compared.
    worst: f64,
}

fn shown(state: &OwnerDecision, exit: NodeId) -> Option<Shown> {
    let place = state.candidates.iter().position(|candidate| candidate.exit_node_id == exit)?;
    let scores = state.candidates.iter().filter_map(|candidate| candidate.score);
    Some(Shown {
        rank: place + 1,
        candidate: state.candidates[place].clone(),
        applied: state.applied_exit_node_id == Some(exit),
        pinned: state.pin.as_ref().is_some_and(|pin| pin.exit_node_id == exit),
        in_use: state.in_use.iter().find(|usage| usage.exit_node_id == exit).cloned(),
        worst: scores.map(|score| score.total_ms).fold(0.0, f64::max),
    })
}

#[component]
fn Row(owner: NodeId, exit: NodeId, state: OwnerState, reports_use: Memo<bool>) -> AnyView {
    let row = Memo::new(move |_| state.get().and_then(|state| shown(&state, exit)));
    let rank = move || row.with(|row| row.as_ref().map(|row| row.rank.to_string()));
    let name = move || row.with(|row| row.as_ref().map(|row| row.candidate.exit_name.clone()));
    let applied = Memo::new(move |_| row.with(|row| row.as_ref().is_some_and(|row| row.applied)));
    let pinned = Memo::new(move |_| row.with(|row| row.as_ref().is_some_and(|row| row.pinned)));
    let failed = move || row.with(|row| row.as_ref().is_none_or(|row| row.candidate.score.is_none()));
    let leg_a = move || row.with(|row| row.as_ref().map(|row| leg(&row.candidate.leg_a)));
    let leg_b = move || row.with(|row| row.as_ref().map(|row| leg(&row.candidate.leg_b)));
    let score = move || row.with(|row| row.as_ref().map(|row| score_bar(row.candidate.score, row.worst)));
    let usage = move || {
        let cell = row.with(|row| usage(row.as_ref().and_then(|row| row.in_use.as_ref())));
        reports_use.get().then(|| view! { <td class="usage number">{cell}</td> })
    };
    view! {
        <tr
            class=exit_class(exit)
            class:applied=move || applied.get()
            class:failed=failed
            data-testid=testid::of(testid::CANDIDATE_ROW, owner, exit)
            data-rank=rank
            data-applied=move || applied.get().to_string()
        >
            <td class="narrow number">{phrase(rank)}</td>
            <th scope="row" class="exit-cell">
                {dot(exit)} {phrase(name)}
                <Show when=move || applied.get()>
                    <span class="chip good" data-testid=testid::with(testid::APPLIED_MARK, owner)>{t(words::APPLIED)}</span>
                </Show>
                <Show when=move || pinned.get()>
                    <span class="chip neutral">{icon(Icon::Pin)} {t(words::PINNED)}</span>
                </Show>
            </th>
            <td><span class="cell-label">{t(words::LEG_A)}</span> {part(leg_a)}</td>
            <td><span class="cell-label">{t(words::LEG_B)}</span> {part(leg_b)}</td>
            <td class="score-column" data-testid=testid::of(testid::CANDIDATE_SCORE, owner, exit)>{part(score)}</td>
            {part(usage)}
        </tr>
    }
    .into_any()
}

fn leg(leg: &Leg) -> AnyView {
    match leg {
        Leg::Measured { latency_ms, loss } => {
            let lossy = *loss > 0.0;
            let loss = words::LOSS_OF.with(lang(), &[("loss", &format::percent(*loss))]);
            view! {
                <span class="number">{format::ms(*latency_ms)}</span>
                <span class="loss" class:lossy=lossy>{loss}</span>
            }
            .into_any()
        }
        Leg::Failed { .. } => {
            view! { <span class="state-word bad">{say::leg(leg, lang())}</span> }.into_any()
        }
        Leg::Unmeasured { reason } => {
            view! { <span class="state-word neutral" title=reason.clone()>{say::leg(leg, lang())}</span> }
                .into_any()
        }
    }
}

/// The score as a bar in two parts, with the number beside it and the parts in words.
fn score_bar(score: Option<Score>, worst: f64) -> AnyView {
    let Some(score) = score else {
        return view! { <span class="muted">{t(words::NO_SCORE)}</span> }.into_any();
    };
    let share = |part: f64| format::fixed(if worst > 0.0 { part / worst * 100.0 } else { 0.0 }, 2) + "%";
    let (latency, penalty) = (format::ms(score.latency_ms), format::ms(score.loss_penalty_ms));
    let parts = words::SCORE_PARTS.with(lang(), &[("latency", &latency), ("penalty", &penalty)]);
    let spoken = parts.clone();
    view! {
        <span class="score" title=parts>
            <span class="number">{format::score(score.total_ms)}</span>
            <span class="bar" role="img" aria-label=spoken>
                <span class="part latency" style:width=share(score.latency_ms)></span>
                <span class="part penalty" style:width=share(score.loss_penalty_ms)></span>
            </span>
        </span>
    }
    .into_any()
}

fn usage(in_use: Option<&ExitUse>) -> AnyView {
    let Some(usage) = in_use else { return "–".into_any() };
    let (connections, failures) = (usage.connections.to_string(), usage.failures.to_string());
    let all = words::IN_USE_SINCE.with(lang(), &[("connections", &connections), ("failures", &failures)]);
    let marked = usage.marked.then(|| view! { <span class="state-word bad">{t(words::MARKED)}</span> });
    view! { <span>{usage.open}</span> <span class="muted small">{all}</span> {marked} }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::best_exit::{LegFailure, Reason};

    #[test]
    fn a_row_is_marked_by_what_is_in_force_and_its_bar_is_drawn_against_the_worst() {
        let good = Leg::Measured { latency_ms: 30.0, loss: 0.0 };
        let bad = Leg::Failed { reason: LegFailure::AllLost };
        let candidate = |id, leg_a: &Leg| CandidateDecision {
            exit_node_id: NodeId(id),
            exit_name: format!("n{id}"),
            leg_a: leg_a.clone(),
            leg_b: good.clone(),
            score: Score::of(leg_a, &good, 100.0),
        };
        let state = OwnerDecision {
            owner_node_id: NodeId(1),
            owner_name: "a".into(),
            online: true,
            applied_exit_node_id: Some(NodeId(3)),
            applied_order: vec![NodeId(3), NodeId(2)],
            candidates: vec![candidate(2, &good), candidate(3, &bad)],
            pending: None,
            reason: Reason::AllExitsFailed,
            next_switch_possible_at: None,
            last_switch: None,
            evaluated_at: None,
            pin: None,
            in_use: Vec::new(),
        };
        let second = shown(&state, NodeId(3)).unwrap();
        assert_eq!((second.rank, second.applied, second.pinned), (2, true, false));
        assert_eq!(second.worst, 60.0);
        assert!(shown(&state, NodeId(9)).is_none());
    }
}
