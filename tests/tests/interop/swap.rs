//! The same chain replaced again and again under traffic: by a file and SIGHUP in ours, by `PUT` in GOST's Web API.
//! What each loses or leaks is counted. Ours may lose nothing; GOST's numbers are for the report.

use crate::address;
use crate::node::{self, Node, PATIENCE, Product, chain, credentials};
use base64::Engine as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tests::rig::eventually;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Enough that a gap of microseconds has its chance. A file is reloaded far less often than an API is called.
const RELOADS: usize = 200;
const PUTS: usize = 2000;
const CLIENTS: usize = 8;
const LONG_LIVED: usize = 8;

/// Answers every connection with its letter, then echoes.
async fn lettered(letter: u8) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                stream.set_nodelay(true)?;
                stream.write_all(&[letter]).await?;
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await?;
                write.shutdown().await
            });
        }
    });
    addr
}

/// Connects, says a byte, and reads which exit answers.
async fn ask(entry: SocketAddr) -> std::io::Result<(u8, TcpStream)> {
    let talk = async {
        let mut stream = TcpStream::connect(entry).await?;
        stream.write_all(b"?").await?;
        let letter = stream.read_u8().await?;
        Ok((letter, stream))
    };
    tokio::time::timeout(PATIENCE, talk).await.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}

