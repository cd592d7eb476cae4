//! Clients of proxies, written byte by byte, and origin servers that show what they got.

use crate::rig::*;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A SOCKS5 request for a connection.
pub(crate) fn socks5_request(target: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0];
    match target.ip() {
        std::net::IpAddr::V4(ip) => {
            bytes.push(1);
            bytes.extend(ip.octets());
        }
        std::net::IpAddr::V6(ip) => {
            bytes.push(4);
            bytes.extend(ip.octets());
        }
    }
    bytes.extend(target.port().to_be_bytes());
    bytes
}

/// Greets without credentials, sends the request, and returns the connection and the code of the reply.
pub(crate) async fn socks5(proxy: SocketAddr, request: &[u8]) -> io::Result<(TcpStream, u8)> {
    soon(async {
        let mut stream = TcpStream::connect(proxy).await?;
        stream.write_all(&[5, 1, 0]).await?;
        let mut choice = [0; 2];
        stream.read_exact(&mut choice).await?;
        assert_eq!(choice, [5, 0]);
        stream.write_all(request).await?;
        let mut reply = [0; 10];
        stream.read_exact(&mut reply).await?;
        assert_eq!((reply[0], &reply[2..]), (5, &[0, 1, 0, 0, 0, 0, 0, 0][..]));
        Ok((stream, reply[1]))
    })
    .await
}

/// Sends this and returns the connection and the head of the answer, without what follows it.
pub(crate) async fn http(proxy: SocketAddr, request: &str) -> io::Result<(TcpStream, String)> {
    soon(async {
        let mut stream = TcpStream::connect(proxy).await?;
        stream.write_all(request.as_bytes()).await?;
        let head = read_head(&mut stream).await?;
        Ok((stream, head))
    })
    .await
}

/// Reads up to the first empty line.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(head).unwrap())
}

/// Sends this and returns everything that comes back until the end.
pub(crate) async fn http_all(proxy: SocketAddr, request: &str) -> io::Result<String> {
    soon(async {
        let mut stream = TcpStream::connect(proxy).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut all = String::new();
        stream.read_to_string(&mut all).await?;
        Ok(all)
    })
    .await
}

/// `ping` goes and comes back.
pub(crate) async fn ping(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    soon(async {
        stream.write_all(b"ping").await.unwrap();
        let mut back = [0; 4];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"ping");
    })
    .await;
}

/// Sends bytes that differ from block to block through something that echoes, while they come back.
pub(crate) async fn echo_much(stream: TcpStream, bytes: usize) {
    let block = |i: usize| ((i * 31) as u32).to_le_bytes().repeat(4096);
    let blocks = bytes / block(0).len();
    let (mut read, mut write) = stream.into_split();
    let sending = tokio::spawn(async move {
        for i in 0..blocks {
            write.write_all(&block(i)).await.unwrap();
        }
        write.shutdown().await.unwrap();
    });
    let mut there = vec![0; block(0).len()];
    for i in 0..blocks {
        soon(read.read_exact(&mut there)).await.unwrap();
        assert!(there == block(i), "block {i} is another one");
    }
    assert_eq!(soon(read.read(&mut there)).await.unwrap(), 0);
    sending.await.unwrap();
}

/// An HTTP server that takes one connection after another, keeps all it was sent, and answers the head of the first
/// request with the same bytes every time, at once. Then it keeps reading, without hanging up unless it is told to.
pub(crate) struct Origin {
    pub(crate) addr: SocketAddr,
    got: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    pub(crate) async fn start(answer: &'static str, hangs_up: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let got: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = got.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let index = seen.lock().unwrap().len();
                seen.lock().unwrap().push(String::new());
                let seen = seen.clone();
                tokio::spawn(async move {
                    let Ok(head) = read_head(&mut stream).await else { return };
                    seen.lock().unwrap()[index].push_str(&head);
                    let _ = stream.write_all(answer.as_bytes()).await;
                    if hangs_up {
                        return;
                    }
                    let mut more = [0; 4096];
                    while let Ok(n @ 1..) = stream.read(&mut more).await {
                        seen.lock().unwrap()[index].push_str(&String::from_utf8_lossy(&more[..n]));
                    }
                });
            }
        });
        Self { addr, got }
    }

    /// What came, per connection.
    pub(crate) fn got(&self) -> Vec<String> {
        self.got.lock().unwrap().clone()
    }
}

/// A proxy on this machine that dials directly, from an address of its own.
pub(crate) async fn proxy(kind: &str) -> Exit {
    Exit::with(1, "tcp", json!({"type": kind})).await
}

/// One that wants `user` and `pass`.
pub(crate) async fn strict(kind: &str) -> Exit {
    Exit::with(1, "tcp", json!({"type": kind, "auth": {"username": "user", "password": "pass"}})).await
}

/// A proxy whose way is the chain `c` with one hop of these nodes.
pub(crate) async fn chained(kind: &str, nodes: &[Value]) -> Entry {
    let more = json!({"handler": {"type": kind}, "forwarder": null});
    let unused = SocketAddr::from(([127, 0, 0, 1], 1));
    Entry::with(agent::runtime::RuntimeOptions::default(), nodes, unused, more).await
}
