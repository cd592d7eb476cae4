//! The card with the charts: what is looked at, and what is fetched for it.

use super::path::Frame;
use super::plot::OwnerChart;
use super::series::{Point, Series};
use super::span::{Axis, MINUTE_MS, OFFERED_MS, USUAL_MS, View, fitting};
use super::told;
use crate::api::http::Method;
use crate::api::{Access, ApiError, Feed};
use crate::clock;
use crate::format;
use crate::i18n::{Text, chart as words, lang, monitor, t};
use crate::pages::loaded::loaded;
use crate::reactive::{Effect, Memo, RwSignal, Show, Signal, each, phrase};
use crate::ui::ticker::every_second;
use crate::ui::{Button, Choice, Icon, SelectField};
use leptos::html;
use leptos::prelude::*;
use shared::api::{DecisionLogEntry, LegHistory, SettingsAnswer, TunnelDecisions, WallMs};
use shared::ids::{NodeId, TunnelId};
use shared::testid;
use std::sync::Arc;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::closure::Closure;

/// With more owners than this they are shown one at a time.
const SIDE_BY_SIDE: usize = 2;
/// Rounds take a while and their ends are not exactly as far apart as their starts. Two are missing: a gap.
const GAP_STEPS: f64 = 2.5;
/// What is marked in the charts: codes of reasons.
const EVENTS: &str = "switched,apply_failed,pinned";
/// Until the page is laid out.
const FIRST_WIDTH: f64 = 900.0;

/// What one owner saw, as it was fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The series.
    pub series: Series,
    /// Its steps.
    pub step_ms: i64,
    /// What is further apart is not joined.
    pub gap_ms: i64,
    /// Switches, refused ones and pins, newest first, up to the present.
    pub events: Vec<Arc<DecisionLogEntry>>,
    /// The exit in force when it was fetched.
    pub applied: (WallMs, Option<NodeId>),
    /// What the owner and its exits are called.
    names: Vec<(NodeId, String)>,
}

/// What the charts share.
#[derive(Clone, Copy)]
pub struct Board {
    id: TunnelId,
    /// What is looked at.
    pub view: RwSignal<View>,
    /// The span that resetting goes back to.
    span: RwSignal<i64>,
    /// Whether the reader has chosen it.
    chosen: RwSignal<bool>,
    /// Width of a chart in pixels.
    pub width: RwSignal<f64>,
    /// What is shown.
    pub axis: Memo<Axis>,
    /// Exits without lines.
    pub hidden: RwSignal<Vec<NodeId>>,
    /// The moment that is pointed at, in all charts.
    pub cursor: RwSignal<Option<WallMs>>,
    feed: Feed<Vec<Arc<Shown>>>,
}

impl Board {
    /// For a tunnel.
    pub fn new(id: TunnelId, access: Access) -> Self {
        let now = every_second();
        let view = RwSignal::new(View::last(USUAL_MS));
        let width = RwSignal::new(FIRST_WIDTH);
        let axis = Memo::new(move |()| {
            let view = view.get();
            // Whoever looks at the past is not told the time.
            let now = if view.end.is_some() { 0 } else { now.get() };
            view.axis(now, Frame::inner(width.get()))
        });
        let feed = Feed::list(move || fetch(access.clone(), id, axis.get_untracked()));
        Self {
            id,
            view,
            span: RwSignal::new(USUAL_MS),
            chosen: RwSignal::new(false),
            width,
            axis,
            hidden: RwSignal::new(Vec::new()),
            cursor: RwSignal::new(None),
            feed,
        }
    }

    /// What an owner saw.
    pub fn shown(self, owner: NodeId) -> Option<Arc<Shown>> {
        self.feed.get()?.iter().find(|shown| shown.series.owner == owner).cloned()
    }

    /// What a node is called.
    pub fn name(self, id: NodeId) -> String {
        let all = self.feed.get();
        let mut names = all.iter().flat_map(|all| all.iter()).flat_map(|shown| &shown.names);
        names.find(|(known, _)| *known == id).map_or_else(|| format!("#{id}"), |(_, name)| name.clone())
    }

