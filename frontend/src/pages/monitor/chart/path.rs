//! Series, switches and axes as shapes: what stands in an SVG path's `d`.

use super::series::{Measure, Point, Series};
use super::span::Axis;
use super::ticks::{Scale, Tick};
use crate::format;
use shared::api::WallMs;
use shared::ids::NodeId;

/// Room for the values at the left edge.
pub const LEFT: f64 = 46.0;
/// Room for half of a time at the right edge.
const RIGHT: f64 = 14.0;
/// The middle of the strip that shows which exit was in force.
const STRIP: f64 = 7.0;
/// Height of a chart's title.
const TITLE: f64 = 24.0;
/// Upper edge of the first chart's title.
const FIRST: f64 = 14.0;
/// Whole height, with the times at the bottom.
pub const HEIGHT: f64 = FIRST + 3.0 * TITLE + 140.0 + 64.0 + 110.0 + 22.0;
/// Half of a cross.
const CROSS: f64 = 3.0;
/// Between the crosses of two exits.
const LANE: f64 = 9.0;

/// Where everything is, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Width of the whole.
    pub width: f64,
    /// What it shows.
    pub axis: Axis,
}

impl Frame {
    /// Width of the charts in a whole of this width.
    pub fn inner(width: f64) -> f64 {
        (width - LEFT - RIGHT).max(1.0)
    }

    fn per_ms(self) -> f64 {
        Self::inner(self.width) / (self.axis.to - self.axis.from) as f64
    }

    /// The place of a moment.
    pub fn x(self, at: WallMs) -> f64 {
        LEFT + (at - self.axis.from) as f64 * self.per_ms()
    }

    /// The moment at a place; beside the charts that of their edge.
    pub fn at(self, x: f64) -> WallMs {
        let at = self.axis.from + ((x - LEFT) / self.per_ms()) as i64;
        at.clamp(self.axis.from, self.axis.to)
    }

    /// A chart's upper and lower edge.
    pub fn edges(self, measure: Measure) -> (f64, f64) {
        let (place, above, height) = match measure {
            Measure::Latency => (1.0, 0.0, 140.0),
            Measure::Loss => (2.0, 140.0, 64.0),
            Measure::Score => (3.0, 204.0, 110.0),
        };
        let top = FIRST + place * TITLE + above;
        (top, top + height)
    }

    /// The place of a value.
    pub fn y(self, measure: Measure, scale: Scale, value: f64) -> f64 {
        let (top, bottom) = self.edges(measure);
        bottom - (value / scale.top).min(1.0) * (bottom - top)
    }

    /// How far to the right a place is in the charts: from 0, their left edge, to 1.
    pub fn share(self, x: f64) -> f64 {
        ((x - LEFT) / Self::inner(self.width)).clamp(0.0, 1.0)
    }

    fn shows(self, at: WallMs) -> bool {
        (self.axis.from..=self.axis.to).contains(&at)
    }
}

/// A path that is being drawn.
#[derive(Default)]
struct Pen(String);

impl Pen {
    fn to(&mut self, command: char, x: f64, y: f64) {
        self.0.push(command);
        self.0.push_str(&format::fixed(x, 1));
        self.0.push(' ');
        self.0.push_str(&format::fixed(y, 1));
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.to('M', from.0, from.1);
        self.to('L', to.0, to.1);
    }

    fn cross(&mut self, x: f64, y: f64) {
        self.line((x - CROSS, y - CROSS), (x + CROSS, y + CROSS));
        self.line((x - CROSS, y + CROSS), (x + CROSS, y - CROSS));
    }
}

/// What an owner's series is drawn with.
#[derive(Clone, Copy)]
pub struct Drawn<'a> {
    /// The series.
    pub series: &'a Series,
    /// Its steps; a point is drawn in the middle of its step.
    pub step_ms: i64,
    /// What is further apart is not joined.
    pub gap_ms: i64,
    /// Where.
    pub frame: Frame,
}

