//! What is behind the exits: a server for each kind of conversation, which knows from where it was connected to.

use crate::talk::{self, FAREWELL, GREETING};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What a web server says.
pub(crate) const HTTP_BODY: &str = "the page that was asked for";

/// What a target does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// Sends back what it gets until the end.
    Echo,
    /// Says [`GREETING`] first, then echoes.
    Greet,
    /// Reads to the end, then answers with the checksum of what came.
    Digest,
    /// Says [`FAREWELL`], ends its direction, reads to the end and keeps the checksum of what came.
    Farewell,
    /// Answers one HTTP request with [`HTTP_BODY`].
    Http,
    /// Sends the bulk while it reads the bulk, then the checksum of what came.
    Bulk,
}

/// One such server. It lives as long as the test.
pub(crate) struct Target {
    pub(crate) addr: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    peers: Vec<IpAddr>,
    digests: Vec<String>,
}

impl Target {
    pub(crate) async fn start(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let target = Self { addr, seen: seen.clone() };
        tokio::spawn(async move {
            loop {
                let (stream, peer) = listener.accept().await.unwrap();
                seen.lock().unwrap_or_else(PoisonError::into_inner).peers.push(peer.ip());
                let seen = seen.clone();
                // What goes wrong here is seen by the client.
                tokio::spawn(async move {
                    let digest = serve(stream, does).await;
                    if let Ok(Some(digest)) = digest {
                        seen.lock().unwrap_or_else(PoisonError::into_inner).digests.push(digest);
                    }
                });
            }
        });
        target
    }

    /// Everybody who came, in order.
    pub(crate) fn peers(&self) -> Vec<IpAddr> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).peers.clone()
    }

    /// The checksums kept by [`Does::Farewell`].
    pub(crate) fn digests(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).digests.clone()
    }

    /// Somebody came, and nobody but through that exit: the entry itself would have come from 127.0.0.1.
    pub(crate) fn assert_reached_only_from(&self, exit: IpAddr) {
        let peers = self.peers();
        assert!(!peers.is_empty(), "nobody came");
        assert!(peers.iter().all(|peer| *peer == exit), "somebody came past {exit}: {peers:?}");
    }
}

async fn serve(mut stream: TcpStream, does: Does) -> io::Result<Option<String>> {
    stream.set_nodelay(true)?;
    match does {
        Does::Greet => stream.write_all(GREETING).await?,
        Does::Echo => {}
        Does::Digest => {
            let digest = talk::digest_to_end(&mut stream).await?;
            stream.write_all(digest.as_bytes()).await?;
            stream.shutdown().await?;
            return Ok(None);
        }
        Does::Farewell => {
            stream.write_all(FAREWELL).await?;
            stream.shutdown().await?;
            return talk::digest_to_end(&mut stream).await.map(Some);
        }
        Does::Http => {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            let length = HTTP_BODY.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{HTTP_BODY}"
            );
            stream.write_all(answer.as_bytes()).await?;
            stream.shutdown().await?;
            return Ok(None);
        }
        Does::Bulk => {
            let (digest, mut stream) =
                talk::exchange_bulk(stream, talk::TARGET_SEED, talk::bulk_bytes()).await?;
            stream.write_all(digest.as_bytes()).await?;
            stream.shutdown().await?;
            // Closing before the client's end has arrived could answer it with a reset and lose the checksum.
            return stream.read(&mut [0]).await.map(|_| None);
        }
    }
    let (mut read, mut write) = stream.split();
    tokio::io::copy(&mut read, &mut write).await?;
    write.shutdown().await?;
    Ok(None)
}