    /// Fetches again.
    pub fn refresh(self) {
        self.feed.refresh();
    }

    /// Whether an exit's lines are drawn.
    pub fn shows(self, exit: NodeId) -> bool {
        self.hidden.with(|hidden| !hidden.contains(&exit))
    }

    /// Closer, or further away.
    pub fn zoom(self, closer: bool) {
        let around = self.cursor.get_untracked();
        self.view.set(self.view.get_untracked().zoomed(closer, around, clock::now()));
    }

    /// Earlier, or later.
    pub fn shift(self, later: bool) {
        self.view.set(self.view.get_untracked().moved(later, clock::now()));
    }

    /// Back to the chosen span and the present.
    pub fn reset(self) {
        self.view.set(View::last(self.span.get_untracked()));
    }

    fn choose(self, span_ms: i64) {
        self.chosen.set(true);
        self.span.set(span_ms);
        self.reset();
    }

    /// Whoever has chosen nothing sees all that there is, up to the usual span: what was made a minute ago is no dot in an
    /// empty hour, and becomes as wide as it grows.
    fn open_to(self, span_ms: i64) {
        let before = self.span.get_untracked();
        let is_at_rest = self.view.get_untracked() == View::last(before);
        if span_ms != before && is_at_rest && !self.chosen.get_untracked() {
            self.span.set(span_ms);
            self.reset();
        }
    }

    fn owners(self) -> Vec<NodeId> {
        self.feed.get().iter().flat_map(|all| all.iter()).map(|shown| shown.series.owner).collect()
    }

    fn is_empty(self) -> bool {
        let axis = self.axis.get();
        let known = |shown: &Arc<Shown>| {
            let measured = |place: usize| {
                let seen = (axis.from..axis.to).contains(&shown.series.times[place]);
                seen && shown.series.lines.iter().any(|line| line.points[place] != Point::Unknown)
            };
            (0..shown.series.times.len()).any(measured)
        };
        !self.feed.get().iter().flat_map(|all| all.iter()).any(known)
    }
}

async fn fetch(access: Access, id: TunnelId, axis: Axis) -> Result<Vec<Shown>, ApiError> {
    let (from, step_ms) = (axis.from, axis.step_ms);
    let settings: SettingsAnswer = access.call(Method::Get, "/settings").await?;
    let decisions: TunnelDecisions = access.call(Method::Get, &format!("/tunnels/{id}/decisions")).await?;
    let path = format!("/tunnels/{id}/quality?from={from}&to={}&step={step_ms}", axis.to);
    let legs: Vec<LegHistory> = access.call(Method::Get, &path).await?;
    let path = format!("/tunnels/{id}/decision-log?limit=500&from={from}&reason={EVENTS}");
    let events: Vec<DecisionLogEntry> = access.call(Method::Get, &path).await?;
    let events: Vec<Arc<DecisionLogEntry>> = events.into_iter().map(Arc::new).collect();
    let settings = settings.settings;
    let round_ms = i64::try_from(settings.round_interval_ms).unwrap_or(step_ms);
    let gap_ms = (step_ms.max(round_ms) as f64 * GAP_STEPS) as i64;
    let shown = |series: Series| {
        let own = events.iter().filter(|entry| entry.owner_node_id == series.owner);
        let state = decisions.owners.iter().find(|state| state.owner_node_id == series.owner);
        let candidates = state.iter().flat_map(|state| &state.candidates);
        let exits = candidates.map(|candidate| (candidate.exit_node_id, candidate.exit_name.clone()));
        Shown {
            events: own.cloned().collect(),
            step_ms,
            gap_ms,
            applied: (axis.to, state.and_then(|state| state.applied_exit_node_id)),
            names: state.iter().map(|state| (series.owner, state.owner_name.clone())).chain(exits).collect(),
            series,
        }
    };
    Ok(Series::of(&legs, settings.loss_penalty_ms_per_percent).into_iter().map(shown).collect())
}

