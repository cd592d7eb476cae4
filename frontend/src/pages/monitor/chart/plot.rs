//! The drawing of what one owner saw: three charts on one axis of time.
//!
//! It is drawn as text into one element and not as views: there are dozens of shapes, and all of them are alike. Only
//! their `d` changes afterwards.

use super::history::{Board, Shown};
use super::path::{self, Drawn, Event, Frame, HEIGHT};
use super::series::{Measure, Series};
use super::steer::Finger;
use super::ticks::{self, Scale, Tick};
use super::told;
use crate::format;
use crate::i18n::{chart as words, lang};
use crate::reactive::{Effect, RwSignal};
use crate::ui::chip::exit_class;
use crate::ui::markup::Markup;
use leptos::html;
use leptos::prelude::*;
use shared::api::DecisionLogEntry;
use shared::ids::NodeId;
use shared::testid;
use std::sync::Arc;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::closure::Closure;

/// From back to front: lines of the grid, texts, the stretch that is being chosen, exits, events, what is pointed at.
const GROUPS: &str = "<svg aria-hidden=\"true\"><path class=\"grid\"/><g></g><path class=\"chosen\"/><g></g><g></g><g></g></svg><div class=\"chart-tip\" hidden></div>";
const GRID: u32 = 0;
const TEXTS: u32 = 1;
const CHOSEN: u32 = 2;
const EXITS: u32 = 3;
const EVENTS: u32 = 4;
const POINTED: u32 = 5;
/// What is heard of the element.
const HEARD: [&str; 9] = [
    "pointerdown",
    "pointermove",
    "pointerup",
    "pointercancel",
    "pointerleave",
    "dblclick",
    "keydown",
    "focus",
    "blur",
];

/// One owner's charts.
#[derive(Clone, Copy)]
pub struct Plot {
    /// What all charts share.
    pub board: Board,
    /// The owner.
    pub owner: NodeId,
    /// The places between which a stretch is being chosen.
    pub drag: RwSignal<Option<(f64, f64)>>,
    /// The fingers on it, in the order in which they were put down.
    pub fingers: RwSignal<Vec<Finger>>,
    element: NodeRef<html::Div>,
}

fn label(out: Markup, class: &str, x: f64, y: f64, text: &str) -> Markup {
    let (x, y) = (format::fixed(x, 1), format::fixed(y, 1));
    out.raw("<text class=\"")
        .raw(class)
        .raw("\" x=\"")
        .raw(&x)
        .raw("\" y=\"")
        .raw(&y)
        .element("\">", text, "</text>")
}

/// A path without a shape yet.
fn empty(out: Markup, class: &str, rest: &str) -> Markup {
    out.raw("<path class=\"").raw(class).raw("\"").raw(rest).raw("/>")
}

fn drawn(shown: &Shown, frame: Frame) -> Drawn<'_> {
    Drawn { series: &shown.series, step_ms: shown.step_ms, gap_ms: shown.gap_ms, frame }
}

impl Plot {
    /// Where everything is.
    pub fn frame(self) -> Frame {
        Frame { width: self.board.width.get(), axis: self.board.axis.get() }
    }

    /// What the owner saw.
    pub fn shown(self) -> Option<Arc<Shown>> {
        self.board.shown(self.owner)
    }

    /// The step that is pointed at.
    pub fn here(self, shown: &Shown) -> Option<usize> {
        shown.series.nearest(self.board.cursor.get()? - shown.step_ms / 2)
    }

    fn scales(self, series: &Series) -> [Scale; 3] {
        let hidden = self.board.hidden.get();
        Measure::ALL.map(|measure| series.scale(measure, &hidden))
    }

    /// The part of the drawing at a place of [`GROUPS`].
    fn group(self, place: u32) -> Option<web_sys::Element> {
        self.element.get()?.children().item(0)?.children().item(place)
    }

    /// Gives paths their shapes, in order.
    fn shape(self, place: u32, shapes: Vec<String>) {
        let Some(group) = self.group(place) else { return };
        for (index, d) in shapes.iter().enumerate() {
            if let Some(path) = group.children().item(index as u32) {
                let _ = path.set_attribute("d", d);
            }
        }
    }

    /// Gives a single path its shape.
    fn shape_one(self, place: u32, d: &str) {
        if let Some(path) = self.group(place) {
            let _ = path.set_attribute("d", d);
        }
    }

    fn fill(self, place: u32, markup: Markup) {
        if let Some(group) = self.group(place) {
            group.set_inner_html(&markup.done());
        }
    }

    fn say(self, name: &str, value: &str) {
        if let Some(element) = self.element.get() {
            let _ = element.set_attribute(name, value);
        }
    }

