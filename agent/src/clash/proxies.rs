//! Groups and their members: what there is, choosing one, taking the choice back.

use super::directory::{Directory, GLOBAL, Leaf, Listed, Meaning};
use super::tested::{MOST, Point, Shown};
use super::{Served, body_invalid, message, not_found};
use crate::chain::group::report::MemberReport;
use crate::chain::group::steering::ChoiceError;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use shared::policy::health::State as Health;
use shared::policy::{ChooseError, Policy};
use std::sync::Arc;
use std::time::Duration;

const NO_SELECTOR: &str = "Must be a Selector";

/// A group, or what may be a member of one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Proxy {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    udp: bool,
    alive: bool,
    /// Oldest first.
    history: Vec<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_url: Option<String>,
}

/// Dashboards show things in the order in which they come.
struct InOrder(Vec<Proxy>);

impl Serialize for InOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for proxy in &self.0 {
            map.serialize_entry(&proxy.name, proxy)?;
        }
        map.end()
    }
}

#[derive(Deserialize)]
struct Choice {
    name: String,
}

impl Directory {
    /// What was measured of a member: by its group, and by persons.
    fn history(&self, served: &Served, place: (usize, usize)) -> Vec<Point> {
        let (group, member) = place;
        let mut points = self.key(place).map_or_else(Vec::new, |key| served.tested.of(key));
        let report = &self.groups[group].report.members[member];
        points.extend(own_test(report, served.runtime.clock().unix_time()));
        points.sort();
        points.split_off(points.len().saturating_sub(MOST))
    }

    fn group_proxy(&self, served: &Served, at: usize) -> Proxy {
        let Listed { steering, report, members } = &self.groups[at];
        let name = |member: &Meaning| self.name(*member).to_owned();
        let tested = self.tested(Meaning::Group(at));
        let alive = tested.is_none_or(|(group, member)| is_alive(&self.groups[group].report.members[member]));
        let history = tested.map_or_else(Vec::new, |place| self.history(served, place));
        Proxy {
            kind: group_kind(steering.policy()).to_owned(),
            name: steering.name().to_owned(),
            udp: report.now.contains_key("udp4") || report.now.contains_key("udp6"),
            alive,
            history: history.into_iter().map(Point::shown).collect(),
            now: Some(self.now(at).map_or_else(String::new, |now| name(&members[now]))),
            all: Some(members.iter().map(name).collect()),
            test_url: steering.url().map(str::to_owned),
        }
    }

    fn leaf_proxy(&self, served: &Served, Leaf { name, kind, stages, place, .. }: &Leaf) -> Proxy {
        let Listed { steering, report, .. } = &self.groups[place.0];
        Proxy {
            kind: kind.clone(),
            name: name.clone(),
            udp: steering.carries_datagrams(place.1),
            alive: is_alive(&report.members[place.1]),
            history: self.history(served, *place).into_iter().map(Point::shown).collect(),
            now: None,
            all: Some(stages.clone()).filter(|stages| !stages.is_empty()),
            test_url: None,
        }
    }

    fn proxy(&self, served: &Served, meaning: Meaning) -> Proxy {
        match meaning {
            Meaning::Group(at) => self.group_proxy(served, at),
            Meaning::Leaf(at) => self.leaf_proxy(served, &self.leaves[at]),
        }
    }

    /// What dashboards take the order of everything from. Nothing is chosen in it.
    fn global(&self) -> Proxy {
        let groups = self.groups.iter().map(|listed| listed.steering.name().to_owned());
        let all: Vec<String> = groups.chain(self.leaves.iter().map(|leaf| leaf.name.clone())).collect();
        Proxy {
            kind: "Fallback".to_owned(),
            name: GLOBAL.to_owned(),
            udp: true,
            alive: true,
            history: Vec::new(),
            now: Some(all.first().cloned().unwrap_or_default()),
            all: Some(all),
            test_url: None,
        }
    }
}

/// The last test that its group has made.
fn own_test(report: &MemberReport, now: Duration) -> Option<Point> {
    let at = now.saturating_sub(Duration::from_millis(report.age_ms?));
    let delay = match report.state {
        Health::Alive => millis(report.latency_ms?),
        Health::Dead => 0,
        _ => return None,
    };
    Some(Point { at, delay })
}

/// Whole milliseconds, of which there is at least one: none means a failure.
pub(super) fn millis(ms: f64) -> u64 {
    // Casts of floats saturate.
    (ms.round() as u64).max(1)
}

