//! Forgetting what is older than the retention.

use super::rollup::{MINUTE_MS, QUARTER_MS};
use super::{Db, Result};
use shared::api::WallMs;

const DAY_MS: i64 = 86_400_000;
/// Minutes are kept for a month and quarters of an hour for a year, or as long as the rounds themselves.
const ROLLUPS: [(i64, u32); 2] = [(MINUTE_MS, 31), (QUARTER_MS, 366)];
/// Rows per transaction, so that nobody else waits long for the writer.
const BATCH: i64 = 20_000;

impl Db {
    /// Deletes samples, log entries, ended sessions and ended pins older than `retention_days` before `now`, and roll-ups
    /// some time later. What is summed up must have been summed up before.
    pub async fn prune(&self, now: WallMs, retention_days: u32) -> Result<()> {
        let oldest = now - i64::from(retention_days) * DAY_MS;
        // The tables have no row ids to limit by, so a batch ends at a moment.
        self.delete_batches(
            "DELETE FROM leg_sample WHERE at < $1 AND at <= \
             (SELECT max(at) FROM (SELECT at FROM leg_sample WHERE at < $1 ORDER BY at LIMIT $2))",
            &[oldest, BATCH],
        )
        .await?;
        for (width, days) in ROLLUPS {
            let oldest = now - i64::from(days.max(retention_days)) * DAY_MS;
            self.delete_batches(
                "DELETE FROM leg_rollup WHERE width_ms = $1 AND at < $2 AND at <= \
                 (SELECT max(at) FROM (SELECT at FROM leg_rollup WHERE width_ms = $1 AND at < $2 ORDER BY at LIMIT $3))",
                &[width, oldest, BATCH],
            )
            .await?;
        }
        let mut tx = self.write().await?;
        for statement in [
            "DELETE FROM decision_log WHERE at < $1",
            "DELETE FROM pin WHERE until < $1",
            "DELETE FROM leg WHERE NOT EXISTS (SELECT 1 FROM leg_sample WHERE leg_id = leg.id) \
             AND NOT EXISTS (SELECT 1 FROM leg_rollup WHERE leg_id = leg.id) AND $1 IS NOT NULL",
        ] {
            sqlx::query(statement).bind(oldest).execute(&mut *tx.0).await?;
        }
        sqlx::query("DELETE FROM session WHERE expires_at < $1").bind(now).execute(&mut *tx.0).await?;
        tx.commit().await
    }

    /// Repeats a statement with these values until it deletes nothing more; each time is a transaction.
    async fn delete_batches(&self, statement: &'static str, values: &[i64]) -> Result<()> {
        loop {
            let query = values.iter().fold(sqlx::query(statement), |query, value| query.bind(*value));
            if query.execute(&self.writer).await?.rows_affected() == 0 {
                return Ok(());
            }
        }
    }
}
