use super::*;
use crate::best_exit::LegFailure;

const A: NodeId = NodeId(1);
const B: NodeId = NodeId(2);
const C: NodeId = NodeId(3);

fn leg(latency_ms: f64) -> Leg {
    Leg::Measured { latency_ms, loss: 0.0 }
}

fn good(exit: NodeId, total_ms: f64) -> Candidate {
    Candidate { exit, leg_a: leg(total_ms / 2.0), leg_b: leg(total_ms / 2.0) }
}

fn failed(exit: NodeId) -> Candidate {
    Candidate { exit, leg_a: Leg::Failed { reason: LegFailure::AllLost }, leg_b: leg(1.0) }
}

fn away(exit: NodeId) -> Candidate {
    Candidate { exit, leg_a: leg(10.0), leg_b: Leg::Unmeasured { reason: "agent offline".into() } }
}

/// One owner fed with rounds at the interval of the settings.
struct Story {
    state: OwnerState,
    settings: Settings,
    now: MonoMs,
    pin: Option<Pin>,
    monitoring: bool,
    complete: bool,
    online: bool,
}

impl Story {
    fn new() -> Self {
        let applied = Applied { order: vec![A, B, C], last_switch: None };
        Self {
            state: OwnerState::new(applied),
            settings: Settings::default(),
            now: 1_000_000,
            pin: None,
            monitoring: true,
            complete: true,
            online: true,
        }
    }

    fn round(&mut self, candidates: &[Candidate]) -> Verdict {
        self.now += self.settings.round_interval_ms;
        let round = Round {
            now: self.now,
            complete: self.complete,
            monitoring: self.monitoring,
            owner_online: self.online,
            candidates,
            pin: self.pin,
        };
        self.state.evaluate(&round, &self.settings)
    }

    fn codes(&mut self, candidates: &[Candidate], rounds: usize) -> Vec<&'static str> {
        (0..rounds).map(|_| self.round(candidates).reason.code()).collect()
    }

    /// Pushes whatever a verdict asks and lets the owner accept.
    fn accept(&mut self, verdict: Verdict) {
        let order = verdict.push.expect("the verdict should push");
        self.state.accepted(order, self.now);
    }
}

#[test]
fn before_any_round_the_stored_or_saved_order_counts() {
    assert_eq!(Story::new().state.reason, Reason::NoDecision);
    let never = Applied::default();
    assert_eq!(never.complete(&[B, A]), [B, A]);
    let applied = Applied { order: vec![C, B, A], last_switch: None };
    assert_eq!(applied.complete(&[A, NodeId(4), C]), [C, A, NodeId(4)]);
}

#[test]
fn nothing_to_choose() {
    let mut story = Story::new();
    let verdict = story.round(&[good(A, 50.0)]);
    assert_eq!((verdict.reason, verdict.push), (Reason::SingleExit, None));
    assert_eq!(story.round(&[]).reason, Reason::Incomplete);
    story.complete = false;
    assert_eq!(story.round(&[good(A, 900.0), good(B, 10.0)]).reason, Reason::Incomplete);
    story.complete = true;
    story.monitoring = false;
    let verdict = story.round(&[good(A, 900.0), good(B, 10.0)]);
    assert_eq!((verdict.reason, verdict.push), (Reason::Paused, None));
    assert_eq!(story.state.applied.order, [A, B, C]);
}

#[test]
fn all_rules_hold() {
    let mut story = Story::new();
    let seen = [good(A, 200.0), good(B, 50.0), good(C, 60.0)];
    assert_eq!(story.codes(&seen, 2), ["confirming", "confirming"]);
    assert_eq!(story.state.reason, Reason::Confirming { exit: B, rounds: 2, needed: 3 });
    let verdict = story.round(&seen);
    assert_eq!(
        verdict.reason,
        Reason::Switched { from: Some(A), to: B, advantage_ms: Some(150.0), why: None }
    );
    assert_eq!(verdict.push.as_deref(), Some(&[B, C, A][..]), "the new best, then the others by rank");
    story.accept(verdict);
    assert_eq!(story.codes(&seen, 2), ["current_is_best", "current_is_best"]);
}

