//! The settings of measuring and deciding.

use super::{Db, Result, Tx, from_json, to_json};
use shared::best_exit::Settings;

impl Tx {
    /// Version and settings; the defaults with version 1 before the first edit.
    pub async fn settings(&mut self) -> Result<(i64, Settings)> {
        let row: Option<(i64, String)> =
            sqlx::query_as("SELECT version, best_exit FROM setting").fetch_optional(&mut *self.0).await?;
        match row {
            Some((version, text)) => Ok((version, from_json("setting", &text)?)),
            None => Ok((1, Settings::default())),
        }
    }

    /// Replaces the settings and answers their new version.
    pub async fn update_settings(&mut self, settings: &Settings) -> Result<i64> {
        let version = sqlx::query_scalar(
            "INSERT INTO setting (id, version, best_exit) VALUES (1, 2, $1) \
             ON CONFLICT (id) DO UPDATE SET version = version + 1, best_exit = excluded.best_exit RETURNING version",
        )
        .bind(to_json(settings)?)
        .fetch_one(&mut *self.0)
        .await?;
        Ok(version)
    }
}

impl Db {
    /// Version and settings.
    pub async fn settings(&self) -> Result<(i64, Settings)> {
        self.read().await?.settings().await
    }
}
