//! Which stretch of time is looked at.

use shared::api::WallMs;

const SECOND_MS: i64 = 1000;
pub const MINUTE_MS: i64 = 60 * SECOND_MS;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// Closer than that there is nothing to see.
const SHORTEST_MS: i64 = MINUTE_MS;
/// The panel keeps hardly anything for longer.
const LONGEST_MS: i64 = 30 * DAY_MS;
/// Spans on offer, from the shortest to the longest.
pub const OFFERED_MS: [i64; 8] =
    [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, DAY_MS, 7 * DAY_MS, 30 * DAY_MS];
/// What is shown at first where there is as much.
pub const USUAL_MS: i64 = HOUR_MS;
/// Two fingers that are closer to each other than this share of the width hold one moment.
const APART: f64 = 0.02;
/// More points than one in so many pixels nobody sees.
const PIXELS_PER_POINT: f64 = 2.5;
/// Steps of the history. From a minute on they are made of whole minutes, and from a quarter of an hour on of whole
/// quarters: those are what the panel has summed up already.
const STEPS_S: [i64; 15] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600];
/// A chart that follows the time moves as often as it has something new, but not all the time, and not too rarely to
/// show a switch.
const PACE_MS: (i64, i64) = (5 * SECOND_MS, MINUTE_MS);

/// What the reader wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// How much of it.
    pub span_ms: i64,
    /// Where it ends; `None`: now, and it follows.
    pub end: Option<WallMs>,
}

/// What the chart shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The left edge.
    pub from: WallMs,
    /// The right edge.
    pub to: WallMs,
    /// The history's step.
    pub step_ms: i64,
}

/// The shortest span on offer that shows all that was measured since a moment, and at most the usual one; none: nothing
/// was measured yet.
pub fn fitting(first: Option<WallMs>, now: WallMs) -> i64 {
    let age_ms = first.map_or(0, |first| now - first);
    OFFERED_MS.into_iter().find(|span_ms| *span_ms >= age_ms).unwrap_or(USUAL_MS).min(USUAL_MS)
}

impl View {
    /// The last while.
    pub fn last(span_ms: i64) -> Self {
        Self { span_ms, end: None }
    }

    /// A stretch; one that reaches to the present follows it.
    pub fn between(from: WallMs, to: WallMs, now: WallMs) -> Self {
        let span_ms = (to - from).clamp(SHORTEST_MS, LONGEST_MS);
        // What is too short grows to both sides.
        let to = to + (span_ms - (to - from)) / 2;
        Self { span_ms, end: (to < now).then_some(to) }
    }

    /// What a chart of this width in pixels shows.
    pub fn axis(self, now: WallMs, width: f64) -> Axis {
        let wanted_ms = self.span_ms as f64 * PIXELS_PER_POINT / width.max(1.0);
        let steps = STEPS_S.map(|s| s * SECOND_MS);
        let step_ms = steps.into_iter().find(|step| *step as f64 >= wanted_ms);
        let step_ms = step_ms.unwrap_or(steps[steps.len() - 1]);
        let pace = step_ms.clamp(PACE_MS.0, PACE_MS.1);
        let to = self.end.unwrap_or((now.div_euclid(pace) + 1) * pace);
        Axis { from: to - self.span_ms, to, step_ms }
    }

    /// Shows twice as much or half as much, so that a moment stays where it is; without one what is at the right edge of
    /// a chart that follows the time, and the middle of any other.
    pub fn zoomed(self, closer: bool, around: Option<WallMs>, now: WallMs) -> Self {
        let span_ms = if closer { self.span_ms / 2 } else { self.span_ms * 2 }.clamp(SHORTEST_MS, LONGEST_MS);
        let Some(end) = self.end.or(around.map(|_| now)) else { return Self::last(span_ms) };
        let around = around.unwrap_or(end - self.span_ms / 2);
        let share = (end - around) as f64 / self.span_ms as f64;
        let to = around + (share * span_ms as f64) as i64;
        Self { span_ms, end: (to < now).then_some(to) }
    }

