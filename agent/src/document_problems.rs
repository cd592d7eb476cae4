//! Everything that is wrong with a document which could not be read: the reader itself stops at the first fault.

use crate::suggest::hint;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use shared::gost::{ChainConfig, GostConfig, HopConfig, LimiterConfig, ServiceConfig};
use std::collections::BTreeSet;

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

/// What a scalar is that is not in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalars {
    /// A number or a truth value: JSON.
    Typed,
    /// Whatever is expected: YAML, though the document read as a whole took it for one of these.
    AsExpected,
}

/// All problems that can be found, in the document's order within each list.
pub(crate) fn problems(document: Value, scalars: Scalars) -> Vec<Problem> {
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
                "services" => check::<ServiceConfig>(&place, (item, scalars), &mut found),
                "chains" => check::<ChainConfig>(&place, (item, scalars), &mut found),
                "hops" => check::<HopConfig>(&place, (item, scalars), &mut found),
                "limiters" | "climiters" | "rlimiters" => {
                    check::<LimiterConfig>(&place, (item, scalars), &mut found)
                }
                _ => break,
            }
        }
        // The list itself: its name at least.
        check::<GostConfig>(
            "",
            (Value::Object([(key, Value::Array(Vec::new()))].into_iter().collect()), scalars),
            &mut found,
        );
    }
    found.truncate(MOST_PROBLEMS);
    found
}

/// Takes what is wrong out, one after another, so that what is behind is found too.
fn check<T: DeserializeOwned>(place: &str, (mut item, scalars): (Value, Scalars), found: &mut Vec<Problem>) {
    let (mut taken_out, mut made_text) = (Vec::new(), BTreeSet::new());
    while found.len() < MOST_PROBLEMS {
        let Err(error) = serde_path_to_error::deserialize::<_, T>(&item) else { return };
        if scalars == Scalars::AsExpected
            && error.inner().to_string().contains("expected a string")
            && made_text.insert(error.path().to_string())
            && make_text(&mut item, error.path())
        {
            continue;
        }
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
    at(value, before)?.as_object_mut()?.remove(last).map(|_| last.clone())
}

/// Whether there was a scalar, which is a text now.
fn make_text(value: &mut Value, path: &serde_path_to_error::Path) -> bool {
    let segments: Vec<_> = path.iter().collect();
    match at(value, &segments) {
        Some(scalar @ (Value::Bool(_) | Value::Number(_))) => {
            *scalar = Value::String(scalar.to_string());
            true
        }
        _ => false,
    }
}

fn at<'a>(value: &'a mut Value, path: &[&Segment]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Seq { index } => value.get_mut(index),
        Segment::Map { key } => value.get_mut(key),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}
