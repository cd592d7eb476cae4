//! What came of a replay, as a table, strips and words.

use super::desk::Desk;
use super::strips::strips;
use crate::format;
use crate::i18n::{Lang, lang, t, what_if as words};
use leptos::prelude::*;
use shared::api::WallMs;
use shared::replay::report::{Course, IN_FORCE, Outcome, Report};
use shared::testid;

/// What a way of choosing is called; the settings in force come first, the changed ones second.
fn name_of(place: usize, outcome: &Outcome, lang: Lang) -> String {
    match (place, outcome.policy.as_str()) {
        (0, IN_FORCE) => words::IN_FORCE.say(lang).to_owned(),
        (1, _) => words::WITH_CHANGES.say(lang).to_owned(),
        (_, policy) => policy.to_owned(),
    }
}

/// All of it.
pub fn answer(desk: Desk, report: &Report, penalty: f64) -> AnyView {
    let lang = lang();
    let names: Vec<String> =
        report.policies.iter().enumerate().map(|(i, outcome)| name_of(i, outcome, lang)).collect();
    let rows = report
        .policies
        .iter()
        .zip(&names)
        .enumerate()
        .map(|(i, (outcome, name))| row(i, outcome, name, lang));
    let judged = words::JUDGED.with(lang, &[("penalty", &format::ms(penalty))]);
    let several = report.courses.len() > 1;
    let courses = report.courses.iter().map(|course| strips(desk, course, &names, several));
    view! {
        <p class="difference" data-testid=testid::WHAT_IF_WORDS>{difference(report, lang)}</p>
        <div class="table-scroll" tabindex="0" role="region" aria-label=t(words::RESULT)>
            <table data-testid=testid::WHAT_IF_TABLE>
                <thead>
                    <tr>
                        <th scope="col">{t(words::WAY)}</th>
                        <th scope="col">{t(words::BEST_SHARE)}</th>
                        <th scope="col">{t(words::SWITCHES)}</th>
                        <th scope="col">{t(words::LATENCY)}</th>
                        <th scope="col" title=t(words::EXCESS_HINT)>{t(words::EXCESS)}</th>
                        <th scope="col">{t(words::UNUSABLE)}</th>
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </div>
        <p class="hint">{judged}</p>
        {courses.collect_view()}
    }
    .into_any()
}

fn row(place: usize, outcome: &Outcome, name: &str, lang: Lang) -> AnyView {
    let latency = outcome.mean_latency_ms.map_or_else(|| "–".to_owned(), format::ms);
    let cells = [
        (words::BEST_SHARE, format::percent(outcome.best_share)),
        (words::SWITCHES, outcome.switches.to_string()),
        (words::LATENCY, latency),
        (words::EXCESS, format::ms(outcome.mean_excess_ms)),
        (words::UNUSABLE, format::duration(outcome.unusable_ms as i64, lang)),
    ];
    // A phone has no room for the head of the table and shows the labels instead.
    let cells = cells
        .map(|(label, text)| view! { <td class="number" data-label=label.say(lang)>{text}</td> }.into_any());
    view! {
        <tr data-testid=testid::with(testid::WHAT_IF_ROW, place)>
            <th scope="row">{name.to_owned()}</th>
            {cells.into_iter().collect_view()}
        </tr>
    }
    .into_any()
}

/// What would have been different, in words.
fn difference(report: &Report, lang: Lang) -> String {
    let [before, after, ..] = &report.policies[..] else { return String::new() };
    let first = report.courses.iter().filter_map(|course| Some((first_difference(course)?, course)));
    let Some(((at, was, is), course)) = first.min_by_key(|((at, ..), _)| *at) else {
        return words::NO_DIFFERENCE.say(lang).to_owned();
    };
    let name = |exit: usize| course.exits.get(exit).cloned().unwrap_or_default();
    let sums = words::DIFFERENCE.with(
        lang,
        &[
            ("switches", &after.switches.to_string()),
            ("before", &before.switches.to_string()),
            ("share", &format::percent(after.best_share)),
            ("share_before", &format::percent(before.best_share)),
        ],
    );
    let first = words::FIRST
        .with(lang, &[("time", &format::date_time(at, lang)), ("exit", &name(is)), ("before", &name(was))]);
    let gain = before.mean_excess_ms - after.mean_excess_ms;
    let mean = match gain {
        better if better >= 0.05 => words::BETTER.with(lang, &[("ms", &format::ms(better))]),
        worse if worse <= -0.05 => words::WORSE.with(lang, &[("ms", &format::ms(-worse))]),
        _ => String::new(),
    };
    let between = if lang == Lang::Zh { "" } else { " " };
    [sums, first, mean].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
}

/// The first moment in which the first two ways use different exits, and which.
fn first_difference(course: &Course) -> Option<(WallMs, usize, usize)> {
    let [before, after, ..] = &course.choices[..] else { return None };
    let (mut i, mut j) = (0, 0);
    let (mut was, mut is) = (before.first()?.1, after.first()?.1);
    let mut at = course.from;
    loop {
        while let Some((_, exit)) = before.get(i).filter(|(from, _)| *from <= at) {
            was = *exit;
            i += 1;
        }
        while let Some((_, exit)) = after.get(j).filter(|(from, _)| *from <= at) {
            is = *exit;
            j += 1;
        }
        if was != is {
            return Some((at, was, is));
        }
        at = [before.get(i), after.get(j)].into_iter().flatten().map(|(from, _)| *from).min()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(before: &[(WallMs, usize)], after: &[(WallMs, usize)]) -> Course {
        Course {
            owner: String::new(),
            exits: Vec::new(),
            from: 0,
            to: 100,
            unknown: Vec::new(),
            choices: vec![before.to_vec(), after.to_vec()],
        }
    }

    #[test]
    fn the_first_difference_is_found() {
        let one = [(0, 0), (10, 1), (20, 0)];
        assert_eq!(first_difference(&course(&one, &one)), None);
        assert_eq!(first_difference(&course(&one, &[(0, 0), (15, 1)])), Some((10, 1, 0)));
        assert_eq!(first_difference(&course(&one, &[(0, 0), (10, 1)])), Some((20, 0, 1)));
        assert_eq!(first_difference(&course(&[(0, 1)], &[(0, 0)])), Some((0, 1, 0)));
    }
}
