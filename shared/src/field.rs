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

    /// From what serde says about JSON that does not fit, and where. It says so in text only; these are its sentences
    /// (`serde::de::Error`).
    pub fn misfit(path: &str, text: &str) -> Self {
        let path = if path == "." { "" } else { path };
        // The place in the text is of no use to somebody who fills in a form.
        let text = text.rsplit_once(" at line ").map_or(text, |(text, _)| text);
        let quoted = text.split('`').nth(1).unwrap_or_default();
        let within = |name: &str| match path {
            "" => name.to_owned(),
            // The path of an unknown field ends with it already.
            _ if path == name || path.ends_with(&format!(".{name}")) => path.to_owned(),
            _ => format!("{path}.{name}"),
        };
        if text.starts_with("missing field") {
            Self::new(within(quoted), "missing_field", "this field is needed")
        } else if text.starts_with("unknown field") {
            Self::new(within(quoted), "unknown_field", "there is no such field")
        } else if text.starts_with("duplicate field") {
            Self::new(within(quoted), "duplicate_field", "this field is there twice")
        } else if text.starts_with("unknown variant") {
            Self::new(path, "unknown_value", text)
        } else if text.starts_with("invalid value: integer") || text.starts_with("number out of range") {
            Self::new(path, "out_of_range", text)
        } else {
            Self::new(path, "invalid_type", text)
        }
    }

    /// Puts the name of what the field is in before it.
    pub fn within(mut self, place: &str) -> Self {
        self.field = match self.field.as_str() {
            "" => place.to_owned(),
            field if field.starts_with('[') => format!("{place}{field}"),
            field => format!("{place}.{field}"),
        };
        self
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
