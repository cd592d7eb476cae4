//! What was measured, as charts, files and replays read it.

use super::extract::{Id, Json, Query};
use crate::app::span::Asked;
use crate::app::{quality, replays};
use crate::error::AppError;
use crate::state::AppState;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use shared::api::{LegHistory, ReplayInput};
use shared::ids::{NodeId, TunnelId};
use shared::replay::history::History;
use shared::replay::report::Report;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A day of milliseconds is the longest step.
const MAX_STEP_MS: i64 = 86_400_000;

/// What was measured, per leg. Default: the last hour, every round by itself; as JSON at most 5,000 points of each leg, the
/// newest. With `format=csv` (or `Accept: text/csv`) all points as a table; where there are too many for a file it is an
/// error.
#[utoipa::path(get, path = "/tunnels/{id}/quality", tag = "decisions",
    params(("id" = i64, Path), ("from" = Option<i64>, Query), ("to" = Option<i64>, Query),
        ("step" = Option<i64>, Query, minimum = 0, maximum = 86400000),
        ("format" = Option<String>, Query, description = "`json` or `csv`")),
    responses((status = 200, content((Vec<LegHistory> = "application/json"), (String = "text/csv")))))]
pub(crate) async fn tunnel_quality(
    State(state): State<AppState>,
    Id(id): Id<TunnelId>,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response, AppError> {
    let asked = Asked {
        from: query.integer("from", i64::MIN..=i64::MAX),
        to: query.integer("to", i64::MIN..=i64::MAX),
        step_ms: query.integer("step", 0..=MAX_STEP_MS).unwrap_or(0),
    };
    let format = query.word("format", &["json", "csv"]);
    query.finish()?;
    if format.unwrap_or(if wants_csv(&headers) { "csv" } else { "json" }) == "json" {
        return Ok(axum::Json(quality::history(&state, id, asked).await?).into_response());
    }
    let (legs, names) = quality::export(&state, id, asked).await?;
    let text = replays::off_thread(move || csv(&legs, &names)).await?;
    Ok(file(text.into_bytes(), "text/csv; charset=utf-8", &format!("tunnel-{id}-quality.csv")))
}

/// Everything that a replay needs of a tunnel, in the form of `exitpilot export-history`. Default: the last day.
#[utoipa::path(get, path = "/tunnels/{id}/history", tag = "decisions",
    params(("id" = i64, Path), ("from" = Option<i64>, Query), ("to" = Option<i64>, Query)),
    responses((status = 200, body = History)))]
pub(crate) async fn tunnel_history(
    State(state): State<AppState>,
    Id(id): Id<TunnelId>,
    mut query: Query,
) -> Result<Response, AppError> {
    let asked = Asked {
        from: query.integer("from", i64::MIN..=i64::MAX),
        to: query.integer("to", i64::MIN..=i64::MAX),
        step_ms: 0,
    };
    query.finish()?;
    let history = replays::history(&state, id, asked).await?;
    let text = replays::off_thread(move || serde_json::to_vec(&history)).await?;
    let text = text.map_err(|error| AppError::Internal(error.into()))?;
    Ok(file(text, "application/json", &format!("tunnel-{id}-history.json")))
}

/// What other settings and policies would have made of what was measured. Changes nothing, so viewers may ask, too. Two run
/// at once; 503 when there is no room.
#[utoipa::path(post, path = "/tunnels/{id}/replay", tag = "decisions", params(("id" = i64, Path)),
    request_body = ReplayInput, responses((status = 200, body = Report)))]
pub(crate) async fn replay_tunnel(
    State(state): State<AppState>,
    Id(id): Id<TunnelId>,
    Json(input): Json<ReplayInput>,
) -> Result<axum::Json<Report>, AppError> {
    replays::replay(&state, id, input).await.map(axum::Json)
}

/// Whether a program asked for a table and for no JSON.
fn wants_csv(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.contains("text/csv") && !accept.contains("json")
}

/// An answer that browsers save under this name.
fn file(content: Vec<u8>, kind: &'static str, name: &str) -> Response {
    let mut response = content.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

/// One line for each point, in the order of the JSON. What was not measured is empty.
fn csv(legs: &[LegHistory], names: &BTreeMap<NodeId, String>) -> String {
    let mut text = "leg,fromNodeId,fromNode,exitNodeId,exitNode,target,at,latencyMs,loss\r\n".to_owned();
    let name = |id: NodeId| names.get(&id).map_or(String::new(), |name| cell(name));
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for leg in legs {
        let start = format!(
            "{},{},{},{},{},{}",
            leg.leg,
            leg.from_node_id,
            name(leg.from_node_id),
            leg.exit_node_id,
            name(leg.exit_node_id),
            cell(&leg.target)
        );
        for point in &leg.points {
            // Writing to a string cannot fail.
            let _ =
                write!(text, "{start},{},{},{}\r\n", point.at, number(point.latency_ms), number(point.loss));
        }
    }
    text
}

/// A text as RFC 4180 wants it. Spreadsheets would take one that begins like a formula for one.
fn cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    if text.contains(['"', ',', '\r', '\n']) || !guard.is_empty() {
        return format!("\"{guard}{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_texts_and_no_formulas() {
        for (text, written) in [
            ("hk", "hk"),
            ("香港", "香港"),
            ("a,b", "\"a,b\""),
            ("the \"old\" one", "\"the \"\"old\"\" one\""),
            ("=1+1", "\"'=1+1\""),
        ] {
            assert_eq!(cell(text), written);
        }
    }

    #[test]
    fn a_table_is_for_those_who_ask_for_one() {
        for (accept, csv) in [("text/csv", true), ("*/*", false), ("application/json, text/csv", false)] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(wants_csv(&headers), csv, "{accept}");
        }
        assert!(!wants_csv(&HeaderMap::new()));
    }
}
