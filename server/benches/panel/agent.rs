//! An agent played by the benchmark: it speaks the link as a real one does, measures what the world says and runs nothing.

use crate::now;
use crate::world::{World, mix};
use anyhow::{Context as _, Result, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use shared::envelope::Sealer;
use shared::gost::{ChainConfig, ChainNodeConfig};
use shared::link::{
    ChainNodeReport, ChainReport, Command, Frame, Hello, ProbeBatch, ProbeBatchResult, ProbeResult, Report,
    chain_key, digest, service_key,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::{sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use tokio_util::sync::CancellationToken;

/// For the connect and the upgrade; a real agent's.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A real agent tells this often which nodes of its chains are used.
const REPORT: Duration = Duration::from_secs(5);
/// Waits between attempts double up to here.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// What all agents share.
pub(crate) struct Shared {
    pub(crate) world: World,
    pub(crate) panel: SocketAddr,
    /// First wait before the next attempt to connect.
    pub(crate) first_wait: Duration,
    pub(crate) interval: Duration,
    pub(crate) start: Instant,
    /// The networks stay as they are, in microseconds since the start; 0 = they go on changing.
    pub(crate) frozen: AtomicU64,
    pub(crate) online: AtomicUsize,
    /// Those that were asked to measure since they connected.
    pub(crate) asked: AtomicUsize,
    /// Objects that all agents run.
    pub(crate) objects: AtomicUsize,
    /// Commands that change what an agent runs.
    pub(crate) changes: AtomicU64,
    /// When each agent began to send its last answer to a batch, in microseconds since the start.
    answered: Vec<AtomicU64>,
    /// Whether `pushes` is written.
    pub(crate) noting: AtomicBool,
    pushes: Mutex<Vec<f64>>,
}

impl Shared {
    pub(crate) fn new(world: World, panel: SocketAddr, interval: Duration, first_wait: Duration) -> Self {
        Self {
            answered: world.secrets.iter().map(|_| AtomicU64::new(0)).collect(),
            world,
            panel,
            first_wait,
            interval,
            start: now(),
            frozen: AtomicU64::new(0),
            online: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            objects: AtomicUsize::new(0),
            changes: AtomicU64::new(0),
            noting: AtomicBool::new(false),
            pushes: Mutex::default(),
        }
    }

    fn micros(&self) -> u64 {
        u64::try_from(now().duration_since(self.start).as_micros()).unwrap_or(u64::MAX)
    }

    /// The networks change no more.
    pub(crate) fn freeze(&self) {
        self.frozen.store(self.micros().max(1), Ordering::Relaxed);
    }

    fn round(&self) -> f64 {
        let frozen = self.frozen.load(Ordering::Relaxed);
        let at = if frozen == 0 { self.micros() } else { frozen };
        at as f64 / self.interval.as_micros() as f64
    }

    fn pushes(&self) -> MutexGuard<'_, Vec<f64>> {
        self.pushes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds from the last answer that a decision needed to the arrival of its `UpdateChains`, since the last call.
    pub(crate) fn take_pushes(&self) -> Vec<f64> {
        std::mem::take(&mut *self.pushes())
    }

    pub(crate) fn has_pushes(&self) -> bool {
        !self.pushes().is_empty()
    }

    /// A chain came. Its owner was decided about when its own answer and those of the exits were there; one that came
    /// later than the chain was not waited for.
    fn pushed(&self, owner: usize, chain: &str) {
        if !self.noting.load(Ordering::Relaxed) {
            return;
        }
        let at = self.micros();
        let tunnel = chain.strip_prefix("chains_").and_then(|id| id.parse().ok());
        let exits = tunnel.and_then(|id: i64| self.world.exits.get(&id)).into_iter().flatten().copied();
        let answers = exits.chain([owner]).map(|node| self.answered[node].load(Ordering::Relaxed));
        let since = answers.filter(|answered| *answered <= at).max().unwrap_or(0);
        self.pushes().push((at - since) as f64 / 1000.0);
    }
}

/// One agent; what it runs survives its connections.
pub(crate) struct Agent {
    number: usize,
    shared: Arc<Shared>,
    sealer: Sealer,
    runs: BTreeMap<String, String>,
    chains: BTreeMap<String, ChainConfig>,
    nonce: u64,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

impl Agent {
    pub(crate) fn new(shared: Arc<Shared>, number: usize) -> Self {
        let sealer = Sealer::new(&shared.world.secrets[number]);
        Self { number, shared, sealer, runs: BTreeMap::new(), chains: BTreeMap::new(), nonce: 0 }
    }

    /// Connects, obeys, and connects again, until `stop`.
    pub(crate) async fn live(mut self, stop: CancellationToken) {
        // Not all in the same instant, as after a restart.
        let mut wait = self.shared.first_wait;
        let mut attempt = mix(self.number as u64, 11);
        stop.run_until_cancelled(tokio::time::sleep(varied(wait / 2, attempt))).await;
        while !stop.is_cancelled() {
            let connected = stop.run_until_cancelled(self.connect()).await;
            if let Some(Ok(socket)) = connected {
                wait = self.shared.first_wait;
                self.shared.online.fetch_add(1, Ordering::Relaxed);
                let mut asked = false;
                stop.run_until_cancelled(self.serve(socket, &mut asked)).await;
                self.shared.online.fetch_sub(1, Ordering::Relaxed);
                self.shared.asked.fetch_sub(usize::from(asked), Ordering::Relaxed);
            }
            attempt = mix(attempt, 12);
            stop.run_until_cancelled(tokio::time::sleep(varied(wait, attempt))).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    async fn connect(&mut self) -> Result<Socket> {
        let secret = &self.shared.world.secrets[self.number];
        let url = format!("ws://{}/system-info?type=1&secret={secret}&version=1.0", self.shared.panel);
        let (mut socket, _) = timeout(HANDSHAKE, tokio_tungstenite::connect_async(url)).await??;
        let hello = Hello {
            agent: "bench".to_owned(),
            version: "1.0".to_owned(),
            capabilities: ["protocol:tcp", "protocol:tls", "strategy:fifo", "probe-batch"]
                .map(str::to_owned)
                .into(),
            digests: self.runs.clone(),
            failed: BTreeMap::new(),
        };
        self.send(&mut socket, &Frame::message("hello", json!(hello))).await?;
        Ok(socket)
    }

    async fn send(&mut self, socket: &mut Socket, frame: &Frame) -> Result<()> {
        self.nonce += 1;
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&self.nonce.to_le_bytes());
        let text = self.sealer.seal(&serde_json::to_string(frame)?, nonce, 0);
        Ok(socket.send(Message::Text(text.into())).await?)
    }

    async fn serve(&mut self, mut socket: Socket, asked: &mut bool) -> Result<()> {
        let mut measuring: VecDeque<(Instant, Frame)> = VecDeque::new();
        let first_report = now() + varied(REPORT, mix(self.number as u64, 13));
        let mut reports = tokio::time::interval_at(first_report.into(), REPORT);
        loop {
            let due = measuring.front().map(|(due, _)| *due);
            tokio::select! {
                message = socket.next() => {
                    let Message::Text(text) = message.context("closed")?? else { continue };
                    let frame: Frame = serde_json::from_str(&self.sealer.open(&text)?)?;
                    let command = Command::from_frame(&frame)?;
                    let kind = frame.kind;
                    if let Command::ProbeBatch(batch) = command {
                        if !std::mem::replace(asked, true) {
                            self.shared.asked.fetch_add(1, Ordering::Relaxed);
                        }
                        let (takes, result) = self.measure(batch);
                        measuring.push_back((now() + takes, Frame::answer(&kind, frame.request_id, Ok(result))));
                    } else {
                        self.obey(command)?;
                        self.send(&mut socket, &Frame::answer(&kind, frame.request_id, Ok(Value::Null))).await?;
                    }
                }
                () = sleep_until(due.unwrap_or(self.shared.start).into()), if due.is_some() => {
                    if let Some((_, answer)) = measuring.pop_front() {
                        let answered = &self.shared.answered[self.number];
                        answered.store(self.shared.micros(), Ordering::Relaxed);
                        self.send(&mut socket, &answer).await?;
                    }
                }
                _ = reports.tick() => {
                    let report = self.report();
                    self.send(&mut socket, &Frame::message("report", json!(report))).await?;
                }
            }
        }
    }

    fn obey(&mut self, command: Command) -> Result<()> {
        self.shared.changes.fetch_add(1, Ordering::Relaxed);
        let before = self.runs.len();
        match command {
            Command::UpdateChains(chain) => {
                self.shared.pushed(self.number, &chain.name);
                self.runs.insert(chain_key(&chain.name), digest(&chain));
                self.chains.insert(chain.name.clone(), chain);
            }
            Command::UpdateService(services) => {
                for service in services {
                    self.runs.insert(service_key(&service.name), digest(&service));
                }
            }
            other => bail!("unexpected: {other:?}"),
        }
        self.shared.objects.fetch_add(self.runs.len() - before, Ordering::Relaxed);
        Ok(())
    }

    /// What the batch finds, and how long that takes: the samples of a target one after the other, the targets side by
    /// side.
    fn measure(&self, batch: ProbeBatch) -> (Duration, Value) {
        let round = self.shared.round();
        let spacing = batch.spacing_ms * u64::from(batch.count.saturating_sub(1));
        let takes = Duration::from_millis(spacing + 100);
        let results = batch.targets.into_iter().map(|target| {
            let sample = |nth| self.shared.world.sample(self.number, &target.host, round, u64::from(nth));
            ProbeResult { id: target.id, address: None, samples: (0..batch.count).map(sample).collect() }
        });
        (takes, json!(ProbeBatchResult { results: results.collect() }))
    }

    fn report(&self) -> Report {
        let node = |node: &ChainNodeConfig| ChainNodeReport {
            name: node.name.clone(),
            addr: node.addr.clone(),
            connections: 17,
            open: 3,
            failures: 0,
            marked: false,
            probe: None,
        };
        let chains = self.chains.values().map(|chain| ChainReport {
            name: chain.name.clone(),
            nodes: chain.hops.last().into_iter().flat_map(|hop| hop.members()).map(node).collect(),
        });
        Report { chains: chains.collect(), ..Report::default() }
    }
}

/// A quarter shorter to a quarter longer, as real agents vary their waits.
fn varied(wait: Duration, random: u64) -> Duration {
    wait.mul_f64(0.75 + 0.5 * (random % 1000) as f64 / 1000.0)
}
