//! Groups: which member each uses, choosing one, trying all.

use super::{Served, problem};
use crate::chain::group::report::GroupReport;
use crate::chain::group::steering::ChoiceError;
use crate::runtime::groups::TryError;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;
use shared::policy::ChooseError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// For one member, unless it is said.
const TIMEOUT_MS: u64 = 5000;
/// At most: the answer must be there before the request's own deadline.
const LONGEST_MS: u64 = 20_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Choice {
    /// Name of the member.
    member: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Trial {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

pub(super) async fn all(State(served): State<Arc<Served>>) -> Json<Vec<GroupReport>> {
    Json(served.runtime.groups())
}

pub(super) async fn one(State(served): State<Arc<Served>>, Path(name): Path<String>) -> Response {
    match served.runtime.group(&name) {
        Some(group) => Json(group).into_response(),
        None => problem(StatusCode::NOT_FOUND, &format!("there is no group {name}")),
    }
}

/// Chooses a member; an unknown one changes nothing.
pub(super) async fn choose(
    State(served): State<Arc<Served>>,
    Path(name): Path<String>,
    choice: Result<Json<Choice>, JsonRejection>,
) -> Response {
    match choice {
        Ok(Json(Choice { member })) => chosen(&served, name, Some(member)).await,
        Err(rejection) => problem(StatusCode::UNPROCESSABLE_ENTITY, &rejection.body_text()),
    }
}

/// Takes the choice back.
pub(super) async fn clear(State(served): State<Arc<Served>>, Path(name): Path<String>) -> Response {
    chosen(&served, name, None).await
}

async fn chosen(served: &Served, name: String, member: Option<String>) -> Response {
    let status = match served.runtime.choose(&name, member).await {
        Ok(()) => return Json(served.runtime.group(&name)).into_response(),
        Err(error) => {
            let status = match &error {
                ChoiceError::Refused(ChooseError::NoGroup(_)) => StatusCode::NOT_FOUND,
                ChoiceError::Refused(ChooseError::NotSelector(_)) => StatusCode::CONFLICT,
                ChoiceError::Refused(ChooseError::NotMember { .. }) => StatusCode::UNPROCESSABLE_ENTITY,
                ChoiceError::NotStored(_) => StatusCode::INTERNAL_SERVER_ERROR,
                ChoiceError::NotRunning => StatusCode::SERVICE_UNAVAILABLE,
            };
            (status, error.to_string())
        }
    };
    problem(status.0, &status.1)
}

/// Tries all members now. Changes nothing.
pub(super) async fn try_all(
    State(served): State<Arc<Served>>,
    Path(name): Path<String>,
    trial: Result<Json<Trial>, JsonRejection>,
) -> Response {
    let Trial { url, timeout_ms } = match trial {
        Ok(Json(trial)) => trial,
        Err(JsonRejection::MissingJsonContentType(_)) => Trial::default(),
        Err(rejection) => return problem(StatusCode::UNPROCESSABLE_ENTITY, &rejection.body_text()),
    };
    let timeout_ms = timeout_ms.unwrap_or(TIMEOUT_MS);
    if !(1..=LONGEST_MS).contains(&timeout_ms) {
        let reason = format!("timeoutMs must be from 1 to {LONGEST_MS}");
        return problem(StatusCode::UNPROCESSABLE_ENTITY, &reason);
    }
    let timeout = Duration::from_millis(timeout_ms);
    match served.runtime.try_members(&name, url.as_deref(), timeout).await {
        Ok(tried) => {
            let member = |(name, outcome): (String, Result<f64, String>)| match outcome {
                Ok(ms) => (name, json!({"latencyMs": ms})),
                Err(error) => (name, json!({"error": error})),
            };
            Json(tried.into_iter().map(member).collect::<BTreeMap<_, _>>()).into_response()
        }
        Err(error @ TryError::NoGroup(_)) => problem(StatusCode::NOT_FOUND, &error.to_string()),
        Err(error @ TryError::Url(_)) => problem(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
    }
}
