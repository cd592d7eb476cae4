//! The HTTP handler: `CONNECT`, and requests that are passed on.

use super::Service;
use super::connection::{WRONG_CREDENTIALS, note};
use super::http_exchange::exchange;
use super::parting::part;
use super::plane::Plane;
use super::proxying::name_client;
use super::reach::{Goal, Refusal, reach};
use super::refused::RefusedBy;
use super::tied::{carried, ties};
use crate::net::within;
use crate::proxy::http::body::Body;
use crate::proxy::http::head::{self, HeadError, RequestHead, Wanted};
use crate::proxy::http::read::{Kind, ReadError};
use crate::proxy::http::{basic, forward, read};
use crate::relay::pump::Client;
use crate::relay::server::authorized;
use shared::gost::Auth;
use std::io;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// What the handler is configured with.
pub(super) struct Http {
    /// Required from clients.
    pub(super) auth: Option<Auth>,
    /// What clients are told that the credentials are for.
    pub(super) realm: String,
}

/// A request that is passed on.
pub(super) struct Plain {
    /// As the client sent it.
    pub(super) head: RequestHead,
    /// As the target gets it.
    pub(super) bytes: Vec<u8>,
    /// What follows.
    pub(super) body: Body,
    /// Whether the target may change the protocol.
    pub(super) upgrade: bool,
}

/// What a client is told instead of what it wanted.
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn new(code: u16, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    fn of(refusal: &Refusal) -> Self {
        match refusal.fault() {
            Some(fault) => Self::new(fault.http(), format!("The target cannot be reached: {fault}.")),
            None => Self::new(503, "There is no way to the target."),
        }
    }

    /// The whole response, after which the connection ends. `field` is another line of the head.
    fn encode(&self, field: &str) -> Vec<u8> {
        let Self { code, text } = self;
        let reason = match code {
            400 => "Bad Request",
            403 => "Forbidden",
            407 => "Proxy Authentication Required",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            _ => "Error",
        };
        let length = text.len() + 1;
        format!(
            "HTTP/1.1 {code} {reason}\r\n{field}Content-Type: text/plain\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{text}\n"
        )
        .into_bytes()
    }

    /// Tells it.
    pub(super) async fn tell(&self, client: Client, plane: &Plane) -> io::Result<()> {
        part(client, &self.encode(""), plane).await
    }
}

/// Serves a client whose first byte may have been read already. The head of its request must be complete by `deadline`.
/// One request per connection: a second one would go to another target.
pub(super) async fn serve(
    service: &Service,
    handler: &Http,
    (mut client, first): (Client, Option<u8>),
    deadline: Instant,
    plane: &Plane,
    stop: &CancellationToken,
) -> io::Result<()> {
    let ip = client.key.ip();
    let refuse = |by, reason: &dyn std::fmt::Display| service.refuse(by, ip, reason, plane);
    let bytes = match timeout_at(deadline, read::head(client.stream(), Kind::Request, first)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(ReadError::Io(error))) => {
            refuse(RefusedBy::of_request(&error), &error);
            return Err(error);
        }
        Ok(Err(error @ ReadError::NotHttp)) => {
            refuse(RefusedBy::Request, &error);
            return Err(io::Error::other(error));
        }
        Ok(Err(error @ ReadError::TooLarge)) => {
            refuse(RefusedBy::Request, &error);
            return Answer::new(431, error.to_string()).tell(client, plane).await;
        }
        Err(_) => {
            refuse(RefusedBy::RequestTimeout, &"no request in time");
            return Answer::new(408, "The head took too long.").tell(client, plane).await;
        }
    };
    let head = match head::request(&bytes) {
        Ok(head) => head,
        Err(error) => {
            refuse(RefusedBy::Request, &error);
            let code = if error == HeadError::TooLarge { 431 } else { 400 };
            return Answer::new(code, error.to_string()).tell(client, plane).await;
        }
    };
    let given = head.fields.values("proxy-authorization").next().and_then(basic::decode);
    if !authorized(handler.auth.as_ref(), given.as_ref()) {
        refuse(RefusedBy::Credentials, &WRONG_CREDENTIALS);
        let challenge = format!("Proxy-Authenticate: Basic realm=\"{}\"\r\n", handler.realm);
        let answer = Answer::new(407, "This proxy wants user name and password.");
        return part(client, &answer.encode(&challenge), plane).await;
    }
    let (target, plain) = match head.wanted() {
        Some(Wanted::Tunnel(target)) => (target, None),
        Some(Wanted::Plain { target, authority, path }) => match plain(head, &authority, &path) {
            Ok(plain) => (target, Some(plain)),
            Err(answer) => {
                refuse(RefusedBy::Request, &answer.text);
                return answer.tell(client, plane).await;
            }
        },
        None => {
            refuse(RefusedBy::Request, &"no request for a proxy");
            let text = "This is a proxy: CONNECT host:port, or a request for http://host/.";
            return Answer::new(400, text).tell(client, plane).await;
        }
    };
    let user = handler.auth.as_ref().map(|auth| auth.username.as_str());
    name_client(&mut client, service, user, &target);
    client.await_answer();
    let through = match reach(service, Goal::Asked(&target), &mut client, plane).await {
        Ok(through) => through,
        Err(refusal) => {
            note(service, ip, &refusal, plane);
            return Answer::of(&refusal).tell(client, plane).await;
        }
    };
    let open = through.open;
    match plain {
        Some(plain) => {
            carried!(ties(&open), stop, |end| exchange(service, client, (through.stream, plain), plane, end))
        }
        None => {
            within(plane.options.deadlines.handshake, async {
                client.stream().write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
                client.stream().flush().await
            })
            .await?;
            carried!(ties(&open), stop, |end| client.pump(through.stream, end))
        }
    }
}

fn plain(head: RequestHead, authority: &str, path: &str) -> Result<Plain, Answer> {
    let body = Body::of_request(&head).map_err(|error| Answer::new(400, error.to_string()))?;
    let upgrade = forward::wants_upgrade(&head, !body.is_complete());
    let bytes = forward::request(&head, authority, path, upgrade);
    Ok(Plain { head, bytes, body, upgrade })
}
