//! Pins: an operator's wish that one exit be used as long as it works.

use super::{Db, Result, Tx};
use shared::api::PinRecord;
use shared::ids::{NodeId, TunnelId};

#[derive(sqlx::FromRow)]
struct PinRow {
    tunnel_id: i64,
    owner_node_id: Option<i64>,
    exit_node_id: i64,
    until: Option<i64>,
    reason: String,
    author: String,
    created_time: i64,
}

impl From<PinRow> for PinRecord {
    fn from(row: PinRow) -> Self {
        PinRecord {
            exit_node_id: NodeId(row.exit_node_id),
            owner_node_id: row.owner_node_id.map(NodeId),
            until: row.until,
            reason: row.reason,
            author: row.author,
            created_at: row.created_time,
        }
    }
}

impl Tx {
    /// Sets a pin in place of the one with the same scope. One for all owners replaces those of single owners.
    pub async fn put_pin(&mut self, tunnel: TunnelId, pin: &PinRecord) -> Result<()> {
        self.delete_pins(tunnel, pin.owner_node_id).await?;
        sqlx::query(
            "INSERT INTO pin (tunnel_id, owner_node_id, exit_node_id, until, reason, author, created_time) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(tunnel.0)
        .bind(pin.owner_node_id.map(|id| id.0))
        .bind(pin.exit_node_id.0)
        .bind(pin.until)
        .bind(&pin.reason)
        .bind(&pin.author)
        .bind(pin.created_at)
        .execute(&mut *self.0)
        .await?;
        Ok(())
    }

    /// Removes the pin of one owner, or all pins of the tunnel; answers how many there were.
    pub async fn delete_pins(&mut self, tunnel: TunnelId, owner: Option<NodeId>) -> Result<u64> {
        let done = sqlx::query("DELETE FROM pin WHERE tunnel_id = $1 AND ($2 IS NULL OR owner_node_id = $2)")
            .bind(tunnel.0)
            .bind(owner.map(|id| id.0))
            .execute(&mut *self.0)
            .await?;
        Ok(done.rows_affected())
    }

    /// The pins of a tunnel; the one for all owners first.
    pub async fn pins_of_tunnel(&mut self, tunnel: TunnelId) -> Result<Vec<PinRecord>> {
        let rows: Vec<PinRow> =
            sqlx::query_as("SELECT * FROM pin WHERE tunnel_id = $1 ORDER BY coalesce(owner_node_id, 0)")
                .bind(tunnel.0)
                .fetch_all(&mut *self.0)
                .await?;
        Ok(rows.into_iter().map(PinRecord::from).collect())
    }

    /// Removes pins whose exit or owner is no longer part of the tunnel in that role.
    pub async fn drop_orphaned_pins(
        &mut self,
        tunnel: TunnelId,
        owners: &[NodeId],
        exits: &[NodeId],
    ) -> Result<()> {
        for pin in self.pins_of_tunnel(tunnel).await? {
            let owner_ok = pin.owner_node_id.is_none_or(|owner| owners.contains(&owner));
            if owner_ok && exits.contains(&pin.exit_node_id) {
                continue;
            }
            sqlx::query("DELETE FROM pin WHERE tunnel_id = $1 AND coalesce(owner_node_id, 0) = $2")
                .bind(tunnel.0)
                .bind(pin.owner_node_id.map_or(0, |id| id.0))
                .execute(&mut *self.0)
                .await?;
        }
        Ok(())
    }
}

impl Db {
    /// All pins, ended ones included, in the order of tunnel and owner; the one for all owners comes first.
    pub async fn pins(&self) -> Result<Vec<(TunnelId, PinRecord)>> {
        let rows: Vec<PinRow> =
            sqlx::query_as("SELECT * FROM pin ORDER BY tunnel_id, coalesce(owner_node_id, 0)")
                .fetch_all(&self.reader)
                .await?;
        Ok(rows.into_iter().map(|row| (TunnelId(row.tunnel_id), row.into())).collect())
    }
}
