//! Users and their sessions.

use super::{Db, Result, StoreError, Tx};
use shared::api::{Role, User, UserRecord, WallMs};
use shared::ids::UserId;

/// A user with what only the login may see.
#[derive(Clone)]
pub struct StoredUser {
    /// Who.
    pub user: User,
    /// PHC string of the password.
    pub password_hash: String,
}

#[derive(sqlx::FromRow)]
struct UserRow {
    id: i64,
    username: String,
    password_hash: String,
    role: String,
}

fn role(text: &str) -> Result<Role> {
    match text {
        "admin" => Ok(Role::Admin),
        "viewer" => Ok(Role::Viewer),
        other => Err(StoreError::Unreadable { table: "user", reason: format!("the role `{other}`") }),
    }
}

impl TryFrom<UserRow> for StoredUser {
    type Error = StoreError;
    fn try_from(row: UserRow) -> Result<Self> {
        let user = User { id: UserId(row.id), username: row.username, role: role(&row.role)? };
        Ok(StoredUser { user, password_hash: row.password_hash })
    }
}

impl Tx {
    /// Whether there is any user.
    pub async fn has_users(&mut self) -> Result<bool> {
        Ok(sqlx::query_scalar(r#"SELECT EXISTS (SELECT 1 FROM "user")"#).fetch_one(&mut *self.0).await?)
    }

    /// The user of that name.
    pub async fn user_by_name(&mut self, username: &str) -> Result<Option<StoredUser>> {
        let row: Option<UserRow> =
            sqlx::query_as(r#"SELECT id, username, password_hash, role FROM "user" WHERE username = $1"#)
                .bind(username)
                .fetch_optional(&mut *self.0)
                .await?;
        row.map(StoredUser::try_from).transpose()
    }

    /// All users by id.
    pub async fn users(&mut self) -> Result<Vec<UserRecord>> {
        let rows: Vec<(i64, String, String, i64)> =
            sqlx::query_as(r#"SELECT id, username, role, created_time FROM "user" ORDER BY id"#)
                .fetch_all(&mut *self.0)
                .await?;
        let read = |(id, username, text, created_at): (i64, String, String, i64)| {
            Ok(UserRecord { id: UserId(id), username, role: role(&text)?, created_at })
        };
        rows.into_iter().map(read).collect()
    }

    /// Changes what a user may do.
    pub async fn set_role(&mut self, id: UserId, role: Role) -> Result<()> {
        sqlx::query(r#"UPDATE "user" SET role = $2 WHERE id = $1"#)
            .bind(id.0)
            .bind(role.as_str())
            .execute(&mut *self.0)
            .await?;
        Ok(())
    }

    /// Deletes a user and ends his sessions.
    pub async fn delete_user(&mut self, id: UserId) -> Result<()> {
        sqlx::query(r#"DELETE FROM "user" WHERE id = $1"#).bind(id.0).execute(&mut *self.0).await?;
        Ok(())
    }

    /// Stores a new user.
    pub async fn insert_user(
        &mut self,
        username: &str,
        password_hash: &str,
        role: Role,
        at: WallMs,
    ) -> Result<User> {
        let id: i64 = sqlx::query_scalar(
            r#"INSERT INTO "user" (username, password_hash, role, created_time) VALUES ($1, $2, $3, $4) RETURNING id"#,
        )
        .bind(username)
        .bind(password_hash)
        .bind(role.as_str())
        .bind(at)
        .fetch_one(&mut *self.0)
        .await?;
        Ok(User { id: UserId(id), username: username.to_owned(), role })
    }

    /// Replaces a password and ends the user's sessions, except the one with the hash `keep`.
    pub async fn set_password(&mut self, id: UserId, password_hash: &str, keep: Option<&str>) -> Result<()> {
        sqlx::query(r#"UPDATE "user" SET password_hash = $2 WHERE id = $1"#)
            .bind(id.0)
            .bind(password_hash)
            .execute(&mut *self.0)
            .await?;
        sqlx::query("DELETE FROM session WHERE user_id = $1 AND token_hash <> coalesce($2, '')")
            .bind(id.0)
            .bind(keep)
            .execute(&mut *self.0)
            .await?;
        Ok(())
    }

    /// Stores a session.
    pub async fn insert_session(
        &mut self,
        token_hash: &str,
        user: UserId,
        at: WallMs,
        expires_at: WallMs,
    ) -> Result<()> {
        sqlx::query(
            "INSERT INTO session (token_hash, user_id, created_time, expires_at) VALUES ($1, $2, $3, $4)",
        )
        .bind(token_hash)
        .bind(user.0)
        .bind(at)
        .bind(expires_at)
        .execute(&mut *self.0)
        .await?;
        Ok(())
    }

    /// Ends a session.
    pub async fn delete_session(&mut self, token_hash: &str) -> Result<()> {
        sqlx::query("DELETE FROM session WHERE token_hash = $1")
            .bind(token_hash)
            .execute(&mut *self.0)
            .await?;
        Ok(())
    }
}

impl Db {
    /// Who has the session that has not ended at `now`.
    pub async fn session_user(&self, token_hash: &str, now: WallMs) -> Result<Option<User>> {
        let row: Option<UserRow> = sqlx::query_as(
            r#"SELECT "user".id, username, password_hash, role FROM session JOIN "user" ON "user".id = session.user_id
               WHERE token_hash = $1 AND expires_at > $2"#,
        )
        .bind(token_hash)
        .bind(now)
        .fetch_optional(&self.reader)
        .await?;
        Ok(row.map(StoredUser::try_from).transpose()?.map(|stored| stored.user))
    }
}
