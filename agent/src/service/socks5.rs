//! The SOCKS5 handler: connections to the client's own targets.

use super::Service;
use super::associate;
use super::connection::note;
use super::parting::part;
use super::plane::Plane;
use super::proxying::name_client;
use super::reach::{Goal, reach};
use super::refused::RefusedBy;
use super::sessions::SessionOptions;
use super::tied::{carried, ties};
use super::udp_tunnel;
use crate::chain::fault::TargetFault;
use crate::net::within;
use crate::proxy::socks5::server::{RequestError, accept, answer};
use crate::proxy::socks5::wire::{Command, Reply, encode_reply, encode_reply_with};
use crate::relay::pump::Client;
use shared::gost::Auth;
use std::io;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// What the handler is configured with.
pub(super) struct Socks5 {
    /// Required from clients.
    pub(super) auth: Option<Auth>,
    /// Whether and how it carries datagrams.
    pub(super) datagrams: Option<SessionOptions>,
}

/// Serves a client whose first byte may have been read already. Its request must be complete by `deadline`.
pub(super) async fn serve(
    service: &Arc<Service>,
    handler: &Socks5,
    (mut client, first): (Client, Option<u8>),
    deadline: Instant,
    plane: &Arc<Plane>,
    stop: &CancellationToken,
) -> io::Result<()> {
    let ip = client.key.ip();
    let refuse = |by, reason: &dyn std::fmt::Display| service.refuse(by, ip, reason, plane);
    let accepting = accept(client.stream(), first, handler.auth.as_ref());
    let request = match timeout_at(deadline, accepting).await {
        Ok(Ok(request)) => request,
        Ok(Err(RequestError::Io(error))) => {
            refuse(RefusedBy::of_request(&error), &error);
            return Err(error);
        }
        Ok(Err(error @ RequestError::Wire(_))) => {
            refuse(RefusedBy::Request, &error);
            return Err(io::Error::other(error));
        }
        Ok(Err(RequestError::Request(error, reply))) => {
            refuse(RefusedBy::Request, &error);
            return part(client, &encode_reply(reply), plane).await;
        }
        Ok(Err(error @ (RequestError::NoMethod | RequestError::Unauthorized))) => {
            refuse(RefusedBy::Credentials, &error);
            return part(client, b"", plane).await;
        }
        Err(_) => {
            refuse(RefusedBy::RequestTimeout, &"no request in time");
            return Err(io::ErrorKind::TimedOut.into());
        }
    };
    let target = match (request.command, request.target) {
        (Command::Connect, Some(target)) => target,
        (command @ (Command::Associate | Command::Tunnel), asked_for)
            // A tunnel with an address would listen there.
            if let Some(options) = handler.datagrams
                && (command == Command::Associate || asked_for.is_none()) =>
        {
            let user = handler.auth.as_ref().map(|auth| client.key.named(&auth.username));
            let by_target = service.hash_by_target && user.is_none();
            client.key = user.unwrap_or(client.key);
            if command == Command::Associate {
                return associate::serve(service, (options, by_target), client, plane, stop).await;
            }
            let answer = encode_reply_with(udp_tunnel::source(&client));
            let how = (&*answer, options, by_target);
            return Box::pin(udp_tunnel::serve(service, how, client, plane, stop)).await;
        }
        (Command::Connect, None) => {
            refuse(RefusedBy::Request, &"the request names no target");
            return part(client, &encode_reply(Reply::GeneralFailure), plane).await;
        }
        (command @ (Command::Bind | Command::Associate | Command::Tunnel | Command::Other(_)), _) => {
            refuse(RefusedBy::Unsupported, &format!("asked for {command:?}"));
            return part(client, &encode_reply(Reply::CommandNotSupported), plane).await;
        }
    };
    let user = handler.auth.as_ref().map(|auth| auth.username.as_str());
    name_client(&mut client, service, user, &target);
    client.await_answer();
    match reach(service, Goal::Asked(&target), &mut client, plane).await {
        Ok(through) => {
            let open = through.open;
            within(plane.options.deadlines.handshake, answer(client.stream(), Reply::Succeeded)).await?;
            carried!(ties(&open), stop, |end| client.pump(through.stream, end))
        }
        Err(refusal) => {
            note(service, ip, &refusal, plane);
            let reply = refusal.fault().map_or(Reply::GeneralFailure, TargetFault::reply);
            part(client, &encode_reply(reply), plane).await
        }
    }
}
