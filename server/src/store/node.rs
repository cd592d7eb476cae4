//! Nodes.

use super::{Db, Page, Result, StoreError, Tx, from_json, to_json};
use shared::api::{Node, NodeInput, WallMs};
use shared::ids::{NodeId, TunnelId};

/// A node to be stored.
#[derive(Debug)]
pub struct NewNode<'a> {
    /// What was typed, valid.
    pub input: &'a NodeInput,
    /// SHA-256 of its secret.
    pub link_key: [u8; 32],
    /// When.
    pub at: WallMs,
}

#[derive(sqlx::FromRow)]
struct NodeRow {
    id: i64,
    revision: i64,
    name: String,
    server_ip: String,
    server_ip_v4: String,
    server_ip_v6: String,
    port: String,
    interface_name: String,
    tcp_listen_addr: String,
    udp_listen_addr: String,
    version: String,
    capabilities: String,
    last_seen: Option<i64>,
}

impl TryFrom<NodeRow> for Node {
    type Error = StoreError;
    fn try_from(row: NodeRow) -> Result<Self> {
        Ok(Node {
            id: NodeId(row.id),
            revision: row.revision,
            name: row.name,
            server_ip: row.server_ip,
            server_ip_v4: row.server_ip_v4,
            server_ip_v6: row.server_ip_v6,
            port_range: row.port,
            interface_name: row.interface_name,
            tcp_listen_addr: row.tcp_listen_addr,
            udp_listen_addr: row.udp_listen_addr,
            online: false,
            version: row.version,
            capabilities: from_json("node", &row.capabilities)?,
            last_seen: row.last_seen,
            secret: None,
        })
    }
}

impl Tx {
    /// Nodes by id. Whether they are online is not stored; the field is false.
    pub async fn nodes(&mut self, page: Page) -> Result<Vec<Node>> {
        let rows: Vec<NodeRow> = sqlx::query_as("SELECT * FROM node WHERE id > $1 ORDER BY id LIMIT $2")
            .bind(page.after)
            .bind(i64::from(page.limit))
            .fetch_all(&mut *self.0)
            .await?;
        rows.into_iter().map(Node::try_from).collect()
    }

    /// One node.
    pub async fn node(&mut self, id: NodeId) -> Result<Option<Node>> {
        let row: Option<NodeRow> = sqlx::query_as("SELECT * FROM node WHERE id = $1")
            .bind(id.0)
            .fetch_optional(&mut *self.0)
            .await?;
        row.map(Node::try_from).transpose()
    }

    /// The node of that name.
    pub async fn node_by_name(&mut self, name: &str) -> Result<Option<NodeId>> {
        let id: Option<i64> = sqlx::query_scalar("SELECT id FROM node WHERE name = $1")
            .bind(name)
            .fetch_optional(&mut *self.0)
            .await?;
        Ok(id.map(NodeId))
    }

    /// Stores a new node with revision 1.
    pub async fn insert_node(&mut self, node: &NewNode<'_>) -> Result<NodeId> {
        let input = node.input;
        let id: i64 = sqlx::query_scalar(
            "INSERT INTO node (revision, name, link_key, server_ip, server_ip_v4, server_ip_v6, port, interface_name, \
             tcp_listen_addr, udp_listen_addr, version, capabilities, created_time, updated_time) \
             VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, '', '[]', $10, $10) RETURNING id",
        )
        .bind(&input.name)
        .bind(hex::encode(node.link_key))
        .bind(&input.server_ip)
        .bind(&input.server_ip_v4)
        .bind(&input.server_ip_v6)
        .bind(&input.port_range)
        .bind(&input.interface_name)
        .bind(&input.tcp_listen_addr)
        .bind(&input.udp_listen_addr)
        .bind(node.at)
        .fetch_one(&mut *self.0)
        .await?;
        Ok(NodeId(id))
    }

