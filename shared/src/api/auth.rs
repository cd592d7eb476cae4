use super::WallMs;
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