    /// Shows two moments at two places, which are shares of the width: two fingers hold them there. `None` where the fingers
    /// are too close to each other, or have changed sides.
    pub fn held(held: [(WallMs, f64); 2], now: WallMs) -> Option<Self> {
        let [one, other] = held;
        let ((from, left), (to, right)) = if one.0 <= other.0 { (one, other) } else { (other, one) };
        if right - left < APART {
            return None;
        }
        let span_ms = (((to - from) as f64 / (right - left)) as i64).clamp(SHORTEST_MS, LONGEST_MS);
        // Where it cannot be as short or as long as that, the fingers keep what is in their middle.
        let (middle, place) = ((from + to) / 2, (left + right) / 2.0);
        let to = middle + ((1.0 - place) * span_ms as f64) as i64;
        Some(Self { span_ms, end: (to < now).then_some(to) })
    }

    /// A quarter earlier or later.
    pub fn moved(self, later: bool, now: WallMs) -> Self {
        let by = self.span_ms / 4;
        let to = self.end.unwrap_or(now) + if later { by } else { -by };
        Self { span_ms: self.span_ms, end: (to < now).then_some(to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallMs = 1_000 * DAY_MS + 1;

    #[test]
    fn about_one_point_per_two_or_three_pixels() {
        let step = |span_ms: i64, width: f64| View::last(span_ms).axis(NOW, width).step_ms;
        assert_eq!(step(HOUR_MS / 4, 1000.0), 5_000);
        assert_eq!(step(HOUR_MS, 1000.0), 10_000);
        assert_eq!(step(6 * HOUR_MS, 1000.0), MINUTE_MS);
        assert_eq!(step(DAY_MS, 1000.0), 5 * MINUTE_MS);
        assert_eq!(step(7 * DAY_MS, 1000.0), 30 * MINUTE_MS);
        assert_eq!(step(30 * DAY_MS, 1000.0), 2 * HOUR_MS);
        assert_eq!(step(30 * DAY_MS, 250.0), 6 * HOUR_MS);
        assert_eq!(step(30 * DAY_MS, 0.0), 6 * HOUR_MS);
        // What is summed up is used.
        for step in STEPS_S.map(|s| s * SECOND_MS) {
            assert!(step < MINUTE_MS || step % MINUTE_MS == 0);
            assert!(step < 15 * MINUTE_MS || step % (15 * MINUTE_MS) == 0);
        }
    }

    #[test]
    fn only_a_view_that_ends_now_follows() {
        let live = View::last(HOUR_MS);
        let (first, later) = (live.axis(NOW, 1000.0), live.axis(NOW + 3_600, 1000.0));
        assert_eq!(first, later, "it moves with every second");
        assert!(first.to > NOW && live.axis(NOW + 10_000, 1000.0).to > first.to);
        let past = View::between(NOW - 2 * HOUR_MS, NOW - HOUR_MS, NOW);
        assert_eq!(past.axis(NOW, 1000.0), past.axis(NOW + DAY_MS, 1000.0));
        assert_eq!(View::between(NOW - HOUR_MS, NOW + 5, NOW).end, None);
    }

    #[test]
    fn a_stretch_that_is_too_short_grows_around_its_middle() {
        let view = View::between(NOW - DAY_MS, NOW - DAY_MS + 10_000, NOW);
        assert_eq!(view, View { span_ms: MINUTE_MS, end: Some(NOW - DAY_MS + 35_000) });
    }

    #[test]
    fn zooming_keeps_a_moment_in_its_place() {
        let view = View { span_ms: 4 * HOUR_MS, end: Some(NOW - DAY_MS) };
        let at = NOW - DAY_MS - HOUR_MS;
        let closer = view.zoomed(true, Some(at), NOW);
        assert_eq!(closer, View { span_ms: 2 * HOUR_MS, end: Some(at + HOUR_MS / 2) });
        assert_eq!(closer.zoomed(false, Some(at), NOW), view);
        // Without a moment: the middle, and the present of a live chart.
        assert_eq!(view.zoomed(true, None, NOW).end, Some(NOW - DAY_MS - HOUR_MS));
        assert_eq!(View::last(HOUR_MS).zoomed(true, None, NOW), View::last(HOUR_MS / 2));
        // Away from the present it stops, and back at it goes on.
        let stopped = View::last(HOUR_MS).zoomed(true, Some(NOW - HOUR_MS / 2), NOW);
        assert!(stopped.end.is_some());
        assert_eq!(stopped.zoomed(false, Some(NOW - HOUR_MS / 2), NOW).end, None);
        // Not without end.
        assert_eq!(View::last(MINUTE_MS).zoomed(true, None, NOW).span_ms, MINUTE_MS);
        assert_eq!(View::last(30 * DAY_MS).zoomed(false, None, NOW).span_ms, 30 * DAY_MS);
    }

    #[test]
    fn what_is_young_is_shown_as_wide_as_it_is() {
        for (age_ms, wanted) in [
            (0, MINUTE_MS),
            (MINUTE_MS, MINUTE_MS),
            (MINUTE_MS + 1, 5 * MINUTE_MS),
            (14 * MINUTE_MS, 15 * MINUTE_MS),
            (16 * MINUTE_MS, HOUR_MS),
            (HOUR_MS + 1, HOUR_MS),
            (90 * DAY_MS, HOUR_MS),
            // A clock that was set back.
            (-DAY_MS, MINUTE_MS),
        ] {
            assert_eq!(fitting(Some(NOW - age_ms), NOW), wanted, "{age_ms}");
        }
        assert_eq!(fitting(None, NOW), MINUTE_MS);
        assert!(OFFERED_MS.is_sorted() && OFFERED_MS.contains(&USUAL_MS));
        assert_eq!((OFFERED_MS[0], OFFERED_MS[OFFERED_MS.len() - 1]), (SHORTEST_MS, LONGEST_MS));
    }

    #[test]
    fn two_fingers_keep_what_they_hold() {
        let end = NOW - DAY_MS;
        let view = |span_ms, end| Some(View { span_ms, end: Some(end) });
        let at = |minutes: i64| end - minutes * MINUTE_MS;
        for (held, wanted) in [
            // Where they are put down nothing moves.
            ([(at(45), 0.25), (at(15), 0.75)], view(HOUR_MS, end)),
            // Apart: closer; the order of the fingers does not matter.
            ([(at(45), 0.0), (at(15), 1.0)], view(HOUR_MS / 2, at(15))),
            ([(at(15), 1.0), (at(45), 0.0)], view(HOUR_MS / 2, at(15))),
            // Together: further away, around what they hold.
            ([(at(45), 0.375), (at(15), 0.625)], view(2 * HOUR_MS, end + HOUR_MS / 2)),
            // Side by side to the left: later.
            ([(at(45), 0.0), (at(15), 0.5)], view(HOUR_MS, end + HOUR_MS / 4)),
            // Not closer than there is anything to see, and not longer than anything is kept.
            ([(at(1), 0.0), (at(0), 1.0)], view(MINUTE_MS, end)),
            ([(end - 3000, 0.25), (end, 0.75)], view(MINUTE_MS, end - 1500 + MINUTE_MS / 2)),
            ([(end - 30 * DAY_MS, 0.9), (end, 1.0)], view(30 * DAY_MS, end - 15 * DAY_MS + 36 * HOUR_MS)),
            // One place for both, and sides changed.
            ([(at(45), 0.5), (at(15), 0.5)], None),
            ([(at(45), 0.75), (at(15), 0.25)], None),
        ] {
            assert_eq!(View::held(held, NOW), wanted, "{held:?}");
        }
        // Whoever draws the present in follows it.
        let live = View::held([(NOW - HOUR_MS, 0.5), (NOW, 0.9)], NOW).unwrap();
        assert_eq!(live, View { span_ms: 2 * HOUR_MS + HOUR_MS / 2, end: None });
    }

    #[test]
    fn moving_comes_back_to_the_present() {
        let earlier = View::last(HOUR_MS).moved(false, NOW);
        assert_eq!(earlier.end, Some(NOW - HOUR_MS / 4));
        assert_eq!(earlier.moved(true, NOW), View::last(HOUR_MS));
        assert_eq!(View::last(HOUR_MS).moved(true, NOW), View::last(HOUR_MS));
    }
}
