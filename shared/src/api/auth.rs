use super::WallMs;
use crate::field::FieldError;
use crate::ids::UserId;
use serde::{Deserialize, Serialize};

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    Admin,
    /// Reads only.
    Viewer,
}

impl Role {
    /// The text stored and sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Viewer => "viewer",
        }
    }
}

/// Somebody who may log in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Identifier.
    pub id: UserId,
    /// Unique.
    pub username: String,
    /// What he may do.
    pub role: Role,
}

/// POST `/auth/login`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoginRequest {
    /// Name.
    pub username: String,
    /// Password.
    pub password: String,
}

/// Answer to a login. The same token is set as an `HttpOnly` cookie.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginAnswer {
    /// For `Authorization: Bearer`.
    pub token: String,
    /// When it ends.
    pub expires_at: WallMs,
    /// Who logged in.
    pub user: User,
}

/// PUT `/auth/password`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PasswordChange {
    /// The password in force.
    pub current_password: String,
    /// At least [`MIN_PASSWORD_CHARS`] characters.
    pub new_password: String,
}

/// Shortest password accepted (NIST SP 800-63B asks for 8).
pub const MIN_PASSWORD_CHARS: usize = 8;
/// Longest password accepted: hashing is linear in it.
pub const MAX_PASSWORD_BYTES: usize = 1024;
/// Longest name of a user.
pub const MAX_USERNAME_CHARS: usize = 50;

/// A user in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserRecord {
    /// Identifier.
    pub id: UserId,
    /// Unique.
    pub username: String,
    /// What he may do.
    pub role: Role,
    /// When he was created.
    pub created_at: WallMs,
}

/// POST `/users`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserInput {
    /// 1 to 50 characters, unique; spaces around it are dropped.
    pub username: String,
    /// See [`PasswordChange::new_password`].
    pub password: String,
    /// What he may do.
    pub role: Role,
}

impl UserInput {
    /// What is wrong with it, as far as it can be told without looking at other users.
    pub fn problems(&self) -> Vec<FieldError> {
        let name = username_problem(&self.username);
        name.into_iter().chain(password_problem("password", &self.password)).collect()
    }
}

/// PUT `/users/{id}`: what is left out stays.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserChange {
    /// What he may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// A new password; ends all his sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

fn username_problem(name: &str) -> Option<FieldError> {
    let name = name.trim();
    let length = name.chars().count();
    if length == 0 {
        return Some(FieldError::new("username", "empty", "give a username"));
    }
    if length > MAX_USERNAME_CHARS {
        let message = format!("at most {MAX_USERNAME_CHARS} characters are possible");
        return Some(FieldError::new("username", "too_long", message).with("max", MAX_USERNAME_CHARS));
    }
    let control = name.contains(char::is_control);
    control.then(|| FieldError::new("username", "control_character", "remove the control characters"))
}

/// What is wrong with a new password in this field.
pub fn password_problem(field: &str, password: &str) -> Option<FieldError> {
    if password.chars().count() < MIN_PASSWORD_CHARS || password.len() > MAX_PASSWORD_BYTES {
        let message =
            format!("use {MIN_PASSWORD_CHARS} characters at least and {MAX_PASSWORD_BYTES} bytes at most");
        let error = FieldError::new(field, "password_length", message);
        return Some(error.with("min", MIN_PASSWORD_CHARS).with("max", MAX_PASSWORD_BYTES));
    }
    let control = password.contains(char::is_control);
    control.then(|| FieldError::new(field, "control_character", "remove the control characters"))
}

/// Who changed what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Ascending.
    pub id: i64,
    /// When.
    pub at: WallMs,
    /// Who; kept as text so that it outlives the user.
    pub username: String,
    /// `tunnel.create`, `settings.update`, …
    pub action: String,
    /// What it was done to: name and id.
    pub object: String,
    /// What changed, without secrets.
    pub detail: String,
}
