//! What the charts show, in words: beside the pointer, for screen readers, and as a table.

use super::history::{Board, Shown};
use super::path::{Event, Frame};
use super::series::{Line, Point};
use crate::format;
use crate::i18n::{Lang, chart as words, lang, monitor, reason};
use crate::pages::monitor::words as say;
use crate::ui::chip::exit_class;
use crate::ui::markup::Markup;
use shared::api::DecisionLogEntry;
use shared::best_exit::Reason;
use shared::ids::NodeId;
use shared::testid;
use std::sync::Arc;

/// An event is told when the pointer is so near to it, in pixels.
const NEAR: f64 = 7.0;
/// More events of one moment than these are for the log and the table.
const TOLD: usize = 6;

/// Latency, loss and score, or why there are none.
fn reading(point: Point, lang: Lang) -> [String; 3] {
    let none = |text: &str| [text.to_owned(), String::new(), String::new()];
    match point {
        Point::Measured(score) => {
            [format::ms(score.latency_ms), format::percent(score.loss), format::score(score.total_ms)]
        }
        Point::Failed => none(words::FAILED.say(lang)),
        Point::Unknown => none(monitor::LEG_UNMEASURED.say(lang)),
    }
}

/// What kind of event an entry of the log is.
pub fn event(entry: &DecisionLogEntry) -> Event {
    match entry.reason {
        Reason::ApplyFailed { .. } => Event::Refused,
        Reason::Pinned { .. } => Event::Pinned,
        _ => Event::Switched,
    }
}

/// Why, in the words of the log.
fn why(entry: &DecisionLogEntry, board: Board, lang: Lang) -> String {
    let name = |id| say::exit_name(&entry.candidates, id).unwrap_or_else(|| board.name(id));
    reason::sentence(&entry.reason, lang, &name)
}

/// The events of a step, and those that are drawn next to it.
fn events_at(shown: &Shown, place: usize, frame: Frame) -> Vec<&Arc<DecisionLogEntry>> {
    let middle = shown.series.times[place] + shown.step_ms / 2;
    let near_ms = (frame.at(NEAR) - frame.at(0.0)).max(shown.step_ms / 2);
    shown.events.iter().filter(move |entry| (entry.at - middle).abs() <= near_ms).take(TOLD).collect()
}

/// The lines that are not hidden, with their places among all.
fn lines(shown: &Shown, board: Board) -> Vec<(usize, &Line)> {
    shown.series.lines.iter().enumerate().filter(|(_, line)| board.shows(line.exit)).collect()
}

/// One step as a sentence, for screen readers.
pub fn sentence(shown: &Shown, place: usize, board: Board, frame: Frame) -> String {
    let lang = lang();
    let mut text = format::date_time(shown.series.times[place], lang);
    for (_, line) in lines(shown, board) {
        let name = board.name(line.exit);
        let [first, loss, score] = reading(line.points[place], lang);
        let values = if score.is_empty() {
            first
        } else {
            words::READING.with(lang, &[("latency", &first), ("loss", &loss), ("score", &score)])
        };
        text = words::OF_EXIT.with(lang, &[("before", &text), ("exit", &name), ("values", &values)]);
    }
    for entry in events_at(shown, place, frame) {
        text.push(' ');
        text.push_str(&why(entry, board, lang));
    }
    text
}

/// What stands in the box beside the pointer.
pub fn tip(shown: &Shown, place: usize, board: Board, frame: Frame) -> String {
    let lang = lang();
    let time = format::date_time(shown.series.times[place], lang);
    let mut out =
        Markup::default().element("<strong class=\"number\">", &time, "</strong><table><thead><tr><td></td>");
    for head in [words::LATENCY, words::LOSS, monitor::SCORE] {
        out = out.element("<th scope=\"col\">", head.say(lang), "</th>");
    }
    out = out.raw("</tr></thead><tbody>");
    for (index, line) in lines(shown, board) {
        let name = testid::of(testid::CHART_TIP_ROW, shown.series.owner, line.exit);
        out =
            out.element("<tr data-testid=\"", &name, "\"><th scope=\"row\">").raw(&sample(line.exit, index));
        out = out.element(" ", &board.name(line.exit), "</th>");
        let values = reading(line.points[place], lang);
        let start = if values[2].is_empty() { "<td colspan=\"3\">" } else { "<td class=\"number\">" };
        for value in values.iter().filter(|value| !value.is_empty()) {
            out = out.element(start, value, "</td>");
        }
        out = out.raw("</tr>");
    }
    out = out.raw("</tbody></table>");
    for entry in events_at(shown, place, frame) {
        let colour = entry.to_exit_node_id.map(exit_class).unwrap_or_default();
        out = out.element("<p class=\"", &colour, "\">").element("", &why(entry, board, lang), "</p>");
    }
    out.done()
}

/// A piece of an exit's line, as it is in the charts.
pub fn sample(exit: NodeId, index: usize) -> String {
    let (colour, class) = (exit_class(exit), line_class(index));
    format!(
        "<svg class=\"sample {colour}\" viewBox=\"0 0 22 8\" aria-hidden=\"true\"><path class=\"{class}\" d=\"M1 4H21\"/></svg>"
    )
}

/// Lines differ by more than their colour.
pub fn line_class(index: usize) -> String {
    format!("line dash-{}", index % 5)
}

/// Everything that is shown, newest first, as what stands in a table.
pub fn table(shown: &Shown, board: Board) -> String {
    let lang = lang();
    let lines = lines(shown, board);
    let head = |out: Markup, text: &str| out.element("<th scope=\"col\">", text, "</th>");
    let mut out = Markup::default();
    out = out.element(
        "<caption class=\"muted small\">",
        words::TABLE_CAPTION.say(lang),
        "</caption><thead><tr>",
    );
    out = head(out, words::TIME.say(lang));
    for (_, line) in &lines {
        out = head(out, &board.name(line.exit));
    }
    out = head(out, words::EVENT.say(lang)).raw("</tr></thead><tbody>");
    for place in (0..shown.series.times.len()).rev() {
        let at = shown.series.times[place];
        out = out.element("<tr><th scope=\"row\" class=\"number\">", &format::date_time(at, lang), "</th>");
        for (_, line) in &lines {
            let [first, loss, score] = reading(line.points[place], lang);
            out = out.element("<td class=\"number\">", &first, "");
            if !score.is_empty() {
                out = out.element(" · ", &loss, "").element(" · ", &score, "");
            }
            out = out.raw("</td>");
        }
        out = out.raw("<td>");
        for entry in shown.events.iter().filter(|entry| (at..at + shown.step_ms).contains(&entry.at)) {
            out = out.element("", &why(entry, board, lang), " ");
        }
        out = out.raw("</td></tr>");
    }
    out.raw("</tbody>").done()
}
