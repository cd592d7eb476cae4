//! Failure marks of one node: pure state, the time is a parameter.
//!
//! Unlike GOST's: failures count inside a window, times are milliseconds, and expiry admits a single trial connection
//! instead of everybody at once.

use std::collections::VecDeque;

/// When failures leave a node out, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailRule {
    /// Failures inside `fail_timeout_ms` after which a node is left out; at least 1.
    pub max_fails: u32,
    /// For how long it is left out, in milliseconds; at least 1. Also the window in which failures add up.
    pub fail_timeout_ms: u64,
}

impl FailRule {
    /// GOST's defaults, which hold wherever 0 or nothing is configured.
    pub const DEFAULT: FailRule = FailRule { max_fails: 1, fail_timeout_ms: 10_000 };
}

/// What the fail filter thinks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Usable.
    Clear,
    /// Its time out has passed: one connection may try it.
    Trial,
    /// Left out, or its trial is under way.
    Marked,
}

/// Failure marks of one node.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Failures inside the window, oldest first; empty while marked. Never longer than the rule's `max_fails`.
    recent: VecDeque<u64>,
    /// The last failure of a node that is left out.
    marked_at_ms: Option<u64>,
    trial_under_way: bool,
}

impl Marks {
    /// Counts a failure. A node that was left out already, its trial included, is left out for the full time again.
    pub fn fail(&mut self, now_ms: u64, rule: FailRule) {
        if self.marked_at_ms.is_some() {
            self.marked_at_ms = Some(now_ms);
            self.trial_under_way = false;
            return;
        }
        self.recent.retain(|at| now_ms.saturating_sub(*at) < rule.fail_timeout_ms);
        self.recent.push_back(now_ms);
        if self.recent.len() >= rule.max_fails.max(1) as usize {
            self.recent.clear();
            self.marked_at_ms = Some(now_ms);
        }
    }

    /// A connection got through: everything is forgotten.
    pub fn succeed(&mut self) {
        *self = Self::default();
    }

    /// What the fail filter thinks of the node now.
    pub fn health(&self, now_ms: u64, rule: FailRule) -> Health {
        match self.marked_at_ms {
            None => Health::Clear,
            Some(at) if now_ms.saturating_sub(at) < rule.fail_timeout_ms => Health::Marked,
            Some(_) if self.trial_under_way => Health::Marked,
            Some(_) => Health::Trial,
        }
    }

    /// Takes the one trial; false if there is none to take.
    pub fn begin_trial(&mut self, now_ms: u64, rule: FailRule) -> bool {
        let free = self.health(now_ms, rule) == Health::Trial;
        self.trial_under_way |= free;
        free
    }

    /// Gives an unfinished trial back, for the next connection to take.
    pub fn abandon_trial(&mut self) {
        self.trial_under_way = false;
    }

    /// Whether the node was left out and has not been through since, whatever time it is.
    pub fn is_marked(&self) -> bool {
        self.marked_at_ms.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: FailRule = FailRule { max_fails: 1, fail_timeout_ms: 10_000 };
    const THREE: FailRule = FailRule { max_fails: 3, fail_timeout_ms: 1_000 };

    #[test]
    fn one_failure_leaves_out_for_exactly_the_time() {
        let mut marks = Marks::default();
        assert_eq!(marks.health(5, RULE), Health::Clear);
        marks.fail(5, RULE);
        assert_eq!(marks.health(5, RULE), Health::Marked);
        assert_eq!(marks.health(10_004, RULE), Health::Marked);
        assert_eq!(marks.health(10_005, RULE), Health::Trial);
    }

    #[test]
    fn failures_add_up_only_inside_the_window() {
        let mut marks = Marks::default();
        for at in [0, 600, 1_200, 1_800, 2_400] {
            marks.fail(at, THREE);
            assert_eq!(marks.health(at, THREE), Health::Clear, "never three within a second, at {at}");
        }
        marks.fail(2_500, THREE);
        assert_eq!(marks.health(2_500, THREE), Health::Marked);
    }

    #[test]
    fn a_success_forgets_everything() {
        let mut marks = Marks::default();
        marks.fail(0, THREE);
        marks.fail(1, THREE);
        marks.succeed();
        marks.fail(2, THREE);
        assert_eq!(marks.health(2, THREE), Health::Clear);
        marks.fail(3, RULE);
        marks.succeed();
        assert_eq!(marks.health(3, RULE), Health::Clear);
        assert!(!marks.is_marked());
    }

    #[test]
    fn after_the_time_out_exactly_one_connection_tries() {
        let mut marks = Marks::default();
        marks.fail(0, RULE);
        assert!(!marks.begin_trial(9_999, RULE), "not before its time");
        assert!(marks.begin_trial(10_000, RULE));
        assert!(!marks.begin_trial(10_000, RULE), "one at a time");
        assert_eq!(marks.health(10_000, RULE), Health::Marked);
        marks.abandon_trial();
        assert!(marks.begin_trial(10_001, RULE), "an abandoned trial is there for the next");
        marks.succeed();
        assert_eq!(marks.health(10_001, RULE), Health::Clear);
    }

    #[test]
    fn a_failed_trial_leaves_out_for_the_full_time_whatever_max_fails_says() {
        let mut marks = Marks::default();
        for at in [0, 1, 2] {
            marks.fail(at, THREE);
        }
        assert!(marks.begin_trial(1_002, THREE));
        marks.fail(1_100, THREE);
        assert_eq!(marks.health(2_099, THREE), Health::Marked);
        assert_eq!(marks.health(2_100, THREE), Health::Trial);
    }

    #[test]
    fn the_rule_may_change_while_a_node_is_left_out() {
        let mut marks = Marks::default();
        marks.fail(0, RULE);
        assert_eq!(marks.health(1_500, RULE), Health::Marked);
        assert_eq!(marks.health(1_500, THREE), Health::Trial);
    }
}
