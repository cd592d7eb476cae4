//! The latency of every exit over the last while, drawn as lines.

use super::page::Monitored;
use crate::api::{Feed, client};
use crate::clock;
use crate::format;
use crate::i18n::{lang, monitor as words, t};
use crate::pages::loaded::loaded;
use crate::reactive::phrase;
use crate::ui::chip::exit_class;
use crate::ui::dot;
use leptos::prelude::*;
use shared::api::{LegHistory, LegPoint, WallMs};
use shared::ids::NodeId;
use std::collections::BTreeMap;

/// What the chart shows, once there is so much.
const SPAN_MS: i64 = 3_600_000;
/// What it shows when there is less: a line that begins at the edge, not a dot in an empty hour.
const SHORTEST_SPAN_MS: i64 = 300_000;
/// One point per ten seconds: more than the chart has room for helps nobody.
const STEP_MS: i64 = 10_000;
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 160.0;
const VIEW_BOX: &str = "0 0 1000 160";
/// Lines at half of the height and at the bottom.
const GRID: &str = "M0 80H1000M0 159H1000";

/// The chart, per owner when there are several: the way to an exit differs between them.
#[component]
pub fn History(shared: Monitored) -> AnyView {
    let history = Feed::new(move || {
        let now = clock::now();
        client::quality(shared.id, now - SPAN_MS, now, STEP_MS)
    });
    // As often as the chart has something new.
    if let Ok(handle) =
        set_interval_with_handle(move || history.refresh(), std::time::Duration::from_millis(STEP_MS as u64))
    {
        on_cleanup(move || handle.clear());
    }
    let content = move || {
        let legs = history.get().unwrap_or_default();
        let to = clock::now();
        let owners = series(&legs);
        if owners.is_empty() {
            return view! { <p class="muted">{t(words::HISTORY_EMPTY)}</p> }.into_any();
        }
        let several = owners.len() > 1;
        let axis = Axis::of(&owners, to);
        owners
            .into_iter()
            .map(|(owner, lines)| {
                view! {
                    {several.then(|| view! { <h3>{shared.names.of(owner)}</h3> })}
                    {chart(&lines, axis, shared)}
                }
            })
            .collect_view()
            .into_any()
    };
    let last = move || {
        let axis = Axis::of(&series(&history.get().unwrap_or_default()), clock::now());
        words::HISTORY_LAST.with(lang(), &[("time", &format::duration(axis.span_ms, lang()))])
    };
    view! {
        <section class="card">
            <h2>{t(words::HISTORY_TITLE)} " " <span class="muted small">{phrase(last)}</span></h2>
            {loaded(history, move || content().into_any())}
        </section>
    }
    .into_any()
}

/// The times that the chart shows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    to: WallMs,
    span_ms: i64,
}

impl Axis {
    /// From the first measurement on, in whole minutes.
    fn of(owners: &BTreeMap<NodeId, BTreeMap<NodeId, Line>>, to: WallMs) -> Self {
        let measured = owners.values().flat_map(BTreeMap::values).flatten().filter(|(_, ms)| ms.is_some());
        let first = measured.map(|(at, _)| *at).min().unwrap_or(to);
        let minutes = (to - first).max(0) / 60_000 + 1;
        Self { to, span_ms: (minutes * 60_000).clamp(SHORTEST_SPAN_MS, SPAN_MS) }
    }

    /// 0 at the left edge, [`WIDTH`] at the right one.
    fn x(self, at: WallMs) -> f64 {
        (at - (self.to - self.span_ms)) as f64 / self.span_ms as f64 * WIDTH
    }
}

type Line = Vec<(WallMs, Option<f64>)>;

/// Per owner and exit the latency of both legs together, where both were measured.
fn series(legs: &[LegHistory]) -> BTreeMap<NodeId, BTreeMap<NodeId, Line>> {
    let onward_of = |exit: NodeId| -> &[LegPoint] {
        let leg = legs.iter().find(|leg| leg.leg == "b" && leg.exit_node_id == exit);
        leg.map(|leg| leg.points.as_slice()).unwrap_or_default()
    };
    let mut owners: BTreeMap<NodeId, BTreeMap<NodeId, Line>> = BTreeMap::new();
    for leg in legs.iter().filter(|leg| leg.leg == "a") {
        let onward = onward_of(leg.exit_node_id);
        let line = leg
            .points
            .iter()
            .map(|point| (point.at, point.latency_ms.zip(nearest(onward, point.at)).map(|(a, b)| a + b)))
            .collect();
        owners.entry(leg.from_node_id).or_default().insert(leg.exit_node_id, line);
    }
    owners
}

