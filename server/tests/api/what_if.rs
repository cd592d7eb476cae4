//! What other settings would have made of a tunnel's history, and the history as files.

use crate::panel::{Panel, START_MS, VIEWER};
use axum::http::{Method, header};
use serde_json::{Value, json};
use server::store::LegSample;
use shared::best_exit::{Leg, LegFailure};
use shared::ids::NodeId;
use shared::replay::history::History;
use shared::replay::question::{MAX_STEPS, Question, Replayable};

const ROUND_MS: i64 = 5000;
const ROUNDS: i64 = 480;

/// A tunnel over two exits whose first does not answer in the second half of what was measured, and sometimes before is not
/// measured.
async fn measured(panel: &Panel) -> String {
    let (tunnel, nodes) = panel.best_tunnel("hk").await;
    let mut hosts = Vec::new();
    for id in nodes {
        let node = panel.get(&format!("/nodes/{id}")).await.expect(200);
        hosts.push(node["serverIp"].as_str().unwrap().to_owned());
    }
    let sample =
        |from: i64, target: &str, at, leg| LegSample { from: NodeId(from), target: target.into(), at, leg };
    let ms = |latency_ms| Leg::Measured { latency_ms, loss: 0.0 };
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        let at = START_MS - (ROUNDS - round) * ROUND_MS;
        let near = match round {
            7 => Leg::Unmeasured { reason: "offline".into() },
            _ if round < ROUNDS / 2 => ms(10.0 + (round % 3) as f64 / 3.0),
            _ => Leg::Failed { reason: LegFailure::AllLost },
        };
        samples.push(sample(nodes[0], &hosts[1], at, near));
        samples.push(sample(nodes[0], &hosts[2], at, ms(50.0)));
        samples.extend([1, 2].map(|exit| sample(nodes[exit], "www.bing.com:443", at, ms(5.0))));
    }
    panel.state.db.append_leg_samples(&samples).await.unwrap();
    format!("/tunnels/{}", tunnel["id"])
}

