use super::words as say;
use crate::format;
use crate::i18n::{lang, monitor as words, t};
use crate::ui::chip::exit_class;
use crate::ui::{Icon, dot, icon};
use leptos::prelude::*;
use shared::api::{CandidateDecision, ExitUse, OwnerDecision};
use shared::best_exit::{Leg, Score};
use shared::testid;

/// The candidates of an owner in rank order.
pub fn candidates(state: &OwnerDecision) -> AnyView {
    // Bars are drawn against the worst score, so that they can be compared.
    let worst = state.candidates.iter().filter_map(|c| c.score).map(|s| s.total_ms).fold(0.0, f64::max);
    let reports_use = !state.in_use.is_empty();
    let rows = state
        .candidates
        .iter()
        .enumerate()
        .map(|(index, candidate)| row(state, candidate, index + 1, worst, reports_use))
        .collect_view();
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
                        {reports_use.then(|| view! { <th scope="col" class="number">{t(words::IN_USE)}</th> })}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn row(
    state: &OwnerDecision,
    candidate: &CandidateDecision,
    rank: usize,
    worst: f64,
    reports_use: bool,
) -> AnyView {
    let owner = state.owner_node_id;
    let id = candidate.exit_node_id;
    let applied = state.applied_exit_node_id == Some(id);
    let pinned = state.pin.as_ref().is_some_and(|pin| pin.exit_node_id == id);
    let in_use = state.in_use.iter().find(|usage| usage.exit_node_id == id);
    let mark = applied.then(|| {
        view! { <span class="chip good" data-testid=testid::with(testid::APPLIED_MARK, owner)>{t(words::APPLIED)}</span> }
    });
    let pin =
        pinned.then(|| view! { <span class="chip neutral">{icon(Icon::Pin)} {t(words::PINNED)}</span> });
    view! {
        <tr
            class=exit_class(id)
            class:applied=applied
            class:failed=candidate.score.is_none()
            data-testid=testid::of(testid::CANDIDATE_ROW, owner, id)
            data-rank=rank.to_string()
            data-applied=applied.to_string()
        >
            <td class="narrow number">{rank}</td>
            <th scope="row" class="exit-cell">{dot(id)} {candidate.exit_name.clone()} {mark} {pin}</th>
            <td>{leg(&candidate.leg_a)}</td>
            <td>{leg(&candidate.leg_b)}</td>
            <td class="score-column" data-testid=testid::of(testid::CANDIDATE_SCORE, owner, id)>
                {score_bar(candidate.score, worst)}
            </td>
            {reports_use.then(|| view! { <td class="usage number">{usage(in_use)}</td> })}
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
    let share = |part: f64| format!("{:.2}%", if worst > 0.0 { part / worst * 100.0 } else { 0.0 });
    let (latency, penalty) = (format::ms(score.latency_ms), format::ms(score.loss_penalty_ms));
    let parts = words::SCORE_PARTS.with(lang(), &[("latency", &latency), ("penalty", &penalty)]);
    let said = parts.clone();
    view! {
        <span class="score" title=said>
            <span class="number">{format::score(score.total_ms)}</span>
            <span class="bar" role="img" aria-label=parts>
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
    view! { <span title=all.clone()>{usage.open}</span> <span class="muted small">{all}</span> {marked} }
        .into_any()
}
