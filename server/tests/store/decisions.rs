//! Decisions, samples, and forgetting.

use crate::world::{AT, World, fill};
use server::store::{
    Db, DecisionLogQuery, DecisionWrite, LegHistoryQuery, LegKey, LegSample, NewLogEntry, StoredDecision,
};
use shared::api::{PinRecord, SwitchRecord};
use shared::best_exit::{Leg, Reason};
use shared::ids::NodeId;

fn decision(world: &World) -> StoredDecision {
    StoredDecision {
        tunnel: world.tunnel,
        owner: world.entry,
        order: vec![world.exits[1], world.exits[0]],
        proposed: None,
        last_switch_at: Some(AT),
        last_switch: Some(SwitchRecord {
            at: AT,
            from_exit_node_id: Some(world.exits[0]),
            to_exit_node_id: world.exits[1],
            result: "applied".into(),
        }),
    }
}

fn log(world: &World, at: i64) -> NewLogEntry {
    NewLogEntry {
        tunnel: world.tunnel,
        owner: world.entry,
        at,
        from: None,
        to: Some(world.exits[1]),
        reason: Reason::Switched { from: None, to: world.exits[1], advantage_ms: None, why: None },
        candidates: Vec::new(),
    }
}

#[tokio::test]
async fn a_proposal_is_remembered_until_the_decision_is_stored() {
    let db = Db::memory().await.unwrap();
    let world = fill(&db).await;
    db.propose_order(world.tunnel, world.entry, &world.exits).await.unwrap();
    let stored = db.decisions().await.unwrap();
    assert_eq!(stored[0].proposed.as_deref(), Some(&world.exits[..]));
    assert_eq!(stored[0].order, []);
    // What was never accepted is not planned with.
    assert!(db.intent().await.unwrap().applied.is_empty());

    db.store_decision(&decision(&world), Some(log(&world, AT))).await.unwrap();
    assert_eq!(db.decisions().await.unwrap(), [decision(&world)]);
    let intent = db.intent().await.unwrap();
    assert_eq!(intent.applied[&(world.tunnel, world.entry)], decision(&world).order);
    let entries =
        db.read().await.unwrap().decision_log(world.tunnel, &DecisionLogQuery::newest(10)).await.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].owner_name, "entry");

    // The next proposal leaves what is applied alone.
    db.propose_order(world.tunnel, world.entry, &world.exits).await.unwrap();
    let stored = db.decisions().await.unwrap().remove(0);
    assert_eq!(stored.order, decision(&world).order);
    assert_eq!(stored.last_switch, decision(&world).last_switch);
    assert!(stored.proposed.is_some());
}

#[tokio::test]
async fn writes_that_go_together_keep_their_order() {
    let db = Db::memory().await.unwrap();
    let world = fill(&db).await;
    let propose = |order: &[NodeId]| DecisionWrite::Propose {
        tunnel: world.tunnel,
        owner: world.entry,
        order: order.to_vec(),
    };
    let other = StoredDecision { order: world.exits.to_vec(), ..decision(&world) };
    let nobody = StoredDecision { owner: NodeId(9999), ..decision(&world) };
    let mut late = log(&world, AT + 1);
    late.from = Some(world.exits[0]);
    db.write_decisions(&[
        propose(&[world.exits[0]]),
        DecisionWrite::Store(nobody),
        DecisionWrite::Store(decision(&world)),
        DecisionWrite::Store(other.clone()),
        DecisionWrite::Log(late),
        DecisionWrite::Log(log(&world, AT)),
        propose(&[world.exits[1]]),
    ])
    .await
    .unwrap();
    let expected = StoredDecision { proposed: Some(vec![world.exits[1]]), ..other };
    assert_eq!(db.decisions().await.unwrap(), [expected]);
    let entries =
        db.read().await.unwrap().decision_log(world.tunnel, &DecisionLogQuery::newest(10)).await.unwrap();
    let written: Vec<_> = entries.iter().map(|entry| (entry.at, entry.from_exit_node_id)).collect();
    assert_eq!(written, [(AT, None), (AT + 1, Some(world.exits[0]))], "newest first");
    assert_eq!(entries[0].reason, log(&world, AT).reason);
}

