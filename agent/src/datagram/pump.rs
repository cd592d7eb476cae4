//! Carries datagrams between sockets and framed streams. Each function goes on until its source ends or fails; what a
//! receiver has no room for is dropped, as networks do.

use super::frame::{self, FrameReader};
use super::inbox::Inbox;
use crate::net::within;
use crate::relay::traffic::Traffic;
use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UdpSocket;
use tokio::sync::Notify;

/// How long a stream of datagrams may stand still before it counts as dead.
pub const STILL: Duration = Duration::from_secs(30);
/// The largest payload the length field of UDP has room for.
const LARGEST: usize = 65_535;
/// How long a datagram waits for room in a socket.
const ROOM_PATIENCE: Duration = Duration::from_millis(100);
/// What is written to a stream at once, but for one larger datagram.
const BATCH_BYTES: usize = 32 * 1024;
/// Datagrams taken from a socket before others get their turn.
const BATCH: usize = 64;

thread_local! {
    /// Where a datagram lies between being received and being handed on, which happens without a pause: one per thread
    /// instead of one per session.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; LARGEST].into());
}

/// Where datagrams are handed to.
pub trait Deliver: Send + Sync {
    /// Hands one over. [`io::ErrorKind::WouldBlock`] if there is no room now; any other error concerns this one only.
    fn try_deliver(&self, datagram: &[u8]) -> io::Result<()>;

    /// Waits for room.
    fn room(&self) -> impl Future<Output = io::Result<()>> + Send;
}

/// A target at the other end of a socket of its own.
#[derive(Debug)]
pub struct Peer {
    socket: UdpSocket,
    refused: Notify,
}

impl Peer {
    /// `socket` is connected.
    pub fn new(socket: UdpSocket) -> Self {
        Self { socket, refused: Notify::new() }
    }

    /// Waits until the target's machine says that nobody listens there.
    pub async fn refused(&self) {
        self.refused.notified().await;
    }

    fn note(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            self.refused.notify_one();
        }
    }
}

impl Deliver for Peer {
    fn try_deliver(&self, datagram: &[u8]) -> io::Result<()> {
        match self.socket.try_send(datagram) {
            // What an earlier datagram met; this one has not been sent yet.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.note(&error);
                self.socket.try_send(datagram).map(|_| ())
            }
            outcome => outcome.map(|_| ()),
        }
    }

    fn room(&self) -> impl Future<Output = io::Result<()>> + Send {
        self.socket.writable()
    }
}

/// Counts what is handed to a target.
pub struct Counted<'a, D> {
    /// Takes it.
    pub to: &'a D,
    /// Counts it.
    pub traffic: &'a Traffic,
}

impl<D: Deliver> Deliver for Counted<'_, D> {
    fn try_deliver(&self, datagram: &[u8]) -> io::Result<()> {
        self.to.try_deliver(datagram).inspect(|()| self.traffic.add_up(datagram.len()))
    }

    fn room(&self) -> impl Future<Output = io::Result<()>> + Send {
        self.to.room()
    }
}

/// Hands a datagram over, waiting a moment for room; false if it was dropped.
pub async fn deliver(to: &impl Deliver, datagram: &[u8]) -> bool {
    match to.try_deliver(datagram) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            within(ROOM_PATIENCE, to.room()).await.is_ok() && to.try_deliver(datagram).is_ok()
        }
        Err(_) => false,
    }
}

/// From a stream to wherever. `seen` is told after every batch how many were handed over.
pub async fn frames_to(
    stream: &mut (impl AsyncRead + Unpin),
    mut frames: FrameReader,
    to: &impl Deliver,
    mut seen: impl FnMut(u64),
) -> io::Result<()> {
    loop {
        let mut delivered = 0;
        while let Some(datagram) = frames.take() {
            delivered += u64::from(deliver(to, datagram).await);
        }
        if delivered > 0 {
            seen(delivered);
        }
        if !frames.fill(stream).await? {
            return Ok(());
        }
    }
}

/// From an inbox to a stream.
pub async fn inbox_to_frames(inbox: &Inbox, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let mut frames = Vec::new();
    loop {
        inbox.take(&mut frames).await;
        write(&frames, stream).await?;
        frames.clear();
    }
}

/// From a target to a client's stream. While the stream is full, the kernel keeps, and then drops, what comes.
pub async fn peer_to_frames(
    peer: &Peer,
    stream: &mut (impl AsyncWrite + Unpin),
    traffic: &Traffic,
) -> io::Result<()> {
    let mut frames = Vec::new();
    loop {
        peer.socket.readable().await?;
        let mut bytes = 0;
        receive(peer, |datagram| {
            bytes += datagram.len();
            frame::push(&mut frames, datagram);
            frames.len() < BATCH_BYTES
        })?;
        write(&frames, stream).await?;
        traffic.add_down(bytes);
        frames.clear();
    }
}

/// Writes frames; fails when nothing moves for [`STILL`].
async fn write(frames: &[u8], stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let mut rest = frames;
    while !rest.is_empty() {
        let written = within(STILL, stream.write(rest)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        rest = &rest[written..];
    }
    within(STILL, stream.flush()).await
}

/// From a target to wherever. `seen` is told after every batch how many were handed over.
pub async fn peer_to(peer: &Peer, to: &impl Deliver, mut seen: impl FnMut(u64)) -> io::Result<()> {
    loop {
        peer.socket.readable().await?;
        let (mut delivered, mut held_up) = (0, Vec::new());
        receive(peer, |datagram| match to.try_deliver(datagram) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                held_up.extend_from_slice(datagram);
                false
            }
            outcome => {
                delivered += u64::from(outcome.is_ok());
                true
            }
        })?;
        if !held_up.is_empty() {
            delivered += u64::from(deliver(to, &held_up).await);
        }
        if delivered > 0 {
            seen(delivered);
        }
    }
}

/// Receives what is there, up to a batch, until `take` says no.
fn receive(peer: &Peer, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    SCRATCH.with_borrow_mut(|scratch| {
        for _ in 0..BATCH {
            match peer.socket.try_recv(scratch) {
                Ok(len) => {
                    if !take(&scratch[..len]) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Echoes of datagrams that met nobody, or no way: the next one may.
                Err(error) if is_echo(&error) => peer.note(&error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })
}

fn is_echo(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied)
}
