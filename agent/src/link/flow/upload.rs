//! One report, as the peer's panel takes it.

use crate::link::Link;
use crate::link::address::Scheme;
use crate::link::dial;
use crate::link::session::sealed;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use std::time::Duration;

/// The answer is `ok`; nobody needs more of another one than this.
const MOST_ANSWER: usize = 1024;
/// What is taken as accepted.
const ACCEPTED: &str = "ok";

/// Why a report was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Undelivered {
    #[error("the panel cannot be reached: {0}")]
    NotSent(String),
    #[error("the panel answered HTTP {status}: {body}")]
    Refused { status: u16, body: String },
    /// It may have arrived.
    #[error("no answer of the panel, counted as told: {0}")]
    Unanswered(String),
}

impl Undelivered {
    /// Whether the panel certainly has not counted it.
    pub(super) fn is_certain(&self) -> bool {
        !matches!(self, Undelivered::Unanswered(_))
    }
}

/// Sends a report to a path on a connection of its own, within the time that the link's handshake has.
pub(super) async fn upload<T: serde::Serialize + ?Sized>(
    link: &Link,
    scheme: Scheme,
    path: &str,
    report: &T,
) -> Result<(), Undelivered> {
    let limit = link.options.timings.handshake;
    let not_sent = |error: &dyn std::fmt::Display| Undelivered::NotSent(error.to_string());
    let text = serde_json::to_string(report).map_err(|error| not_sent(&error))?;
    let panel = &link.options.panel;
    let request = Request::post(panel.report_path(path, link.options.secret.reveal()))
        .header(HOST, panel.at().to_string())
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(sealed(link, &text))))
        .map_err(|error| not_sent(&error))?;
    let connecting = async {
        let stream = dial::connect(panel, scheme, &link.tls).await.map_err(|error| not_sent(&error))?;
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| not_sent(&error))
    };
    let (mut sender, connection) = within(limit, connecting, Undelivered::NotSent).await?;
    let exchange = async {
        let unanswered = |error: &dyn std::fmt::Display| Undelivered::Unanswered(error.to_string());
        let response = sender.send_request(request).await.map_err(|error| unanswered(&error))?;
        let (status, body) = (response.status().as_u16(), Limited::new(response.into_body(), MOST_ANSWER));
        // The status alone says enough where the body breaks off.
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        match body.trim().trim_matches('"') {
            ACCEPTED if status == 200 => Ok(()),
            body => Err(Undelivered::Refused { status, body: one_line(body) }),
        }
    };
    let driven = async {
        tokio::select! {
            outcome = exchange => outcome,
            // It ends only with the exchange; an error of it is the exchange's too.
            never = async { _ = connection.await; std::future::pending().await } => never,
        }
    };
    within(limit, driven, Undelivered::Unanswered).await
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Undelivered>>,
    late: fn(String) -> Undelivered,
) -> Result<T, Undelivered> {
    let outcome = tokio::time::timeout(limit, work).await;
    outcome.unwrap_or_else(|_| Err(late(format!("nothing within {} s", limit.as_secs_f64()))))
}

/// Printable text for the log.
fn one_line(body: &str) -> String {
    body.chars().filter(|c| !c.is_control()).take(200).collect()
}
