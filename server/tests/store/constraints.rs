//! Nonsense is refused by the database itself, whoever writes it.

use crate::world::{AT, add_node, fill};
use serde_json::json;
use server::store::{Db, NewForward, NewTunnel, StoreError, Taken};
use shared::api::{ForwardInput, Role, TunnelInput};
use shared::gost::Auth;
use shared::ids::{NodeId, TunnelId, UserId};
use sqlx::{Connection as _, SqliteConnection};

/// A filled database in a file, and a connection of its own to it that enforces what ours do.
async fn raw() -> (tempfile::TempDir, SqliteConnection) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("raw.db");
    let db = Db::open(&format!("sqlite://{}", path.display())).await.unwrap();
    fill(&db).await;
    db.close().await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).foreign_keys(true);
    (folder, SqliteConnection::connect_with(&options).await.unwrap())
}

#[tokio::test]
async fn statements_that_store_nonsense_fail() {
    let (_folder, mut connection) = raw().await;
    let table = [
        // unique
        "INSERT INTO node SELECT 99, 1, name, hex(zeroblob(32)), '', '', '', '1', '', '', '', '', '[]', NULL, 0, 0 \
         FROM node WHERE id = 1",
        "UPDATE node SET link_key = (SELECT link_key FROM node WHERE id = 2) WHERE id = 1",
        "INSERT INTO tunnel VALUES (99, 1, 'hk', 2, 1, 'auto', 'u', 'p', 0, 0)",
        "INSERT INTO node_port VALUES (2, 20001, NULL, 1)",
        "INSERT INTO chain_tunnel VALUES (99, 1, 1, 1, 1, 'fifo', 'tls', 1, 1, NULL, NULL)",
        "INSERT INTO pin VALUES (1, NULL, 2, NULL, 'a', 'b', 0), (1, NULL, 3, NULL, 'a', 'b', 0)",
        // references
        "DELETE FROM node WHERE id = 2",
        "UPDATE chain_tunnel SET node_id = 77 WHERE chain_type = 1",
        "UPDATE chain_tunnel SET port = 20777 WHERE node_id = 2",
        "DELETE FROM node_port WHERE tunnel_id = 1",
        "INSERT INTO forward_port VALUES (1, 2, 30000)",
        "INSERT INTO forward SELECT 99, 1, 77, 1, 'x', '[\"a:1\"]', 'fifo', 1, 1, NULL, 0, 0",
        "INSERT INTO session VALUES (hex(zeroblob(32)), 77, 0, 0)",
        "INSERT INTO leg_sample VALUES (77, 0, 'measured', 1.0, 0.0, NULL)",
        // values
        "UPDATE tunnel SET name = 'x'",
        "UPDATE tunnel SET type = 3",
        "UPDATE tunnel SET ip_preference = 'v5'",
        "UPDATE tunnel SET relay_password = ''",
        "UPDATE chain_tunnel SET port = NULL WHERE chain_type = 3",
        "UPDATE chain_tunnel SET max_fails = 0",
        "UPDATE node SET capabilities = 'none'",
        "UPDATE node SET link_key = 'short'",
        "UPDATE node SET revision = 'many'",
        "UPDATE forward SET remote_addr = '[]'",
        "UPDATE forward SET listen_port = 65536",
        "INSERT INTO node_port VALUES (1, 0, 1, NULL)",
        "INSERT INTO node_port VALUES (1, 5, 1, 1)",
        "INSERT INTO node_port VALUES (1, 5, NULL, NULL)",
        "INSERT INTO setting VALUES (2, 1, '{}')",
        "INSERT INTO setting VALUES (1, 1, 'nonsense')",
        "INSERT INTO \"user\" VALUES (9, 'x', 'h', 'king', 0)",
        "INSERT INTO best_exit_decision VALUES (1, 1, 'nonsense', NULL, NULL, NULL)",
    ];
    for statement in table {
        let error = sqlx::query(statement).execute(&mut connection).await;
        let error = error.map(|done| done.rows_affected()).expect_err(statement);
        let database = error.as_database_error().unwrap_or_else(|| panic!("{statement}: {error}"));
        assert!(
            database.is_unique_violation()
                || database.is_foreign_key_violation()
                || database.is_check_violation()
                || database.message().contains("cannot store TEXT value in INTEGER column"),
            "{statement}: {error}"
        );
    }
}

