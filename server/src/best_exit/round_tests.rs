use super::super::legs::{CandidatePlan, Stretch};
use super::*;
use shared::ids::TunnelId;
use std::collections::BTreeMap;

fn stretch(from: i64, host: &str) -> Stretch {
    Stretch { from: NodeId(from), host: host.into(), ports: vec![443], target: host.into() }
}

/// Owners 1 and 2 over the exits 30 and 31.
fn layout() -> Arc<Layout> {
    let mut layout = Layout::default();
    for from in [30, 31] {
        layout.legs.push(stretch(from, "target"));
    }
    for owner in [1, 2] {
        let candidates = [30, 31].into_iter().enumerate().map(|(leg_b, exit)| {
            layout.legs.push(stretch(owner, &format!("exit-{exit}")));
            CandidatePlan { exit: NodeId(exit), leg_a: Some(layout.legs.len() - 1), leg_b }
        });
        let candidates: Vec<_> = candidates.collect();
        let saved = vec![NodeId(30), NodeId(31)];
        let key = (TunnelId(1), NodeId(owner));
        layout.owners.push(super::super::legs::OwnerPlan { key, complete: true, candidates, saved });
    }
    layout.users = vec![vec![0, 1], vec![0, 1], vec![0], vec![0], vec![1], vec![1]];
    let by_node = [(30, vec![0]), (31, vec![1]), (1, vec![2, 3]), (2, vec![4, 5])];
    layout.by_node = by_node.into_iter().map(|(node, legs)| (NodeId(node), legs)).collect();
    Arc::new(layout)
}

fn start(states: &[(i64, NodeState)]) -> (Running, Started) {
    let states: BTreeMap<NodeId, NodeState> = states.iter().map(|(n, s)| (NodeId(*n), *s)).collect();
    Running::start(1, 0, layout(), true, |node| states.get(&node).copied().unwrap_or(NodeState::Ready))
}

fn ok(latency_ms: f64) -> Leg {
    Leg::Measured { latency_ms, loss: 0.0 }
}

fn asked(started: &Started) -> Vec<i64> {
    started.asks.iter().map(|(node, _)| node.0).collect()
}

fn measured(round: &mut Running, legs: &[usize]) -> Vec<usize> {
    round.measured(legs.iter().map(|leg| (*leg, ok(*leg as f64))).collect(), 10)
}

#[test]
fn an_owner_is_ready_as_soon_as_its_own_legs_are_in() {
    let (mut round, started) = start(&[]);
    assert_eq!(asked(&started), [1, 2, 30, 31]);
    assert_eq!(started.ready, Vec::<usize>::new());
    assert_eq!(measured(&mut round, &[0, 1]), Vec::<usize>::new());
    assert_eq!(measured(&mut round, &[2, 3]), [0], "owner 2 is slow and delays nobody");
    assert_eq!(measured(&mut round, &[2, 3]), Vec::<usize>::new(), "an answer that comes twice counts once");
    assert_eq!(measured(&mut round, &[4, 5]), [1]);
    let legs: Vec<(Leg, Leg)> = round
        .candidates(&layout().owners[1])
        .into_iter()
        .map(|candidate| (candidate.leg_a, candidate.leg_b))
        .collect();
    assert_eq!(legs, [(ok(4.0), ok(0.0)), (ok(5.0), ok(1.0))]);
    for node in [1, 2, 30] {
        assert!(!round.finished(NodeId(node)));
    }
    assert!(round.finished(NodeId(31)));
    assert_eq!(round.results().count(), 6);
}

#[test]
fn an_offline_owner_is_evaluated_at_once_as_offline() {
    let (mut round, started) = start(&[(1, NodeState::Offline)]);
    assert_eq!(asked(&started), [2, 30, 31]);
    assert_eq!(started.ready, [0]);
    let layout = layout();
    assert!(!round.owner_online(&layout.owners[0]) && round.owner_online(&layout.owners[1]));
    assert_eq!(measured(&mut round, &[0, 1, 4, 5]), [1]);
    assert_eq!(round.results().count(), 4, "what was not asked is no history");
}

