//! The agent's own HTTP API.

use crate::api_rig::*;
use crate::rig::{Does, Entry, Exit, Target, echo, soon};
use agent::api::{Api, ApiOptions};
use agent::limit::LimitKind;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use agent::standalone::Reload;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

#[tokio::test]
async fn without_the_token_nothing_is_told() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let api = api(&runtime, None).await;
    let paths = ["/v1/services", "/v1/chains", "/v1/connections", "/v1/limits", "/metrics", "/", "/v1/x"];
    let wrong =
        [None, Some("Bearer "), Some("Bearer a-secret-tokem"), Some("Bearer a-secret-token2"), Some(TOKEN)];
    for path in paths {
        for token in wrong {
            let (status, body) = request(api, &format!("GET {path}"), token).await;
            assert_eq!(
                (status, body.as_str()),
                (401, r#"{"error":"a bearer token is needed"}"#),
                "{path} {token:?}"
            );
        }
    }
    assert_eq!(request(api, "POST /v1/reload", None).await.0, 401);
    let right = format!("Bearer {TOKEN}");
    assert_eq!(request(api, "GET /v1/x", Some(&right)).await.0, 404);
    assert_eq!(request(api, "POST /v1/services", Some(&right)).await.0, 405);
    assert_eq!(request(api, "POST /v1/reload", Some(&right)).await.0, 409, "there is no file");
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_token() {
    let open = ApiOptions { address: "0.0.0.0:0".parse().unwrap(), token: None };
    let error = Api::bind(&open).await.unwrap_err().to_string();
    assert!(error.contains("needs a token"), "{error}");
    Api::bind(&ApiOptions { token: Some("t".into()), ..open }).await.unwrap();
    Api::bind(&ApiOptions { address: "[::1]:0".parse().unwrap(), token: None }).await.unwrap();
}

#[tokio::test]
async fn it_shows_what_runs_and_counts_what_happened() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let api = api(&runtime, None).await;
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tcp").await;
    let one = serde_json::from_value(json!({"name": "c", "limits": ["$ 1"]})).unwrap();
    runtime.apply(Change::AddLimiter(LimitKind::Connections, one)).await.unwrap();
    let chain = crate::rig::fifo(&[exit.node("a", "tcp")]);
    runtime.apply(Change::AddChain(chain)).await.unwrap();
    let entry = Entry::in_runtime(runtime.clone(), target.addr, json!({"climiter": "c"})).await;
    let mut stream = entry.connect().await;
    stream.write_all(b"ping").await.unwrap();
    soon(stream.read_exact(&mut [0; 4])).await.unwrap();
    echo(entry.addr).await.unwrap_err();

    let services = json(api, "/v1/services").await;
    assert_eq!(services[0]["name"], "f");
    assert_eq!(services[0]["listening"], entry.addr.to_string());
    assert_eq!((&services[0]["bytesUp"], &services[0]["bytesDown"]), (&json!(4), &json!(4)));
    let chains = json(api, "/v1/chains").await;
    assert_eq!(chains[0]["nodes"][0]["name"], "a");
    assert_eq!(chains[0]["nodes"][0]["open"], 1);
    assert_eq!(chains[0]["nodes"][0]["marked"], false);
    let connections = json(api, "/v1/connections").await;
    assert_eq!(connections["count"], 1);
    assert_eq!(connections["connections"][0]["client"], stream.local_addr().unwrap().to_string());
    let limits = json(api, "/v1/limits").await;
    assert_eq!(limits["climiters"], json!([{"name": "c", "limits": ["$ 1"], "open": 1}]));

    let metrics = get(api, "/metrics").await;
    let node = format!(r#"chain="c",hop="0",node="a",addr="{}""#, exit.addr);
    let target = format!(r#"service="f",target="node_1",addr="{}""#, target.addr);
    let lines = [
        "exitpilot_agent_connections_total 1".to_owned(),
        "exitpilot_agent_connections_open 1.0".to_owned(),
        r#"exitpilot_agent_connections_refused_total{reason="connection_limit"} 1"#.to_owned(),
        r#"exitpilot_agent_connections_refused_total{reason="no_exit"} 0"#.to_owned(),
        r#"exitpilot_agent_service_refused_total{service="f",reason="connection_limit"} 1"#.to_owned(),
        r#"exitpilot_agent_service_bytes_total{service="f",direction="up"} 4"#.to_owned(),
        format!("exitpilot_agent_exit_picks_total{{{node}}} 1"),
        format!("exitpilot_agent_target_picks_total{{{target}}} 1"),
        format!("exitpilot_agent_target_open{{{target}}} 1.0"),
        format!("exitpilot_agent_exit_marked{{{node}}} 0.0"),
        "# EOF".to_owned(),
    ];
    for line in lines {
        assert!(metrics.lines().any(|there| there == line), "{line} not in:\n{metrics}");
    }
    let tasks = metrics.lines().find_map(|line| line.strip_prefix("exitpilot_agent_tasks "));
    // At least the service, the connection and the API.
    assert!(tasks.unwrap().parse::<f64>().unwrap() >= 3.0, "{metrics}");
}

#[tokio::test]
async fn a_reload_is_answered_with_how_it_went() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let (sender, mut reloads) = mpsc::channel::<Reload>(1);
    let api = api(&runtime, Some(sender)).await;
    tokio::spawn(async move {
        for outcome in [Ok(()), Err("services[0].adress: unknown field".to_owned())] {
            reloads.recv().await.unwrap().0.unwrap().send(outcome).unwrap();
        }
    });
    let right = format!("Bearer {TOKEN}");
    assert_eq!(request(api, "POST /v1/reload", Some(&right)).await, (200, r#"{"reloaded":true}"#.into()));
    let (status, body) = request(api, "POST /v1/reload", Some(&right)).await;
    assert_eq!(status, 422);
    assert!(body.contains("services[0].adress"), "{body}");
    assert_eq!(request(api, "POST /v1/reload", Some(&right)).await.0, 503, "the agent stops");
}
