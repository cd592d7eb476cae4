//! One client connection from accept to end.

use super::admission::{Admitted, admit, ends};
use super::plane::Plane;
use super::reach::{Goal, Refusal, reach};
use super::refused::RefusedBy;
use super::tally::OpenConnection;
use super::tied::{carried, ties};
use super::watch::{Cargo, Watched};
use super::{Forwarder, Handler, Service, Transport, proxying, udp_relay, udp_tunnel};
use crate::guard::guarded::Guard;
use crate::net::within;
use crate::proxy_protocol::Ends;
use crate::relay::pump::Client;
use crate::relay::server::{RequestError, answer, authorized, read_request};
use crate::relay::wire::{Command, Status, response, response_with_address};
use crate::stream::Stream;
use crate::tasks::Tasks;
use crate::transport::acceptor::Accepted;
use crate::transport::smux;
use arc_swap::ArcSwap;
use shared::address::HostPort;
use shared::gost::Auth;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Why a client is refused that cannot say who it is.
pub(super) const WRONG_CREDENTIALS: &str = "wrong or no credentials";

/// What the connections of one listener need.
pub(super) struct Accepting {
    /// What the service is now; streams that come later over the same connection are served by what it is then.
    pub(super) service: Arc<ArcSwap<Service>>,
    pub(super) plane: Arc<Plane>,
    /// The listener is closed: no new streams either.
    pub(super) closed: CancellationToken,
    /// Ends the connections.
    pub(super) stop: CancellationToken,
}

/// Serves one connection to its end, with all the streams that come over it.
pub(super) async fn serve(accepting: &Accepting, mut tcp: TcpStream, peer: SocketAddr) {
    let Accepting { plane, stop, .. } = accepting;
    let service = accepting.service.load_full();
    // Otherwise the listener closes in this moment: the service listens for datagrams now.
    let Transport::Streams(transport) = &service.transport else { return crate::net::reset_on_close(&tcp) };
    crate::net::tune_accepted(&tcp);
    let ends = tokio::select! {
        ends = ends(&service, &mut tcp, peer, plane) => ends,
        () = stop.cancelled() => return,
    };
    let admitted = ends.map_err(|denied| (peer, denied)).and_then(|ends| {
        // Many streams are as many clients; each is asked for on its own.
        let admit = || admit(&service, ends.source.ip(), plane).map_err(|denied| (ends.source, denied));
        Ok((ends, if transport.is_shared() { None } else { Some(admit()?) }))
    });
    let (ends, admitted) = match admitted {
        Ok(admitted) => admitted,
        Err((client, denied)) => {
            crate::net::reset_on_close(&tcp);
            return service.refuse(denied.refused_by(), client.ip(), &denied, plane);
        }
    };
    let tasks = Tasks { tracker: plane.tracker.clone(), stop: stop.clone() };
    // Boxed, as all that ends before payload flows or that few connections need: the rest of a connection's state stays
    // in memory for as long as it is open.
    let arriving = Box::pin(transport.accept(Stream::Tcp(tcp), &plane.options, &tasks));
    let accepted = tokio::select! {
        accepted = arriving => accepted,
        () = stop.cancelled() => return,
    };
    match accepted {
        Ok(Accepted::One(stream)) => serve_stream(&service, (stream, admitted), ends, plane, stop).await,
        Ok(Accepted::Many(streams)) => Box::pin(serve_streams(accepting, streams, ends)).await,
        Err(error) => service.refuse(RefusedBy::of_handshake(&error), ends.source.ip(), &error, plane),
    }
}

/// Each stream is a client connection of its own, and counts as one.
async fn serve_streams(accepting: &Accepting, mut streams: smux::Accepting, ends: Ends) {
    let Accepting { service, plane, closed, stop } = accepting;
    loop {
        let stream = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = closed.cancelled() => return,
            stream = streams.accept() => stream,
        };
        let Some(stream) = stream else { return };
        let service = service.load_full();
        let Some(slot) = super::listener::slot(&service, ends.source, plane) else {
            stream.abort();
            continue;
        };
        let (plane, stop) = (plane.clone(), stop.clone());
        let tracker = plane.tracker.clone();
        tracker.spawn(async move {
            serve_stream(&service, (stream, None), ends, &plane, &stop).await;
            drop(slot);
        });
    }
}

