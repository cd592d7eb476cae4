//! A relay client's datagrams: frames on its connection, one way for all of them.

use super::Service;
use super::connection::{note, part};
use super::plane::Plane;
use super::reach::{DatagramWay, Goal, reach_for_datagrams};
use super::tied::{carried, cut};
use crate::chain::asking::Asking;
use crate::chain::group::Attempt;
use crate::datagram::frame::FrameReader;
use crate::datagram::pump::{Counted, Peer, STILL, frames_to, peer_to_frames};
use crate::datagram::socket::give_up_after;
use crate::net::within;
use crate::relay::pump::Client;
use crate::relay::server::answer;
use crate::relay::wire::Status;
use std::io;
use tokio_util::sync::CancellationToken;

/// Serves a relay client that asked for datagrams, until it ends its connection. Silence ends nothing: how long a
/// session lasts is decided where it began.
pub(super) async fn serve(
    service: &Service,
    goal: Goal<'_>,
    mut client: Client,
    plane: &Plane,
    stop: &CancellationToken,
) -> io::Result<()> {
    // What has come with the request goes along with the one to the next node. A client that sends nothing before it has
    // its answer is not waited for.
    tokio::select! {
        biased;
        spoken = client.has_spoken() => spoken?,
        () = std::future::ready(()) => {}
    }
    client.await_answer();
    let mut asking = Asking::Connection { client: &mut client, datagrams: true };
    let reached = match reach_for_datagrams(service, goal, &mut asking, plane).await {
        Ok(reached) => reached,
        Err(refusal) => {
            note(service, client.key.ip(), &refusal, plane);
            return part(client, refusal.status(), plane).await;
        }
    };
    within(plane.options.deadlines.handshake, answer(client.stream(), Status::Ok)).await?;
    let ties = reached.ties();
    if let Some(watched) = client.watched() {
        watched.has_taken(service.taken_way(goal, reached.target.as_ref(), reached.open(), plane));
    }
    let traffic = &client.traffic().unwrap_or(&service.traffic).clone();
    let _target = reached.target.as_ref().map(Attempt::open);
    match reached.way {
        // Frames on both sides: nothing has to be understood.
        DatagramWay::Framed(through) => {
            let _open = through.open;
            // They went along with the request.
            traffic.add_up(client.early().len());
            client.forget_early();
            carried!(ties, stop, |end| client.pump(through.stream, end))
        }
        DatagramWay::Socket(socket) => {
            let (stream, early) = client.into_parts();
            give_up_after(&stream, STILL);
            let (mut from_client, mut to_client) = tokio::io::split(stream);
            let peer = Peer::new(socket);
            let counted = Counted { to: &peer, traffic };
            tokio::select! {
                ended = frames_to(&mut from_client, FrameReader::new(early), &counted, |_| {}) => ended,
                ended = peer_to_frames(&peer, &mut to_client, traffic) => ended,
                () = cut(&ties) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "its group left the member")),
                () = stop.cancelled() => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "stopped")),
            }
        }
    }
}
