//! What persons have chosen in groups that leave the choice to them.

use super::{Db, Result, Tx};
use shared::api::ChoiceRecord;
use shared::ids::{NodeId, TunnelId};

#[derive(sqlx::FromRow)]
struct ChoiceRow {
    tunnel_id: i64,
    owner_node_id: i64,
    node_id: Option<i64>,
    author: String,
    created_time: i64,
}

impl From<ChoiceRow> for ChoiceRecord {
    fn from(row: ChoiceRow) -> Self {
        ChoiceRecord { node_id: row.node_id.map(NodeId), author: row.author, created_at: row.created_time }
    }
}

impl Tx {
    /// Notes what an owner shall use, in place of what was noted before.
    pub async fn put_choice(&mut self, tunnel: TunnelId, owner: NodeId, choice: &ChoiceRecord) -> Result<()> {
        sqlx::query(
            "INSERT INTO choice (tunnel_id, owner_node_id, node_id, author, created_time) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tunnel_id, owner_node_id) DO UPDATE SET \
             node_id = excluded.node_id, author = excluded.author, created_time = excluded.created_time",
        )
        .bind(tunnel.0)
        .bind(owner.0)
        .bind(choice.node_id.map(|id| id.0))
        .bind(&choice.author)
        .bind(choice.created_at)
        .execute(&mut *self.0)
        .await?;
        Ok(())
    }

    /// All choices, by tunnel and owner.
    pub async fn choices(&mut self) -> Result<Vec<(TunnelId, NodeId, ChoiceRecord)>> {
        let rows: Vec<ChoiceRow> = sqlx::query_as("SELECT * FROM choice ORDER BY tunnel_id, owner_node_id")
            .fetch_all(&mut *self.0)
            .await?;
        Ok(rows
            .into_iter()
            .map(|row| (TunnelId(row.tunnel_id), NodeId(row.owner_node_id), row.into()))
            .collect())
    }

    /// Forgets the choice of an owner.
    pub async fn delete_choice(&mut self, tunnel: TunnelId, owner: NodeId) -> Result<()> {
        sqlx::query("DELETE FROM choice WHERE tunnel_id = $1 AND owner_node_id = $2")
            .bind(tunnel.0)
            .bind(owner.0)
            .execute(&mut *self.0)
            .await?;
        Ok(())
    }
}

impl Db {
    /// An owner knows that the choice was taken back; there is nothing to tell it any more. A choice that was made in
    /// the meantime stays.
    pub async fn choice_taken_back(&self, tunnel: TunnelId, owner: NodeId) -> Result<()> {
        sqlx::query("DELETE FROM choice WHERE tunnel_id = $1 AND owner_node_id = $2 AND node_id IS NULL")
            .bind(tunnel.0)
            .bind(owner.0)
            .execute(&self.writer)
            .await?;
        Ok(())
    }
}