/// Tells the width of an element for as long as the screen lives.
fn watch_width(element: NodeRef<html::Div>, width: RwSignal<f64>) {
    let measure = Closure::<dyn FnMut()>::new(move || {
        let now = element.get_untracked().map_or(0, |element| element.client_width());
        if now > 0 {
            let _ = width.try_set(f64::from(now));
        }
    });
    let observer = web_sys::ResizeObserver::new(measure.as_ref().unchecked_ref()).ok();
    let kept = StoredValue::new_local((observer, measure));
    Effect::run(move || {
        if let Some(element) = element.get() {
            let _ = kept.try_with_value(|(observer, _)| observer.as_ref().map(|o| o.observe(&element)));
        }
    });
    on_cleanup(move || {
        let _ =
            kept.try_with_value(|(observer, _)| observer.as_ref().map(web_sys::ResizeObserver::disconnect));
    });
}

/// Switches between two states; what it does is on it.
fn toggle(
    content: impl IntoView + 'static,
    name: String,
    pressed: impl Fn() -> bool + Send + Sync + 'static,
    on_press: impl Fn() + Send + 'static,
) -> AnyView {
    let content = content.into_any();
    let pressed: Box<dyn Fn() -> String + Send> = Box::new(move || pressed().to_string());
    let on_press: Box<dyn Fn() + Send> = Box::new(on_press);
    view! {
        <button type="button" class="button toggle" data-testid=name aria-pressed=pressed on:click=move |_| on_press()>
            {content}
        </button>
    }
    .into_any()
}

/// The card with the charts, per owner when there are several: the way to an exit differs between them.
#[component]
pub fn History(board: Board) -> AnyView {
    Effect::with_before(move |before: Option<()>| {
        let _ = board.axis.get();
        if before.is_some() {
            board.feed.refresh();
        }
    });
    let first = RwSignal::new(None::<WallMs>);
    Effect::run(move || {
        let Some(all) = board.feed.get() else { return };
        if first.get_untracked().is_none() {
            first.set(all.iter().filter_map(|shown| shown.series.times.first()).min().copied());
        }
        board.open_to(fitting(first.get_untracked(), clock::now()));
    });
    let element = NodeRef::<html::Div>::new();
    watch_width(element, board.width);
    let table = RwSignal::new(false);
    let owner = RwSignal::new(String::new());
    let owners = Memo::new(move |()| board.owners());
    let chosen = move || {
        let all = owners.get();
        if all.len() <= SIDE_BY_SIDE {
            return all;
        }
        let chosen = owner.get();
        let one = all.iter().copied().find(|id| id.to_string() == chosen).or(all.first().copied());
        one.into_iter().collect()
    };
    let several = Memo::new(move |()| owners.with(|owners| (2..=SIDE_BY_SIDE).contains(&owners.len())));
    let many = Memo::new(move |()| owners.with(|owners| owners.len() > SIDE_BY_SIDE));
    let choices = Signal::derive(move || {
        let choice = |id: NodeId| Choice::new(id.to_string(), board.name(id));
        owners.get().into_iter().map(choice).collect::<Vec<_>>()
    });
    let one = move |owner: NodeId| {
        view! {
            <Show when=move || several.get()><h3>{phrase(move || board.name(owner))}</h3></Show>
            <OwnerChart board owner />
            <Show when=move || table.get()>
                <div class="table-scroll chart-table" tabindex="0" role="region" aria-label=t(words::TABLE)
                    data-testid=testid::with(testid::CHART_TABLE, owner)>
                    <table inner_html=move || board.shown(owner).map(|shown| told::table(&shown, board))></table>
                </div>
            </Show>
        }
        .into_any()
    };
    let charts = move || each(chosen, |id| (id.0, 0), one);
    view! {
        <section class="card history">
            <header class="history-head">
                <h2>{t(words::TITLE)}</h2>
                <span class="muted small number" data-testid=testid::CHART_RANGE>{phrase(move || range(board))}</span>
            </header>
            <Tools board table />
            <Show when=move || many.get()>
                <SelectField label=monitor::OWNER value=owner on_choose=Callback::new(move |id: String| owner.set(id))
                    choices field="owner" testid=testid::CHART_OWNER />
            </Show>
            <Legend board />
            <div class="charts" node_ref=element>
                {loaded(board.feed, charts)}
                <Show when=move || board.is_empty()><p class="muted history-empty">{t(words::EMPTY)}</p></Show>
            </div>
            <p class="hint" id="chart-keys">{t(words::KEYS)}</p>
        </section>
    }
    .into_any()
}

