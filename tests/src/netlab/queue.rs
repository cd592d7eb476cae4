//! Packets on their way: a heap ordered by the time they are due. Pure.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Items waiting for their time. Two that are due at the same time leave in the order they came.
#[derive(Debug)]
pub(crate) struct DelayQueue<T> {
    heap: BinaryHeap<Entry<T>>,
    next_sequence: u64,
}

#[derive(Debug)]
struct Entry<T> {
    due: Duration,
    sequence: u64,
    item: T,
}

impl<T> DelayQueue<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), next_sequence: 0 }
    }

    /// Adds an item that is due at `due`, a time since the lab's start.
    pub(crate) fn push(&mut self, due: Duration, item: T) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.heap.push(Entry { due, sequence, item });
    }

    /// When the first item is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.heap.peek().map(|entry| entry.due)
    }

    /// Takes the first item if its time has come.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<(Duration, T)> {
        if self.next_due()? > now {
            return None;
        }
        self.heap.pop().map(|entry| (entry.due, entry.item))
    }
}

// `BinaryHeap` gives the greatest first; the earliest has to be the greatest here.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.sequence).cmp(&(self.due, self.sequence))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_leaves_before_its_time() {
        let mut queue = DelayQueue::new();
        queue.push(Duration::from_millis(5), 'a');
        assert_eq!(queue.pop_due(Duration::from_nanos(4_999_999)), None);
        assert_eq!(queue.next_due(), Some(Duration::from_millis(5)));
        assert_eq!(queue.pop_due(Duration::from_millis(5)), Some((Duration::from_millis(5), 'a')));
        assert_eq!(queue.next_due(), None);
    }

    proptest! {
        #[test]
        fn leaves_like_a_stable_sort(dues in prop::collection::vec(0_u64..20, 0..200)) {
            let mut queue = DelayQueue::new();
            for (index, due) in dues.iter().enumerate() {
                queue.push(Duration::from_millis(*due), index);
            }
            let mut expected: Vec<(Duration, usize)> =
                dues.iter().enumerate().map(|(index, due)| (Duration::from_millis(*due), index)).collect();
            expected.sort_by_key(|(due, _)| *due);
            let left: Vec<_> = std::iter::from_fn(|| queue.pop_due(Duration::from_secs(1))).collect();
            prop_assert_eq!(left, expected);
        }
    }
}