fn is_alive(report: &MemberReport) -> bool {
    report.state != Health::Dead
}

/// Clash's word for what chooses in the same way.
fn group_kind(policy: &Policy) -> &'static str {
    match policy {
        Policy::Selector { .. } => "Selector",
        Policy::UrlTest { .. } | Policy::Min { .. } | Policy::LowestLatency { .. } => "URLTest",
        Policy::FixedFallback { .. } | Policy::Fifo | Policy::Best => "Fallback",
        Policy::Fixed(_) => "Fixed",
        Policy::Round | Policy::Rand | Policy::Hash { .. } | Policy::Parallel => "LoadBalance",
    }
}

pub(super) async fn all(State(served): State<Arc<Served>>) -> Response {
    let directory = Directory::of(&served.runtime);
    let groups = (0..directory.groups.len()).map(|at| directory.group_proxy(&served, at));
    let leaves = directory.leaves.iter().map(|leaf| directory.leaf_proxy(&served, leaf));
    let proxies = InOrder(groups.chain(leaves).chain([directory.global()]).collect());
    #[derive(Serialize)]
    struct All {
        proxies: InOrder,
    }
    Json(All { proxies }).into_response()
}

pub(super) async fn one(State(served): State<Arc<Served>>, Path(name): Path<String>) -> Response {
    let directory = Directory::of(&served.runtime);
    match directory.get(&name) {
        Some(meaning) => Json(directory.proxy(&served, meaning)).into_response(),
        None if name == GLOBAL => Json(directory.global()).into_response(),
        None => not_found(),
    }
}

pub(super) async fn groups(State(served): State<Arc<Served>>) -> Response {
    let directory = Directory::of(&served.runtime);
    let groups = (0..directory.groups.len()).map(|at| directory.group_proxy(&served, at));
    Json(json!({"proxies": groups.collect::<Vec<_>>()})).into_response()
}

pub(super) async fn group(State(served): State<Arc<Served>>, Path(name): Path<String>) -> Response {
    let directory = Directory::of(&served.runtime);
    match directory.get(&name) {
        Some(Meaning::Group(at)) => Json(directory.group_proxy(&served, at)).into_response(),
        Some(Meaning::Leaf(_)) | None => not_found(),
    }
}

/// Chooses a member for good; an unknown one changes nothing.
pub(super) async fn choose(
    State(served): State<Arc<Served>>,
    Path(name): Path<String>,
    body: Bytes,
) -> Response {
    let directory = Directory::of(&served.runtime);
    let group = match directory.get(&name) {
        Some(Meaning::Group(at)) if is_selector(&directory, at) => at,
        None if name != GLOBAL => return not_found(),
        _ => return message(StatusCode::BAD_REQUEST, NO_SELECTOR),
    };
    let Ok(Choice { name: member }) = serde_json::from_slice(&body) else { return body_invalid() };
    let Some(member) = directory.member(group, &member) else {
        return message(StatusCode::BAD_REQUEST, "Selector update error: not found");
    };
    let steering = &directory.groups[group].steering;
    chosen(&served, steering.name(), Some(steering.members()[member].clone())).await
}

/// Takes the choice back.
pub(super) async fn clear(State(served): State<Arc<Served>>, Path(name): Path<String>) -> Response {
    let directory = Directory::of(&served.runtime);
    match directory.get(&name) {
        Some(Meaning::Group(at)) if is_selector(&directory, at) => chosen(&served, &name, None).await,
        None if name != GLOBAL => not_found(),
        _ => message(StatusCode::BAD_REQUEST, NO_SELECTOR),
    }
}

fn is_selector(directory: &Directory, group: usize) -> bool {
    matches!(directory.groups[group].steering.policy(), Policy::Selector { .. })
}

async fn chosen(served: &Served, group: &str, member: Option<String>) -> Response {
    match served.runtime.choose(group, member).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        // It was another one a moment ago.
        Err(ChoiceError::Refused(ChooseError::NoGroup(_))) => not_found(),
        Err(ChoiceError::Refused(ChooseError::NotSelector(_))) => {
            message(StatusCode::BAD_REQUEST, NO_SELECTOR)
        }
        Err(ChoiceError::Refused(ChooseError::NotMember { .. })) => {
            message(StatusCode::BAD_REQUEST, "Selector update error: not found")
        }
        Err(error @ ChoiceError::NotStored(_)) => {
            message(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
        }
        Err(error @ ChoiceError::NotRunning) => message(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}
