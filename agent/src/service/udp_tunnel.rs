//! An association of a relay client or a SOCKS5 client: datagrams of many targets on its connection. GOST asks a relay for
//! one when its own SOCKS5 clients want UDP through a chain, and a SOCKS5 proxy for all that shall be UDP.

use super::Service;
use super::plane::Plane;
use super::sessions::{Beginning, SessionOptions, Sessions};
use crate::datagram::inbox::{Inbox, InboxLimits};
use crate::datagram::pump::{Deliver, STILL, inbox_to_frames};
use crate::datagram::socket::give_up_after;
use crate::net::within;
use crate::relay::pump::Client;
use crate::relay::tunnel::{Head, TunnelReader};
use shared::address::HostPort;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

/// The flows of a relay client.
pub(super) const OPTIONS: SessionOptions = SessionOptions {
    // What NATs are asked to allow at least when they see no end (RFC 4787: two minutes).
    ttl: Duration::from_secs(120),
    one_answer: false,
    opening: 128,
    most: 1024,
    inbox: InboxLimits { datagrams: 128, bytes: 128 * 1024 },
};
/// What waits for the client, of all flows together.
const ANSWERS: InboxLimits = InboxLimits { datagrams: 4096, bytes: 1024 * 1024 };

/// From where an association's datagrams are sent, for the answer. There is no one port, so none is named.
pub(super) fn source(client: &Client) -> SocketAddr {
    let ip = client.ends.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ends| ends.destination.ip());
    SocketAddr::new(ip.to_canonical(), 0)
}

/// Serves an association until the client ends its connection. Each target is a flow of its own, with its own way.
/// `answer` is what the client is told first; by `by_target` the hash strategies know it by its targets.
pub(super) async fn serve(
    service: &Arc<Service>,
    (answer, options, by_target): (&[u8], SessionOptions, bool),
    mut client: Client,
    plane: &Arc<Plane>,
    stop: &CancellationToken,
) -> io::Result<()> {
    within(plane.options.deadlines.handshake, async {
        client.stream().write_all(answer).await?;
        client.stream().flush().await
    })
    .await?;
    let key = client.key;
    let address = client.ends.map_or(SocketAddr::new(key.ip(), 0), |ends| ends.source);
    let (stream, early) = client.into_parts();
    give_up_after(&stream, STILL);
    let (mut from_client, mut to_client) = tokio::io::split(stream);
    let sessions = Sessions::new(plane.clone(), stop.child_token());
    let _end = sessions.end_on_drop();
    let answers = Arc::new(Inbox::new(ANSWERS));
    let begin = |target: &HostPort| Beginning {
        service: service.clone(),
        options,
        target: Some(target.clone()),
        client: if by_target { key.named(&target.to_string()) } else { key },
        address,
        // Its connection is.
        is_client: false,
        announcement: None,
        to: ToTunnel { head: Head::new(target), answers: answers.clone() },
    };
    tokio::select! {
        ended = receive(&mut from_client, TunnelReader::new(early), &sessions, begin) => ended,
        ended = inbox_to_frames(&answers, &mut to_client) => ended,
        () = stop.cancelled() => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "stopped")),
    }
}

async fn receive(
    stream: &mut (impl AsyncRead + Unpin),
    mut reader: TunnelReader,
    sessions: &Arc<Sessions<HostPort>>,
    begin: impl Fn(&HostPort) -> Beginning<ToTunnel>,
) -> io::Result<()> {
    loop {
        while let Some((target, datagram)) = reader.take().map_err(io::Error::other)? {
            sessions.pass(target, datagram, || Some(begin(target)));
        }
        if !reader.fill(stream).await? {
            return Ok(());
        }
    }
}

/// Takes the answers of one target.
struct ToTunnel {
    head: Head,
    answers: Arc<Inbox>,
}

impl Deliver for ToTunnel {
    fn try_deliver(&self, datagram: &[u8]) -> io::Result<()> {
        let head = self.head.of(datagram.len()).ok_or(io::ErrorKind::InvalidInput)?;
        let put = self.answers.put_with_head(head.as_bytes(), datagram);
        put.then_some(()).ok_or_else(|| io::ErrorKind::StorageFull.into())
    }

    fn room(&self) -> impl Future<Output = io::Result<()>> + Send {
        // Never asked for: what does not fit is dropped.
        std::future::ready(Ok(()))
    }
}
