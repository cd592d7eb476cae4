//! Answers that go on: server-sent events and lines of JSON. They end when the panel stops, and with
//! the session that asked for them.

use super::guarded::while_allowed;
use crate::auth::CurrentUser;
use crate::error::AppError;
use crate::state::AppState;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;
use shared::api::{DiagnoseLine, Event, Role};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// Comments keep proxies from closing a quiet stream; their usual limit is 60 s.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What happens, as it happens: nodes, decisions, switches, rounds, deployments, edits.
#[utoipa::path(get, path = "/events", tag = "events",
    responses((status = 200, body = Event, content_type = "text/event-stream")))]
pub(crate) async fn events(
    State(state): State<AppState>,
    current: CurrentUser,
) -> Result<Response, AppError> {
    let receiver = state.bus.subscribe();
    let events = stream::unfold(receiver, |mut receiver| async move {
        let event = match receiver.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => Event::Lagged,
            Err(RecvError::Closed) => return None,
        };
        Some((event, receiver))
    });
    let events = while_allowed(&state, current, Role::Viewer, events);
    // The data alone tells what it is (`type`); without a name all of it reaches `onmessage`.
    let events = events.map(|event| sse::Event::default().json_data(event));
    let events = events.take_until(state.shutdown.clone().cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Lines of JSON, one by one.
pub(crate) struct Ndjson(Body);

/// Sends each line as soon as it is there, to an admin.
pub(crate) fn ndjson(
    state: &AppState,
    current: CurrentUser,
    lines: impl Stream<Item = DiagnoseLine> + Send + 'static,
) -> Ndjson {
    let bytes = while_allowed(state, current, Role::Admin, lines)
        .map(|line| Ok::<_, Infallible>(line_of(&line)))
        .take_until(state.shutdown.clone().cancelled_owned());
    Ndjson(Body::from_stream(bytes))
}

fn line_of(value: &impl Serialize) -> Bytes {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line.into()
}

impl IntoResponse for Ndjson {
    fn into_response(self) -> Response {
        let content_type = HeaderValue::from_static("application/x-ndjson");
        // Proxies that collect a whole answer first would make a progress of it that nobody sees.
        let unbuffered = HeaderValue::from_static("no");
        let headers = [
            (header::CONTENT_TYPE, content_type),
            (header::HeaderName::from_static("x-accel-buffering"), unbuffered),
        ];
        (headers, self.0).into_response()
    }
}
