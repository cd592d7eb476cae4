//! Accepts connections and hands each to what the service is at that moment.

use super::connection::{self, Accepting};
use super::plane::Plane;
use super::refused::RefusedBy;
use super::{Service, Transport, udp};
use crate::datagram::listener::DatagramListener;
use crate::net::ListenAddress;
use arc_swap::ArcSwap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Pause after a failed accept: files are scarce, and asking at once does not change that.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// It doubles up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A socket on which a service is going to listen.
#[derive(Debug)]
pub enum Bound {
    /// For connections.
    Connections(TcpListener),
    /// For datagrams.
    Datagrams(DatagramListener),
}

impl Bound {
    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        match self {
            Bound::Connections(listener) => listener.local_addr(),
            Bound::Datagrams(socket) => socket.local_addr(),
        }
    }
}

impl Service {
    /// Whether it listens for datagrams. Their ports are others than those for connections.
    pub fn takes_datagrams(&self) -> bool {
        matches!(self.transport, Transport::Udp(_))
    }

    /// Opens what this service listens on.
    pub async fn bind(&self, address: &ListenAddress) -> std::io::Result<Bound> {
        address.open(|address| self.bind_at(address)).await
    }

    /// Opens what this service listens on at exactly this address.
    pub fn bind_at(&self, address: SocketAddr) -> std::io::Result<Bound> {
        if self.takes_datagrams() {
            DatagramListener::bind(address).map(Bound::Datagrams)
        } else {
            crate::net::listen_on(address).map(Bound::Connections)
        }
    }
}

/// A running accept loop; ends when this is dropped.
pub struct Listening {
    /// Where it listens, with the real port.
    pub local: SocketAddr,
    stop: DropGuard,
    ended: JoinHandle<()>,
}

impl Listening {
    /// Starts accepting. `connections` ends those that were accepted.
    pub fn start(
        bound: Bound,
        service: Arc<ArcSwap<Service>>,
        connections: CancellationToken,
        plane: &Arc<Plane>,
    ) -> std::io::Result<Self> {
        let local = bound.local_addr()?;
        let stop = plane.stop.child_token();
        let (plane, closed) = (plane.clone(), stop.clone());
        let tracker = plane.tracker.clone();
        let ended = match bound {
            Bound::Connections(listener) => {
                let accepting = Accepting { service, plane, closed, stop: connections };
                tracker.spawn(accept(listener, Arc::new(accepting)))
            }
            Bound::Datagrams(socket) => {
                tracker.spawn(udp::receive(socket, service, closed, connections, plane))
            }
        };
        Ok(Self { local, stop: stop.drop_guard(), ended })
    }

    /// Stops accepting; afterwards the port is free. Connections go on, sessions of datagrams end: they have no other
    /// socket for their answers.
    pub async fn close(self) {
        drop(self.stop);
        if let Err(error) = self.ended.await {
            tracing::error!(%error, "accept loop ended badly");
        }
    }
}

async fn accept(listener: TcpListener, accepting: Arc<Accepting>) {
    let Accepting { service, closed: stop, .. } = &*accepting;
    let mut pause = FIRST_PAUSE;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (tcp, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(service = service.load().name, %error, "accept failed");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
        };
        pause = FIRST_PAUSE;
        let Some(slot) = slot(&accepting.service.load(), peer, &accepting.plane) else {
            crate::net::reset_on_close(&tcp);
            continue;
        };
        let (accepting, tracker) = (accepting.clone(), accepting.plane.tracker.clone());
        tracker.spawn(async move {
            connection::serve(&accepting, tcp, peer).await;
            drop(slot);
        });
    }
}

/// Room for one more connection, if there is any.
pub(super) fn slot(service: &Service, client: SocketAddr, plane: &Plane) -> Option<OwnedSemaphorePermit> {
    let slot = plane.slots.clone().try_acquire_owned().ok();
    if slot.is_none() {
        service.refuse(RefusedBy::Room, client.ip(), &"too many connections", plane);
    }
    slot
}