#[tokio::test]
async fn what_is_older_than_the_retention_is_forgotten() {
    const DAY_MS: i64 = 86_400_000;
    let db = Db::memory().await.unwrap();
    let world = fill(&db).await;
    let sample = |target: &str, at| LegSample {
        from: world.entry,
        target: target.into(),
        at,
        leg: Leg::Measured { latency_ms: 1.0, loss: 0.0 },
    };
    let old = AT - 7 * DAY_MS - 1;
    db.append_leg_samples(&[sample("a:1", old), sample("a:1", AT), sample("b:1", old)]).await.unwrap();
    for at in [old, AT] {
        db.append_decision_log(log(&world, at)).await.unwrap();
    }
    let pin = |until, owner: Option<NodeId>| PinRecord {
        exit_node_id: world.exits[0],
        owner_node_id: owner,
        until,
        reason: "why".into(),
        author: "me".into(),
        created_at: old,
    };
    let mut tx = db.write().await.unwrap();
    tx.put_pin(world.tunnel, &pin(None, None)).await.unwrap();
    tx.put_pin(world.tunnel, &pin(Some(old), Some(world.entry))).await.unwrap();
    let user = tx.insert_user("me", "h", shared::api::Role::Admin, AT).await.unwrap();
    tx.insert_session(&"a".repeat(64), user.id, old, AT - 1).await.unwrap();
    tx.insert_session(&"b".repeat(64), user.id, old, AT + 1).await.unwrap();
    tx.commit().await.unwrap();

    db.prune(AT, 7).await.unwrap();

    let all = LegHistoryQuery { from: 0, to: i64::MAX, step_ms: 1, max_points: 100 };
    let mut tx = db.read().await.unwrap();
    for (target, left) in [("a:1", 1), ("b:1", 0)] {
        let key = LegKey { from: world.entry, target: target.into() };
        assert_eq!(tx.leg_history(&key, all).await.unwrap().len(), left, "{target}");
    }
    assert_eq!(tx.decision_log(world.tunnel, &DecisionLogQuery::newest(10)).await.unwrap().len(), 1);
    drop(tx);
    assert_eq!(db.pins().await.unwrap(), [(world.tunnel, pin(None, None))]);
    assert_eq!(db.session_user(&"b".repeat(64), AT).await.unwrap(), Some(user));
    assert_eq!(db.session_user(&"a".repeat(64), 0).await.unwrap(), None);
}

#[tokio::test]
async fn numbers_that_cannot_be_are_stored_as_failures() {
    let db = Db::memory().await.unwrap();
    let world = fill(&db).await;
    let legs = [(f64::NAN, 0.0), (f64::INFINITY, 0.0), (-1.0, 0.0), (1.0, 1.5)];
    let samples: Vec<LegSample> = legs
        .into_iter()
        .zip(0..)
        .map(|((latency_ms, loss), at)| LegSample {
            from: world.entry,
            target: "a:1".into(),
            at,
            leg: Leg::Measured { latency_ms, loss },
        })
        .collect();
    db.append_leg_samples(&samples).await.unwrap();
    // The same round told twice counts once.
    db.append_leg_samples(&samples).await.unwrap();
    let key = LegKey { from: world.entry, target: "a:1".into() };
    let query = LegHistoryQuery { from: 0, to: 10, step_ms: 1, max_points: 3 };
    let points = db.read().await.unwrap().leg_history(&key, query).await.unwrap();
    assert_eq!(points.iter().map(|p| p.at).collect::<Vec<_>>(), [1, 2, 3], "the newest win");
    assert!(points.iter().all(|p| p.latency_ms.is_none() && p.loss == Some(1.0)));
}