impl Drawn<'_> {
    /// The middle of a step.
    pub fn middle(self, place: usize) -> WallMs {
        self.series.times[place] + self.step_ms / 2
    }

    fn points(self, exit: NodeId) -> impl Iterator<Item = (WallMs, Point)> {
        let points = self.series.line(exit).map(|line| line.points.as_slice()).unwrap_or_default();
        let seen = points.iter().enumerate().map(move |(place, point)| (self.middle(place), *point));
        seen.filter(move |(at, _)| self.frame.shows(*at))
    }

    /// A line with gaps where nothing was measured.
    pub fn line(self, exit: NodeId, measure: Measure, scale: Scale) -> String {
        let mut pen = Pen::default();
        let mut before: Option<WallMs> = None;
        for (at, point) in self.points(exit) {
            let Some(value) = point.value(measure) else {
                before = None;
                continue;
            };
            let joined = before.is_some_and(|before| at - before <= self.gap_ms);
            pen.to(if joined { 'L' } else { 'M' }, self.frame.x(at), self.frame.y(measure, scale, value));
            if !joined {
                // A lone point is a dot of the line's width.
                pen.0.push_str("h0");
            }
            before = Some(at);
        }
        pen.0
    }

    /// A cross where an exit begins to fail, and a bar for as long as it does. Several exits have a lane each.
    pub fn failures(self, exit: NodeId, measure: Measure, lane: usize) -> String {
        let mut pen = Pen::default();
        let y = self.frame.edges(measure).1 - 7.0 - lane as f64 * LANE;
        let mut before: Option<WallMs> = None;
        for (at, point) in self.points(exit) {
            if point != Point::Failed {
                before = None;
                continue;
            }
            let x = self.frame.x(at);
            match before.filter(|before| at - before <= self.gap_ms) {
                Some(before) => pen.line((self.frame.x(before), y), (x, y)),
                None => pen.cross(x, y),
            }
            before = Some(at);
        }
        pen.0
    }

    /// Dots on an exit's lines at one step.
    pub fn dots(self, exit: NodeId, place: usize, scales: &[Scale]) -> String {
        let mut pen = Pen::default();
        let point = self.series.line(exit).and_then(|line| line.points.get(place));
        for (measure, scale) in Measure::ALL.into_iter().zip(scales) {
            if let Some(value) = point.and_then(|point| point.value(measure)) {
                let at = self.middle(place);
                pen.to('M', self.frame.x(at), self.frame.y(measure, *scale, value));
                pen.0.push_str("h0");
            }
        }
        pen.0
    }
}

/// Lines at the round values and times, and at the bottom of every chart.
pub fn grid(frame: Frame, scales: &[Scale], ticks: &[Tick]) -> String {
    let mut pen = Pen::default();
    for (measure, scale) in Measure::ALL.into_iter().zip(scales) {
        for value in std::iter::once(0.0).chain(scale.values()) {
            let y = frame.y(measure, *scale, value);
            pen.line((LEFT, y), (frame.width - RIGHT, y));
        }
        let (_, bottom) = frame.edges(measure);
        for tick in ticks {
            let x = frame.x(tick.at);
            pen.line((x, bottom), (x, bottom + 4.0));
        }
    }
    pen.0
}

/// A line through all charts.
pub fn upright(frame: Frame, at: WallMs) -> String {
    let mut pen = Pen::default();
    if frame.shows(at) {
        let x = frame.x(at);
        pen.line((x, STRIP), (x, frame.edges(Measure::Score).1));
    }
    pen.0
}

/// A stretch through all charts.
pub fn stretch(frame: Frame, from: f64, to: f64) -> String {
    let edge = |x: f64| x.clamp(LEFT, frame.width - RIGHT);
    let (from, to, bottom) = (edge(from), edge(to), frame.edges(Measure::Score).1);
    let mut pen = Pen::default();
    for (command, x, y) in [('M', from, FIRST), ('L', to, FIRST), ('L', to, bottom), ('L', from, bottom)] {
        pen.to(command, x, y);
    }
    pen.0 + "Z"
}

