//! The legs' history → what each exit was like at each moment.

use super::ticks::Scale;
use shared::api::{LegHistory, LegPoint, WallMs};
use shared::best_exit::{Leg, LegFailure, Score};
use shared::ids::NodeId;

/// What one chart shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Both legs together, in milliseconds.
    Latency,
    /// Both legs together, 0 to 1.
    Loss,
    /// What the exits are ranked by.
    Score,
}

impl Measure {
    /// From top to bottom.
    pub const ALL: [Self; 3] = [Self::Latency, Self::Loss, Self::Score];
}

/// What an exit was like in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Point {
    /// As the panel rates it.
    Measured(Score),
    /// It was tried, and one leg gave nothing at all.
    Failed,
    /// Nobody could say.
    Unknown,
}

impl Point {
    /// Its place in a chart. A failure has none, but that it lost everything is known.
    pub fn value(self, measure: Measure) -> Option<f64> {
        match (self, measure) {
            (Point::Measured(score), Measure::Latency) => Some(score.latency_ms),
            (Point::Measured(score), Measure::Loss) => Some(score.loss),
            (Point::Measured(score), Measure::Score) => Some(score.total_ms),
            (Point::Failed, Measure::Loss) => Some(1.0),
            (Point::Failed | Point::Unknown, _) => None,
        }
    }
}

/// One exit; as many points as its series has times.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The exit.
    pub exit: NodeId,
    /// At each time.
    pub points: Vec<Point>,
}

/// What one owner saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The owner.
    pub owner: NodeId,
    /// Starts of the steps in which anything was measured, ascending.
    pub times: Vec<WallMs>,
    /// The exits in saved order.
    pub lines: Vec<Line>,
}

impl Series {
    /// Per owner, in the order of the answer. The legs of a round have the same time, and so have those of a step.
    pub fn of(legs: &[LegHistory], loss_penalty_ms_per_percent: f64) -> Vec<Self> {
        let mut owners: Vec<NodeId> = Vec::new();
        for leg in legs.iter().filter(|leg| leg.leg == "a") {
            if !owners.contains(&leg.from_node_id) {
                owners.push(leg.from_node_id);
            }
        }
        let series = |owner: NodeId| {
            let own = || legs.iter().filter(move |leg| leg.leg == "a" && leg.from_node_id == owner);
            let mut times: Vec<WallMs> = Vec::new();
            for point in own().flat_map(|leg| &leg.points) {
                // Nearly always it is there already, or the next.
                if let Err(place) = times.binary_search(&point.at) {
                    times.insert(place, point.at);
                }
            }
            let line = |a: &LegHistory| {
                let exit = a.exit_node_id;
                let b = legs.iter().find(|leg| leg.leg == "b" && leg.exit_node_id == exit);
                let b = b.map(|leg| leg.points.as_slice()).unwrap_or_default();
                let point = |at: &WallMs| {
                    point(at_time(&a.points, *at), at_time(b, *at), loss_penalty_ms_per_percent)
                };
                Line { exit, points: times.iter().map(point).collect() }
            };
            let lines = own().map(line).collect();
            Series { owner, times, lines }
        };
        owners.into_iter().map(series).collect()
    }

    /// The scale that all lines but the hidden ones fit into.
    pub fn scale(&self, measure: Measure, hidden: &[NodeId]) -> Scale {
        let shown = self.lines.iter().filter(|line| !hidden.contains(&line.exit));
        let values = shown.flat_map(|line| &line.points).filter_map(|point| point.value(measure));
        let highest = values.fold(0.0, f64::max);
        if measure == Measure::Loss { Scale::of_shares(highest) } else { Scale::of_numbers(highest) }
    }

    /// The line of an exit.
    pub fn line(&self, exit: NodeId) -> Option<&Line> {
        self.lines.iter().find(|line| line.exit == exit)
    }

    /// The step nearest to a moment, by its index.
    pub fn nearest(&self, at: WallMs) -> Option<usize> {
        let behind = self.times.partition_point(|time| *time < at);
        let around = [behind.checked_sub(1), Some(behind).filter(|place| *place < self.times.len())];
        around.into_iter().flatten().min_by_key(|place| (self.times[*place] - at).abs())
    }
}

fn at_time(points: &[LegPoint], at: WallMs) -> Leg {
    let found = points.binary_search_by_key(&at, |point| point.at).ok();
    let point = found.map(|place| &points[place]);
    match point.map(|point| (point.latency_ms, point.loss)) {
        Some((Some(latency_ms), loss)) => Leg::Measured { latency_ms, loss: loss.unwrap_or(0.0) },
        Some((None, Some(_))) => Leg::Failed { reason: LegFailure::AllLost },
        Some((None, None)) | None => Leg::Unmeasured { reason: String::new() },
    }
}

