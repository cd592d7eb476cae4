//! Forgetting what is older than the retention.

use super::{Db, Result};
use shared::api::WallMs;

const DAY_MS: i64 = 86_400_000;
/// Rows per transaction, so that nobody else waits long for the writer.
const BATCH: i64 = 20_000;

impl Db {
    /// Deletes samples, log entries, ended sessions and ended pins older than `retention_days` before `now`.
    pub async fn prune(&self, now: WallMs, retention_days: u32) -> Result<()> {
        let oldest = now - i64::from(retention_days) * DAY_MS;
        loop {
            // The table has no row ids to limit by, so a batch ends at a moment.
            let done = sqlx::query(
                "DELETE FROM leg_sample WHERE at < $1 AND at <= \
                 (SELECT max(at) FROM (SELECT at FROM leg_sample WHERE at < $1 ORDER BY at LIMIT $2))",
            )
            .bind(oldest)
            .bind(BATCH)
            .execute(&self.writer)
            .await?;
            if done.rows_affected() == 0 {
                break;
            }
        }
        let mut tx = self.write().await?;
        for statement in [
            "DELETE FROM decision_log WHERE at < $1",
            "DELETE FROM pin WHERE until < $1",
            "DELETE FROM leg WHERE NOT EXISTS (SELECT 1 FROM leg_sample WHERE leg_id = leg.id) AND $1 IS NOT NULL",
        ] {
            sqlx::query(statement).bind(oldest).execute(&mut *tx.0).await?;
        }
        sqlx::query("DELETE FROM session WHERE expires_at < $1").bind(now).execute(&mut *tx.0).await?;
        tx.commit().await
    }
}
