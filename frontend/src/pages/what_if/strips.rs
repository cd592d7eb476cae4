//! Which exit each way of choosing would have used, as strips in the exits' colours.

use super::desk::Desk;
use crate::format;
use crate::i18n::{lang, t, what_if as words};
use crate::ui::chip::exit_class;
use crate::ui::dot;
use leptos::prelude::*;
use shared::api::WallMs;
use shared::replay::report::Course;

/// Parts of a strip; more than a screen can show of it.
const PARTS: f64 = 1000.0;

/// The stretches of a strip in its parts: begin, length, exit. What is shorter than a part gives way to what follows it.
fn stretches(course: &Course, choices: &[(WallMs, usize)]) -> Vec<(f64, f64, usize)> {
    let length = (course.to - course.from).max(1) as f64;
    let place = |at: WallMs| ((at - course.from) as f64 * PARTS / length).floor();
    let mut begins: Vec<(f64, usize)> = Vec::new();
    for (at, exit) in choices {
        let begin = place(*at);
        match begins.last_mut() {
            Some(last) if last.0 == begin => last.1 = *exit,
            _ => begins.push((begin, *exit)),
        }
    }
    begins.dedup_by(|next, before| next.1 == before.1);
    let ends = begins.iter().skip(1).map(|(begin, _)| *begin).chain([PARTS]);
    begins.iter().zip(ends).map(|((begin, exit), end)| (*begin, end - begin, *exit)).collect()
}

/// The strips of one owner, one for each way.
pub fn strips(desk: Desk, course: &Course, names: &[String], several: bool) -> AnyView {
    let rows = names.iter().zip(&course.choices).map(|(name, choices)| {
        let label = words::TIMELINE_OF.with(lang(), &[("way", name)]);
        let parts = stretches(course, choices).into_iter().map(|(x, width, exit)| {
            let class = course.exits.get(exit).map(|name| exit_class(desk.exit(name)));
            view! { <rect class=class x=x.to_string() y="0" width=width.to_string() height="10"></rect> }
        });
        let length = (course.to - course.from).max(1) as f64;
        let gaps = course.unknown.iter().map(|(from, to)| {
            let place = |at: WallMs| (at - course.from) as f64 * PARTS / length;
            let (x, width) = (place(*from), place(*to) - place(*from));
            view! { <rect class="gap" x=x.to_string() y="0" width=width.to_string() height="10"></rect> }
        });
        view! {
            <div class="what-strip">
                <span class="strip-name">{name.clone()}</span>
                <svg viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label=label>
                    {parts.collect_view()}
                    {gaps.collect_view()}
                </svg>
            </div>
        }
    });
    let keys = course.exits.iter().map(|name| view! { <li>{dot(desk.exit(name))} {name.clone()}</li> });
    view! {
        <section class="strips">
            <h3>{t(words::TIMELINE)} {several.then(|| format!(": {}", course.owner))}</h3>
            {rows.collect_view()}
            <p class="strip-times muted">
                <span>{format::date_time(course.from, lang())}</span>
                <span>{format::date_time(course.to, lang())}</span>
            </p>
            <ul class="strip-keys">{keys.collect_view()}</ul>
        </section>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_is_whole_and_has_no_more_parts_than_can_be_seen() {
        let choices: Vec<(WallMs, usize)> = (0..100_000).map(|i| (i * 10, (i % 3) as usize)).collect();
        let course = Course {
            owner: String::new(),
            exits: vec!["a".into(), "b".into(), "c".into()],
            from: 0,
            to: 1_000_000,
            unknown: Vec::new(),
            choices: Vec::new(),
        };
        let all = stretches(&course, &choices);
        assert!(all.len() <= 1000);
        assert!(all.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0 && pair[0].2 != pair[1].2));
        let few = stretches(&course, &[(0, 0), (250_000, 2)]);
        assert_eq!(few, [(0.0, 250.0, 0), (250.0, 750.0, 2)]);
    }
}