#[tokio::test]
async fn a_tunnel_takes_everything_of_its_own_with_it() {
    let (_folder, mut connection) = raw().await;
    sqlx::query("INSERT INTO best_exit_decision VALUES (1, 1, '[2,3]', NULL, NULL, NULL)")
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::query("DELETE FROM tunnel").execute(&mut connection).await.unwrap();
    for count in [
        "SELECT count(*) FROM chain_tunnel",
        "SELECT count(*) FROM node_port",
        "SELECT count(*) FROM forward",
        "SELECT count(*) FROM forward_port",
        "SELECT count(*) FROM best_exit_decision",
    ] {
        let left: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap();
        assert_eq!(left, 0, "{count}");
    }
    sqlx::query("DELETE FROM node").execute(&mut connection).await.unwrap();
}

#[tokio::test]
async fn what_is_taken_is_said() {
    let db = Db::memory().await.unwrap();
    let world = fill(&db).await;
    let taken = |error: StoreError| match error {
        StoreError::Taken(taken) => taken,
        other => panic!("{other:?}"),
    };
    let auth = Auth { username: "u".into(), password: "p".into() };
    let tunnel = |name: &str, port: u16| -> TunnelInput {
        serde_json::from_value(json!({
            "name": name, "entry": { "nodes": [{ "nodeId": world.entry }] },
            "exit": { "nodes": [{ "nodeId": world.exits[0], "port": port }] }
        }))
        .unwrap()
    };

    let mut tx = db.write().await.unwrap();
    let same_name = tunnel("hk", 25_000);
    let error = tx.insert_tunnel(&NewTunnel { input: &same_name, at: AT }, &auth).await.unwrap_err();
    assert_eq!(taken(error), Taken::TunnelName);
    drop(tx);
    let mut tx = db.write().await.unwrap();
    let same_port = tunnel("jp", 20_001);
    let error = tx.insert_tunnel(&NewTunnel { input: &same_port, at: AT }, &auth).await.unwrap_err();
    assert_eq!(taken(error), Taken::Port);
    drop(tx);
    let mut tx = db.write().await.unwrap();
    tx.insert_user("me", "h", Role::Admin, AT).await.unwrap();
    assert_eq!(taken(tx.insert_user("me", "h", Role::Admin, AT).await.unwrap_err()), Taken::Username);
    drop(tx);

    // A forward on the relay port of a node that is entry elsewhere.
    let forward: ForwardInput = serde_json::from_value(json!({
        "tunnelId": world.tunnel, "name": "x", "listenPort": 20_001, "targets": ["a.example:1"]
    }))
    .unwrap();
    let mut tx = db.write().await.unwrap();
    let new = NewForward { input: &forward, entries: &[world.exits[0]], at: AT };
    assert_eq!(taken(tx.insert_forward(&new, UserId(1)).await.unwrap_err()), Taken::Port);
    drop(tx);

    let mut tx = db.write().await.unwrap();
    assert!(matches!(tx.delete_node(world.exits[0]).await, Err(StoreError::Reference)));
    drop(tx);
    let names = db.read().await.unwrap().tunnels(server::store::Page::ALL).await.unwrap();
    assert_eq!(names.len(), 1, "nothing of it was stored");
    let extra = add_node(&db, "extra").await;
    let mut tx = db.write().await.unwrap();
    tx.delete_node(extra).await.unwrap();
    tx.commit().await.unwrap();
}

/// What a round says about a tunnel or a node that was deleted meanwhile is dropped without an error.
#[tokio::test]
async fn news_about_what_is_gone_is_dropped() {
    let db = Db::memory().await.unwrap();
    let world = fill(&db).await;
    for (tunnel, owner) in [(TunnelId(99), world.entry), (world.tunnel, NodeId(99))] {
        db.propose_order(tunnel, owner, &world.exits).await.unwrap();
        let decision = server::store::StoredDecision {
            tunnel,
            owner,
            order: world.exits.to_vec(),
            proposed: None,
            last_switch_at: None,
            last_switch: None,
        };
        db.store_decision(&decision, None).await.unwrap();
    }
    assert_eq!(db.decisions().await.unwrap(), []);
    let sample = server::store::LegSample {
        from: NodeId(99),
        target: "a.example:1".into(),
        at: AT,
        leg: shared::best_exit::Leg::Measured { latency_ms: 1.0, loss: 0.0 },
    };
    db.append_leg_samples(&[sample]).await.unwrap();
}
