//! The panel's API and the OpenAPI document that it hands out, compared by schemathesis: it derives thousands of requests
//! from the document, good and bad ones, and reads every answer against it.

use crate::peers;
use serde_json::{Value, json};
use shared::api::{LoginAnswer, NodeInput, SettingsInput};
use shared::ids::TunnelId;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use tests::rig::{Panel, PanelOptions, Place};

/// What the requests are about: there is one of everything.
const CONFIG: &str = "[parameters]\n\"path.id\" = 1\n";
/// Requests that are derived at random for each operation, after those that the document itself suggests.
const RANDOM: &str = "20";
/// Where the randomness begins.
const SEED: &str = "1";
/// These end the session that all the others need, or never end themselves.
const NOT_ASKED: [&str; 3] = ["/api/v1/auth/logout", "/api/v1/auth/password", "/api/v1/events"];
/// Some 3,000 requests.
const PATIENCE: Duration = Duration::from_secs(300);

async fn one_of_everything(panel: &Panel) -> String {
    let api = panel.api().await.unwrap();
    // Nobody is there to be measured.
    let quiet = SettingsInput { monitor_tunnel_quality_enabled: Some(false), ..SettingsInput::default() };
    api.put_settings(&quiet).await.unwrap();
    for number in 1..=3 {
        let node = NodeInput {
            name: format!("node-{number}"),
            server_ip: format!("192.0.2.{number}"),
            ..NodeInput::default()
        };
        assert_eq!(api.create_node(&node).await.unwrap().id.0, number);
    }
    let tunnel = json!({
        "name": "hk", "entry": { "nodes": [{ "nodeId": 1 }] },
        "exit": { "strategy": "best", "nodes": [{ "nodeId": 2 }, { "nodeId": 3 }] }
    });
    let tunnel = api.create_tunnel(&serde_json::from_value(tunnel).unwrap()).await.unwrap();
    let forward = json!({ "tunnelId": 1, "name": "web", "targets": ["a.example:80"] });
    let forward = api.create_forward(&serde_json::from_value(forward).unwrap()).await.unwrap();
    assert_eq!((tunnel.id.0, forward.id.0), (1, 1));
    let login = json!({ "username": "admin", "password": panel.password() });
    let answer: LoginAnswer = api.send("POST", "/api/v1/auth/login", &login).await.unwrap();
    answer.token
}

/// Asks everything that the document offers for some methods.
async fn asked(program: &Path, panel: &Panel, token: &str, methods: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("schemathesis.toml"), CONFIG).unwrap();
    let mut command = Command::new(program);
    command.current_dir(&folder).args(["--config-file", "schemathesis.toml", "run", "--no-color"]);
    command.arg(format!("http://{}/api/openapi.json", panel.address()));
    command.args(["-H", &format!("Authorization: Bearer {token}")]);
    command.args(NOT_ASKED.iter().flat_map(|path| ["--exclude-path", path]));
    command.args(methods.iter().flat_map(|method| ["--include-method", method]));
    command.args(["--phases", "coverage,fuzzing", "--max-examples", RANDOM, "--seed", SEED]);
    // The document says what types are, not what makes sense: a tunnel over nodes that are not there is refused.
    command.args(["--exclude-checks", "positive_data_acceptance", "--request-timeout", "30"]);
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    tokio::time::timeout(PATIENCE, ended).await.unwrap().unwrap()
}

/// Whether it found nothing, after having asked as much as is told.
fn assert_conforms(output: &Output, at_least: u64) {
    let text = String::from_utf8_lossy(&output.stdout);
    let told = || format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", told());
    // "Test cases:\n  3340 generated, 3340 passed, 81 skipped"
    let generated =
        text.lines().find_map(|line| line.trim().split_once(" generated, ")?.0.parse::<u64>().ok());
    assert!(generated.is_some_and(|count| count >= at_least), "{}", told());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_answers_as_its_document_says() {
    let Some(program) = peers::find(peers::SCHEMATHESIS) else { return };
    let panel = Panel::start(Place::Loopback, PanelOptions::default()).await.unwrap();
    let token = one_of_everything(&panel).await;
    let api = panel.api().await.unwrap();
    let document: Value = api.get("/api/openapi.json").await.unwrap();
    let operations = |method: &str| -> u64 {
        let paths = document["paths"].as_object().unwrap();
        paths.values().filter(|operations| operations.get(method).is_some()).count() as u64
    };

    let most = asked(&program, &panel, &token, &["GET", "POST", "PUT"]).await;
    let all = operations("get") + operations("post") + operations("put") - NOT_ASKED.len() as u64;
    assert_conforms(&most, all * 20);
    // What was asked about is there still.
    api.tunnel(TunnelId(1)).await.unwrap();
    // Last, because nothing is left to ask about after it.
    let last = asked(&program, &panel, &token, &["DELETE"]).await;
    assert_conforms(&last, operations("delete"));
    let gone = api.tunnel(TunnelId(1)).await.unwrap_err();
    assert_eq!(gone.status(), Some(404), "{gone}");
}
