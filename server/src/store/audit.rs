//! Who changed what.

use super::{Result, Tx};
use shared::api::{AuditEntry, WallMs};

/// A change to be noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// When.
    pub at: WallMs,
    /// Who.
    pub username: String,
    /// `tunnel.create`, `settings.update`, …
    pub action: &'static str,
    /// What it was done to: name and id.
    pub object: String,
    /// What changed, without secrets.
    pub detail: String,
}

impl Tx {
    /// Notes a change.
    pub async fn append_audit(&mut self, entry: &NewAuditEntry) -> Result<()> {
        sqlx::query(
            "INSERT INTO audit_log (at, username, action, object, detail) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(entry.at)
        .bind(&entry.username)
        .bind(entry.action)
        .bind(&entry.object)
        .bind(&entry.detail)
        .execute(&mut *self.0)
        .await?;
        Ok(())
    }

    /// Changes, newest first, older than the one with the id `before`; with `search` those that have it in the name of the
    /// user or of the object, in any case of ASCII letters.
    pub async fn audit_log(
        &mut self,
        limit: u32,
        before: Option<i64>,
        search: Option<&str>,
    ) -> Result<Vec<AuditEntry>> {
        #[derive(sqlx::FromRow)]
        struct Row {
            id: i64,
            at: i64,
            username: String,
            action: String,
            object: String,
            detail: String,
        }
        // Not LIKE: a % or _ that is searched for means itself.
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT * FROM audit_log WHERE id < $1
             AND ($3 IS NULL OR instr(lower(username), lower($3)) > 0 OR instr(lower(object), lower($3)) > 0)
             ORDER BY id DESC LIMIT $2",
        )
        .bind(before.unwrap_or(i64::MAX))
        .bind(i64::from(limit))
        .bind(search)
        .fetch_all(&mut *self.0)
        .await?;
        let entry = |row: Row| AuditEntry {
            id: row.id,
            at: row.at,
            username: row.username,
            action: row.action,
            object: row.object,
            detail: row.detail,
        };
        Ok(rows.into_iter().map(entry).collect())
    }
}
