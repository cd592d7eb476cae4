//! Tests that a person asks for: made at once, whatever is known, with the page and the time that were asked for. Groups
//! learn nothing of them.

use super::directory::{Directory, GLOBAL, Meaning};
use super::proxies::millis;
use super::tested::Point;
use super::{Served, body_invalid, message, not_found};
use crate::chain::group::report::Tried;
use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Unless it is said.
const TIMEOUT: Duration = Duration::from_secs(5);
/// For one member, whatever is said: longer than any that is of use.
const LONGEST: Duration = Duration::from_secs(60);
/// Until it is a test's turn.
const PATIENCE: Duration = Duration::from_secs(30);
/// Members of one group at the same time.
const AT_ONCE: usize = 10;

#[derive(Deserialize)]
struct Asked {
    url: Option<String>,
    /// Milliseconds.
    timeout: Option<i32>,
    /// The status that means success.
    expected: Option<String>,
}

/// What is to be done.
struct Trial {
    url: Option<String>,
    status: Option<u16>,
    timeout: Duration,
}

impl Trial {
    /// `None` if it makes no sense.
    fn read(query: Option<String>) -> Option<Self> {
        let uri = format!("/?{}", query.unwrap_or_default()).parse().ok()?;
        let axum::extract::Query(asked) = axum::extract::Query::<Asked>::try_from_uri(&uri).ok()?;
        let timeout = match asked.timeout {
            Some(ms) => Duration::from_millis(u64::try_from(ms).ok().filter(|ms| *ms > 0)?),
            None => TIMEOUT,
        };
        let status = match asked.expected.as_deref() {
            None | Some("" | "*") => None,
            Some(status) => Some(status.parse().ok().filter(|status| (100..600).contains(status))?),
        };
        let url = asked.url.filter(|url| !url.is_empty());
        Some(Self { url, status, timeout: timeout.min(LONGEST) })
    }
}

/// Why there is no delay.
enum NoDelay {
    Timeout,
    Failed,
    /// The page that was asked for is none.
    Url,
}

impl NoDelay {
    fn tell(self) -> Response {
        match self {
            Self::Timeout => message(StatusCode::GATEWAY_TIMEOUT, "Timeout"),
            Self::Failed => message(StatusCode::SERVICE_UNAVAILABLE, "An error occurred in the delay test"),
            Self::Url => body_invalid(),
        }
    }
}

/// Tests a member, or the one that a group uses.
pub(super) async fn one(
    State(served): State<Arc<Served>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let directory = Directory::of(&served.runtime);
    let meaning = match directory.get(&name) {
        None if name == GLOBAL => directory.groups.first().map(|_| Meaning::Group(0)),
        None => return not_found(),
        meaning => meaning,
    };
    let Some(trial) = Trial::read(query) else { return body_invalid() };
    let tested = match meaning {
        Some(meaning) => test(&served, &directory, meaning, &trial).await,
        None => Err(NoDelay::Failed),
    };
    match tested {
        Ok(delay) => Json(json!({"delay": delay})).into_response(),
        Err(none) => none.tell(),
    }
}

/// Tests all members of a group, and tells of those that work.
pub(super) async fn group(
    State(served): State<Arc<Served>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let directory = Directory::of(&served.runtime);
    let Some(Meaning::Group(at)) = directory.get(&name) else { return not_found() };
    let Some(trial) = Trial::read(query) else { return body_invalid() };
    let members = directory.groups[at].members.clone();
    let (served, directory, trial) = (&served, &directory, &trial);
    let tests: Vec<_> = members
        .into_iter()
        .map(|member| async move { (member, test(served, directory, member, trial).await) })
        .collect();
    let tested: Vec<_> = futures_util::stream::iter(tests).buffered(AT_ONCE).collect().await;
    if tested.iter().any(|(_, outcome)| matches!(outcome, Err(NoDelay::Url))) {
        return body_invalid();
    }
    if !tested.is_empty() && tested.iter().all(|(_, outcome)| matches!(outcome, Err(NoDelay::Timeout))) {
        return NoDelay::Timeout.tell();
    }
    let delays = tested
        .into_iter()
        .filter_map(|(member, outcome)| Some((directory.name(member).to_owned(), outcome.ok()?)));
    Json(Delays(delays.collect())).into_response()
}

/// In the group's order.
struct Delays(Vec<(String, u64)>);

impl Serialize for Delays {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, delay) in &self.0 {
            map.serialize_entry(name, delay)?;
        }
        map.end()
    }
}

/// Milliseconds.
async fn test(
    served: &Served,
    directory: &Directory,
    meaning: Meaning,
    trial: &Trial,
) -> Result<u64, NoDelay> {
    let place = directory.tested(meaning).ok_or(NoDelay::Failed)?;
    let turn = tokio::time::timeout(PATIENCE, served.tests.acquire()).await;
    // The semaphore is never closed.
    let Ok(Ok(_turn)) = turn else { return Err(NoDelay::Timeout) };
    let steering = &directory.groups[place.0].steering;
    let page = (trial.url.as_deref(), trial.status);
    let tried = served.runtime.try_member((steering, place.1), page, trial.timeout).await;
    let outcome = match tried {
        Ok(Tried::Works(took)) => Ok(millis(took.as_secs_f64() * 1000.0)),
        Ok(Tried::TimedOut) => Err(NoDelay::Timeout),
        Ok(Tried::Fails(error)) => {
            let (group, member) = (steering.name(), &steering.members()[place.1]);
            tracing::debug!(group, member, error, "test that a person asked for");
            Err(NoDelay::Failed)
        }
        Err(_) => return Err(NoDelay::Url),
    };
    if let Some(key) = directory.key(place) {
        let at = served.runtime.clock().unix_time();
        let point = Point { at, delay: *outcome.as_ref().unwrap_or(&0) };
        served.tested.note(key, point, |key| directory.leaves.iter().any(|leaf| leaf.key == *key));
    }
    outcome
}
