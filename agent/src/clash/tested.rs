//! What persons have found out by testing. Dashboards show what they find in histories; groups learn nothing of it.

use super::directory::Key;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Results per member.
pub(super) const MOST: usize = 10;

/// The last results, by what was tested.
#[derive(Debug, Default)]
pub(super) struct Tested(Mutex<BTreeMap<Key, VecDeque<Point>>>);

/// One test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    /// Time since 1970.
    pub(super) at: Duration,
    /// Milliseconds; 0 if it failed.
    pub(super) delay: u64,
}

/// The same as dashboards read it.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    time: String,
    delay: u64,
}

impl Point {
    pub(super) fn shown(self) -> Shown {
        Shown { time: super::time::rfc3339(self.at), delay: self.delay }
    }
}

impl Tested {
    /// Adds a result. What does not exist any more is forgotten.
    pub(super) fn note(&self, key: &Key, point: Point, exists: impl Fn(&Key) -> bool) {
        // Whole after each of the few things that are done with it.
        let mut tested = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tested.retain(|key, _| exists(key));
        let points = tested.entry(key.clone()).or_default();
        while points.len() >= MOST {
            points.pop_front();
        }
        points.push_back(point);
    }

    /// The results, oldest first.
    pub(super) fn of(&self, key: &Key) -> Vec<Point> {
        let tested = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tested.get(key).into_iter().flatten().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_results_are_kept_of_what_exists() {
        let (a, b) = (Key::Chain("a".into()), Key::Chain("b".into()));
        let tested = Tested::default();
        tested.note(&a, Point { at: Duration::ZERO, delay: 7 }, |_| true);
        for delay in 0..12 {
            tested.note(&b, Point { at: Duration::from_secs(delay), delay }, |key| *key == b);
        }
        assert_eq!(tested.of(&a), []);
        let delays: Vec<_> = tested.of(&b).into_iter().map(|point| point.delay).collect();
        assert_eq!(delays, (2..12).collect::<Vec<_>>());
    }
}
