//! Targets, clients and services for datagrams.

use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use shared::gost::GostConfig;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::net::UdpSocket;

/// The largest payload that fits into a datagram of IPv4.
pub(crate) const LARGEST: usize = 65_507;

/// From where, and what.
type Seen = (SocketAddr, Vec<u8>);

/// A server that sends every datagram back, and knows from where they came.
pub(crate) struct UdpTarget {
    pub(crate) addr: SocketAddr,
    pub(crate) socket: Arc<UdpSocket>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl UdpTarget {
    pub(crate) async fn start() -> Self {
        Self::answering(|datagram| Some(datagram.to_vec())).await
    }

    /// A server that never answers.
    pub(crate) async fn mute() -> Self {
        Self::answering(|_| None).await
    }

    async fn answering(answer: fn(&[u8]) -> Option<Vec<u8>>) -> Self {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let addr = socket.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (server, log) = (socket.clone(), seen.clone());
        tokio::spawn(async move {
            let mut buffer = vec![0; 65_536];
            loop {
                let (len, peer) = server.recv_from(&mut buffer).await.unwrap();
                log.lock().unwrap().push((peer, buffer[..len].to_vec()));
                if let Some(answer) = answer(&buffer[..len]) {
                    server.send_to(&answer, peer).await.unwrap();
                }
            }
        });
        Self { addr, socket, seen }
    }

    /// All datagrams so far.
    pub(crate) fn seen(&self) -> Vec<Vec<u8>> {
        self.seen.lock().unwrap().iter().map(|(_, datagram)| datagram.clone()).collect()
    }

    /// Where datagrams came from, each address and port once, in order of appearance.
    pub(crate) fn peers(&self) -> Vec<SocketAddr> {
        let mut peers: Vec<SocketAddr> = Vec::new();
        for (peer, _) in self.seen.lock().unwrap().iter() {
            if !peers.contains(peer) {
                peers.push(*peer);
            }
        }
        peers
    }

    /// As [`UdpTarget::peers`], without ports.
    pub(crate) fn peer_ips(&self) -> Vec<IpAddr> {
        self.peers().iter().map(SocketAddr::ip).collect()
    }

    /// Nothing came but through exits: the entry itself would have sent from 127.0.0.1.
    pub(crate) fn assert_only_exits_sent(&self) {
        assert!(!self.peer_ips().contains(&IpAddr::from([127, 0, 0, 1])), "a datagram came directly");
    }
}

/// A client with a socket of its own.
pub(crate) struct UdpClient(pub(crate) UdpSocket);

impl UdpClient {
    pub(crate) async fn of(service: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(service).await.unwrap();
        Self(socket)
    }

    pub(crate) async fn send(&self, datagram: &[u8]) {
        self.0.send(datagram).await.unwrap();
    }

    pub(crate) async fn receive(&self) -> Vec<u8> {
        let mut buffer = vec![0; 65_536];
        let len = soon(self.0.recv(&mut buffer)).await.unwrap();
        buffer.truncate(len);
        buffer
    }

    /// A datagram goes and comes back.
    pub(crate) async fn echo(&self, datagram: &[u8]) {
        self.send(datagram).await;
        assert!(self.receive().await == datagram, "not what was sent");
    }
}

/// A forward of datagrams to these targets; through the chain `c`, if there is one in `more`, which is merged in. `null` as
/// the listener's metadata leaves it out.
pub(crate) fn udp_forward(name: &str, targets: &[SocketAddr], more: Value) -> Value {
    let nodes: Vec<_> = targets
        .iter()
        .enumerate()
        .map(|(i, target)| json!({"name": format!("node_{}", i + 1), "addr": target.to_string()}))
        .collect();
    let mut config = json!({
        "name": name, "addr": "127.0.0.1:0", "handler": {"type": "udp"},
        "listener": {"type": "udp", "metadata": {"keepAlive": true, "ttl": "30s"}},
        "forwarder": {"nodes": nodes, "selector": {"strategy": "fifo", "maxFails": 1, "failTimeout": "600s"}}
    });
    merge(&mut config, more);
    if config["listener"]["metadata"].is_null() {
        config["listener"] = json!({"type": config["listener"]["type"]});
    }
    config
}

/// A runtime with the forward `u`, and where it listens.
pub(crate) struct UdpEntry {
    pub(crate) runtime: Runtime,
    pub(crate) addr: SocketAddr,
}

impl UdpEntry {
    /// Without a chain.
    pub(crate) async fn direct(targets: &[SocketAddr], more: Value) -> Self {
        Self::in_runtime(Runtime::new(RuntimeOptions::default()), targets, more).await
    }

    /// Through the chain `c` of these nodes, in fifo order.
    pub(crate) async fn through(nodes: &[Value], target: SocketAddr) -> Self {
        Self::with(RuntimeOptions::default(), nodes, target).await
    }

    pub(crate) async fn with(options: RuntimeOptions, nodes: &[Value], target: SocketAddr) -> Self {
        let runtime = Runtime::new(options);
        runtime.apply(Change::AddChain(fifo(nodes))).await.unwrap();
        Self::in_runtime(runtime, &[target], json!({"handler": {"chain": "c"}})).await
    }

    pub(crate) async fn in_runtime(runtime: Runtime, targets: &[SocketAddr], more: Value) -> Self {
        let config = udp_forward("u", targets, more);
        runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
        let addr = runtime.listening("u").unwrap();
        Self { runtime, addr }
    }

    pub(crate) async fn client(&self) -> UdpClient {
        UdpClient::of(self.addr).await
    }
}

/// A runtime that has loaded these services.
pub(crate) async fn loaded(services: &[Value]) -> Runtime {
    let document: GostConfig = serde_json::from_value(json!({"services": services, "chains": []})).unwrap();
    let runtime = Runtime::new(RuntimeOptions::default());
    runtime.apply(Change::Load(document)).await.unwrap();
    runtime
}

/// Time that stands still but for [`Frozen::pass`], in a test with a paused clock: sockets work all the same. Flows again
/// when this is dropped, and after half a minute, so that a test which waits in vain ends.
pub(crate) struct Frozen(#[expect(dead_code, reason = "held to its end")] mpsc::Sender<()>);

impl Frozen {
    pub(crate) fn start() -> Self {
        let (sender, held) = mpsc::channel::<()>();
        // A paused clock does not jump while a blocking task runs.
        tokio::task::spawn_blocking(move || held.recv_timeout(LONG));
        Self(sender)
    }

    /// Time passes, and everything due then happens.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::advance(time).await;
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
}
