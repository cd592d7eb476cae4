use crate::field::FieldError;
use serde::{Deserialize, Serialize};

/// An error answer, `application/problem+json` (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Stable code of the kind of problem: `invalid_fields`, `stale_version`, `not_found`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Short name of the kind.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// What happened and what to do.
    pub detail: String,
    /// What is wrong with which field.
    #[serde(default)]
    pub errors: Vec<FieldError>,
}
