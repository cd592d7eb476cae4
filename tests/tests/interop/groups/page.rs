//! The page that groups fetch in their tests. What it answers depends on who asks.

use anyhow::Result;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tests::rig::Place;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Ends when dropped.
pub(super) struct Page {
    address: SocketAddr,
    _stop: DropGuard,
}

impl Page {
    /// Answers every request with the status of the address it came from, and 404 to others.
    pub(super) fn start(place: &Place, statuses: BTreeMap<IpAddr, u16>) -> Result<Self> {
        let listener = place.listen(0)?;
        let address = place.addr(listener.local_addr()?.port());
        let stop = CancellationToken::new();
        tokio::spawn(stop.clone().run_until_cancelled_owned(serve(listener, Arc::new(statuses))));
        Ok(Self { address, _stop: stop.drop_guard() })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn serve(listener: TcpListener, statuses: Arc<BTreeMap<IpAddr, u16>>) {
    while let Ok((stream, peer)) = listener.accept().await {
        let status = statuses.get(&peer.ip()).copied().unwrap_or(404);
        // What goes wrong here is seen by who asked.
        tokio::spawn(answer(stream, status));
    }
}

async fn answer(mut stream: TcpStream, status: u16) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let answer = format!("HTTP/1.1 {status} As It Is\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