#[test]
fn an_offline_exit_is_unmeasured_and_waited_for_by_nobody() {
    let (mut round, started) = start(&[(31, NodeState::Offline)]);
    assert_eq!(asked(&started), [1, 2, 30]);
    assert_eq!(measured(&mut round, &[0, 2, 3]), [0]);
    let candidates = round.candidates(&layout().owners[0]);
    assert_eq!(candidates[0].leg_b, ok(0.0));
    assert!(matches!(&candidates[1].leg_b, Leg::Unmeasured { .. }));
    assert_eq!(candidates[1].leg_a, ok(3.0));
}

#[test]
fn a_silent_exit_costs_its_own_leg_only() {
    let (mut round, _) = start(&[]);
    assert_eq!(measured(&mut round, &[0, 2, 3]), Vec::<usize>::new());
    assert_eq!(round.gave_up(NodeId(31), true, 5000), [0]);
    let layout = layout();
    assert!(round.owner_online(&layout.owners[0]));
    assert!(matches!(&round.candidates(&layout.owners[0])[1].leg_b, Leg::Unmeasured { .. }));
    // What came in at 10 ms is old by now for fast rounds.
    assert!(!round.is_stale(&layout.owners[0], 5000, 15_000));
    assert!(round.is_stale(&layout.owners[0], 5000, 1500));
    assert!(!round.is_stale(&layout.owners[0], 1510, 1500));
}

#[test]
fn a_silent_owner_is_skipped() {
    let (mut round, _) = start(&[]);
    measured(&mut round, &[0, 1]);
    assert_eq!(round.gave_up(NodeId(2), true, 5000), [1]);
    let layout = layout();
    assert!(!round.owner_online(&layout.owners[1]) && round.owner_online(&layout.owners[0]));
}

#[test]
fn who_is_busy_is_not_asked_again_and_who_needs_him_waits_for_the_next_round() {
    let (mut round, started) = start(&[(2, NodeState::Busy)]);
    assert_eq!(asked(&started), [1, 30, 31]);
    assert_eq!(measured(&mut round, &[0, 1, 2, 3]), [0]);

    let (mut round, started) = start(&[(31, NodeState::Busy)]);
    assert_eq!(asked(&started), [1, 2, 30]);
    assert_eq!(measured(&mut round, &[0, 2, 3, 4, 5]), Vec::<usize>::new());
}

#[test]
fn nobody_waits_a_second_time_for_who_did_not_answer() {
    // Exit 31 hangs: the round before waited for it until the deadline.
    for busy in [false, true] {
        let (mut round, started) = start(&[(31, NodeState::Unresponsive { busy })]);
        assert_eq!(started.asks.iter().any(|(node, _)| node.0 == 31), !busy, "asked again when it can be");
        assert_eq!(measured(&mut round, &[0, 2, 3]), [0]);
        assert!(matches!(&round.candidates(&layout().owners[0])[1].leg_b, Leg::Unmeasured { .. }));
        // Should it answer after all, that is for the history and the next round.
        assert_eq!(measured(&mut round, &[1]), Vec::<usize>::new());
        assert_eq!(measured(&mut round, &[4, 5]), [1]);
    }
    // An owner that did not answer is asked again, and its own evaluation waits for it.
    let (mut round, started) = start(&[(2, NodeState::Unresponsive { busy: false })]);
    assert_eq!(asked(&started), [1, 2, 30, 31]);
    assert_eq!(measured(&mut round, &[0, 1]), Vec::<usize>::new());
    assert_eq!(measured(&mut round, &[4, 5]), [1]);
}

#[test]
fn without_monitoring_nothing_is_asked() {
    let (_, started) = Running::start(1, 0, layout(), false, |_| NodeState::Ready);
    assert_eq!(started, Started { asks: vec![], ready: vec![0, 1] });
}
