//! A small world to store.

use serde_json::json;
use server::store::{Db, NewForward, NewNode, NewTunnel};
use shared::api::{ForwardInput, NodeInput, TunnelInput};
use shared::envelope::link_key;
use shared::gost::Auth;
use shared::ids::{ForwardId, NodeId, TunnelId, UserId};

/// When it was made.
pub(crate) const AT: i64 = 1_790_000_000_000;

pub(crate) struct World {
    pub(crate) entry: NodeId,
    pub(crate) exits: [NodeId; 2],
    pub(crate) tunnel: TunnelId,
    pub(crate) forward: ForwardId,
}

pub(crate) async fn add_node(db: &Db, name: &str) -> NodeId {
    let input = NodeInput { name: name.into(), server_ip: "192.0.2.1".into(), ..NodeInput::default() };
    let mut tx = db.write().await.unwrap();
    let id = tx.insert_node(&NewNode { input: &input, link_key: link_key(name), at: AT }).await.unwrap();
    tx.commit().await.unwrap();
    id
}

/// One entry, two exits, a tunnel and a forward.
pub(crate) async fn fill(db: &Db) -> World {
    let entry = add_node(db, "entry").await;
    let exits = [add_node(db, "exit-a").await, add_node(db, "exit-b").await];
    let tunnel: TunnelInput = serde_json::from_value(json!({
        "name": "hk",
        "entry": { "nodes": [{ "nodeId": entry }] },
        "exit": { "strategy": "best", "nodes": [
            { "nodeId": exits[0], "port": 20001 }, { "nodeId": exits[1], "port": 20002 }] }
    }))
    .unwrap();
    let auth = Auth { username: "u".into(), password: "p".into() };
    let mut tx = db.write().await.unwrap();
    let tunnel_id = tx.insert_tunnel(&NewTunnel { input: &tunnel, at: AT }, &auth).await.unwrap();
    let forward: ForwardInput = serde_json::from_value(json!({
        "tunnelId": tunnel_id, "name": "web", "listenPort": 30000, "targets": ["a.example:80"]
    }))
    .unwrap();
    let new = NewForward { input: &forward, entries: &[entry], at: AT };
    let forward_id = tx.insert_forward(&new, UserId(1)).await.unwrap();
    tx.commit().await.unwrap();
    World { entry, exits, tunnel: tunnel_id, forward: forward_id }
}