fn point(a: Leg, b: Leg, penalty: f64) -> Point {
    match (Score::of(&a, &b, penalty), &a, &b) {
        (Some(score), ..) => Point::Measured(score),
        (None, Leg::Failed { .. }, _) | (None, _, Leg::Failed { .. }) => Point::Failed,
        (None, ..) => Point::Unknown,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    type Raw = (WallMs, Option<f64>, Option<f64>);

    pub(crate) fn leg(from: i64, exit: i64, leg: &str, points: &[Raw]) -> LegHistory {
        let point = |(at, latency_ms, loss): &Raw| LegPoint { at: *at, latency_ms: *latency_ms, loss: *loss };
        LegHistory {
            from_node_id: NodeId(from),
            target: "t:1".into(),
            exit_node_id: NodeId(exit),
            leg: leg.into(),
            points: points.iter().map(point).collect(),
        }
    }

    pub(crate) fn example() -> Series {
        let good = |at, ms| (at, Some(ms), Some(0.0));
        let legs = [
            leg(1, 3, "a", &[good(0, 10.0), good(10, 12.0), (20, None, Some(1.0)), (30, None, None)]),
            leg(1, 4, "a", &[good(0, 20.0), good(10, 20.0), good(20, 20.0), good(40, 20.0)]),
            leg(3, 3, "b", &[good(0, 5.0), (10, Some(5.0), Some(0.01)), good(20, 5.0)]),
            leg(4, 4, "b", &[good(0, 5.0), (10, None, Some(1.0)), good(20, 5.0), good(40, 6.0)]),
        ];
        Series::of(&legs, 100.0).remove(0)
    }

    #[test]
    fn exits_are_rated_as_the_panel_does() {
        let series = example();
        assert_eq!((series.owner, &series.times[..]), (NodeId(1), &[0, 10, 20, 30, 40][..]));
        let values = |exit, measure| -> Vec<Option<f64>> {
            let line = series.line(NodeId(exit)).unwrap();
            line.points.iter().map(|point| point.value(measure)).collect()
        };
        assert_eq!(values(3, Measure::Latency), [Some(15.0), Some(17.0), None, None, None]);
        let scores = values(3, Measure::Score);
        assert!((scores[1].unwrap() - 117.0).abs() < 1e-9, "{scores:?}");
        // A failure is no score, and no good one above all; that all was lost is known.
        assert_eq!(series.lines[0].points[2], Point::Failed);
        assert_eq!(values(3, Measure::Loss)[2..], [Some(1.0), None, None]);
        assert_eq!(values(4, Measure::Latency), [Some(25.0), None, Some(25.0), None, Some(26.0)]);
        assert_eq!(series.lines[1].points[3], Point::Unknown);
    }

    #[test]
    fn owners_are_apart_and_in_order() {
        let legs = [
            leg(7, 3, "a", &[(0, Some(1.0), Some(0.0))]),
            leg(2, 3, "a", &[(5, Some(2.0), Some(0.0))]),
            leg(3, 3, "b", &[(0, Some(1.0), Some(0.0))]),
        ];
        let all = Series::of(&legs, 100.0);
        assert_eq!(all.iter().map(|series| series.owner.0).collect::<Vec<_>>(), [7, 2]);
        assert_eq!(all[1].lines[0].points, [Point::Unknown]);
        assert_eq!(Series::of(&[], 100.0), []);
    }

    #[test]
    fn scales_fit_what_is_shown() {
        let series = example();
        assert_eq!(series.scale(Measure::Latency, &[]).top, 30.0);
        assert_eq!(series.scale(Measure::Latency, &[NodeId(4)]).top, 20.0);
        assert_eq!(series.scale(Measure::Loss, &[]).top, 1.0);
        assert_eq!(series.scale(Measure::Latency, &[NodeId(3), NodeId(4)]).top, 1.0);
    }

    #[test]
    fn the_nearest_step() {
        let series = example();
        for (at, wanted) in [(-5, 0), (4, 0), (6, 1), (20, 2), (99, 4)] {
            assert_eq!(series.nearest(at), Some(wanted), "{at}");
        }
        let empty = Series { owner: NodeId(1), times: Vec::new(), lines: Vec::new() };
        assert_eq!(empty.nearest(3), None);
    }
}
