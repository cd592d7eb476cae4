//! Settings and the audit log.

use crate::panel::Panel;
use serde_json::json;

#[tokio::test]
async fn given_fields_change_and_the_others_stay() {
    let panel = Panel::new().await;
    let before = panel.get("/settings").await.expect(200);
    assert_eq!((&before["version"], &before["confirmations"]), (&json!(1), &json!(3)));
    let after = panel.put("/settings", &json!({ "confirmations": 5 })).await.expect(200);
    assert_eq!((&after["version"], &after["confirmations"]), (&json!(2), &json!(5)));
    assert_eq!(after["cooldownMs"], before["cooldownMs"]);
    assert_eq!(panel.get("/settings").await.expect(200), after);
    // The whole answer can be sent back; nothing changes, not even the version.
    assert_eq!(panel.put("/settings", &after).await.expect(200), after);
    let stale = panel.put("/settings", &before).await.expect(409);
    assert_eq!(stale["type"], "stale_version");
    let log = panel.get("/audit-log").await.expect(200);
    assert_eq!(log.as_array().unwrap().len(), 1);
    assert_eq!(log[0]["detail"], "confirmations: 3 → 5");
}

#[tokio::test]
async fn monitoring_off_shows_as_paused() {
    let panel = Panel::new().await;
    panel.put("/settings", &json!({ "monitorTunnelQualityEnabled": false })).await.expect(200);
    let (tunnel, _) = panel.best_tunnel("hk").await;
    assert_eq!(tunnel["bestExit"]["status"], "paused");
}

#[tokio::test]
async fn the_log_is_read_in_parts() {
    let panel = Panel::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        panel.node(name).await;
    }
    let first = panel.get("/audit-log?limit=2").await.expect(200);
    assert_eq!(first.as_array().unwrap().len(), 2);
    assert_eq!(first[0]["object"], "e (5)");
    let more = panel.get(&format!("/audit-log?limit=10&before={}", first[1]["id"])).await.expect(200);
    assert_eq!(more.as_array().unwrap().len(), 3);
    assert_eq!(more[0]["object"], "c (3)");
    for (query, field, code) in [
        ("limit=0", "limit", "out_of_range"),
        ("limit=1001", "limit", "out_of_range"),
        ("limit=x", "limit", "out_of_range"),
        ("before=x", "before", "out_of_range"),
        ("size=3", "size", "unknown_field"),
    ] {
        let answer = panel.get(&format!("/audit-log?{query}")).await;
        assert_eq!(answer.errors(), [(field.to_owned(), code.to_owned())], "{query}");
        answer.expect(422);
    }
}

#[tokio::test]
async fn the_log_is_searched_by_user_and_object() {
    let panel = Panel::new().await;
    for name in ["HK-1", "hk-2", "tokyo_1", "tokyo%1"] {
        panel.node(name).await;
    }
    let user = json!({ "username": "hkeeper", "password": "a long password", "role": "viewer" });
    panel.post("/users", &user).await.expect(201);
    let objects = async |query: &str| -> Vec<String> {
        let log = panel.get(&format!("/audit-log?{query}")).await.expect(200);
        log.as_array().unwrap().iter().map(|e| e["object"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(objects("search=hk").await, ["hkeeper (3)", "hk-2 (2)", "HK-1 (1)"]);
    assert_eq!(objects("search=HK-1").await, ["HK-1 (1)"]);
    // What stands for any text elsewhere stands for itself here.
    assert_eq!(objects("search=tokyo_").await, ["tokyo_1 (3)"]);
    assert_eq!(objects("search=%25").await, ["tokyo%1 (4)"]);
    assert_eq!(objects("search=ADMIN").await.len(), 5);
    assert_eq!(objects("search=").await.len(), 5);
    assert_eq!(objects("search=nobody").await, [""; 0]);
    // Its parts fit together too.
    assert_eq!(objects("search=hk&limit=1").await, ["hkeeper (3)"]);
    let log = panel.get("/audit-log?search=hk&limit=1").await.expect(200);
    assert_eq!(objects(&format!("search=hk&before={}", log[0]["id"])).await, ["hk-2 (2)", "HK-1 (1)"]);
}

#[tokio::test]
async fn with_the_database_locked_writes_say_so_and_reads_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("panel.db").display());
    let (ours, theirs) =
        (server::store::Db::open(&url).await.unwrap(), server::store::Db::open(&url).await.unwrap());
    let panel = Panel::with(ours, server::config::Config::default()).await;
    let lock = theirs.write().await.unwrap();
    let answer = panel.put("/settings", &json!({ "confirmations": 5 })).await;
    assert!(answer.headers.contains_key("retry-after"));
    let problem = answer.expect(503);
    assert_eq!(problem["type"], "database_unavailable");
    assert_eq!(problem["detail"], "the database is not available: it is locked");
    assert_eq!(panel.get("/settings").await.expect(200)["confirmations"], 3);
    let ready = panel.call(axum::http::Method::GET, "/readyz").send().await;
    ready.expect(503);
    drop(lock);
    theirs.ping().await.unwrap();
    panel.put("/settings", &json!({ "confirmations": 5 })).await.expect(200);
}
