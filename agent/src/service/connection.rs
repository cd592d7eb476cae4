//! One client connection from accept to end.

use super::admission::{Denied, admit};
use super::plane::Plane;
use super::reach::{Goal, Refusal, reach};
use super::{Forwarder, Handler, Service, Transport, proxying, udp_relay};
use crate::net::within;
use crate::relay::pump::Client;
use crate::relay::server::{RequestError, answer, authorized, read_request};
use crate::relay::wire::{Command, Status, response};
use crate::stream::Stream;
use shared::gost::Auth;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Serves one connection to its end.
pub(super) async fn serve(
    service: &Service,
    tcp: TcpStream,
    peer: SocketAddr,
    plane: &Plane,
    stop: &CancellationToken,
) {
    crate::net::tune(&tcp);
    let admitted = match admit(service, peer.ip(), plane) {
        Ok(admitted) => admitted,
        Err(denied) => {
            crate::net::reset_on_close(&tcp);
            note_denied(service, peer, &denied, plane);
            return;
        }
    };
    let served = async {
        let stream = admitted.limit(accept(service, tcp, plane).await?, plane);
        let client = Client::new(stream, peer.ip());
        match &service.handler {
            Handler::Forward(forwarder) => forward(service, forwarder, client, plane, stop).await,
            Handler::Relay { auth, request_timeout, forwarder } => {
                let deadline = request_timeout.unwrap_or(plane.options.deadlines.relay_request);
                relay(service, (auth.as_ref(), deadline, forwarder.as_ref()), client, plane, stop).await
            }
            Handler::Proxy(proxy) => proxying::serve(service, proxy, client, plane, stop).await,
        }
    };
    let outcome = tokio::select! {
        // Polled first: while payload flows, it sees `stop` itself and resets both sides.
        biased;
        outcome = served => outcome,
        () = stop.cancelled() => return,
    };
    if let Err(error) = outcome {
        tracing::debug!(service = service.name, %peer, %error, "connection ended");
    }
}

async fn accept(service: &Service, tcp: TcpStream, plane: &Plane) -> io::Result<Stream> {
    let stream = Stream::Tcp(tcp);
    match &service.transport {
        Transport::Tcp => Ok(stream),
        // The listener closes in this moment.
        Transport::Udp(_) => Err(io::Error::other("the service listens for datagrams now")),
        Transport::Tls { server, timeout } => {
            server.handshake(stream, timeout.unwrap_or(plane.options.deadlines.handshake)).await
        }
    }
}

async fn forward(
    service: &Service,
    forwarder: &Forwarder,
    mut client: Client,
    plane: &Plane,
    stop: &CancellationToken,
) -> io::Result<()> {
    match reach(service, Goal::Fixed(forwarder), &mut client, plane).await {
        Ok(through) => {
            let _open = through.open;
            client.pump(through.stream, stop).await
        }
        Err(refusal) => {
            note(service, &refusal, plane);
            client.refuse();
            Ok(())
        }
    }
}

async fn relay(
    service: &Service,
    (auth, deadline, forwarder): (Option<&Auth>, Duration, Option<&Forwarder>),
    mut client: Client,
    plane: &Plane,
    stop: &CancellationToken,
) -> io::Result<()> {
    let request = match tokio::time::timeout(deadline, read_request(client.stream())).await {
        Ok(Ok(request)) => request,
        Ok(Err(RequestError::Io(error))) => return Err(error),
        Ok(Err(RequestError::Wire(error))) => return Err(io::Error::other(error)),
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    if !authorized(auth, request.auth.as_ref()) {
        return part(client, Status::Unauthorized, plane).await;
    }
    // As in GOST, a user is the same client wherever it comes from.
    match (&request.auth, &request.target) {
        (Some(user), _) if auth.is_some() => client.key = client.key.named(&user.username),
        (_, Some(target)) if service.hash_by_target => client.key = client.key.named(&target.to_string()),
        _ => {}
    }
    let goal = match (forwarder, &request.target) {
        _ if request.command != Command::Connect => {
            return part(client, Status::BadRequest, plane).await;
        }
        (Some(forwarder), _) => Goal::Fixed(forwarder),
        (None, Some(target)) => Goal::Asked(target),
        (None, None) => return part(client, Status::BadRequest, plane).await,
    };
    if request.udp {
        return udp_relay::serve(service, goal, client, plane, stop).await;
    }
    match reach(service, goal, &mut client, plane).await {
        Ok(through) => {
            let _open = through.open;
            within(plane.options.deadlines.handshake, answer(client.stream(), Status::Ok)).await?;
            client.pump(through.stream, stop).await
        }
        Err(refusal) => {
            note(service, &refusal, plane);
            part(client, refusal.status(), plane).await
        }
    }
}

/// Answers with an error and lets the client read it.
pub(super) async fn part(client: Client, status: Status, plane: &Plane) -> io::Result<()> {
    super::parting::part(client, &response(status), plane).await
}

/// Logs that a client was refused for what it asked, or how.
pub(super) fn note_rejected(service: &Service, reason: &dyn std::fmt::Display, plane: &Plane) {
    if let Some(held_back) = service.refusals.pass(&plane.options.clock) {
        tracing::warn!(service = service.name, %reason, held_back, "client refused");
    }
}

/// Logs that a client was not let in.
fn note_denied(service: &Service, peer: SocketAddr, denied: &Denied, plane: &Plane) {
    if let Some(held_back) = service.refusals.pass(&plane.options.clock) {
        tracing::warn!(service = service.name, client = %peer.ip(), reason = %denied, held_back, "client refused");
    }
}

/// Counts and logs a refusal.
pub(super) fn note(service: &Service, refusal: &Refusal, plane: &Plane) {
    if refusal.is_client_gone() {
        return;
    }
    if service.chain.is_some() {
        plane.count_refused();
    }
    if let Some(held_back) = service.refusals.pass(&plane.options.clock) {
        tracing::warn!(service = service.name, reason = %refusal, held_back, "client refused");
    }
}
