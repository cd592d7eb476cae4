//! Reading `metadata` and saying exactly what is wrong with a configuration.

use crate::suggest::hint;
use serde_json::Value;
use shared::gost::{GoDuration, Metadata};
use std::time::Duration;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct ConfigError {
    /// Place in the object, such as `chain c: hops[0].nodes[1].dialer.type`.
    pub path: String,
    /// What is wrong there.
    pub reason: String,
}

impl ConfigError {
    /// From parts.
    pub fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}

/// The metadata of one object, with its path for errors.
pub struct MetadataReader<'a> {
    path: String,
    entries: &'a Metadata,
}

impl<'a> MetadataReader<'a> {
    /// Keys are compared without case, as GOST does. A known key that ends with `.` stands for all that begin so.
    /// Any other key is an error that names it.
    pub fn new(path: impl Into<String>, entries: &'a Metadata, known: &[&str]) -> Result<Self, ConfigError> {
        let path = path.into();
        for key in entries.keys() {
            let matches = |known: &&str| {
                let head = if known.ends_with('.') { key.get(..known.len()) } else { Some(key.as_str()) };
                head.is_some_and(|head| head.eq_ignore_ascii_case(known))
            };
            if !known.iter().any(matches) {
                let hint = hint(key, known.iter().copied());
                return Err(ConfigError::new(format!("{path}.{key}"), format!("is not supported{hint}")));
            }
        }
        Ok(Self { path, entries })
    }

