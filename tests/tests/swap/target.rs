//! The far ends: a target behind each exit, and the one that nobody may reach.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Which exit a connection came from; the first byte that its target sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitName {
    A,
    B,
}

impl ExitName {
    pub(crate) fn tag(self) -> u8 {
        match self {
            Self::A => b'A',
            Self::B => b'B',
        }
    }

    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        [Self::A, Self::B].into_iter().find(|exit| exit.tag() == tag)
    }
}

/// First byte of a client: [`SHORT_BYTES`] follow, and the target ends after their echo. So the closing starts at the
/// target, and the sockets that linger in TIME_WAIT are the accepted ones along the way: none of them holds one of the
/// 28,000 ports from which the next connection has to be dialled.
pub(crate) const SHORT: u8 = b's';
/// First byte of a client: echo until the client ends.
pub(crate) const LONG: u8 = b'l';
/// Payload of a short connection.
pub(crate) const SHORT_BYTES: usize = 64;

/// A listener whose connections are counted and served until it is dropped.
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicU64>,
    _stop: DropGuard,
}

impl Target {
    /// Serves the protocol of this test, as the target behind `exit`; with `None` it hangs up at once.
    pub(crate) async fn start(exit: Option<ExitName>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicU64::new(0));
        let stop = CancellationToken::new();
        let accepting = accept(listener, exit, accepted.clone(), stop.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(accepting));
        Self { address, accepted, _stop: stop.drop_guard() }
    }

    /// How many connections came.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }
}

async fn accept(
    listener: TcpListener,
    exit: Option<ExitName>,
    accepted: Arc<AtomicU64>,
    stop: CancellationToken,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        accepted.fetch_add(1, Ordering::Relaxed);
        if let Some(exit) = exit {
            tokio::spawn(stop.clone().run_until_cancelled_owned(serve(stream, exit)));
        }
    }
}

/// What goes wrong here is seen, and counted, by the client.
async fn serve(mut stream: TcpStream, exit: ExitName) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; 1 + SHORT_BYTES];
    stream.read_exact(&mut request[..1]).await?;
    if request[0] == LONG {
        stream.write_all(&[exit.tag()]).await?;
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await?;
        return to.shutdown().await;
    }
    stream.read_exact(&mut request[1..]).await?;
    request[0] = exit.tag();
    stream.write_all(&request).await?;
    stream.shutdown().await?;
    // Closing before the client's end has arrived would answer it with a reset.
    stream.read(&mut request).await.map(|_| ())
}
