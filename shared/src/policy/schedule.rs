//! When the members of a group are tested, and when an idle group stops.

use crate::best_exit::MonoMs;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Tests of one group under way at the same time (sing-box's limit).
pub const AT_ONCE: usize = 10;
/// A member is tested out of turn no more often than this (dae's limit).
pub const URGENT_EVERY_MS: u64 = 2000;

/// The tests of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    interval_ms: u64,
    /// `None`: never stops.
    idle_ms: Option<u64>,
    last_used: MonoMs,
    /// The next regular round; `None`: idle.
    next: Option<MonoMs>,
    waiting: VecDeque<usize>,
    under_way: BTreeSet<usize>,
    /// The round in which each member was last asked for; not when its turn came, or a long queue would skip a round.
    asked: BTreeMap<usize, MonoMs>,
    urgent: BTreeMap<usize, MonoMs>,
}

impl Schedule {
    /// Nothing is due before it starts.
    pub fn new(interval_ms: u64, idle_ms: Option<u64>) -> Self {
        Self {
            interval_ms,
            idle_ms,
            last_used: 0,
            next: None,
            waiting: VecDeque::new(),
            under_way: BTreeSet::new(),
            asked: BTreeMap::new(),
            urgent: BTreeMap::new(),
        }
    }

    /// The first round at once; one that may idle then waits for its first use, others go on.
    pub fn start(&mut self, members: &BTreeSet<usize>, now: MonoMs) {
        self.last_used = now;
        if self.idle_ms.is_none() {
            self.next = Some(now.saturating_add(self.interval_ms));
        }
        self.round(members, now, false);
    }

    /// Traffic used the group. An idle one wakes; if its last use is older than the interval it tests at once.
    pub fn used(&mut self, members: &BTreeSet<usize>, now: MonoMs) {
        let stale = now.saturating_sub(self.last_used) > self.interval_ms;
        self.last_used = now;
        if self.next.is_none() {
            self.next = Some(now.saturating_add(self.interval_ms));
            if stale {
                self.round(members, now, false);
            }
        }
    }

    /// The regular round, if it is due.
    pub fn tick(&mut self, members: &BTreeSet<usize>, now: MonoMs) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        if self.idle_ms.is_some_and(|idle| now.saturating_sub(self.last_used) > idle) {
            self.next = None;
            return;
        }
        self.next = Some(now.saturating_add(self.interval_ms));
        self.round(members, now, false);
    }

    /// When [`Schedule::tick`] is due.
    pub fn due(&self) -> Option<MonoMs> {
        self.next
    }

    /// Asks for tests. Not forced, a member asked within the interval is left out; one under way is never asked twice.
    pub fn round(&mut self, members: &BTreeSet<usize>, now: MonoMs, forced: bool) {
        for member in members {
            let recent = self.asked.get(member).is_some_and(|at| now.saturating_sub(*at) < self.interval_ms);
            if (forced || !recent) && !self.is_pending(*member) {
                self.waiting.push_back(*member);
                self.asked.insert(*member, now);
            }
        }
    }

    /// Asks for one member out of turn, not more often than the limit.
    pub fn urgent(&mut self, member: usize, now: MonoMs) {
        let recent = self.urgent.get(&member).is_some_and(|at| now.saturating_sub(*at) < URGENT_EVERY_MS);
        if !recent && !self.is_pending(member) {
            self.urgent.insert(member, now);
            self.asked.insert(member, now);
            self.waiting.push_front(member);
        }
    }

    /// The next member to test now, if one more may be under way.
    pub fn next_test(&mut self) -> Option<usize> {
        if self.under_way.len() >= AT_ONCE {
            return None;
        }
        let member = self.waiting.pop_front()?;
        self.under_way.insert(member);
        Some(member)
    }

    /// A test has ended.
    pub fn ended(&mut self, member: usize) {
        self.under_way.remove(&member);
    }

    /// A test of the member is under way.
    pub fn is_under_way(&self, member: usize) -> bool {
        self.under_way.contains(&member)
    }

    /// No test is waiting or under way.
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    fn is_pending(&self, member: usize) -> bool {
        self.under_way.contains(&member) || self.waiting.contains(&member)
    }
}
