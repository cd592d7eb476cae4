//! Whether a number that was looked at again and again grows.

use super::super::numbers::Spread;
use serde_json::{Value, json};

/// Parts that the samples are cut into; the first is compared with the last.
const PARTS: usize = 5;

/// Growth that is no leak: a share of the first value, and as much again as nothing else explains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) share: f64,
    pub(super) fixed: f64,
}

/// How a number went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// Median of the first fifth.
    pub(super) first: f64,
    /// Median of the last fifth.
    pub(super) last: f64,
    /// Most that the last may be.
    pub(super) most: f64,
    /// Largest of all.
    pub(super) peak: f64,
}

impl Trend {
    /// Of samples in the order of their times; `None` of fewer than there are parts.
    ///
    /// Medians of parts and no line through all: what comes and goes with the death of an exit touches a few samples of
    /// a part and not its median, while what is never given back lifts every sample of the last part.
    pub(super) fn of(values: &[f64], bound: Bound) -> Option<Self> {
        let part = values.len() / PARTS;
        let (first, last) = (Spread::of(&values[..part])?, Spread::of(&values[values.len() - part..])?);
        Some(Self {
            first: first.median,
            last: last.median,
            most: first.median * (1.0 + bound.share) + bound.fixed,
            peak: Spread::of(values)?.max,
        })
    }

    /// Whether it does not grow.
    pub(super) fn flat(&self) -> bool {
        self.last <= self.most
    }

    pub(super) fn json(&self) -> Value {
        json!({ "first": self.first, "last": self.last, "most": self.most, "peak": self.peak, "flat": self.flat() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = Bound { share: 0.1, fixed: 5.0 };

    /// Fifty samples.
    fn samples(value: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..50).map(value).collect()
    }

    #[test]
    fn what_grows_is_told_from_what_comes_and_goes() {
        let table = [
            ("the same all the time", samples(|_| 100.0), true),
            ("up and down", samples(|i| if i % 2 == 0 { 80.0 } else { 120.0 }), true),
            ("a peak in the last part", samples(|i| if i == 47 { 900.0 } else { 100.0 }), true),
            ("less and less", samples(|i| 100.0 - i as f64), true),
            ("as much as is allowed", samples(|i| if i < 10 { 100.0 } else { 115.0 }), true),
            ("one step more", samples(|i| if i < 10 { 100.0 } else { 115.1 }), false),
            ("slowly and steadily", samples(|i| 100.0 + i as f64), false),
            ("only at the end", samples(|i| if i < 40 { 100.0 } else { 130.0 }), false),
            ("from nothing", samples(|i| i as f64), false),
            ("nothing", samples(|_| 0.0), true),
        ];
        for (name, values, flat) in table {
            assert_eq!(Trend::of(&values, BOUND).unwrap().flat(), flat, "{name}");
        }
    }

    #[test]
    fn the_parts_are_the_first_and_the_last_fifth() {
        let trend = Trend::of(&samples(|i| i as f64), BOUND).unwrap();
        assert_eq!((trend.first, trend.last, trend.peak), (4.5, 44.5, 49.0));
        assert!((trend.most - 9.95).abs() < 1e-9, "{}", trend.most);
    }

    #[test]
    fn too_few_samples_say_nothing() {
        assert_eq!(Trend::of(&[], BOUND), None);
        assert_eq!(Trend::of(&[1.0; 4], BOUND), None);
        assert!(Trend::of(&[1.0; 5], BOUND).is_some());
    }
}
