//! Forwards and where they listen.

use super::{Page, PortUse, Result, Tx, from_json, to_json, to_port};
use shared::api::{Forward, ForwardInput, WallMs};
use shared::ids::{ForwardId, NodeId, TunnelId, UserId};

/// A stored forward.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardRow {
    /// As the API shows it; what is not stored (addresses, deployment) is empty.
    pub forward: Forward,
    /// Who made it.
    pub user: UserId,
}

/// A forward to be stored.
#[derive(Debug)]
pub struct NewForward<'a> {
    /// Valid; its port is chosen.
    pub input: &'a ForwardInput,
    /// The entry nodes of its tunnel: it listens on each.
    pub entries: &'a [NodeId],
    /// When.
    pub at: WallMs,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: i64,
    version: i64,
    tunnel_id: i64,
    user_id: i64,
    name: String,
    remote_addr: String,
    strategy: String,
    status: bool,
    listen_port: i64,
    in_ip: Option<String>,
}

fn read(row: Row) -> Result<ForwardRow> {
    let forward = Forward {
        id: ForwardId(row.id),
        version: row.version,
        tunnel_id: TunnelId(row.tunnel_id),
        name: row.name,
        listen_port: to_port("forward", row.listen_port)?,
        listen_ip: row.in_ip,
        targets: from_json("forward", &row.remote_addr)?,
        strategy: row.strategy.as_str().into(),
        enabled: row.status,
        addresses: Vec::new(),
        deployment: Vec::new(),
    };
    Ok(ForwardRow { forward, user: UserId(row.user_id) })
}

impl Tx {
    /// Forwards by id.
    pub async fn forwards(&mut self, page: Page) -> Result<Vec<ForwardRow>> {
        let rows: Vec<Row> = sqlx::query_as("SELECT * FROM forward WHERE id > $1 ORDER BY id LIMIT $2")
            .bind(page.after)
            .bind(i64::from(page.limit))
            .fetch_all(&mut *self.0)
            .await?;
        rows.into_iter().map(read).collect()
    }

    /// The forwards of a tunnel by id.
    pub async fn forwards_of_tunnel(&mut self, tunnel: TunnelId) -> Result<Vec<ForwardRow>> {
        let rows: Vec<Row> = sqlx::query_as("SELECT * FROM forward WHERE tunnel_id = $1 ORDER BY id")
            .bind(tunnel.0)
            .fetch_all(&mut *self.0)
            .await?;
        rows.into_iter().map(read).collect()
    }

    /// One forward.
    pub async fn forward(&mut self, id: ForwardId) -> Result<Option<ForwardRow>> {
        let row: Option<Row> = sqlx::query_as("SELECT * FROM forward WHERE id = $1")
            .bind(id.0)
            .fetch_optional(&mut *self.0)
            .await?;
        row.map(read).transpose()
    }

    /// Stores a new forward with version 1.
    pub async fn insert_forward(&mut self, new: &NewForward<'_>, user: UserId) -> Result<ForwardId> {
        let input = new.input;
        let id: i64 = sqlx::query_scalar(
            "INSERT INTO forward (version, tunnel_id, user_id, name, remote_addr, strategy, status, listen_port, \
             in_ip, created_time, updated_time) VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $9) RETURNING id",
        )
        .bind(input.tunnel_id.0)
        .bind(user.0)
        .bind(&input.name)
        .bind(to_json(&input.targets)?)
        .bind(input.strategy.as_str())
        .bind(i64::from(input.enabled))
        .bind(i64::from(input.listen_port))
        .bind(input.listen_ip.as_deref().filter(|ip| !ip.is_empty()))
        .bind(new.at)
        .fetch_one(&mut *self.0)
        .await?;
        self.listen(ForwardId(id), input.listen_port, new.entries).await?;
        Ok(ForwardId(id))
    }

    /// Replaces what was typed and counts the version.
    pub async fn update_forward(&mut self, id: ForwardId, new: &NewForward<'_>) -> Result<()> {
        let input = new.input;
        sqlx::query(
            "UPDATE forward SET version = version + 1, tunnel_id = $2, name = $3, remote_addr = $4, strategy = $5, \
             status = $6, listen_port = $7, in_ip = $8, updated_time = $9 WHERE id = $1",
        )
        .bind(id.0)
        .bind(input.tunnel_id.0)
        .bind(&input.name)
        .bind(to_json(&input.targets)?)
        .bind(input.strategy.as_str())
        .bind(i64::from(input.enabled))
        .bind(i64::from(input.listen_port))
        .bind(input.listen_ip.as_deref().filter(|ip| !ip.is_empty()))
        .bind(new.at)
        .execute(&mut *self.0)
        .await?;
        self.listen_elsewhere(id, input.listen_port, new.entries).await
    }

    /// Lets a forward listen on these nodes only: its tunnel has got other entries.
    pub async fn listen_elsewhere(&mut self, id: ForwardId, port: u16, entries: &[NodeId]) -> Result<()> {
        for statement in
            ["DELETE FROM forward_port WHERE forward_id = $1", "DELETE FROM node_port WHERE forward_id = $1"]
        {
            sqlx::query(statement).bind(id.0).execute(&mut *self.0).await?;
        }
        self.listen(id, port, entries).await
    }

    async fn listen(&mut self, id: ForwardId, port: u16, entries: &[NodeId]) -> Result<()> {
        for node in entries {
            self.reserve_port(*node, port, PortUse::Forward(id)).await?;
            sqlx::query("INSERT INTO forward_port (forward_id, node_id, port) VALUES ($1, $2, $3)")
                .bind(id.0)
                .bind(node.0)
                .bind(i64::from(port))
                .execute(&mut *self.0)
                .await?;
        }
        Ok(())
    }

    /// Pauses or resumes a forward and counts the version.
    pub async fn set_forward_enabled(&mut self, id: ForwardId, enabled: bool, at: WallMs) -> Result<()> {
        sqlx::query(
            "UPDATE forward SET version = version + 1, status = $2, updated_time = $3 WHERE id = $1 AND status <> $2",
        )
        .bind(id.0)
        .bind(i64::from(enabled))
        .bind(at)
        .execute(&mut *self.0)
        .await?;
        Ok(())
    }

    /// Deletes a forward and frees its ports.
    pub async fn delete_forward(&mut self, id: ForwardId) -> Result<()> {
        sqlx::query("DELETE FROM forward WHERE id = $1").bind(id.0).execute(&mut *self.0).await?;
        Ok(())
    }
}
