//! Everything that is wrong with a document which could not be read: the reader itself stops at the first fault.

use crate::suggest::hint;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use shared::gost::{ChainConfig, GostConfig, HopConfig, LimiterConfig, ServiceConfig};

/// Problems that are listed; whoever has more has the wrong file.
const MOST_PROBLEMS: usize = 50;

/// One problem, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// What to tell.
    pub(crate) text: String,
    /// Whether it is a key that nobody knows.
    pub(crate) unknown_key: bool,
}

/// All problems that can be found, in the document's order within each list.
pub(crate) fn problems(document: Value) -> Vec<Problem> {
    let mut found = Vec::new();
    let Value::Object(entries) = document else { return found };
    for (key, value) in entries {
        let list = match value {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        for (at, item) in list.into_iter().enumerate() {
            let place = format!("{key}[{at}]");
            match key.as_str() {
                "services" => check::<ServiceConfig>(&place, item, &mut found),
                "chains" => check::<ChainConfig>(&place, item, &mut found),
                "hops" => check::<HopConfig>(&place, item, &mut found),
                "limiters" | "climiters" | "rlimiters" => check::<LimiterConfig>(&place, item, &mut found),
                _ => break,
            }
        }
        // The list itself: its name at least.
        check::<GostConfig>(
            "",
            Value::Object([(key, Value::Array(Vec::new()))].into_iter().collect()),
            &mut found,
        );
    }
    found.truncate(MOST_PROBLEMS);
    found
}

/// Takes what is wrong out, one after another, so that what is behind is found too.
fn check<T: DeserializeOwned>(place: &str, mut item: Value, found: &mut Vec<Problem>) {
    let mut taken_out = Vec::new();
    while found.len() < MOST_PROBLEMS {
        let Err(error) = serde_path_to_error::deserialize::<_, T>(&item) else { return };
        let path = error.path().to_string();
        let path = match (place, path.as_str()) {
            ("", path) => path.to_owned(),
            (place, "" | "." | "?") => place.to_owned(),
            (place, path) if path.starts_with('[') => format!("{place}{path}"),
            (place, path) => format!("{place}.{path}"),
        };
        let message = error.inner().to_string();
        if taken_out.iter().any(|key| message == format!("missing field `{key}`")) {
            return;
        }
        let unknown_key = message.starts_with("unknown field");
        let text = if unknown_key { explain(&message) } else { message };
        found.push(Problem { text: format!("{path}: {text}"), unknown_key });
        match take_out(&mut item, error.path()) {
            Some(key) => taken_out.push(key),
            None => return,
        }
    }
}

/// Serde's message with what may have been meant.
pub(crate) fn explain(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    match quoted.next() {
        Some(word) if message.starts_with("unknown field") => format!("{message}{}", hint(word, quoted)),
        _ => message.to_owned(),
    }
}

/// The key that was taken out.
fn take_out(value: &mut Value, path: &serde_path_to_error::Path) -> Option<String> {
    let segments: Vec<_> = path.iter().collect();
    let Some((Segment::Map { key: last }, before)) = segments.split_last() else { return None };
    let mut here = Some(value);
    for segment in before {
        here = match (here, segment) {
            (Some(value), Segment::Seq { index }) => value.get_mut(index),
            (Some(value), Segment::Map { key }) => value.get_mut(key),
            (_, Segment::Enum { .. } | Segment::Unknown) | (None, _) => None,
        };
    }
    here?.as_object_mut()?.remove(last).map(|_| last.clone())
}
