//! What is wrong with an input: the field, a stable code, and a sentence that says what to do.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One thing that is wrong (or, as a warning, doubtful) about an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FieldError {
    /// Path of the field in the request, `exit.nodes[1].port` for example.
    pub field: String,
    /// Stable; the page translates by it.
    pub code: String,
    /// English text that says what to do.
    pub message: String,
    /// The values in the text, by name, for translations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
}

impl FieldError {
    /// An error without values in its text.
    pub fn new(field: impl Into<String>, code: &str, message: impl Into<String>) -> Self {
        Self { field: field.into(), code: code.to_owned(), message: message.into(), params: BTreeMap::new() }
    }

    /// Adds a value that the text mentions.
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.params.insert(name.to_owned(), value.to_string());
        self
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}
