//! Bodies, ids and queries of requests, with errors that name the field.

use crate::error::AppError;
use crate::store::Page;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use shared::field::FieldError;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Largest body accepted. The largest real one is a tunnel of ten groups of 64 nodes, some 60 KB.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Largest `limit` of a list.
const MAX_PAGE: u32 = 10_000;

/// A JSON body. Its content type is not looked at: programs forget it, and the check of `Origin` is what keeps other
/// sites out.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = AppError;

    async fn from_request(request: Request, state: &S) -> Result<Self, AppError> {
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            if rejection.status() == axum::http::StatusCode::PAYLOAD_TOO_LARGE {
                AppError::TooLarge(MAX_BODY_BYTES)
            } else {
                AppError::Malformed("the body did not arrive completely".to_owned())
            }
        })?;
        parse(&bytes).map(Json)
    }
}

/// Parses a body: 400 for what is no JSON, 422 with the field for JSON that does not fit.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, AppError> {
    // First as JSON of any shape: a type may be satisfied, or offended, before the text turns out to be malformed.
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes)
        .map_err(|error| AppError::Malformed(format!("the body is not valid JSON: {error}")))?;
    // serde would take a list for an object, its items for the fields in their order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(AppError::field("", "invalid_type", "the body must be a JSON object"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        AppError::Invalid(vec![FieldError::misfit(&path, &error.into_inner().to_string())])
    })
}

/// The identifier in the path. What is no identifier names nothing: 404.
pub(crate) struct Id<T>(pub(crate) T);

impl<S: Send + Sync, T: FromStr + Send> FromRequestParts<S> for Id<T> {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, AppError> {
        let not_found = AppError::NotFound(parts.uri.path().to_owned());
        let Ok(params) = RawPathParams::from_request_parts(parts, state).await else { return Err(not_found) };
        let value = params.iter().find(|(name, _)| *name == "id").and_then(|(_, text)| text.parse().ok());
        value.map(Id).ok_or(not_found)
    }
}

/// The parameters of a query; each is taken once, and what is left over at the end is an error.
pub(crate) struct Query {
    values: BTreeMap<String, String>,
    errors: Vec<FieldError>,
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = AppError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AppError> {
        let query = axum::extract::Query::<BTreeMap<String, String>>::try_from_uri(&parts.uri)
            .map_err(|rejection| AppError::Malformed(rejection.body_text()))?;
        Ok(Self { values: query.0, errors: Vec::new() })
    }
}

impl Query {
    /// A text; `None` when it is absent or empty.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.values.remove(name).filter(|text| !text.is_empty())
    }

    /// A whole number within `range`; `None` when it is absent.
    pub(crate) fn integer<T>(&mut self, name: &str, range: std::ops::RangeInclusive<T>) -> Option<T>
    where
        T: FromStr + PartialOrd + std::fmt::Display,
    {
        let text = self.values.remove(name)?;
        match text.parse::<T>() {
            Ok(value) if range.contains(&value) => Some(value),
            _ => {
                let message = format!("must be a whole number from {} to {}", range.start(), range.end());
                let error = FieldError::new(name, "out_of_range", message);
                self.errors.push(error.with("min", range.start()).with("max", range.end()));
                None
            }
        }
    }

    /// One of these words; `None` when it is absent.
    pub(crate) fn word(&mut self, name: &str, words: &[&'static str]) -> Option<&'static str> {
        let text = self.values.remove(name)?;
        let known = words.iter().copied().find(|word| *word == text);
        if known.is_none() {
            let message = format!("must be one of {}", words.join(", "));
            self.errors.push(FieldError::new(name, "unknown_value", message));
        }
        known
    }

    /// Words between commas, each one of `known`; none when it is absent.
    pub(crate) fn words(&mut self, name: &str, known: &[&'static str]) -> Vec<&'static str> {
        let Some(text) = self.values.remove(name) else { return Vec::new() };
        let found: Option<Vec<_>> =
            text.split(',').map(|word| known.iter().copied().find(|known| *known == word)).collect();
        found.unwrap_or_else(|| {
            let message = format!("must be some of {}", known.join(", "));
            self.errors.push(FieldError::new(name, "unknown_value", message));
            Vec::new()
        })
    }

    /// `limit` and `after` of a list; everything when both are absent.
    pub(crate) fn page(mut self) -> Result<Page, AppError> {
        let after = self.integer("after", i64::MIN..=i64::MAX).unwrap_or(Page::ALL.after);
        let limit = self.integer("limit", 1..=MAX_PAGE).unwrap_or(Page::ALL.limit);
        self.finish()?;
        Ok(Page { after, limit })
    }

    /// All parameters were taken and are right.
    pub(crate) fn finish(mut self) -> Result<(), AppError> {
        let unknown = self.values.keys();
        self.errors
            .extend(unknown.map(|name| FieldError::new(name, "unknown_field", "there is no such parameter")));
        if self.errors.is_empty() { Ok(()) } else { Err(AppError::Invalid(self.errors)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::api::{NodeInput, SettingsInput, TunnelInput};

    fn found<T: DeserializeOwned>(body: &str) -> (String, String) {
        match parse::<T>(body.as_bytes()) {
            Ok(_) => ("ok".into(), String::new()),
            Err(AppError::Invalid(errors)) => (errors[0].field.clone(), errors[0].code.clone()),
            Err(AppError::Malformed(_)) => ("malformed".into(), String::new()),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let table: [(&str, &str, &str); 13] = [
            (r#"{"name":"ab","entry":{"nodes":[{"nodeId":1}]}}"#, "ok", ""),
            (r#"{"name":"ab","entry":{"nodes":[{"nodeId":1}]}"#, "malformed", ""),
            (r#"{"name":3,"entry":"#, "malformed", ""),
            ("", "malformed", ""),
            ("nonsense", "malformed", ""),
            ("[]", "", "invalid_type"),
            ("7", "", "invalid_type"),
            (r#"{"entry":{"nodes":[]}}"#, "name", "missing_field"),
            (r#"{"name":"ab","entry":{}}"#, "entry.nodes", "missing_field"),
            (r#"{"name":"ab","entry":{"nodes":[{"nodeId":"x"}]}}"#, "entry.nodes[0].nodeId", "invalid_type"),
            (r#"{"name":"ab","entry":{"nodes":[{"nodeId":1,"x":2}]}}"#, "entry.nodes[0].x", "unknown_field"),
            (r#"{"name":"ab","nmae":1,"entry":{"nodes":[]}}"#, "nmae", "unknown_field"),
            (
                r#"{"name":"ab","entry":{"nodes":[]},"exit":{"nodes":[{"nodeId":1,"port":70000}]}}"#,
                "exit.nodes[0].port",
                "out_of_range",
            ),
        ];
        for (body, field, code) in table {
            assert_eq!(found::<TunnelInput>(body), (field.to_owned(), code.to_owned()), "{body}");
        }
        assert_eq!(found::<NodeInput>(r#"{"name":null,"serverIp":"x"}"#).0, "name");
        assert_eq!(found::<SettingsInput>(r#"{"decisionRules":"x"}"#).1, "unknown_value");
        assert_eq!(found::<SettingsInput>(r#"{"pingCount":-1}"#).1, "out_of_range");
        assert_eq!(found::<NodeInput>(r#"{"name":"a","name":"b","serverIp":"x"}"#).1, "duplicate_field");
    }
}
