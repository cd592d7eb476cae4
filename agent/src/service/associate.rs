//! A SOCKS5 client's datagrams: a socket for them, as long as its connection lasts.

use super::Service;
use super::admission::police;
use super::parting::part;
use super::plane::Plane;
use super::refused::RefusedBy;
use super::sessions::{Beginning, SessionOptions, Sessions};
use crate::chain::hash::ClientKey;
use crate::datagram::inbox::InboxLimits;
use crate::datagram::listener::{DatagramClient, DatagramListener, ToClient};
use crate::datagram::pump::Deliver;
use crate::limit::datagrams::Policed;
use crate::limit::traffic::Direction;
use crate::net::within;
use crate::proxy::socks5::wire::{Reply, datagram, encode_datagram_header, encode_reply, encode_reply_with};
use crate::relay::pump::Client;
use crate::stream::Stream;
use shared::address::HostPort;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

/// Silence after which the way to a target is given up. Those who want less say so.
const TTL: Duration = Duration::from_secs(60);
/// Targets of one client to which a way is looked for at the same time.
const OPENING: usize = 64;
/// Targets of one client.
const MOST: usize = 1024;
/// What may wait for a way.
const INBOX: InboxLimits = InboxLimits { datagrams: 256, bytes: 256 * 1024 };
/// The largest datagram, with what stands before its payload.
const LARGEST: usize = 65_535;
/// Datagrams received before others get their turn.
const BATCH: usize = 64;

/// How datagrams are carried, if they are.
pub(super) fn options(ttl: Option<Duration>) -> SessionOptions {
    let ttl = ttl.filter(|ttl| !ttl.is_zero()).unwrap_or(TTL);
    SessionOptions { ttl, one_answer: false, opening: OPENING, most: MOST, inbox: INBOX }
}

/// Serves a client that asked for it, until its connection ends.
pub(super) async fn serve(
    service: &Arc<Service>,
    (options, by_target): (SessionOptions, bool),
    mut client: Client,
    plane: &Arc<Plane>,
    stop: &CancellationToken,
) -> io::Result<()> {
    // Its socket is one more file.
    let slot = plane.sessions.clone().try_acquire_owned();
    let opened = slot.map_err(io::Error::other).and_then(|slot| Ok((listen(&mut client)?, slot)));
    let (listener, _slot) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let reason = format!("no socket for datagrams: {error}");
            service.refuse(RefusedBy::Room, client.key.ip(), &reason, plane);
            return part(client, &encode_reply(Reply::GeneralFailure), plane).await;
        }
    };
    let reply = encode_reply_with(listener.local_addr()?);
    client.stream().keep_alive();
    within(plane.options.deadlines.handshake, async {
        client.stream().write_all(&reply).await?;
        client.stream().flush().await
    })
    .await?;
    let sessions = Sessions::new(plane.clone(), stop.child_token());
    let _end = sessions.end_on_drop();
    let association = Association {
        service,
        options,
        client: client.key,
        by_target,
        listener: Arc::new(listener),
        sessions: &sessions,
        policed: police(service, client.key.ip(), plane).map(Arc::new),
    };
    let ended = tokio::select! {
        ended = end_of(client.stream()) => ended,
        ended = association.receive(plane) => ended,
        () = stop.cancelled() => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "stopped")),
    };
    sessions.end().await;
    ended
}

/// Opens a socket at the address that the client has connected to, since that is one it can reach.
fn listen(client: &mut Client) -> io::Result<DatagramListener> {
    let ends = client.ends;
    let local = match (client.stream().own_tcp(), ends) {
        (Some(tcp), _) => tcp.local_addr()?,
        // One of many streams over one connection.
        (None, Some(ends)) => ends.destination,
        (None, None) => return Err(io::Error::other("the connection has no address of its own")),
    };
    DatagramListener::bind(SocketAddr::new(local.ip().to_canonical(), 0))
}

/// Waits until the client ends its connection, on which it has nothing more to say.
async fn end_of(stream: &mut Stream) -> io::Result<()> {
    let mut ignored = [0; 256];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}

/// A client and its socket.
struct Association<'a> {
    service: &'a Arc<Service>,
    options: SessionOptions,
    client: ClientKey,
    /// Whether the hash strategies know a client by its target.
    by_target: bool,
    listener: Arc<DatagramListener>,
    sessions: &'a Arc<Sessions<HostPort>>,
    /// Its connection has limits of its own, of which these datagrams know nothing.
    policed: Option<Arc<Policed>>,
}

impl Association<'_> {
    /// Receives until something is wrong with the socket.
    async fn receive(&self, plane: &Arc<Plane>) -> io::Result<()> {
        let mut buffer = vec![0; LARGEST];
        // The port from which the first one comes; what others send is not the client's.
        let mut from = None;
        loop {
            self.listener.readable().await?;
            for _ in 0..BATCH {
                match self.listener.try_receive(&mut buffer) {
                    Ok((len, sender)) => {
                        if !self.pass(plane, &mut from, (sender, &buffer[..len])) {
                            plane.count_dropped();
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Passes a datagram on; false if it is none of the client's, or goes nowhere.
    fn pass(
        &self,
        plane: &Arc<Plane>,
        from: &mut Option<DatagramClient>,
        (sender, bytes): (DatagramClient, &[u8]),
    ) -> bool {
        let known = from.is_none_or(|from| from == sender);
        if !known || sender.addr.ip().to_canonical() != self.client.ip().to_canonical() {
            return false;
        }
        let Some((target, payload)) = datagram(bytes) else { return false };
        *from = Some(sender);
        if self.policed.as_ref().is_some_and(|policed| !policed.permits(Direction::Input, payload.len())) {
            return false;
        }
        self.sessions.pass(&target, payload, || {
            let header = encode_datagram_header(&target);
            Some(Beginning {
                service: self.service.clone(),
                options: self.options,
                target: Some(target.clone()),
                address: sender.addr,
                client: if self.by_target { self.client.named(&target.to_string()) } else { self.client },
                is_client: false,
                announcement: None,
                to: Answers {
                    header,
                    client: self.listener.answers(sender),
                    policed: self.policed.clone(),
                    plane: plane.clone(),
                },
            })
        });
        true
    }
}

/// Puts before an answer where it comes from, as the client knows it.
struct Answers {
    header: Vec<u8>,
    client: ToClient,
    policed: Option<Arc<Policed>>,
    plane: Arc<Plane>,
}

impl Deliver for Answers {
    fn try_deliver(&self, datagram: &[u8]) -> io::Result<()> {
        let Some(policed) = &self.policed else { return self.send(datagram) };
        if !policed.permits(Direction::Output, datagram.len()) {
            self.plane.count_dropped();
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let outcome = self.send(datagram);
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            policed.give_back(Direction::Output, datagram.len());
        }
        outcome
    }

    fn room(&self) -> impl Future<Output = io::Result<()>> + Send {
        self.client.room()
    }
}

impl Answers {
    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.client.try_deliver(&[&self.header, datagram].concat())
    }
}