    /// Lines, failures, a piece of the strip: seven paths per exit.
    fn exits(self, exits: &[NodeId]) {
        let mut out = Markup::default();
        for (index, exit) in exits.iter().enumerate() {
            let (colour, line) = (exit_class(*exit), told::line_class(index));
            for chart in 0..3 {
                let name = testid::of(testid::CHART_LINE, self.owner, format!("{exit}:{chart}"));
                out = empty(out, &format!("{line} {colour}"), &format!(" data-testid=\"{name}\""));
            }
            for class in ["failures", "failures", "strip"] {
                out = empty(out, &format!("{class} {colour}"), "");
            }
        }
        self.fill(EXITS, out);
        let dots = |out, exit: &NodeId| empty(out, &format!("dots {}", exit_class(*exit)), "");
        self.fill(POINTED, exits.iter().fold(empty(Markup::default(), "cursor", ""), dots));
    }

    /// A line through all charts and a head above them for every event.
    fn events(self, events: &[Arc<DecisionLogEntry>]) {
        let mut out = Markup::default();
        for entry in events {
            let kind = match told::event(entry) {
                Event::Switched => "switched",
                Event::Refused => "refused",
                Event::Pinned => "pinned",
            };
            let class = format!("{kind} {}", entry.to_exit_node_id.map(exit_class).unwrap_or_default());
            let name = testid::of(testid::CHART_EVENT, self.owner, entry.id);
            let rest = format!(" data-testid=\"{name}\" data-code=\"{}\"", entry.reason.code());
            out = empty(empty(out, &format!("event {class}"), &rest), &format!("head {class}"), "");
        }
        self.fill(EVENTS, out);
    }

    /// Everything that the pointer does not change.
    fn draw(self) {
        let (Some(shown), frame) = (self.shown(), self.frame()) else { return };
        let scales = self.scales(&shown.series);
        let ticks = ticks::times(frame.axis, Frame::inner(frame.width), &format::zone_ms, lang());
        self.shape_one(GRID, &path::grid(frame, &scales, &ticks));
        self.fill(TEXTS, texts(frame, &scales, &ticks));
        let drawn = drawn(&shown, frame);
        let switches = shown.events.iter().filter(|entry| told::event(entry) == Event::Switched);
        let switches: Vec<_> =
            switches.map(|entry| (entry.at, entry.from_exit_node_id, entry.to_exit_node_id)).collect();
        let known = shown.series.times.first().copied().unwrap_or(frame.axis.from);
        let mut shapes = Vec::new();
        for (index, line) in shown.series.lines.iter().enumerate() {
            let (exit, seen) = (line.exit, self.board.shows(line.exit));
            for (measure, scale) in Measure::ALL.into_iter().zip(scales) {
                shapes.push(if seen { drawn.line(exit, measure, scale) } else { String::new() });
            }
            for measure in [Measure::Latency, Measure::Score] {
                shapes.push(if seen { drawn.failures(exit, measure, index) } else { String::new() });
            }
            shapes.push(path::in_force(frame, exit, &switches, known, shown.applied));
        }
        self.shape(EXITS, shapes);
        let marks = |entry: &Arc<DecisionLogEntry>| {
            [path::upright(frame, entry.at), path::head(frame, entry.at, told::event(entry))]
        };
        self.shape(EVENTS, shown.events.iter().flat_map(marks).collect());
        if let Some(svg) = self.group(GRID).and_then(|grid| grid.parent_element()) {
            let size = [frame.width, HEIGHT].map(|pixels| format::fixed(pixels, 0)).join(" ");
            let _ = svg.set_attribute("viewBox", &format!("0 0 {size}"));
        }
        self.say("aria-label", &words::NAME.with(lang(), &[("owner", &self.board.name(self.owner))]));
        self.say("aria-valuemax", &shown.series.times.len().saturating_sub(1).to_string());
    }