/// What happened to the choice of an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Another exit was put in front.
    Switched,
    /// That was refused.
    Refused,
    /// A person's choice took effect.
    Pinned,
}

/// The head of an event's line, a shape of its own for each kind.
pub fn head(frame: Frame, at: WallMs, event: Event) -> String {
    if !frame.shows(at) {
        return String::new();
    }
    let x = frame.x(at);
    let mut pen = Pen::default();
    match event {
        Event::Refused => {
            pen.cross(x, STRIP);
            return pen.0;
        }
        Event::Switched => {
            [('M', x - 5.0, 0.0), ('L', x + 5.0, 0.0), ('L', x, STRIP + 2.0)].map(|(c, x, y)| pen.to(c, x, y))
        }
        Event::Pinned => {
            pen.to('M', x, 0.0);
            [('L', x + 5.0, STRIP - 1.5), ('L', x, STRIP + 4.0), ('L', x - 5.0, STRIP - 1.5)]
                .map(|(c, x, y)| pen.to(c, x, y))
        }
    };
    pen.0 + "Z"
}

/// When an exit was in force: `switches` newest first, and the exit `now`. Before `known`, when nothing was measured yet, a tunnel
/// may not have been there.
pub fn in_force(
    frame: Frame,
    exit: NodeId,
    switches: &[(WallMs, Option<NodeId>, Option<NodeId>)],
    known: WallMs,
    now: (WallMs, Option<NodeId>),
) -> String {
    let mut pen = Pen::default();
    let mut stretch = |from: WallMs, to: WallMs, used: Option<NodeId>| {
        let (from, to) = (from.max(frame.axis.from), to.min(frame.axis.to));
        if used == Some(exit) && from < to {
            pen.line((frame.x(from), STRIP), (frame.x(to), STRIP));
        }
    };
    let (mut end, mut used) = now;
    for (at, from, to) in switches {
        stretch(*at, end, (*to).or(used));
        (end, used) = (*at, *from);
    }
    stretch(known, end, used);
    pen.0
}

#[cfg(test)]
mod tests {
    use super::super::series::tests::{example, leg};
    use super::*;

    const FRAME: Frame = Frame { width: LEFT + RIGHT + 100.0, axis: Axis { from: 0, to: 100, step_ms: 10 } };
    const SCALE: Scale = Scale { top: 140.0, step: 70.0 };

