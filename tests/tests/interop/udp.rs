//! Datagrams through the relay protocol and through SOCKS5, both roles.

use crate::address::{self, exit_ip};
use crate::node::{self, Node, PATIENCE, Product, chain, credentials};
use crate::talk;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::env;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tests::{clock, rig::eventually};
use tokio::net::UdpSocket;

/// A session ends when it was idle for this long; much longer than between two datagrams of it, also on a busy machine.
const TTL: Duration = Duration::from_secs(3);
const PACE: Duration = Duration::from_millis(100);
/// GOST's listener reads up to 4096 bytes.
const SIZES: [usize; 6] = [1, 2, 100, 1200, 1472, 4000];

/// For how long a session is kept busy: several times its ttl.
fn session_time() -> Duration {
    let seconds = env::var("EXITPILOT_INTEROP_UDP_SECONDS");
    seconds.map_or(TTL * 3, |text| Duration::from_secs(text.parse().expect("EXITPILOT_INTEROP_UDP_SECONDS")))
}

/// Sends datagrams back and remembers from where they came.
struct Echo {
    addr: SocketAddr,
    peers: Arc<Mutex<BTreeSet<SocketAddr>>>,
}

impl Echo {
    async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addr = socket.local_addr().unwrap();
        let peers: Arc<Mutex<BTreeSet<SocketAddr>>> = Arc::default();
        let seen = peers.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; 65536];
            loop {
                let (length, peer) = socket.recv_from(&mut buffer).await.unwrap();
                seen.lock().unwrap_or_else(PoisonError::into_inner).insert(peer);
                socket.send_to(&buffer[..length], peer).await.unwrap();
            }
        });
        Self { addr, peers }
    }

    fn peers(&self) -> BTreeSet<SocketAddr> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Tunnel {
    entry: Node,
    _exit: Node,
    target: Echo,
    addr: SocketAddr,
}

/// What is spoken between entry and exit.
#[derive(Clone, Copy)]
enum Speak {
    Relay {
        nodelay: bool,
    },
    /// GOST's command for datagrams on the connection.
    Socks5,
}

impl Speak {
    /// What the exit does, and how it is asked.
    fn both(self) -> (Value, Value) {
        match self {
            Speak::Relay { nodelay } => {
                let metadata = if nodelay { json!({ "nodelay": true }) } else { json!({}) };
                let relay = json!({ "type": "relay", "auth": credentials(), "metadata": metadata });
                (relay.clone(), relay)
            }
            Speak::Socks5 => {
                // Methods with TLS inside, which GOST's side offers and takes first, are not ours.
                let client = json!({ "type": "socks5", "auth": credentials() });
                let metadata = json!({ "udp": true });
                (json!({ "type": "socks5", "auth": credentials(), "metadata": metadata }), client)
            }
        }
    }
}

async fn tunnel(entry: Product, exit: Product, transport: &str, speak: Speak) -> Option<Tunnel> {
    let target = Echo::start().await;
    let (handler, connector) = speak.both();
    let (service, exit_addr) = node::exit(handler, transport, exit_ip(1));
    let exit = Node::start(exit, "exit", &json!({ "services": [service] })).await?;
    let addr = address::fresh();
    let node = json!({
        "name": "exit", "addr": exit_addr.to_string(), "connector": connector, "dialer": { "type": transport },
    });
    let service = json!({
        "name": "datagrams", "addr": addr.to_string(),
        "handler": { "type": "udp", "chain": "exits" },
        "listener": { "type": "udp", "metadata": { "keepalive": true, "ttl": format!("{}s", TTL.as_secs()) } },
        "forwarder": { "nodes": [{ "name": "target", "addr": target.addr.to_string() }] },
    });
    let document = json!({ "services": [service], "chains": [chain(&[node])] });
    let entry = Node::start(entry, "entry", &document).await?;
    Some(Tunnel { entry, _exit: exit, target, addr })
}

/// Sends one and waits for it to come back; another that comes back late is none.
async fn echo(socket: &UdpSocket, datagram: &[u8], limit: Duration) -> Result<(), String> {
    socket.send(datagram).await.map_err(|error| error.to_string())?;
    let mut buffer = vec![0; 65536];
    let answer = async {
        loop {
            let length = socket.recv(&mut buffer).await.map_err(|error| error.to_string())?;
            if buffer[..length] == *datagram {
                return Ok(());
            }
        }
    };
    tokio::time::timeout(limit, answer)
        .await
        .unwrap_or_else(|_| Err(format!("{} bytes lost", datagram.len())))
}

async fn row(entry: Product, exit: Product, transport: &str, speak: Speak) {
    let Some(tunnel) = tunnel(entry, exit, transport, speak).await else { return };
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    client.connect(tunnel.addr).await.unwrap();
    // The first ones may be too early, or find nobody listening yet.
    let ready = eventually("datagrams come back", PATIENCE, async || {
        echo(&client, b"are you there?", Duration::from_secs(2)).await.map_err(anyhow::Error::msg)
    });
    ready.await.unwrap_or_else(|error| panic!("{error:#}:\n{}", tunnel.entry.process.log().tail(20)));

    // A socket of its own: whoever asked before may have had more than one session.
    let before = tunnel.target.peers();
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    client.connect(tunnel.addr).await.unwrap();
    for (n, size) in SIZES.into_iter().enumerate() {
        echo(&client, &talk::random(n as u64, size), PATIENCE).await.unwrap();
    }
    let (start, mut sent, mut pace) = (clock::now(), 0u64, tokio::time::interval(PACE));
    while start.elapsed() < session_time() {
        pace.tick().await;
        echo(&client, &sent.to_be_bytes(), PATIENCE).await.unwrap();
        sent += 1;
    }
    let mine: Vec<SocketAddr> = tunnel.target.peers().difference(&before).copied().collect();
    assert_eq!(mine.len(), 1, "one session from its first to its last datagram: {mine:?}");
    let peers = tunnel.target.peers();
    assert!(peers.iter().all(|peer| peer.ip() == exit_ip(1)), "past the exit: {peers:?}");
    println!("{transport}: a session of {:.0} s, {sent} datagrams, none lost", start.elapsed().as_secs_f64());
}

macro_rules! rows {
    ($($name:ident)*) => { $(
        mod $name {
            use super::*;

            const TRANSPORT: &str = stringify!($name);

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn our_entry_to_gost() {
                row(Product::Ours, Product::Gost, TRANSPORT, Speak::Relay { nodelay: false }).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn our_entry_to_gost_with_nodelay_in_both() {
                row(Product::Ours, Product::Gost, TRANSPORT, Speak::Relay { nodelay: true }).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn gost_entry_to_ours() {
                row(Product::Gost, Product::Ours, TRANSPORT, Speak::Relay { nodelay: false }).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn gost_entry_to_ours_with_nodelay_in_both() {
                row(Product::Gost, Product::Ours, TRANSPORT, Speak::Relay { nodelay: true }).await;
            }
        }
    )* };
}

rows! { tcp tls ws wss mtcp mtls mwss }

mod socks5 {
    use super::*;

    macro_rules! rows {
        ($($name:ident)*) => { $(
            mod $name {
                use super::*;

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn our_entry_to_gost() {
                    row(Product::Ours, Product::Gost, stringify!($name), Speak::Socks5).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn gost_entry_to_ours() {
                    row(Product::Gost, Product::Ours, stringify!($name), Speak::Socks5).await;
                }
            }
        )* };
    }

    rows! { tcp tls }
}