    /// What the pointer changes: a line, dots, the box, and what a screen reader says (without a pointer: the newest).
    fn point(self) {
        let (Some(shown), frame) = (self.shown(), self.frame()) else { return };
        let here = self.here(&shown);
        let last = shown.series.times.len().checked_sub(1);
        let spoken = match here.or(last) {
            Some(place) => told::sentence(&shown, place, self.board, frame),
            None => words::EMPTY.say(lang()).to_owned(),
        };
        self.say("aria-valuetext", &spoken);
        self.say("aria-valuenow", &here.or(last).unwrap_or(0).to_string());
        let drawn = drawn(&shown, frame);
        let scales = self.scales(&shown.series);
        let mut shapes =
            vec![here.map(|place| path::upright(frame, drawn.middle(place))).unwrap_or_default()];
        for line in &shown.series.lines {
            let seen = here.filter(|_| self.board.shows(line.exit));
            shapes.push(seen.map(|place| drawn.dots(line.exit, place, &scales)).unwrap_or_default());
        }
        self.shape(POINTED, shapes);
        let Some(tip) = self.element.get().and_then(|element| element.children().item(1)) else { return };
        let Some(place) = here else {
            let _ = tip.set_attribute("hidden", "");
            return;
        };
        let x = frame.x(drawn.middle(place));
        // On the side where there is more room.
        let (side, room) = if x < frame.width / 2.0 { ("left", x) } else { ("right", frame.width - x) };
        let style = tip.unchecked_ref::<web_sys::HtmlElement>().style();
        // By name and not as an attribute, which the policy of the page's contents forbids.
        let _ = style.set_property(if side == "left" { "right" } else { "left" }, "auto");
        let _ = style.set_property(side, &(format::fixed(room + 12.0, 0) + "px"));
        let attributes = [
            ("data-testid", testid::with(testid::CHART_TIP, self.owner)),
            ("data-at", shown.series.times[place].to_string()),
            ("data-step", shown.step_ms.to_string()),
        ];
        for (name, value) in attributes {
            let _ = tip.set_attribute(name, &value);
        }
        tip.set_inner_html(&told::tip(&shown, place, self.board, frame));
        let _ = tip.remove_attribute("hidden");
    }

    /// Hears pointer and keys. The browser lets go of the listener together with the element.
    fn listen(self, element: &web_sys::Element) {
        let hear = Closure::<dyn FnMut(web_sys::Event)>::new(move |event: web_sys::Event| self.heard(&event));
        let hear = hear.into_js_value();
        for name in HEARD {
            let _ = element.add_event_listener_with_callback(name, hear.unchecked_ref());
        }
    }
}

/// Titles, values and times.
fn texts(frame: Frame, scales: &[Scale; 3], ticks: &[Tick]) -> Markup {
    let titles = [words::LATENCY_TITLE, words::LOSS_TITLE, words::SCORE_TITLE];
    let mut out = Markup::default();
    for ((measure, scale), title) in Measure::ALL.into_iter().zip(scales).zip(titles) {
        out = label(out, "title", path::LEFT, frame.edges(measure).0 - 7.0, title.say(lang()));
        for value in std::iter::once(0.0).chain(scale.values()) {
            let text = if measure == Measure::Loss { format::percent(value) } else { scale.label(value) };
            out = label(out, "value", path::LEFT - 6.0, frame.y(measure, *scale, value) + 4.0, &text);
        }
    }
    for tick in ticks {
        // Half of a label may be outside of the charts, but not of the picture.
        let x = frame.x(tick.at).min(frame.width - 24.0);
        out = label(out, "time", x, frame.edges(Measure::Score).1 + 17.0, &tick.label);
    }
    out
}

/// The charts of one owner.
#[component]
pub fn OwnerChart(board: Board, owner: NodeId) -> AnyView {
    let (drag, fingers) = (RwSignal::new(None), RwSignal::new(Vec::new()));
    let plot = Plot { board, owner, drag, fingers, element: NodeRef::new() };
    let listening = RwSignal::new(false);
    let exits = RwSignal::new(Vec::<NodeId>::new());
    let events = RwSignal::new(Vec::<i64>::new());
    Effect::run(move || {
        let Some(element) = plot.element.get() else { return };
        if !listening.get_untracked() {
            listening.set(true);
            plot.listen(&element);
        }
        // Elements are made anew only when there are others.
        if let Some(shown) = plot.shown() {
            let now: Vec<NodeId> = shown.series.lines.iter().map(|line| line.exit).collect();
            if now != exits.get_untracked() {
                plot.exits(&now);
                exits.set(now);
            }
            let now: Vec<i64> = shown.events.iter().map(|entry| entry.id).collect();
            if now != events.get_untracked() {
                plot.events(&shown.events);
                events.set(now);
            }
        }
        plot.draw();
    });
    Effect::run(move || plot.point());
    Effect::run(move || {
        let chosen = plot.drag.get().map(|(from, to)| path::stretch(plot.frame(), from, to));
        plot.shape_one(CHOSEN, &chosen.unwrap_or_default());
    });
    view! {
        <div class="chart" role="slider" tabindex="0" aria-describedby="chart-keys" aria-valuemin="0"
            data-testid=testid::with(testid::CHART, owner) node_ref=plot.element inner_html=GROUPS>
        </div>
    }
    .into_any()
}