/// The latency measured closest to a time, if that is within one step.
fn nearest(points: &[LegPoint], at: WallMs) -> Option<f64> {
    let place = points.partition_point(|point| point.at < at);
    let candidates = [place.checked_sub(1), Some(place)];
    let near = candidates.into_iter().flatten().filter_map(|place| points.get(place));
    near.filter(|point| (point.at - at).abs() <= STEP_MS)
        .min_by_key(|point| (point.at - at).abs())
        .and_then(|point| point.latency_ms)
}

fn chart(lines: &BTreeMap<NodeId, Line>, axis: Axis, shared: Monitored) -> AnyView {
    let highest = lines.values().flatten().filter_map(|(_, ms)| *ms).fold(1.0, f64::max);
    let time = format::duration(axis.span_ms, lang());
    let drawn = lines
        .iter()
        .map(|(exit, line)| {
            let name = shared.names.of(*exit);
            let label = words::HISTORY_LABEL.with(lang(), &[("exit", &name), ("time", &time)]);
            view! {
                <path class=format!("line {}", exit_class(*exit)) d=path(line, axis, highest) role="img" aria-label=label></path>
            }
        })
        .collect_view();
    let keys =
        lines.keys().map(|exit| view! { <li>{dot(*exit)} {shared.names.of(*exit)}</li> }).collect_view();
    view! {
        <div class="chart">
            <span class="chart-top number">{format::ms(highest)}</span>
            <svg viewBox=VIEW_BOX preserveAspectRatio="none">
                <path class="grid" d=GRID></path>
                {drawn}
            </svg>
            <ul class="chart-keys">{keys}</ul>
        </div>
    }
    .into_any()
}

/// A line with gaps where nothing was measured.
fn path(line: &Line, axis: Axis, highest: f64) -> String {
    let mut out = String::new();
    let mut drawing = false;
    for (at, ms) in line {
        match ms {
            Some(ms) => {
                let x = axis.x(*at);
                let y = HEIGHT - 2.0 - ms / highest * (HEIGHT - 6.0);
                out.push(if drawing { 'L' } else { 'M' });
                out.push_str(&format::fixed(x, 1));
                out.push(' ');
                out.push_str(&format::fixed(y, 1));
                if !drawing {
                    // A lone point is a dot of the line's width.
                    out.push_str("h0");
                }
                drawing = true;
            }
            None => drawing = false,
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(from: i64, exit: i64, leg: &str, points: &[(i64, Option<f64>)]) -> LegHistory {
        LegHistory {
            from_node_id: NodeId(from),
            target: "t:1".into(),
            exit_node_id: NodeId(exit),
            leg: leg.into(),
            points: points
                .iter()
                .map(|(at, ms)| LegPoint { at: *at, latency_ms: *ms, loss: Some(0.0) })
                .collect(),
        }
    }

    #[test]
    fn both_legs_are_added_where_both_were_measured() {
        let legs = [
            leg(1, 3, "a", &[(0, Some(10.0)), (60_000, Some(12.0)), (120_000, None)]),
            leg(3, 3, "b", &[(1000, Some(5.0)), (119_000, Some(6.0))]),
        ];
        let all = series(&legs);
        assert_eq!(all[&NodeId(1)][&NodeId(3)], [(0, Some(15.0)), (60_000, None), (120_000, None)]);
    }

    #[test]
    fn a_gap_starts_a_new_stroke() {
        let line = vec![(0, Some(1.0)), (1_800_000, None), (3_600_000, Some(1.0))];
        let axis = Axis { to: 3_600_000, span_ms: SPAN_MS };
        assert_eq!(path(&line, axis, 1.0), "M0.0 4.0h0M1000.0 4.0h0");
    }

    #[test]
    fn the_axis_begins_with_what_was_measured() {
        let owners = |first: WallMs| {
            let line = vec![(0, None), (first, Some(1.0)), (first + 1, Some(1.0))];
            BTreeMap::from([(NodeId(1), BTreeMap::from([(NodeId(3), line)]))])
        };
        let to = 10_000_000;
        for (first, span_ms) in [
            (to, SHORTEST_SPAN_MS),
            (to - 100_000, SHORTEST_SPAN_MS),
            (to - 600_000, 660_000),
            (to - 7_200_000, SPAN_MS),
        ] {
            assert_eq!(Axis::of(&owners(first), to), Axis { to, span_ms });
        }
        assert_eq!(Axis::of(&BTreeMap::new(), to).span_ms, SHORTEST_SPAN_MS);
    }
}
