//! History that is summed up says the same as the rounds it was made of, and outlives them.

use crate::world::{AT, fill};
use server::store::{Db, LegHistoryQuery, LegKey, LegSample};
use shared::api::LegPoint;
use shared::best_exit::{Leg, LegFailure};

const MINUTE_MS: i64 = 60_000;
const QUARTER_MS: i64 = 15 * MINUTE_MS;
const DAY_MS: i64 = 96 * QUARTER_MS;
/// Between two rounds.
const ROUND_MS: i64 = 5_000;

/// Rounds of an hour and a half, of all kinds, with a gap of some minutes; not aligned to anything.
fn rounds(start: i64) -> Vec<(i64, Leg)> {
    let leg = |n: i64| match n % 7 {
        0 => Leg::Failed { reason: LegFailure::AllLost },
        1 => Leg::Unmeasured { reason: "offline".into() },
        _ => Leg::Measured { latency_ms: 20.0 + (n % 31) as f64, loss: (n % 5) as f64 / 4.0 },
    };
    let all = (0..90 * MINUTE_MS / ROUND_MS).filter(|n| !(300..340).contains(n));
    all.map(|n| (start + n * ROUND_MS, leg(n))).collect()
}

fn same(left: &[LegPoint], right: &[LegPoint]) {
    let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-9,
        (a, b) => a == b,
    };
    assert_eq!(left.len(), right.len());
    for (left, right) in left.iter().zip(right) {
        let same =
            left.at == right.at && close(left.latency_ms, right.latency_ms) && close(left.loss, right.loss);
        assert!(same, "{left:?} {right:?}");
    }
}

#[tokio::test]
async fn every_step_says_the_same_before_and_after() {
    let db = Db::memory().await.unwrap();
    let world = fill(&db).await;
    let start = AT - AT % DAY_MS + 7 * MINUTE_MS + 1234;
    let key = LegKey { from: world.entry, target: "a:1".into() };
    let other = LegKey { from: world.entry, target: "b:1".into() };
    let mut samples = Vec::new();
    for (at, leg) in rounds(start) {
        samples.push(LegSample { from: key.from, target: key.target.clone(), at, leg });
        let leg = Leg::Measured { latency_ms: 1.0, loss: 0.0 };
        samples.push(LegSample { from: other.from, target: other.target.clone(), at, leg });
    }
    db.append_leg_samples(&samples).await.unwrap();
    let end = start + 90 * MINUTE_MS;
    let spans = [(start, end), (start + 10_001, end - 20_003), (start - DAY_MS, end + DAY_MS)];
    let steps = [1, 7_000, MINUTE_MS, 5 * MINUTE_MS, QUARTER_MS, 4 * QUARTER_MS];
    let all = async || {
        let mut found = Vec::new();
        let mut tx = db.read().await.unwrap();
        for (from, to) in spans {
            for step_ms in steps {
                for key in [&key, &other] {
                    let query = LegHistoryQuery { from, to, step_ms, max_points: 100_000 };
                    found.push(tx.leg_history(key, query).await.unwrap());
                }
            }
        }
        found
    };
    let before = all().await;
    assert!(before.iter().all(|points| !points.is_empty()));
    // In the middle, at its end, and again: what is there already stays as it is.
    for now in [start + 40 * MINUTE_MS, end, end + QUARTER_MS, end + QUARTER_MS] {
        db.roll_up(now).await.unwrap();
        for (before, after) in before.iter().zip(all().await) {
            same(before, &after);
        }
    }
}

#[tokio::test]
async fn minutes_outlive_rounds_and_quarters_outlive_minutes() {
    let db = Db::memory().await.unwrap();
    let world = fill(&db).await;
    let start = AT - AT % DAY_MS;
    let key = LegKey { from: world.entry, target: "a:1".into() };
    let sample = |(at, leg)| LegSample { from: key.from, target: key.target.clone(), at, leg };
    let samples: Vec<_> = rounds(start).into_iter().map(sample).collect();
    db.append_leg_samples(&samples).await.unwrap();
    let end = start + 120 * MINUTE_MS;
    db.roll_up(end).await.unwrap();
    let history = async |step_ms| {
        let query = LegHistoryQuery { from: start, to: end, step_ms, max_points: 100_000 };
        db.read().await.unwrap().leg_history(&key, query).await.unwrap()
    };
    let (minutes, quarters) = (history(MINUTE_MS).await, history(QUARTER_MS).await);
    assert_eq!((minutes.len(), quarters.len()), (87, 6), "three minutes of the gap are empty");
    for (after_days, rounds_left, minutes_left, quarters_left) in
        [(6, true, true, true), (8, false, true, true), (32, false, false, true), (367, false, false, false)]
    {
        db.prune(end + after_days * DAY_MS, 7).await.unwrap();
        assert_eq!(!history(1).await.is_empty(), rounds_left, "rounds after {after_days} days");
        let found = history(MINUTE_MS).await;
        if minutes_left {
            same(&found, &minutes)
        } else {
            assert!(found.is_empty(), "{found:?}")
        }
        let found = history(QUARTER_MS).await;
        if quarters_left { same(&found, &quarters) } else { assert!(found.is_empty(), "{found:?}") }
    }
    // A retention that is longer than a year holds for all of them.
    db.append_leg_samples(&samples).await.unwrap();
    db.roll_up(end).await.unwrap();
    db.prune(end + 400 * DAY_MS, 500).await.unwrap();
    assert_eq!(history(MINUTE_MS).await.len(), 87);
}

#[tokio::test]
async fn a_minute_is_summed_up_only_when_its_rounds_are_all_there() {
    let db = Db::memory().await.unwrap();
    let world = fill(&db).await;
    let start = AT - AT % DAY_MS;
    let key = LegKey { from: world.entry, target: "a:1".into() };
    let sample = |at, latency_ms| LegSample {
        from: key.from,
        target: key.target.clone(),
        at,
        leg: Leg::Measured { latency_ms, loss: 0.0 },
    };
    let history = async || {
        let query = LegHistoryQuery { from: start, to: start + DAY_MS, step_ms: MINUTE_MS, max_points: 10 };
        db.read().await.unwrap().leg_history(&key, query).await.unwrap()
    };
    db.append_leg_samples(&[sample(start + 1, 10.0)]).await.unwrap();
    // The minute has ended, but its last rounds may be waiting for the disk.
    db.roll_up(start + 2 * MINUTE_MS - 1).await.unwrap();
    db.append_leg_samples(&[sample(start + 2, 30.0)]).await.unwrap();
    assert_eq!(history().await[0].latency_ms, Some(20.0));
    db.roll_up(start + 2 * MINUTE_MS).await.unwrap();
    assert_eq!(history().await[0].latency_ms, Some(20.0));
}
