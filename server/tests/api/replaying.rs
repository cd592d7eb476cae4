//! From a panel's database to what other settings would have made of it: `export-history` and `replay`.

use serde_json::{Value, json};
use server::store::{Db, LegSample, NewNode, NewTunnel};
use shared::api::{NodeInput, TunnelInput};
use shared::best_exit::{Leg, LegFailure};
use shared::envelope::link_key;
use shared::gost::Auth;
use shared::ids::NodeId;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ROUND_MS: i64 = 5000;
const ROUNDS: i64 = 480;

fn exitpilot(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_exitpilot"));
    command.current_dir(folder).env_clear().stdin(Stdio::null()).args(arguments).output().unwrap()
}

/// Standard output of a command that must work.
fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = exitpilot(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a command that must not work complains about.
fn complaint(folder: &Path, arguments: &[&str]) -> String {
    let output = exitpilot(folder, arguments);
    assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A tunnel over two exits, of which the first does not answer in the second half.
async fn fill(db: &Db) {
    let mut tx = db.write().await.unwrap();
    let mut nodes = Vec::new();
    for (i, name) in ["entry", "near", "far"].into_iter().enumerate() {
        let input =
            NodeInput { name: name.into(), server_ip: format!("192.0.2.{i}"), ..NodeInput::default() };
        nodes
            .push(tx.insert_node(&NewNode { input: &input, link_key: link_key(name), at: 1 }).await.unwrap());
    }
    let tunnel: TunnelInput = serde_json::from_value(json!({
        "name": "hk", "entry": { "nodes": [{ "nodeId": nodes[0] }] },
        "exit": { "strategy": "best", "nodes": [{ "nodeId": nodes[1], "port": 20001 }, { "nodeId": nodes[2], "port": 20002 }] }
    }))
    .unwrap();
    let auth = Auth { username: "u".into(), password: "p".into() };
    tx.insert_tunnel(&NewTunnel { input: &tunnel, at: 1 }, &auth).await.unwrap();
    tx.commit().await.unwrap();

    let start = server::clock::Clock::system().wall_ms() - ROUNDS * ROUND_MS;
    let sample = |from: NodeId, target: &str, at, leg| LegSample { from, target: target.into(), at, leg };
    let measured = |latency_ms| Leg::Measured { latency_ms, loss: 0.0 };
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        let at = start + round * ROUND_MS;
        let dead = round >= ROUNDS / 2;
        let near = if dead { Leg::Failed { reason: LegFailure::AllLost } } else { measured(10.0) };
        samples.push(sample(nodes[0], "192.0.2.1", at, near));
        samples.push(sample(nodes[0], "192.0.2.2", at, measured(50.0)));
        samples.extend([1, 2].map(|exit| sample(nodes[exit], "www.bing.com:443", at, measured(5.0))));
    }
    db.append_leg_samples(&samples).await.unwrap();
}

#[tokio::test]
async fn a_database_becomes_a_history_and_a_history_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // The name that is used where nothing else is said.
    let db = Db::open(&format!("sqlite://{}", folder.join("exitpilot.db").display())).await.unwrap();
    fill(&db).await;
    db.close().await;

    let told = said(folder, &["export-history", "hk", "--output", "hk.json"]);
    assert!(told.contains("480 rounds of 1 owners"), "{told}");
    let history: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("hk.json")).unwrap()).unwrap();
    assert_eq!(history["owners"][0]["owner"], "entry");
    assert_eq!(history["owners"][0]["exits"], json!(["near", "far"]));
    assert_eq!(history["settings"]["confirmations"], 3);
    let half: Value = serde_json::from_str(&said(folder, &["export-history", "1", "--hours", "1"])).unwrap();
    assert_eq!(half["owners"][0]["rounds"].as_array().unwrap().len(), ROUNDS as usize);

    let arguments = [
        "replay",
        "hk.json",
        "--json",
        "--policy",
        "fixed(0)",
        "--policy",
        "min",
        "--set",
        "confirmations=5",
    ];
    let report: Value = serde_json::from_str(&said(folder, &arguments)).unwrap();
    let policies = report["policies"].as_array().unwrap();
    let names: Vec<&str> = policies.iter().map(|policy| policy["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["best, classic", "best, adaptive", "fixed(0)", "min"]);
    // Five rounds, the first of them at the failure itself.
    assert_eq!((&policies[0]["switches"], &policies[0]["unusableMs"]), (&json!(1), &json!(20_000)));
    assert_eq!(policies[0]["detectionMs"], 20_000);
    assert_eq!(policies[2]["unusableMs"], ROUNDS / 2 * ROUND_MS);
    assert!(report["suggestion"]["why"].as_str().unwrap().contains("hours of history"));
    assert!(report["suggestion"]["tried"].as_array().unwrap().len() > 20);

    let table = said(folder, &["replay", "hk.json", "--rules", "classic", "--no-suggestion"]);
    assert!(table.contains("hk: 1 owner, 0.03 days measured"), "{table}");
    assert!(table.contains("best, classic") && !table.contains("adaptive") && !table.contains("suggestion"));

    let unknown = complaint(folder, &["export-history", "tokyo"]);
    assert!(unknown.contains("there is no tunnel `tokyo`; there are: hk"), "{unknown}");
    for (wrong, says) in [
        (vec!["--set", "pingCount=3"], "pingCount: is no setting of how to decide"),
        (vec!["--set", "confirmations"], "write NAME=VALUE"),
        (vec!["--policy", "min("], "at character 5"),
        (vec!["--policy", "rand"], "cannot be replayed"),
    ] {
        let told = complaint(folder, &[&["replay", "hk.json"], &wrong[..]].concat());
        assert!(told.contains(says), "{told}");
    }
    assert!(complaint(folder, &["replay", "exitpilot.toml"]).contains("cannot read exitpilot.toml"));
    assert!(said(folder, &["replay", "--help"]).contains("\"exitpilotHistory\": 1"));
}
