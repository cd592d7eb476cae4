//! Users: who may log in, and making sure that somebody can.

use super::{Result, changes, note, object, valid};
use crate::auth::{password, token};
use crate::clock::Clock;
use crate::error::AppError;
use crate::state::AppState;
use crate::store::{Db, NewAuditEntry, Tx};
use shared::api::{Role, User, UserChange, UserInput, UserRecord, password_problem};
use shared::field::FieldError;
use shared::ids::UserId;

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

async fn find(tx: &mut Tx, id: UserId) -> Result<UserRecord> {
    let users = tx.users().await?;
    users.into_iter().find(|user| user.id == id).ok_or_else(|| AppError::NotFound(format!("user {id}")))
}

/// All users by id.
pub async fn list(state: &AppState) -> Result<Vec<UserRecord>> {
    Ok(state.db.read().await?.users().await?)
}

/// Creates a user.
pub async fn create(state: &AppState, by: &User, mut input: UserInput) -> Result<UserRecord> {
    valid(input.problems())?;
    input.username = input.username.trim().to_owned();
    let hash = state.passwords.hash(&input.password).await?;
    let mut tx = state.db.write().await?;
    if tx.user_by_name(&input.username).await?.is_some() {
        let message = format!("another user is called `{}`", input.username);
        let taken = FieldError::new("username", "name_taken", message).with("name", &input.username);
        return Err(AppError::Invalid(vec![taken]));
    }
    let user = tx.insert_user(&input.username, &hash, input.role, state.clock.wall_ms()).await?;
    let record = find(&mut tx, user.id).await?;
    let what = object(&record.username, record.id);
    note(&mut tx, state, by, "user.create", what, input.role.as_str().to_owned()).await?;
    tx.commit().await?;
    Ok(record)
}

/// Changes somebody else's role or password. A new password ends his sessions.
pub async fn update(state: &AppState, by: &User, id: UserId, change: UserChange) -> Result<UserRecord> {
    let problem = change.password.as_deref().and_then(|new| password_problem("password", new));
    valid(problem.into_iter().collect())?;
    let hash = match &change.password {
        Some(new) => Some(state.passwords.hash(new).await?),
        None => None,
    };
    let mut tx = state.db.write().await?;
    let old = find(&mut tx, id).await?;
    if id == by.id {
        return Err(AppError::InUse(
            "another admin has to change your role; your own password is changed under /auth/password"
                .to_owned(),
        ));
    }
    if let Some(role) = change.role {
        tx.set_role(id, role).await?;
    }
    if let Some(hash) = &hash {
        tx.set_password(id, hash, None).await?;
        note(&mut tx, state, by, "user.reset_password", object(&old.username, id), String::new()).await?;
    }
    let new = find(&mut tx, id).await?;
    if new != old {
        note(&mut tx, state, by, "user.update", object(&old.username, id), changes(&old, &new)).await?;
    }
    somebody_left(&mut tx).await?;
    tx.commit().await?;
    state.recall.tell();
    Ok(new)
}

/// Deletes somebody else and ends his sessions.
pub async fn delete(state: &AppState, by: &User, id: UserId) -> Result<()> {
    let mut tx = state.db.write().await?;
    let user = find(&mut tx, id).await?;
    if id == by.id {
        return Err(AppError::InUse("another admin has to delete you".to_owned()));
    }
    tx.delete_user(id).await?;
    note(&mut tx, state, by, "user.delete", object(&user.username, id), user.role.as_str().to_owned())
        .await?;
    somebody_left(&mut tx).await?;
    tx.commit().await?;
    state.recall.tell();
    Ok(())
}

/// Two admins could take each other's role at the same moment.
async fn somebody_left(tx: &mut Tx) -> Result<()> {
    if tx.users().await?.iter().any(|user| user.role == Role::Admin) {
        return Ok(());
    }
    Err(AppError::InUse("this is the last admin; make somebody else an admin first".to_owned()))
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
