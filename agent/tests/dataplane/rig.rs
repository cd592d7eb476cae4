//! Entries, exits and targets on loopback.

use agent::runtime::{Change, Deadlines, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use shared::gost::{ChainConfig, ServiceConfig};
use shared::link::ChainNodeReport;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// For what should take no time at all, on a machine that is busy with other things.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.expect("took too long")
}

/// Waits until something becomes true.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(LONG, waited).await.is_ok(), "never happened: {what}");
}

/// Stages that fail after half a second instead of seconds.
pub(crate) fn impatient() -> RuntimeOptions {
    let stage = Duration::from_millis(500);
    let deadlines =
        Deadlines { connect: stage, handshake: stage, relay_status: stage, ..Deadlines::default() };
    RuntimeOptions { deadlines, ..RuntimeOptions::default() }
}

pub(crate) fn service(value: Value) -> ServiceConfig {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn chain(value: Value) -> ChainConfig {
    serde_json::from_value(value).unwrap()
}

// Targets

/// A server that knows from which addresses it was connected to.
pub(crate) struct Target {
    pub(crate) addr: SocketAddr,
    peers: Arc<Mutex<Vec<IpAddr>>>,
}

/// What a target does with a connection.
#[derive(Clone, Copy)]
pub(crate) enum Does {
    /// Sends back what it gets until the end.
    Echo,
    /// Says `hello` first, then echoes.
    SpeakFirst,
    /// Reads to the end, then answers with the number of bytes.
    CountThenAnswer,
    /// Reads one byte, then resets.
    Reset,
}

impl Target {
    pub(crate) async fn start(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let peers: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
        let seen = peers.clone();
        tokio::spawn(async move {
            loop {
                let (stream, peer) = listener.accept().await.unwrap();
                seen.lock().unwrap().push(peer.ip());
                tokio::spawn(async move {
                    let _ = does.with(stream).await;
                });
            }
        });
        Self { addr, peers }
    }

    /// The addresses it was connected to from.
    pub(crate) fn peers(&self) -> Vec<IpAddr> {
        self.peers.lock().unwrap().clone()
    }

    /// Nobody came but through exits: the entry itself would have come from 127.0.0.1.
    pub(crate) fn assert_only_exits_came(&self) {
        for peer in self.peers() {
            assert_ne!(peer, IpAddr::from([127, 0, 0, 1]), "a connection came directly");
        }
    }
}

impl Does {
    async fn with(self, mut stream: TcpStream) -> io::Result<()> {
        match self {
            Does::SpeakFirst => stream.write_all(b"hello").await?,
            Does::Echo => {}
            Does::CountThenAnswer => {
                let mut all = Vec::new();
                stream.read_to_end(&mut all).await?;
                stream.write_all(all.len().to_string().as_bytes()).await?;
                return stream.shutdown().await;
            }
            Does::Reset => {
                stream.read_u8().await?;
                return socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            }
        }
        let (mut read, mut write) = stream.split();
        tokio::io::copy(&mut read, &mut write).await?;
        write.shutdown().await
    }
}

// Exits

/// A relay service of its own runtime. It dials from an address by which targets recognise it.
pub(crate) struct Exit {
    pub(crate) runtime: Runtime,
    pub(crate) addr: SocketAddr,
    /// From where its connections come.
    pub(crate) from: IpAddr,
}

impl Exit {
    /// `number` 1 to 254 makes the address it dials from.
    pub(crate) async fn start(number: u8, listener: &str) -> Self {
        Self::with(number, listener, json!({"type": "relay"})).await
    }

    pub(crate) async fn with(number: u8, listener: &str, handler: Value) -> Self {
        let runtime = Runtime::new(RuntimeOptions::default());
        Self::in_runtime(runtime, number, listener, handler).await
    }

    pub(crate) async fn in_runtime(runtime: Runtime, number: u8, listener: &str, handler: Value) -> Self {
        let from = IpAddr::from([127, 0, 1, number]);
        let config = json!({
            "name": "exit", "addr": "127.0.0.1:0", "handler": handler, "listener": {"type": listener},
            "metadata": {"interface": from.to_string()}
        });
        runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
        let addr = runtime.listening("exit").unwrap();
        Self { runtime, addr, from }
    }

    /// A chain node that leads here.
    pub(crate) fn node(&self, name: &str, dialer: &str) -> Value {
        node(name, self.addr, dialer)
    }
}

/// A relay node that waits for the answer, as our panel writes it.
pub(crate) fn node(name: &str, addr: SocketAddr, dialer: &str) -> Value {
    json!({
        "name": name, "addr": addr.to_string(), "dialer": {"type": dialer},
        "connector": {"type": "relay", "metadata": {"nodelay": true}}
    })
}

/// An address where connecting is refused, for as long as the socket lives.
pub(crate) fn refusing() -> (SocketAddr, TcpSocket) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    (socket.local_addr().unwrap(), socket)
}

/// A server that accepts, reads and never says anything. Also tells how many came.
pub(crate) async fn mute() -> (SocketAddr, Arc<AtomicUsize>) {
    scripted(|mut stream| async move {
        let mut sink = [0; 1024];
        while stream.read(&mut sink).await.is_ok_and(|n| n > 0) {}
    })
    .await
}