    fn find(&self, key: &str) -> Option<&'a Value> {
        self.entries.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value)
    }

    fn read<T>(
        &self,
        key: &str,
        expected: &str,
        parse: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(value) = self.find(key).filter(|value| !value.is_null()) else { return Ok(None) };
        let wrong = || ConfigError::new(format!("{}.{key}", self.path), format!("{value} is not {expected}"));
        parse(value).map(Some).ok_or_else(wrong)
    }

    /// `true`, `false`, or one of these as text; absent means false.
    pub fn flag(&self, key: &str) -> Result<bool, ConfigError> {
        let parse = |value: &Value| match value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        Ok(self.read(key, "true or false", parse)?.unwrap_or(false))
    }

    /// A whole number, or one as text.
    pub fn number(&self, key: &str) -> Result<Option<u32>, ConfigError> {
        self.read(key, "a whole number", |value| match value {
            Value::Number(number) => number.as_u64().and_then(|n| u32::try_from(n).ok()),
            Value::String(text) => text.parse().ok(),
            _ => None,
        })
    }

    /// A duration as text with a unit; a bare integer means seconds, as GOST reads it in metadata. Never longer than
    /// [`GoDuration::LONGEST`].
    pub fn duration(&self, key: &str) -> Result<Option<Duration>, ConfigError> {
        let seconds = |count| GoDuration::bounded(Duration::from_secs(count));
        let parse = |value: &Value| match value {
            Value::Number(number) => number.as_u64().and_then(seconds),
            Value::String(text) => match text.parse() {
                Ok(count) => seconds(count),
                Err(_) => GoDuration::parse(text).ok(),
            },
            _ => None,
        };
        Ok(self.read(key, "a duration such as \"10s\"", parse)?.map(|duration| duration.0))
    }

    /// Milliseconds, whole and perhaps negative: a number, or text with `ms` or `s`.
    pub fn signed_millis(&self, key: &str) -> Result<Option<f64>, ConfigError> {
        /// One day; more is a mistake.
        const MOST: f64 = 86_400_000.0;
        let parse = |value: &Value| match value {
            Value::Number(number) => number.as_i64().map(|ms| ms as f64),
            Value::String(text) => {
                let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
                    (Some(number), _) => (number, 1.0),
                    (None, Some(number)) => (number, 1000.0),
                    (None, None) => (text.as_str(), 1.0),
                };
                number.parse::<i64>().ok().map(|n| n as f64 * unit)
            }
            _ => None,
        };
        let parse = |value: &Value| parse(value).filter(|ms| ms.abs() <= MOST);
        self.read(key, "milliseconds such as 20 or \"-20ms\", at most a day", parse)
    }

    /// Text; the empty one counts as absent.
    pub fn text(&self, key: &str) -> Result<Option<&'a str>, ConfigError> {
        let Some(value) = self.find(key).filter(|value| !value.is_null()) else { return Ok(None) };
        match value {
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) => Ok(Some(text)),
            _ => Err(ConfigError::new(format!("{}.{key}", self.path), format!("{value} is not text"))),
        }
    }

    /// An object whose values are text.
    pub fn texts(&self, key: &str) -> Result<Vec<(&'a str, &'a str)>, ConfigError> {
        let parse = |value: &'a Value| {
            let entries = value.as_object()?.iter();
            entries.map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect::<Option<Vec<_>>>()
        };
        let Some(value) = self.find(key).filter(|value| !value.is_null()) else { return Ok(Vec::new()) };
        let wrong =
            || ConfigError::new(format!("{}.{key}", self.path), format!("{value} is no object of texts"));
        parse(value).ok_or_else(wrong)
    }

    /// An option this version knows of and does not do: refused unless it says nothing.
    pub fn refuse(&self, key: &str) -> Result<(), ConfigError> {
        match self.find(key) {
            None | Some(Value::Null | Value::Bool(false)) => Ok(()),
            Some(Value::Number(number)) if number.as_u64() == Some(0) => Ok(()),
            Some(Value::String(text)) if text.is_empty() || text == "0" => Ok(()),
            Some(_) => Err(ConfigError::new(format!("{}.{key}", self.path), "is not supported yet")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata(value: Value) -> Metadata {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn no_duration_is_so_long_that_a_deadline_overflows() {
        let longest = GoDuration::LONGEST;
        for value in [json!(longest.as_secs()), json!(longest.as_secs().to_string()), json!("2562047h")] {
            let entries = metadata(json!({ "ttl": value }));
            let duration = MetadataReader::new("x", &entries, &["ttl"]).unwrap().duration("ttl");
            let duration = duration.unwrap().unwrap();
            assert!(duration <= longest, "{value}");
            // What is made of durations here and there.
            let now = crate::clock::Clock::system().instant();
            assert!(now.checked_add(duration * 8).is_some() && duration.checked_mul(1000).is_some());
        }
        for value in
            [json!(longest.as_secs() + 1), json!(u64::MAX), json!("18446744073709551615"), json!("2562048h")]
        {
            let entries = metadata(json!({ "ttl": value }));
            let error = MetadataReader::new("x", &entries, &["ttl"]).unwrap().duration("ttl").unwrap_err();
            assert!(error.to_string().starts_with("x.ttl: "), "{error}");
        }
    }

    #[test]
    fn values_in_the_shapes_that_peers_send() {
        let entries = metadata(json!({
            "NoDelay": "true", "backup": true, "weight": "5", "maxFails": 3, "failTimeout": "600s",
            "dialTimeout": 4, "readTimeout": "7", "interface": "eth0", "ttl": null
        }));
        let known = [
            "nodelay",
            "backup",
            "weight",
            "maxFails",
            "failTimeout",
            "dialTimeout",
            "readTimeout",
            "interface",
            "ttl",
        ];
        let reader = MetadataReader::new("x", &entries, &known).unwrap();
        assert_eq!(reader.flag("nodelay"), Ok(true));
        assert_eq!(reader.flag("backup"), Ok(true));
        assert_eq!(reader.flag("absent"), Ok(false));
        assert_eq!(reader.number("weight"), Ok(Some(5)));
        assert_eq!(reader.number("maxfails"), Ok(Some(3)));
        assert_eq!(reader.duration("failTimeout"), Ok(Some(Duration::from_secs(600))));
        assert_eq!(reader.duration("dialTimeout"), Ok(Some(Duration::from_secs(4))));
        assert_eq!(reader.duration("readTimeout"), Ok(Some(Duration::from_secs(7))));
        assert_eq!(reader.duration("ttl"), Ok(None));
        assert_eq!(reader.text("interface"), Ok(Some("eth0")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let entries = metadata(json!({"failover": 1}));
        let error = MetadataReader::new("node.metadata", &entries, &["backup"]).err().unwrap();
        assert_eq!(error.to_string(), "node.metadata.failover: is not supported");

        let entries =
            metadata(json!({"weight": -1, "backup": "maybe", "failTimeout": "soon", "mux.version": 1}));
        let reader =
            MetadataReader::new("m", &entries, &["weight", "backup", "failTimeout", "mux."]).unwrap();
        assert_eq!(reader.number("weight").unwrap_err().to_string(), "m.weight: -1 is not a whole number");
        assert_eq!(
            reader.flag("backup").unwrap_err().to_string(),
            "m.backup: \"maybe\" is not true or false"
        );
        assert!(reader.duration("failTimeout").unwrap_err().to_string().contains("\"soon\""));
        assert!(MetadataReader::new("m", &entries, &["weight", "backup", "failTimeout", "mux"]).is_err());
    }

    #[test]
    fn an_option_not_done_may_only_say_nothing() {
        let known = ["proxyProtocol"];
        for nothing in [json!({}), json!({"proxyProtocol": 0}), json!({"proxyProtocol": ""})] {
            let entries = metadata(nothing);
            assert!(MetadataReader::new("m", &entries, &known).unwrap().refuse("proxyProtocol").is_ok());
        }
        let entries = metadata(json!({"proxyProtocol": 2}));
        assert!(MetadataReader::new("m", &entries, &known).unwrap().refuse("proxyProtocol").is_err());
    }
}
