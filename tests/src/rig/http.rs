//! A small HTTP client: one connection per request, from any place, with a deadline.

use super::place::Place;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// Largest answer read. The largest real one is a decision log, a few hundred KB.
const MAX_BODY: usize = 32 * 1024 * 1024;

/// A request.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// With the leading slash.
    pub path: &'a str,
    /// For `Authorization: Bearer`.
    pub token: Option<&'a str>,
    /// Sent as `application/json`.
    pub body: Option<Vec<u8>>,
    /// For everything together.
    pub limit: Duration,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum HttpError {
    /// Nothing answers there.
    #[error("connect: {0}")]
    Connect(std::io::Error),
    /// The connection broke, or what came is no HTTP.
    #[error("HTTP: {0}")]
    Broken(hyper::Error),
    /// The request cannot be written.
    #[error("request: {0}")]
    Request(hyper::http::Error),
    /// The body broke, or is too long.
    #[error("body: {0}")]
    Body(String),
    /// Too slow.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

/// Asks and returns status and body.
///
/// # Errors
/// Anything but an answer; a status of 400 or more is an answer.
pub async fn ask(place: &Place, server: SocketAddr, ask: Ask<'_>) -> Result<(u16, Vec<u8>), HttpError> {
    let limit = ask.limit;
    let whole = Box::pin(async {
        let response = open(place, server, ask).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_BODY).collect().await;
        let body = body.map_err(|error| HttpError::Body(error.to_string()))?;
        Ok((status, body.to_bytes().to_vec()))
    });
    tokio::time::timeout(limit, whole).await.unwrap_or(Err(HttpError::Timeout(limit)))
}

/// Asks and returns the answer as soon as its head is there, for bodies that go on.
///
/// # Errors
/// As [`ask`], without a deadline of its own.
pub async fn open(place: &Place, server: SocketAddr, ask: Ask<'_>) -> Result<Response<Incoming>, HttpError> {
    let stream = place.connect(server).await.map_err(HttpError::Connect)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(HttpError::Broken)?;
    // Ends with the response's body, which holds the other end.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the panel broke");
        }
    });
    let mut request = Request::builder().method(ask.method).uri(ask.path);
    request = request.header(header::HOST, server.to_string());
    if let Some(token) = ask.token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let body = ask.body.unwrap_or_default();
    if !body.is_empty() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(HttpError::Request)?;
    sender.send_request(request).await.map_err(HttpError::Broken)
}