    fn drawn(series: &Series) -> Drawn<'_> {
        Drawn { series, step_ms: 10, gap_ms: 25, frame: FRAME }
    }

    #[test]
    fn places_and_moments_are_each_others_reverse() {
        assert_eq!(FRAME.x(0), LEFT);
        assert_eq!(FRAME.x(100), LEFT + 100.0);
        for at in [0, 37, 100] {
            assert_eq!(FRAME.at(FRAME.x(at) + 0.01), at);
        }
        assert_eq!((FRAME.at(-500.0), FRAME.at(5_000.0)), (0, 100));
        let (top, bottom) = FRAME.edges(Measure::Latency);
        assert_eq!(FRAME.y(Measure::Latency, SCALE, 0.0), bottom);
        assert_eq!(FRAME.y(Measure::Latency, SCALE, 140.0), top);
        assert!(FRAME.edges(Measure::Score).1 < HEIGHT);
    }

    #[test]
    fn a_gap_starts_a_new_stroke() {
        let series = example();
        let d = drawn(&series);
        // Points in the middle of their steps; 3 fails and is then not measured.
        assert_eq!(d.line(NodeId(3), Measure::Latency, SCALE), "M51.0 163.0h0L61.0 161.0");
        // 4: measured, failed, measured, nothing for a while, measured.
        let line = d.line(NodeId(4), Measure::Latency, SCALE);
        assert_eq!(line.matches('M').count(), 3, "{line}");
        assert_eq!(line.matches('L').count(), 0, "{line}");
        // That all was lost is drawn as such.
        assert_eq!(d.line(NodeId(3), Measure::Loss, Scale::of_shares(1.0)).matches('L').count(), 2);
        assert_eq!(d.line(NodeId(9), Measure::Loss, SCALE), "");
    }

    #[test]
    fn rounds_that_are_missing_are_a_gap_too() {
        let points: Vec<_> = [0, 10, 20, 50, 60].map(|at| (at, Some(10.0), Some(0.0))).to_vec();
        let series = Series::of(&[leg(1, 3, "a", &points), leg(3, 3, "b", &points)], 100.0).remove(0);
        let line = drawn(&series).line(NodeId(3), Measure::Latency, SCALE);
        assert_eq!((line.matches('M').count(), line.matches('L').count()), (2, 3), "{line}");
        // What is outside is not drawn.
        let frame = Frame { axis: Axis { from: 12, to: 40, step_ms: 10 }, ..FRAME };
        let line = Drawn { frame, ..drawn(&series) }.line(NodeId(3), Measure::Latency, SCALE);
        assert_eq!((line.matches('M').count(), line.matches('L').count()), (1, 1), "{line}");
    }

    #[test]
    fn failures_are_marked_once_and_for_as_long_as_they_last() {
        let failed = |at| (at, None, Some(1.0));
        let points = [failed(0), failed(10), failed(20), (30, Some(1.0), Some(0.0)), failed(40)];
        let good: Vec<_> = [0, 10, 20, 30, 40].map(|at| (at, Some(10.0), Some(0.0))).to_vec();
        let series = Series::of(&[leg(1, 3, "a", &points), leg(3, 3, "b", &good)], 100.0).remove(0);
        let marks = drawn(&series).failures(NodeId(3), Measure::Latency, 1);
        // Two crosses of two strokes, and two pieces of a bar.
        assert_eq!(marks.matches('M').count(), 6, "{marks}");
        assert!(marks.contains("M51.0 162.0L61.0 162.0"), "{marks}");
        assert_eq!(drawn(&series).dots(NodeId(3), 3, &[SCALE; 3]).matches("h0").count(), 3);
    }

    #[test]
    fn the_strip_shows_who_was_in_force_when() {
        let (a, b) = (NodeId(3), NodeId(4));
        let switches = [(60, Some(b), Some(a)), (20, Some(a), Some(b))];
        let of = |exit, now| in_force(FRAME, exit, &switches, 0, now);
        assert_eq!(of(a, (90, Some(a))), "M106.0 7.0L136.0 7.0M46.0 7.0L66.0 7.0");
        assert_eq!(of(b, (90, Some(a))), "M66.0 7.0L106.0 7.0");
        assert_eq!(in_force(FRAME, a, &[], -50, (500, Some(a))), "M46.0 7.0L146.0 7.0");
        // Not before it was measured for the first time, unless it was switched before that.
        assert_eq!(in_force(FRAME, a, &[], 60, (500, Some(a))), "M106.0 7.0L146.0 7.0");
        assert_eq!(in_force(FRAME, a, &[(20, Some(b), Some(a))], 60, (500, Some(a))), "M66.0 7.0L146.0 7.0");
        assert_eq!(in_force(FRAME, a, &[(20, None, Some(b))], 0, (90, Some(b))), "");
    }

    #[test]
    fn every_event_has_a_shape_and_stays_inside() {
        let heads = [Event::Switched, Event::Refused, Event::Pinned].map(|event| head(FRAME, 50, event));
        assert!(heads[0] != heads[1] && heads[1] != heads[2] && heads[0] != heads[2]);
        assert_eq!((head(FRAME, 101, Event::Switched), upright(FRAME, -1)), (String::new(), String::new()));
        assert!(stretch(FRAME, -50.0, 80.0).starts_with("M46.0 14.0L80.0"));
        assert_eq!(
            grid(FRAME, &[SCALE; 3], &[Tick { at: 50, label: String::new() }]).matches('M').count(),
            12
        );
    }
}
