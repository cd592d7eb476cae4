//! Decision log and quality.

use crate::panel::{Panel, START_MS};
use serde_json::json;
use server::store::{LegSample, NewLogEntry};
use shared::best_exit::{Leg, LegFailure, Reason};
use shared::ids::{NodeId, TunnelId};

#[tokio::test]
async fn the_decision_log_is_newest_first() {
    let panel = Panel::new().await;
    let (tunnel, nodes) = panel.best_tunnel("hk").await;
    let id = TunnelId(tunnel["id"].as_i64().unwrap());
    let entry = |at, reason| NewLogEntry {
        tunnel: id,
        owner: NodeId(nodes[0]),
        at,
        from: Some(NodeId(nodes[1])),
        to: Some(NodeId(nodes[2])),
        reason,
        candidates: Vec::new(),
    };
    let db = &panel.state.db;
    db.append_decision_log(entry(1, Reason::AllExitsFailed)).await.unwrap();
    let switched = Reason::Switched { from: None, to: NodeId(nodes[2]), advantage_ms: Some(40.0), why: None };
    db.append_decision_log(entry(2, switched)).await.unwrap();
    // Of a tunnel that is gone there is nothing to say, and nothing fails.
    let gone = NewLogEntry { tunnel: TunnelId(99), ..entry(3, Reason::CurrentIsBest) };
    db.append_decision_log(gone).await.unwrap();

    let path = format!("/tunnels/{}/decision-log", id.0);
    let log = panel.get(&path).await.expect(200);
    assert_eq!(log.as_array().unwrap().len(), 2);
    assert_eq!(log[0]["reason"]["code"], "switched");
    assert_eq!(log[0]["ownerName"], "hk-0");
    let older = panel.get(&format!("{path}?limit=1&before={}", log[0]["id"])).await.expect(200);
    assert_eq!(older[0]["reason"]["code"], "all_exits_failed");
    for (query, codes) in [
        ("from=2", &["switched"][..]),
        ("from=3", &[]),
        ("reason=all_exits_failed", &["all_exits_failed"]),
        ("reason=pinned,switched&from=1", &["switched"]),
    ] {
        let log = panel.get(&format!("{path}?{query}")).await.expect(200);
        let found: Vec<_> = log.as_array().unwrap().iter().map(|entry| &entry["reason"]["code"]).collect();
        assert_eq!(found, codes, "{query}");
    }
    let answer = panel.get(&format!("{path}?reason=switched,nonsense")).await;
    assert_eq!(answer.errors(), [("reason".into(), "unknown_value".into())]);
    let answer = panel.get(&format!("{path}?limit=-1")).await;
    assert_eq!(answer.errors(), [("limit".into(), "out_of_range".into())]);
}

#[tokio::test]
async fn quality_gives_every_leg_its_rounds_or_their_means() {
    let panel = Panel::new().await;
    let (tunnel, nodes) = panel.best_tunnel("hk").await;
    let exit = panel.get(&format!("/nodes/{}", nodes[1])).await.expect(200);
    // The way to the host is what is measured, whatever port a tunnel has there.
    let target = exit["serverIp"].as_str().unwrap().to_owned();
    let sample = |at, leg| LegSample { from: NodeId(nodes[0]), target: target.clone(), at, leg };
    let measured = |latency_ms, loss| Leg::Measured { latency_ms, loss };
    let samples = [
        sample(START_MS - 9_000, measured(10.0, 0.0)),
        sample(START_MS - 8_000, measured(30.0, 0.5)),
        sample(START_MS - 7_000, Leg::Failed { reason: LegFailure::AllLost }),
        sample(START_MS - 1_000, Leg::Unmeasured { reason: "offline".into() }),
    ];
    panel.state.db.append_leg_samples(&samples).await.unwrap();
    let b = LegSample {
        from: NodeId(nodes[1]),
        target: "www.bing.com:443".into(),
        at: START_MS,
        leg: measured(5.0, 0.0),
    };
    panel.state.db.append_leg_samples(&[b]).await.unwrap();

    let path = format!("/tunnels/{}/quality", tunnel["id"]);
    let raw = panel.get(&path).await.expect(200);
    let legs = raw.as_array().unwrap();
    // One owner, two exits: two legs A and two legs B.
    assert_eq!(legs.len(), 4);
    assert_eq!((&legs[0]["leg"], &legs[0]["target"]), (&json!("a"), &json!(target)));
    assert_eq!(legs[0]["points"].as_array().unwrap().len(), 4);
    assert_eq!(legs[0]["points"][0], json!({ "at": START_MS - 9_000, "latencyMs": 10.0, "loss": 0.0 }));
    assert_eq!(legs[0]["points"][2], json!({ "at": START_MS - 7_000, "latencyMs": null, "loss": 1.0 }));
    assert_eq!(legs[0]["points"][3], json!({ "at": START_MS - 1_000, "latencyMs": null, "loss": null }));
    assert_eq!(legs[2]["leg"], "b");
    assert_eq!(legs[2]["points"][0]["latencyMs"], 5.0);
    assert_eq!(legs[3]["points"], json!([]));

    let from = START_MS - 10_000;
    let means = panel.get(&format!("{path}?from={from}&to={START_MS}&step=5000")).await.expect(200);
    let points = &means[0]["points"];
    assert_eq!(points.as_array().unwrap().len(), 2, "{points}");
    assert_eq!(points[0], json!({ "at": from, "latencyMs": 20.0, "loss": 0.5 }));
    for (query, field) in [("from=5&to=5", "from"), ("step=-1", "step"), ("from=x", "from")] {
        let answer = panel.get(&format!("{path}?{query}")).await;
        assert_eq!(answer.errors(), [(field.to_owned(), "out_of_range".to_owned())], "{query}");
    }
}
