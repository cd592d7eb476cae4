//! For whoever watches the panel: outside `/api/v1`, without login.

use crate::error::AppError;
use crate::state::AppState;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

/// The process answers.
pub(crate) async fn healthz() -> &'static str {
    "ok"
}

/// The database answers and can be written to.
pub(crate) async fn readyz(State(state): State<AppState>) -> Result<&'static str, AppError> {
    state.db.ping().await?;
    Ok("ok")
}

/// Counters in the text format of OpenMetrics.
pub(crate) async fn metrics(State(state): State<AppState>) -> impl IntoResponse {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, OPEN_METRICS)], state.metrics.encode())
}