/// A server that answers relay requests with this status byte, and closes.
pub(crate) async fn answering(status: u8) -> (SocketAddr, Arc<AtomicUsize>) {
    scripted(move |mut stream| async move {
        if read_relay_request(&mut stream).await.is_ok() {
            let _ = stream.write_all(&[1, status, 0, 0]).await;
            let _ = stream.shutdown().await;
            let _ = stream.read(&mut [0; 64]).await;
        }
    })
    .await
}

/// A server that does this with each connection. Also tells how many came.
pub(crate) async fn scripted<F, Fut>(script: F) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Fn(TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let count: Arc<AtomicUsize> = Arc::default();
    let counter = count.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(script(stream));
        }
    });
    (addr, count)
}

/// Reads a relay request and returns its features.
pub(crate) async fn read_relay_request(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await?;
    assert_eq!(header[..2], [1, 1], "not a relay connect request");
    let mut features = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]]))];
    stream.read_exact(&mut features).await?;
    Ok(features)
}

// Entries

/// A forward through the chain `c`, in a runtime of its own.
pub(crate) struct Entry {
    pub(crate) runtime: Runtime,
    pub(crate) addr: SocketAddr,
}

impl Entry {
    /// With the chain given, in fifo order.
    pub(crate) async fn start(nodes: &[Value], target: SocketAddr) -> Self {
        Self::with(RuntimeOptions::default(), nodes, target, json!({})).await
    }

    /// `more` is merged into the service.
    pub(crate) async fn with(
        options: RuntimeOptions,
        nodes: &[Value],
        target: SocketAddr,
        more: Value,
    ) -> Self {
        let runtime = Runtime::new(options);
        runtime.apply(Change::AddChain(fifo(nodes))).await.unwrap();
        Self::in_runtime(runtime, target, more).await
    }

    /// Without making a chain.
    pub(crate) async fn in_runtime(runtime: Runtime, target: SocketAddr, more: Value) -> Self {
        let config = merged_forward(target, more);
        runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
        let addr = runtime.listening("f").unwrap();
        Self { runtime, addr }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        soon(TcpStream::connect(self.addr)).await.unwrap()
    }

    /// One connection: `ping` goes and comes back.
    pub(crate) async fn echo(&self) -> io::Result<()> {
        echo(self.addr).await
    }

    pub(crate) fn nodes(&self) -> Vec<ChainNodeReport> {
        self.runtime.report().chains.into_iter().next().unwrap().nodes
    }

    /// Names of the nodes that are left out.
    pub(crate) fn marked(&self) -> Vec<String> {
        self.nodes().into_iter().filter(|node| node.marked).map(|node| node.name).collect()
    }
}

/// `ping` goes and comes back.
pub(crate) async fn echo(addr: SocketAddr) -> io::Result<()> {
    soon(async {
        let mut stream = TcpStream::connect(addr).await?;
        stream.write_all(b"ping").await?;
        let mut back = [0; 4];
        stream.read_exact(&mut back).await?;
        assert_eq!(&back, b"ping");
        Ok(())
    })
    .await
}

/// A forward to one target through the chain `c`.
pub(crate) fn forward(name: &str, target: SocketAddr) -> Value {
    json!({
        "name": name, "addr": "127.0.0.1:0",
        "handler": {"type": "tcp", "chain": "c"}, "listener": {"type": "tcp"},
        "forwarder": {"nodes": [{"name": "node_1", "addr": target.to_string()}]}
    })
}

/// A forward to one target through the chain `c`, with `more` merged into it.
pub(crate) fn merged_forward(target: SocketAddr, more: Value) -> Value {
    let mut config = forward("f", target);
    merge(&mut config, more);
    config
}

/// The chain `c` with one hop of these nodes.
pub(crate) fn fifo(nodes: &[Value]) -> ChainConfig {
    let selector = json!({"strategy": "fifo", "maxFails": 1, "failTimeout": "600s"});
    chain(json!({"name": "c", "hops": [{"name": "hop_1", "selector": selector, "nodes": nodes}]}))
}

pub(crate) fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// A flag that tests wait for.
#[derive(Clone, Default)]
pub(crate) struct Flag(Arc<AtomicBool>);

impl Flag {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_up(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A reproducible stream of bytes, and its checksum as it goes by.
struct Noise(u64);

impl Noise {
    fn fill(&mut self, block: &mut [u8]) {
        for eight in block.chunks_mut(8) {
            // xorshift64: any sequence without period in sight will do.
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            eight.copy_from_slice(&self.0.to_le_bytes()[..eight.len()]);
        }
    }
}

/// Sends so many bytes to an echo and checks what comes back, both at once.
pub(crate) async fn there_and_back(stream: TcpStream, total: usize) {
    const BLOCK: usize = 256 * 1024;
    let (mut read, mut write) = stream.into_split();
    let sending = tokio::spawn(async move {
        let (mut noise, mut block, mut sum) = (Noise(42), vec![0; BLOCK], crc32fast::Hasher::new());
        for _ in 0..total / BLOCK {
            noise.fill(&mut block);
            sum.update(&block);
            write.write_all(&block).await.unwrap();
        }
        write.shutdown().await.unwrap();
        sum.finalize()
    });
    let (mut block, mut sum, mut got) = (vec![0; BLOCK], crc32fast::Hasher::new(), 0);
    let receiving = async {
        loop {
            let n = read.read(&mut block).await.unwrap();
            if n == 0 {
                break;
            }
            sum.update(&block[..n]);
            got += n;
        }
    };
    tokio::time::timeout(LONG * 4, receiving).await.unwrap();
    assert_eq!(got, total);
    assert_eq!(sum.finalize(), sending.await.unwrap());
}