    /// Replaces what was typed and counts the revision.
    pub async fn update_node(&mut self, id: NodeId, input: &NodeInput, at: WallMs) -> Result<()> {
        sqlx::query(
            "UPDATE node SET revision = revision + 1, name = $2, server_ip = $3, server_ip_v4 = $4, \
             server_ip_v6 = $5, port = $6, interface_name = $7, tcp_listen_addr = $8, udp_listen_addr = $9, \
             updated_time = $10 WHERE id = $1",
        )
        .bind(id.0)
        .bind(&input.name)
        .bind(&input.server_ip)
        .bind(&input.server_ip_v4)
        .bind(&input.server_ip_v6)
        .bind(&input.port_range)
        .bind(&input.interface_name)
        .bind(&input.tcp_listen_addr)
        .bind(&input.udp_listen_addr)
        .bind(at)
        .execute(&mut *self.0)
        .await?;
        Ok(())
    }

    /// Replaces the key of its link and counts the revision.
    pub async fn set_node_link_key(&mut self, id: NodeId, link_key: [u8; 32], at: WallMs) -> Result<()> {
        sqlx::query(
            "UPDATE node SET link_key = $2, revision = revision + 1, updated_time = $3 WHERE id = $1",
        )
        .bind(id.0)
        .bind(hex::encode(link_key))
        .bind(at)
        .execute(&mut *self.0)
        .await?;
        Ok(())
    }

    /// Deletes a node; [`StoreError::Reference`] when a tunnel uses it.
    pub async fn delete_node(&mut self, id: NodeId) -> Result<()> {
        sqlx::query("DELETE FROM node WHERE id = $1").bind(id.0).execute(&mut *self.0).await?;
        Ok(())
    }

    /// The tunnels a node is part of, by id, with their names.
    pub async fn tunnels_of_node(&mut self, id: NodeId) -> Result<Vec<(TunnelId, String)>> {
        let rows: Vec<(i64, String)> = sqlx::query_as(
            "SELECT tunnel.id, tunnel.name FROM tunnel JOIN chain_tunnel ON chain_tunnel.tunnel_id = tunnel.id \
             WHERE chain_tunnel.node_id = $1 ORDER BY tunnel.id",
        )
        .bind(id.0)
        .fetch_all(&mut *self.0)
        .await?;
        Ok(rows.into_iter().map(|(id, name)| (TunnelId(id), name)).collect())
    }
}

impl Db {
    /// The node whose link has this key.
    pub async fn node_by_key(&self, link_key: &[u8; 32]) -> Result<Option<NodeId>> {
        let id: Option<i64> = sqlx::query_scalar("SELECT id FROM node WHERE link_key = $1")
            .bind(hex::encode(link_key))
            .fetch_optional(&self.reader)
            .await?;
        Ok(id.map(NodeId))
    }

    /// The key of a node's link.
    pub async fn node_link_key(&self, id: NodeId) -> Result<Option<[u8; 32]>> {
        let text: Option<String> = sqlx::query_scalar("SELECT link_key FROM node WHERE id = $1")
            .bind(id.0)
            .fetch_optional(&self.reader)
            .await?;
        let Some(text) = text else { return Ok(None) };
        let mut key = [0; 32];
        hex::decode_to_slice(&text, &mut key)
            .map_err(|e| StoreError::Unreadable { table: "node", reason: e.to_string() })?;
        Ok(Some(key))
    }

    /// Its agent connected and said who it is.
    pub async fn node_connected(
        &self,
        id: NodeId,
        version: &str,
        capabilities: &[String],
        at: WallMs,
    ) -> Result<()> {
        sqlx::query("UPDATE node SET version = $2, capabilities = $3, last_seen = $4 WHERE id = $1")
            .bind(id.0)
            .bind(version)
            .bind(to_json(&capabilities)?)
            .bind(at)
            .execute(&self.writer)
            .await?;
        Ok(())
    }

    /// Its agent was heard.
    pub async fn node_seen(&self, id: NodeId, at: WallMs) -> Result<()> {
        sqlx::query("UPDATE node SET last_seen = $2 WHERE id = $1 AND coalesce(last_seen, 0) < $2")
            .bind(id.0)
            .bind(at)
            .execute(&self.writer)
            .await?;
        Ok(())
    }
}