#[derive(Default)]
struct Counts {
    through_a: AtomicU64,
    through_b: AtomicU64,
    direct: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    fn add(&self, answer: std::io::Result<u8>) {
        let counter = match answer {
            Ok(b'A') => &self.through_a,
            Ok(b'B') => &self.through_b,
            Ok(_) => &self.direct,
            Err(_) => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// What came of it.
struct Outcome {
    swaps: usize,
    through_a: u64,
    through_b: u64,
    direct: u64,
    failed: u64,
    /// Connections opened after a swap was acknowledged that did not go the new way.
    stale: usize,
    /// Long-lived connections that a swap ended.
    cut: usize,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = self.through_a + self.through_b + self.direct + self.failed;
        write!(
            f,
            "{} swaps under {connections} connections: {} direct, {} failed, {} after a swap not the new way, {} of \
             {LONG_LIVED} long-lived cut",
            self.swaps, self.direct, self.failed, self.stale, self.cut
        )
    }
}

struct Scene {
    entry: Node,
    listen: SocketAddr,
    api: SocketAddr,
    document: Value,
    exits: [SocketAddr; 2],
    _exits: Node,
    swaps: usize,
}

impl Scene {
    /// The exits are ours for both, and each leads to a target of its own; the forward's own target is reachable from
    /// the entry, so that a leak is seen as what it is.
    async fn set(product: Product) -> Option<Self> {
        let exits = [address::fresh(), address::fresh()];
        let mut services = Vec::new();
        for (letter, addr) in [b'A', b'B'].into_iter().zip(exits) {
            services.push(json!({
                "name": format!("exit {letter}"), "addr": addr.to_string(),
                "handler": { "type": "relay", "auth": credentials() }, "listener": { "type": "tcp" },
                "forwarder": { "nodes": [{ "name": "target", "addr": lettered(letter).await.to_string() }] },
            }));
        }
        let exits_node = Node::start(Product::Ours, "exits", &json!({ "services": services })).await.unwrap();
        let (service, listen) = node::forward("forward", lettered(b'D').await);
        let api = address::fresh();
        let mut document = json!({ "services": [service], "chains": [order(exits)] });
        if product == Product::Gost {
            document["api"] = json!({ "addr": api.to_string(), "auth": credentials() });
        }
        let entry = Node::start(product, "entry", &document).await?;
        Some(Self { entry, listen, api, document, exits, _exits: exits_node, swaps: 0 })
    }

    /// Puts the other exit first and waits until that is acknowledged.
    async fn swap(&mut self, product: Product) {
        self.exits.reverse();
        self.swaps += 1;
        let chain = order(self.exits);
        if product == Product::Gost {
            return self.put(&chain).await;
        }
        self.document["chains"] = json!([chain]);
        std::fs::write(&self.entry.document, self.document.to_string()).unwrap();
        let id = i32::try_from(self.entry.process.id().unwrap()).unwrap();
        kill(Pid::from_raw(id), Signal::SIGHUP).unwrap();
        let reloaded = eventually("the file is reloaded", PATIENCE, async || {
            anyhow::ensure!(self.entry.says("reloaded ") == self.swaps, "not yet");
            Ok(())
        });
        reloaded.await.unwrap_or_else(|error| panic!("{error:#}:\n{}", self.entry.process.log().tail(10)));
    }

    async fn put(&self, chain: &Value) {
        let (auth, body) = (credentials(), chain.to_string());
        let login = format!("{}:{}", auth["username"].as_str().unwrap(), auth["password"].as_str().unwrap());
        let request = format!(
            "PUT /config/chains/exits HTTP/1.1\r\nHost: {}\r\nAuthorization: Basic {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.api,
            base64::engine::general_purpose::STANDARD.encode(login),
            body.len(),
        );
        let mut stream = TcpStream::connect(self.api).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// The chain with the exits in this order. Durations are nanoseconds: GOST's API understands nothing else.
fn order(exits: [SocketAddr; 2]) -> Value {
    let connector = json!({ "type": "relay", "auth": credentials(), "metadata": { "nodelay": true } });
    let node = |addr: SocketAddr| {
        json!({
            "name": addr.to_string(), "addr": addr.to_string(), "connector": connector, "dialer": { "type": "tcp" },
        })
    };
    let mut chain = chain(&exits.map(node));
    chain["hops"][0]["selector"]["failTimeout"] = json!(600_000_000_000_u64);
    chain
}

async fn swap_under_traffic(product: Product, swaps: usize) -> Option<Outcome> {
    let mut scene = Scene::set(product).await?;
    let first = scene.exits[0];
    let mut long_lived = Vec::new();
    for _ in 0..LONG_LIVED {
        long_lived.push(ask(scene.listen).await.unwrap().1);
    }
    let (counts, stop): (Arc<Counts>, Arc<AtomicBool>) = Default::default();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (counts, stop, listen) = (counts.clone(), stop.clone(), scene.listen);
        clients.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                counts.add(ask(listen).await.map(|(letter, _)| letter));
            }
        });
    }
    let mut stale = 0;
    for _ in 0..swaps {
        scene.swap(product).await;
        let expected = if scene.exits[0] == first { b'A' } else { b'B' };
        let answer = ask(scene.listen).await.map(|(letter, _)| letter);
        stale += usize::from(!answer.as_ref().is_ok_and(|letter| *letter == expected));
        counts.add(answer);
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    let mut cut = 0;
    for mut stream in long_lived {
        let alive = async {
            stream.write_all(b"!").await?;
            // Its first byte is what it said when it was opened.
            let mut echoes = [0; 2];
            stream.read_exact(&mut echoes).await
        };
        cut += usize::from(!tokio::time::timeout(PATIENCE, alive).await.is_ok_and(|echo| echo.is_ok()));
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Some(Outcome {
        swaps,
        through_a: count(&counts.through_a),
        through_b: count(&counts.through_b),
        direct: count(&counts.direct),
        failed: count(&counts.failed),
        stale,
        cut,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_loses_nothing_where_gost_is_without_a_chain() {
    let ours = swap_under_traffic(Product::Ours, RELOADS).await.unwrap();
    println!("REPORT: ours, file and SIGHUP: {ours}");
    assert_eq!((ours.direct, ours.failed, ours.stale, ours.cut), (0, 0, 0, 0));
    assert!(ours.through_a > 0 && ours.through_b > 0, "{ours}");
    let Some(gost) = swap_under_traffic(Product::Gost, PUTS).await else { return };
    println!("REPORT: GOST, PUT to its Web API: {gost}");
    assert!(gost.through_a > 0 && gost.through_b > 0, "{gost}");
}
