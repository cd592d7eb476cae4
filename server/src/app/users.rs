//! Making sure that somebody can log in.

use super::{Result, object};
use crate::auth::{password, token};
use crate::clock::Clock;
use crate::error::AppError;
use crate::store::{Db, NewAuditEntry};
use shared::api::Role;

/// The user of the first start.
pub const FIRST_USER: &str = "admin";

/// A user that was created on first start.
pub struct FirstUser {
    /// Name.
    pub username: &'static str,
    /// The random password, to be shown once; `None` = the configured one.
    pub password: Option<String>,
}

/// Creates the user admin where there is no user at all.
pub async fn ensure_first(db: &Db, clock: &Clock, configured: Option<&str>) -> Result<Option<FirstUser>> {
    if db.read().await?.has_users().await? {
        return Ok(None);
    }
    let random = configured.is_none().then(token::new_password);
    let chosen = configured.map(str::to_owned).or_else(|| random.clone()).unwrap_or_default();
    let hash = blocking_hash(chosen).await?;
    let mut tx = db.write().await?;
    if tx.has_users().await? {
        return Ok(None);
    }
    tx.insert_user(FIRST_USER, &hash, Role::Admin, clock.wall_ms()).await?;
    tx.commit().await?;
    Ok(Some(FirstUser { username: FIRST_USER, password: random }))
}

/// Gives a user a new random password, ends his sessions and answers the password; `None` = there is no such user.
pub async fn reset_password(db: &Db, clock: &Clock, username: &str) -> Result<Option<String>> {
    let password = token::new_password();
    let hash = blocking_hash(password.clone()).await?;
    let mut tx = db.write().await?;
    let Some(stored) = tx.user_by_name(username).await? else { return Ok(None) };
    tx.set_password(stored.user.id, &hash, None).await?;
    let entry = NewAuditEntry {
        at: clock.wall_ms(),
        username: "command line".to_owned(),
        action: "user.reset_password",
        object: object(username, stored.user.id),
        detail: String::new(),
    };
    tx.append_audit(&entry).await?;
    tx.commit().await?;
    Ok(Some(password))
}

async fn blocking_hash(password: String) -> Result<String> {
    tokio::task::spawn_blocking(move || password::hash_now(&password))
        .await
        .map_err(|e| AppError::Internal(e.into()))?
}