#[test]
fn current_is_best_clears_the_count() {
    let mut story = Story::new();
    let better = [good(A, 200.0), good(B, 50.0)];
    assert_eq!(story.codes(&better, 2), ["confirming"; 2]);
    assert_eq!(story.codes(&[good(A, 10.0), good(B, 50.0)], 1), ["current_is_best"]);
    assert_eq!(story.codes(&better, 3), ["confirming", "confirming", "switched"]);
}

#[test]
fn advantage_is_the_larger_of_absolute_and_relative() {
    // 20 ms decide below a score of 133.3, 15 % above.
    for (current, best, enough) in [
        (100.0, 80.0, true),
        (100.0, 80.001, false),
        (1000.0, 850.0, true),
        (1000.0, 851.0, false),
        (30.0, 10.0, true),
        (19.0, 0.0, false),
    ] {
        let mut story = Story::new();
        let reason = story.round(&[good(A, current), good(B, best)]).reason;
        match reason {
            Reason::Confirming { exit: B, rounds: 1, .. } => assert!(enough, "{current} {best}"),
            Reason::InsufficientAdvantage { exit: B, have_ms, need_ms } => {
                assert!(!enough, "{current} {best}");
                assert!((have_ms - (current - best)).abs() < 1e-9);
                assert!((need_ms - f64::max(20.0, 0.15 * current)).abs() < 1e-9);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn missing_advantage_clears_the_count() {
    let mut story = Story::new();
    let better = [good(A, 200.0), good(B, 50.0)];
    let codes = [story.codes(&better, 2), story.codes(&[good(A, 200.0), good(B, 190.0)], 1)].concat();
    assert_eq!(codes, ["confirming", "confirming", "insufficient_advantage"]);
    assert_eq!(story.state.pending, None);
    assert_eq!(story.codes(&better, 3), ["confirming", "confirming", "switched"]);
}

#[test]
fn another_candidate_starts_at_one() {
    let mut story = Story::new();
    story.codes(&[good(A, 200.0), good(B, 50.0), good(C, 60.0)], 2);
    story.round(&[good(A, 200.0), good(B, 50.0), good(C, 40.0)]);
    assert_eq!(story.state.pending, Some(Pending { exit: C, rounds: 1 }));
}

#[test]
fn a_failed_current_exit_loses_by_any_advantage_but_is_confirmed_too() {
    let mut story = Story::new();
    let seen = [failed(A), good(B, 9000.0)];
    assert_eq!(story.codes(&seen, 2), ["confirming"; 2]);
    let verdict = story.round(&seen);
    assert_eq!(verdict.reason, Reason::Switched { from: Some(A), to: B, advantage_ms: None, why: None });
}

#[test]
fn all_failed_keeps_the_order_and_clears_the_count() {
    let mut story = Story::new();
    story.codes(&[good(A, 200.0), good(B, 50.0)], 2);
    let verdict = story.round(&[failed(A), failed(B)]);
    assert_eq!((verdict.reason, verdict.push), (Reason::AllExitsFailed, None));
    assert_eq!(story.state.pending, None);
    assert_eq!(story.state.applied.order, [A, B, C]);
}

#[test]
fn cooldown_counts_on_and_ends_exactly() {
    let mut story = Story::new();
    story.codes(&[good(A, 200.0), good(B, 50.0)], 2);
    let verdict = story.round(&[good(A, 200.0), good(B, 50.0)]);
    story.accept(verdict);
    let back = [good(A, 10.0), good(B, 200.0)];
    // 30 s at 5 s rounds: five rounds inside, the sixth is exactly at its end.
    assert_eq!(
        story.codes(&back, 6),
        ["confirming", "confirming", "cooldown", "cooldown", "cooldown", "switched"]
    );
    assert_eq!(story.state.pending, Some(Pending { exit: A, rounds: 6 }));
}

#[test]
fn remaining_cooldown_is_told() {
    let mut story = Story::new();
    story.state.applied.last_switch = Some(story.now);
    story.settings.confirmations = 1;
    let reason = story.round(&[good(A, 200.0), good(B, 50.0)]).reason;
    assert_eq!(reason, Reason::Cooldown { exit: B, remaining_ms: 25_000 });
    assert_eq!(story.state.cooldown_ends(story.now, &story.settings), Some(story.now + 25_000));
}

#[test]
fn an_owner_offline_neither_adds_nor_resets() {
    let mut story = Story::new();
    let better = [good(A, 200.0), good(B, 50.0)];
    story.codes(&better, 2);
    story.online = false;
    let verdict = story.round(&better);
    assert_eq!((verdict.reason, verdict.push), (Reason::OwnerOffline, None));
    assert!(verdict.ranked.is_empty(), "its candidates are not failed");
    story.online = true;
    assert_eq!(story.codes(&better, 1), ["switched"]);
}

#[test]
fn a_gap_of_more_than_three_intervals_resets() {
    for (gap_ms, code) in [(15_000, "switched"), (15_001, "confirming")] {
        let mut story = Story::new();
        let better = [good(A, 200.0), good(B, 50.0)];
        story.codes(&better, 2);
        story.now += gap_ms - story.settings.round_interval_ms;
        assert_eq!(story.codes(&better, 1), [code], "{gap_ms}");
    }
}

#[test]
fn a_refused_push_waits_and_is_tried_again_with_the_same_order() {
    let mut story = Story::new();
    let better = [good(A, 200.0), good(B, 50.0), good(C, 60.0)];
    story.codes(&better, 2);
    let first = story.round(&better).push.unwrap();
    story.state.refused(B, "等待节点响应超时".into(), story.now);
    assert_eq!(story.state.reason.code(), "apply_failed");
    assert_eq!(story.state.applied.order, [A, B, C]);
    assert_eq!(
        story.codes(&better, 6),
        [
            "apply_retry_wait",
            "apply_retry_wait",
            "apply_retry_wait",
            "apply_retry_wait",
            "apply_retry_wait",
            "switched"
        ]
    );
    let mut again = story.state.clone();
    again.pending = Some(Pending { exit: B, rounds: 9 });
    assert_eq!(story.round(&better).push, Some(first));
}

#[test]
fn an_unmeasured_current_exit_is_kept_for_the_grace() {
    let mut story = Story::new();
    story.settings.round_interval_ms = 20_000;
    let seen = [away(A), good(B, 50.0)];
    assert_eq!(story.round(&seen).reason, Reason::CurrentUnmeasured { remaining_ms: 60_000 });
    assert_eq!(story.codes(&seen, 2), ["current_unmeasured"; 2]);
    assert_eq!(story.codes(&seen, 1), ["switched"], "after 60 s it counts as failed");
}

#[test]
fn the_grace_needs_a_good_leg_a_and_starts_anew() {
    let mut story = Story::new();
    let mut dead = away(A);
    dead.leg_a = Leg::Failed { reason: LegFailure::Refused };
    assert_eq!(story.codes(&[dead, good(B, 50.0)], 1), ["confirming"]);
    let mut story = Story::new();
    story.settings.round_interval_ms = 20_000;
    story.codes(&[away(A), good(B, 50.0)], 2);
    story.codes(&[good(A, 10.0), good(B, 50.0)], 1);
    let reason = story.round(&[away(A), good(B, 50.0)]).reason;
    assert_eq!(reason, Reason::CurrentUnmeasured { remaining_ms: 60_000 });
}

#[test]
fn an_unmeasured_other_exit_ranks_as_failed() {
    let mut story = Story::new();
    assert_eq!(story.codes(&[good(A, 9000.0), away(B)], 4), ["current_is_best"; 4]);
    // Everybody away: not evidence that everything failed.
    assert_eq!(story.codes(&[away(A), away(B)], 1), ["current_unmeasured"]);
}

#[test]
fn a_pin_is_obeyed_at_once_and_kept_whatever_the_scores_say() {
    let mut story = Story::new();
    let seen = [good(A, 50.0), good(B, 60.0), good(C, 900.0)];
    story.pin = Some(Pin { exit: C });
    let verdict = story.round(&seen);
    assert_eq!(verdict.push.as_deref(), Some(&[C, A, B][..]));
    story.accept(verdict);
    assert_eq!(story.codes(&seen, 20), ["pinned"; 20]);
    story.pin = None;
    assert_eq!(story.codes(&seen, 3), ["confirming", "confirming", "switched"]);
}

#[test]
fn a_failing_pin_lets_the_rules_choose_and_returns_by_the_rules() {
    let mut story = Story::new();
    story.pin = Some(Pin { exit: A });
    assert_eq!(story.codes(&[good(A, 500.0), good(B, 50.0), good(C, 60.0)], 3), ["pinned"; 3]);
    let broken = [failed(A), good(B, 50.0), good(C, 60.0)];
    assert_eq!(story.codes(&broken, 2), ["pin_failed"; 2]);
    let Reason::PinFailed { exit: A, among_others } = story.state.reason.clone() else { panic!() };
    assert_eq!(among_others.code(), "confirming");
    let verdict = story.round(&broken);
    assert_eq!(verdict.reason.code(), "pin_failed");
    story.accept(verdict);
    let whole = [good(A, 500.0), good(B, 50.0), good(C, 60.0)];
    assert_eq!(
        story.codes(&whole, 6),
        ["confirming", "confirming", "cooldown", "cooldown", "cooldown", "switched"]
    );
}

#[test]
fn a_pin_set_while_its_exit_fails_waits_for_confirmation() {
    let mut story = Story::new();
    story.pin = Some(Pin { exit: C });
    assert_eq!(story.codes(&[good(A, 50.0), good(B, 60.0), failed(C)], 2), ["pin_failed"; 2]);
    assert_eq!(
        story.codes(&[good(A, 50.0), good(B, 60.0), good(C, 900.0)], 3),
        ["confirming", "confirming", "switched"]
    );
}

#[test]
fn a_pin_on_an_exit_that_is_gone_is_no_pin() {
    let mut story = Story::new();
    story.pin = Some(Pin { exit: NodeId(99) });
    assert_eq!(story.codes(&[good(A, 50.0), good(B, 60.0)], 1), ["current_is_best"]);
}

/// Each of the six rules alone is the missing one; with all of them the same round switches.
#[test]
fn each_rule_alone_prevents_the_switch() {
    let better = [good(A, 200.0), good(B, 50.0)];
    let confirmed = || {
        let mut story = Story::new();
        story.codes(&better, 2);
        story
    };
    assert!(confirmed().round(&better).push.is_some());

    type Break = fn(&mut Story) -> Vec<Candidate>;
    let breaks: [(&str, Break); 10] = [
        ("single_exit", |_| vec![good(A, 200.0)]),
        ("incomplete", |s| {
            s.complete = false;
            vec![good(A, 200.0), good(B, 50.0)]
        }),
        ("paused", |s| {
            s.monitoring = false;
            vec![good(A, 200.0), good(B, 50.0)]
        }),
        ("owner_offline", |s| {
            s.online = false;
            vec![good(A, 200.0), good(B, 50.0)]
        }),
        ("all_exits_failed", |_| vec![failed(A), failed(B)]),
        ("current_is_best", |_| vec![good(A, 40.0), good(B, 50.0)]),
        ("confirming", |s| {
            s.settings.confirmations = 4;
            vec![good(A, 200.0), good(B, 50.0)]
        }),
        ("insufficient_advantage", |_| vec![good(A, 60.0), good(B, 50.0)]),
        ("cooldown", |s| {
            s.state.applied.last_switch = Some(s.now);
            vec![good(A, 200.0), good(B, 50.0)]
        }),
        ("apply_retry_wait", |s| {
            s.state.last_push_failed = Some(s.now);
            vec![good(A, 200.0), good(B, 50.0)]
        }),
    ];
    for (code, break_rule) in breaks {
        let mut story = confirmed();
        let candidates = break_rule(&mut story);
        let verdict = story.round(&candidates);
        assert_eq!((verdict.reason.code(), verdict.push), (code, None));
    }
}

#[test]
fn a_restart_alone_never_switches() {
    let better = [good(A, 200.0), good(B, 50.0)];
    let mut story = Story::new();
    story.codes(&better, 2);
    // What a panel keeps over a restart is `applied`.
    story.state = OwnerState::new(story.state.applied.clone());
    assert_eq!(story.codes(&better, 1), ["confirming"]);
    assert_eq!(story.state.applied.order, [A, B, C]);
}