#[tokio::test]
async fn other_settings_are_replayed_as_the_package_does_it() {
    let panel = Panel::new().await;
    let tunnel = measured(&panel).await;
    let ask = json!({ "settings": { "decisionRules": "classic", "confirmations": 5 }, "policies": ["fixed(0)"], "inForce": true });
    let report = panel.post(&format!("{tunnel}/replay"), &ask).await.expect(200);
    let policies = report["policies"].as_array().unwrap();
    let names: Vec<&str> = policies.iter().map(|policy| policy["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["in force", "best, classic", "fixed(0)"]);
    // Three rounds with the settings in force, five with the others, the first of them at the failure itself.
    assert_eq!((&policies[0]["unusableMs"], &policies[1]["unusableMs"]), (&json!(10_000), &json!(20_000)));
    assert_eq!(policies[2]["unusableMs"], ROUNDS / 2 * ROUND_MS);
    assert_eq!(report["courses"][0]["exits"], json!(["hk-1", "hk-2"]));
    assert!(report["suggestion"].is_null());

    let history = panel.get(&format!("{tunnel}/history")).await;
    assert_eq!(
        history.headers[header::CONTENT_DISPOSITION],
        "attachment; filename=\"tunnel-1-history.json\""
    );
    let history = History::parse(&history.text).unwrap();
    assert_eq!((history.name.as_str(), history.owners[0].rounds.len()), ("hk", ROUNDS as usize));
    let question: Question = serde_json::from_value(ask).unwrap();
    let same = Replayable::new(&history, MAX_STEPS).unwrap().answer(&question, &|| true).unwrap();
    let same: Value = serde_json::from_str(&serde_json::to_string(&same).unwrap()).unwrap();
    assert_eq!(same, report);

    // A part of it, and as a viewer, who may not change anything else.
    let part = json!({ "from": START_MS - 100 * ROUND_MS, "to": START_MS, "suggest": true, "owner": "hk-0" });
    let call = panel.call(Method::POST, &format!("/api/v1{tunnel}/replay")).bearer(VIEWER).json(&part);
    let report = call.send().await.expect(200);
    assert_eq!(report["courses"][0]["from"], START_MS - 100 * ROUND_MS);
    assert!(report["suggestion"]["tried"].as_array().unwrap().len() > 20);
    assert_eq!(report["policies"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_cannot_be_replayed_is_a_field() {
    let panel = Panel::new().await;
    let tunnel = measured(&panel).await;
    for (ask, field, code) in [
        (json!({ "settings": { "pingCount": 3 } }), "settings.pingCount", "unknown_field"),
        (json!({ "settings": { "cooldownMs": -1 } }), "settings.cooldownMs", "out_of_range"),
        (json!({ "settings": { "confirmations": 0 } }), "settings.confirmations", "out_of_range"),
        (json!({ "settings": [] }), "settings", "invalid_type"),
        (json!({ "policies": ["min", "nonsense"] }), "policies[1]", "strategy_unknown"),
        (json!({ "policies": ["rand"] }), "policies[0]", "policy_no_group"),
        (json!({ "policies": vec!["min"; 17] }), "policies", "too_many"),
        (json!({ "owner": "nobody" }), "owner", "unknown_value"),
        (json!({ "from": 5, "to": 5 }), "from", "out_of_range"),
        (json!({ "from": 5, "to": 500_000 }), "from", "history_empty"),
        (json!({ "form": 5 }), "form", "unknown_field"),
    ] {
        let answer = panel.post(&format!("{tunnel}/replay"), &ask).await;
        assert_eq!(answer.status, 422, "{ask}: {}", answer.text);
        assert_eq!(answer.errors(), [(field.to_owned(), code.to_owned())], "{ask}");
    }
    let (fresh, _) = panel.best_tunnel("jp").await;
    let answer = panel.post(&format!("/tunnels/{}/replay", fresh["id"]), &json!({})).await;
    assert_eq!(answer.errors(), [("from".to_owned(), "history_empty".to_owned())]);
    let empty = panel.get(&format!("/tunnels/{}/history", fresh["id"])).await.expect(200);
    assert_eq!(empty["owners"][0]["rounds"], json!([]), "there is nothing, and that is no error");
}

#[tokio::test]
async fn only_a_few_replays_run_at_once() {
    let panel = Panel::new().await;
    let tunnel = measured(&panel).await;
    let taken: Vec<_> = std::iter::from_fn(|| panel.state.replays.take()).collect();
    assert!(!taken.is_empty());
    let answer = panel.post(&format!("{tunnel}/replay"), &json!({})).await;
    assert_eq!(answer.headers[header::RETRY_AFTER], "5");
    assert_eq!(answer.expect(503)["type"], "busy");
    drop(taken);
    panel.post(&format!("{tunnel}/replay"), &json!({})).await.expect(200);
}

#[tokio::test]
async fn the_table_has_the_numbers_of_the_json() {
    let panel = Panel::new().await;
    let tunnel = measured(&panel).await;
    for query in ["step=0", "step=60000", "from=5&to=500"] {
        let path = format!("{tunnel}/quality?{query}");
        let legs = panel.get(&path).await.expect(200);
        let answer = panel.get(&format!("{path}&format=csv")).await;
        assert_eq!(answer.headers[header::CONTENT_TYPE], "text/csv; charset=utf-8");
        assert_eq!(
            answer.headers[header::CONTENT_DISPOSITION],
            "attachment; filename=\"tunnel-1-quality.csv\""
        );
        let number = |value: &Value| value.as_f64().map_or(String::new(), |value| value.to_string());
        let mut expected =
            vec!["leg,fromNodeId,fromNode,exitNodeId,exitNode,target,at,latencyMs,loss".to_owned()];
        let names = ["hk-0", "hk-1", "hk-2"];
        let name = |id: &Value| names[usize::try_from(id.as_i64().unwrap() - 1).unwrap()];
        for leg in legs.as_array().unwrap() {
            for point in leg["points"].as_array().unwrap() {
                expected.push(format!(
                    "{},{},{},{},{},{},{},{},{}",
                    leg["leg"].as_str().unwrap(),
                    leg["fromNodeId"],
                    name(&leg["fromNodeId"]),
                    leg["exitNodeId"],
                    name(&leg["exitNodeId"]),
                    leg["target"].as_str().unwrap(),
                    point["at"],
                    number(&point["latencyMs"]),
                    number(&point["loss"]),
                ));
            }
        }
        assert_eq!(answer.text.split_terminator("\r\n").collect::<Vec<_>>(), expected, "{query}");
    }
    let call = panel.call(Method::GET, &format!("/api/v1{tunnel}/quality")).bearer(VIEWER);
    let answer = call.header(header::ACCEPT, "text/csv").send().await;
    // A round that was not measured, and one that failed: no latency, and the latter all lost.
    assert!(
        answer.text.contains(&format!(",{},,\r\n", START_MS - (ROUNDS - 7) * ROUND_MS)),
        "{}",
        answer.text
    );
    assert!(answer.text.contains(&format!(",{},,1\r\n", START_MS - ROUND_MS)));
    let answer = panel.get(&format!("{tunnel}/quality?format=xml")).await;
    assert_eq!(answer.errors(), [("format".to_owned(), "unknown_value".to_owned())]);
}