/// Serves one client connection to its end.
async fn serve_stream(
    service: &Arc<Service>,
    (stream, admitted): (Stream, Option<Admitted>),
    ends: Ends,
    plane: &Arc<Plane>,
    stop: &CancellationToken,
) {
    let peer = ends.source;
    let admitted = match admitted.map_or_else(|| admit(service, peer.ip(), plane), Ok) {
        Ok(admitted) => admitted,
        Err(denied) => {
            stream.abort();
            return service.refuse(denied.refused_by(), peer.ip(), &denied, plane);
        }
    };
    let _listed = plane.tally.accept(|| OpenConnection {
        service: service.name.clone(),
        client: peer,
        since_ms: plane.options.clock.now_ms(),
    });
    let _open = service.connections.begin();
    let guard = Guard::new(plane.options.blocked.get(), stop);
    let stop = guard.as_ref().map_or(stop, Guard::stop);
    let watched = plane.watch.show(service, (Cargo::Stream, peer), plane, stop);
    let stop = watched.as_ref().map_or(stop, Watched::stop);
    let served = async {
        let stream = match &guard {
            Some(guard) => guard.around(stream),
            None => stream,
        };
        let stream = admitted.limit(stream, plane);
        let mut client = Client::new(stream, peer.ip());
        client.ends = Some(ends);
        match &watched {
            Some(watched) => client.watched_by(watched),
            None => client.count(service.traffic.clone()),
        }
        match &service.handler {
            Handler::Forward(forwarder) => forward(service, forwarder, client, plane, stop).await,
            Handler::Relay { auth, request_timeout, forwarder, bind } => {
                let deadline = request_timeout.unwrap_or(plane.options.deadlines.relay_request);
                let handler = (auth.as_ref(), deadline, forwarder.as_ref(), *bind);
                relay(service, handler, client, plane, stop).await
            }
            Handler::Proxy(proxy) => Box::pin(proxying::serve(service, proxy, client, plane, stop)).await,
        }
    };
    let outcome = tokio::select! {
        // Polled first: while payload flows, it sees `stop` itself and resets both sides.
        biased;
        outcome = served => outcome,
        () = stop.cancelled() => Ok(()),
    };
    if let Some(protocol) = guard.and_then(|guard| guard.caught()) {
        let reason = format!("it speaks {}, which is blocked", protocol.as_str());
        return service.refuse(RefusedBy::BlockedProtocol, peer.ip(), &reason, plane);
    }
    if let Err(error) = outcome {
        tracing::debug!(service = service.name, %peer, %error, "connection ended");
    }
}

async fn forward(
    service: &Service,
    forwarder: &Forwarder,
    mut client: Client,
    plane: &Plane,
    stop: &CancellationToken,
) -> io::Result<()> {
    match Box::pin(reach(service, Goal::Fixed(forwarder), &mut client, plane)).await {
        Ok(through) => {
            let open = through.open;
            carried!(ties(&open), stop, |end| client.pump(through.stream, end))
        }
        Err(refusal) => {
            note(service, client.key.ip(), &refusal, plane);
            client.refuse();
            Ok(())
        }
    }
}

async fn relay(
    service: &Arc<Service>,
    (auth, deadline, forwarder, bind): (Option<&Auth>, Duration, Option<&Forwarder>, bool),
    mut client: Client,
    plane: &Arc<Plane>,
    stop: &CancellationToken,
) -> io::Result<()> {
    let ip = client.key.ip();
    let read = tokio::time::timeout(deadline, read_request(client.stream())).await;
    let read = match read.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into())) {
        Err(RequestError::Wire(error)) => Err(io::Error::other(error)),
        Err(RequestError::Io(error)) => Err(error),
        Ok(request) => Ok(request),
    };
    let request = read.inspect_err(|error| service.refuse(RefusedBy::of_request(error), ip, error, plane))?;
    let refuse = |by, reason: &str| service.refuse(by, ip, &reason, plane);
    if !authorized(auth, request.auth.as_ref()) {
        refuse(RefusedBy::Credentials, WRONG_CREDENTIALS);
        return part(client, Status::Unauthorized, plane).await;
    }
    // As in GOST, a user is the same client wherever it comes from.
    match (&request.auth, &request.target) {
        (Some(user), _) if auth.is_some() => client.key = client.key.named(&user.username),
        (_, Some(target)) if service.hash_by_target => client.key = client.key.named(&target.to_string()),
        _ => {}
    }
    if request.udp && request.command == Command::Bind && forwarder.is_none() {
        return match bind {
            true => {
                let source = udp_tunnel::source(&client);
                let answer = response_with_address(&HostPort::new(source.ip().to_string(), source.port()));
                let how = (&*answer, udp_tunnel::OPTIONS, false);
                udp_tunnel::serve(service, how, client, plane, stop).await
            }
            false => {
                refuse(RefusedBy::Unsupported, "associations of datagrams need `bind`");
                part(client, Status::Forbidden, plane).await
            }
        };
    }
    let goal = match (forwarder, &request.target) {
        _ if request.command != Command::Connect => {
            refuse(RefusedBy::Unsupported, "relays connect, and nothing else");
            return part(client, Status::BadRequest, plane).await;
        }
        (Some(forwarder), _) => Goal::Fixed(forwarder),
        (None, Some(target)) => Goal::Asked(target),
        (None, None) => {
            refuse(RefusedBy::Request, "the request names no target");
            return part(client, Status::BadRequest, plane).await;
        }
    };
    if request.udp {
        return Box::pin(udp_relay::serve(service, goal, client, plane, stop)).await;
    }
    match Box::pin(reach(service, goal, &mut client, plane)).await {
        Ok(through) => {
            let open = through.open;
            within(plane.options.deadlines.handshake, answer(client.stream(), Status::Ok)).await?;
            carried!(ties(&open), stop, |end| client.pump(through.stream, end))
        }
        Err(refusal) => {
            note(service, client.key.ip(), &refusal, plane);
            part(client, refusal.status(), plane).await
        }
    }
}

/// Answers with an error and lets the client read it.
pub(super) async fn part(client: Client, status: Status, plane: &Plane) -> io::Result<()> {
    super::parting::part(client, &response(status), plane).await
}

/// Counts and logs that there was no way for a client.
pub(super) fn note(service: &Service, client: IpAddr, refusal: &Refusal, plane: &Plane) {
    if service.has_chain() && !refusal.is_client_gone() {
        plane.count_refused();
    }
    service.refuse(refusal.refused_by(), client, refusal, plane);
}