fn range(board: Board) -> String {
    let axis = board.axis.get();
    format!("{} – {}", format::date_time(axis.from, lang()), format::date_time(axis.to, lang()))
}

#[component]
fn Tools(board: Board, table: RwSignal<bool>) -> AnyView {
    let spans = OFFERED_MS.into_iter().zip(words::SPANS_OFFERED).map(|(span_ms, text)| {
        let pressed = move || board.view.get() == View::last(span_ms);
        toggle(t(text), testid::with(testid::CHART_SPAN, span_ms / MINUTE_MS), pressed, move || {
            board.choose(span_ms)
        })
    });
    let tool = |text: Text, icon: Icon, name: &str, act: fn(Board)| {
        view! {
            <Button text icon_of=icon bare=true testid=testid::with(testid::CHART_TOOL, name)
                on_press=Callback::new(move |()| act(board)) />
        }
    };
    let at_rest = Signal::derive(move || board.view.get() == View::last(board.span.get()));
    view! {
        <div class="history-tools">
            <div class="segments" role="group" aria-label=t(words::SPANS)>{spans.collect_view()}</div>
            <div class="segments" role="group" aria-label=t(words::ZOOM)>
                {tool(words::EARLIER, Icon::Left, "earlier", |board| board.shift(false))}
                {tool(words::LATER, Icon::Right, "later", |board| board.shift(true))}
                {tool(words::ZOOM_OUT, Icon::Minus, "out", |board| board.zoom(false))}
                {tool(words::ZOOM_IN, Icon::Plus, "in", |board| board.zoom(true))}
                <Button text=words::RESET testid=testid::with(testid::CHART_TOOL, "reset") disabled=at_rest
                    on_press=Callback::new(move |()| board.reset()) />
            </div>
            <div class="segments" role="group" aria-label=t(words::EXPORT)>
                {file(board, "CSV", "csv")}
                {file(board, "JSON", "json")}
            </div>
            {toggle(t(words::TABLE), testid::with(testid::CHART_TOOL, "table"), move || table.get(),
                move || table.update(|shown| *shown = !*shown))}
        </div>
    }
    .into_any()
}

/// A link to what is shown as a file.
fn file(board: Board, name: &'static str, format: &'static str) -> AnyView {
    let href: Box<dyn Fn() -> String + Send> = Box::new(move || {
        let (id, Axis { from, to, step_ms }) = (board.id, board.axis.get());
        format!("/api/v1/tunnels/{id}/quality?from={from}&to={to}&step={step_ms}&format={format}")
    });
    let saved_as = format!("tunnel-{}-quality.{format}", board.id);
    view! {
        <a class="button" href=href download=saved_as data-testid=testid::with(testid::CHART_FILE, format)>{name}</a>
    }
    .into_any()
}

/// What the lines are; each is switched off and on here.
#[component]
fn Legend(board: Board) -> AnyView {
    let exits = move || {
        let all = board.feed.get();
        let first = all.iter().flat_map(|all| all.iter()).next();
        let lines = first.iter().flat_map(|shown| &shown.series.lines);
        lines.enumerate().map(|(index, line)| (index, line.exit)).collect::<Vec<_>>()
    };
    let key = move |(index, exit): (usize, NodeId)| {
        let content = view! { <span class="with-dot"><span inner_html=told::sample(exit, index)></span> {phrase(move || board.name(exit))}</span> }.into_any();
        let press = move || {
            board.hidden.update(|hidden| match hidden.iter().position(|id| *id == exit) {
                Some(place) => _ = hidden.remove(place),
                None => hidden.push(exit),
            });
        };
        toggle(content, testid::with(testid::CHART_KEY, exit), move || board.shows(exit), press)
    };
    view! {
        <div class="history-keys" role="group" aria-label=t(words::LEGEND)>
            {each(exits, |(index, exit)| (exit.0, *index), key)}
        </div>
    }
    .into_any()
}
