//! The far end, in a process of its own: its sockets would not fit into the load's limit on open files.

use anyhow::Result;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

/// As many as may come at once when an exit has died: of further ones the kernel forgets the last step of their handshake, and
/// they take themselves for connected.
const BACKLOG: u32 = 4096;
const BLOCK_BYTES: usize = 4096;

/// Serves TCP and UDP there until it is killed: says first by the last octet of its address who came, then sends back
/// what it gets.
pub(crate) fn serve(addr: SocketAddr) -> Result<bool> {
    super::super::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let datagrams = UdpSocket::bind(addr).await?;
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(addr)?;
        let listener = socket.listen(BACKLOG)?;
        tokio::spawn(async move {
            let mut datagram = [0; 2048];
            loop {
                // An error here is a peer that has gone.
                if let Ok((bytes, peer)) = datagrams.recv_from(&mut datagram).await {
                    let _ = datagrams.send_to(&datagram[..bytes], peer).await;
                }
            }
        });
        loop {
            let (stream, peer) = listener.accept().await?;
            tokio::spawn(answer(stream, peer));
        }
    })
}

async fn answer(mut stream: TcpStream, peer: SocketAddr) -> std::io::Result<()> {
    let SocketAddr::V4(peer) = peer else { return Ok(()) };
    stream.set_nodelay(true)?;
    stream.write_all(&[peer.ip().octets()[3]]).await?;
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let read = stream.read(&mut block).await?;
        if read == 0 {
            return Ok(());
        }
        stream.write_all(&block[..read]).await?;
    }
}
