//! An agent played by the tests. What it runs survives its connections, as a real one's state file does.

use crate::panel::{Panel, World, secret};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use shared::envelope::Sealer;
use shared::gost::ChainConfig;
use shared::link::{
    ChainReport, Command, ConnectThroughResult, Frame, GROUPS, GroupState, Hello, InUse, MemberInUse,
    MemberState, ProbeBatchResult, ProbeResult, Report, Sample, chain_key, digest, service_key,
};

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

/// An agent.
#[derive(Clone)]
pub(crate) struct Fake {
    name: String,
    inner: Arc<Inner>,
    activity: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    connection: Mutex<Option<Connection>>,
}

struct Connection {
    /// Sends a frame to the panel as this agent.
    out: mpsc::UnboundedSender<Frame>,
    closed: CancellationToken,
}

/// What it runs, what it was asked, and how it behaves.
#[derive(Default)]
pub(crate) struct State {
    /// Key of each object → digest.
    pub(crate) runs: BTreeMap<String, String>,
    /// By name.
    pub(crate) chains: BTreeMap<String, ChainConfig>,
    /// Every command but pings and batches, in order.
    pub(crate) commands: Vec<Command>,
    /// How often each target was measured.
    pub(crate) probed: BTreeMap<String, u32>,
    /// Latency of each target in milliseconds; others take 10. Infinite = refused.
    pub(crate) latency: BTreeMap<String, f64>,
    /// What was chosen in its groups, as it was told.
    pub(crate) choices: BTreeMap<String, Option<String>>,
    /// Names of objects it refuses, with what it says.
    pub(crate) refuses: BTreeMap<String, String>,
    /// Types of commands that it does not answer.
    pub(crate) ignores: BTreeSet<String>,
    /// Carries out the next `UpdateChains`, and loses the connection before it can answer.
    pub(crate) dies_in_update: bool,
    /// A peer's: says no hello and knows no batches.
    pub(crate) peer: bool,
    /// With which code the panel said that it closes the connection.
    pub(crate) closed_with: Option<u16>,
    /// Request ids it has seen.
    pub(crate) request_ids: Vec<String>,
}

impl Fake {
    pub(crate) fn new(world: &World, name: &str) -> Self {
        Self { name: name.into(), inner: Arc::default(), activity: world.activity.clone() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap()
    }

    /// Connects and says hello. Answers once the panel knows it.
    pub(crate) async fn connect(&self, panel: &Panel<'_>) {
        let url = url(panel.address, "1", &secret(&self.name));
        let (socket, response) = tokio_tungstenite::connect_async(url).await.unwrap();
        assert_eq!(response.headers()["x-exitpilot"], "1");
        let (out, queue) = mpsc::unbounded_channel();
        let closed = CancellationToken::new();
        if !self.state().peer {
            let hello = Hello {
                agent: "fake".into(),
                version: "9.9".into(),
                capabilities: ["probe-batch", "connect-through", GROUPS].map(str::to_owned).into(),
                digests: self.state().runs.clone(),
                failed: BTreeMap::new(),
            };
            out.send(Frame::message("hello", json!(hello))).unwrap();
        }
        let before = self
            .inner
            .connection
            .lock()
            .unwrap()
            .replace(Connection { out: out.clone(), closed: closed.clone() });
        drop(before);
        tokio::spawn(self.clone().serve(socket, out, queue, closed));
        let id = panel.world.db.node_by_key(&shared::envelope::link_key(&secret(&self.name))).await;
        let id = id.unwrap().unwrap();
        panel.until("the panel knows the agent", || async { panel.state.agents.is_online(id) }).await;
    }

    async fn serve(
        self,
        socket: tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>,
        out: mpsc::UnboundedSender<Frame>,
        mut queue: mpsc::UnboundedReceiver<Frame>,
        closed: CancellationToken,
    ) {
        let sealer = Sealer::new(&secret(&self.name));
        let (mut sink, mut stream) = socket.split();
        let mut nonce = 0u64;
        loop {
            tokio::select! {
                () = closed.cancelled() => break,
                Some(frame) = queue.recv() => {
                    nonce += 1;
                    let mut bytes = [0; 12];
                    bytes[..8].copy_from_slice(&nonce.to_le_bytes());
                    let text = sealer.seal(&serde_json::to_string(&frame).unwrap(), bytes, 0);
                    if sink.send(Message::Text(text.into())).await.is_err() { break }
                }
                message = stream.next() => match message {
                    Some(Ok(Message::Text(text))) => {
                        let frame: Frame = serde_json::from_str(&sealer.open(&text).unwrap()).unwrap();
                        match self.obey(&frame) {
                            Obeyed::Answer(outcome) => {
                                out.send(Frame::answer(&frame.kind, frame.request_id, outcome)).unwrap();
                            }
                            Obeyed::Nothing => {}
                            Obeyed::Die => break,
                        }
                        self.activity.send_modify(|n| *n += 1);
                    }
                    Some(Ok(Message::Close(why))) => {
                        self.state().closed_with = why.map(|why| why.code.into());
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => break,
                },
            }
        }
        closed.cancel();
        self.activity.send_modify(|n| *n += 1);
    }

    fn obey(&self, frame: &Frame) -> Obeyed {
        let mut state = self.state();
        state.request_ids.push(frame.request_id.clone().unwrap());
        let command = Command::from_frame(frame).unwrap();
        let state = &mut *state;
        match &command {
            Command::ProbeBatch(batch) => {
                assert!(!state.peer, "a peer knows no batches");
                for target in &batch.targets {
                    *state.probed.entry(format!("{}:{}", target.host, target.port)).or_default() += 1;
                }
            }
            Command::TcpPing(ping) => {
                *state.probed.entry(format!("{}:{}", ping.ip, ping.port)).or_default() += 1;
            }
            Command::ConnectThrough(_) => {}
            other => state.commands.push(other.clone()),
        }
        if state.ignores.contains(&frame.kind) {
            return Obeyed::Nothing;
        }
        let latency = |target: &str| state.latency.get(target).copied().unwrap_or(10.0);
        let outcome = match command {
            Command::ProbeBatch(batch) => {
                let result = |target: shared::link::ProbeTarget| {
                    let ms = latency(&format!("{}:{}", target.host, target.port));
                    let sample =
                        if ms.is_finite() { Sample::Ok { ms, retransmits: 0 } } else { Sample::Refused };
                    ProbeResult { id: target.id, address: None, samples: vec![sample; batch.count as usize] }
                };
                Ok(json!(ProbeBatchResult { results: batch.targets.into_iter().map(result).collect() }))
            }
            Command::ConnectThrough(connection) => {
                let via = latency(connection.via.as_deref().unwrap_or_default());
                let ms = via + latency(&connection.target);
                if ms.is_finite() {
                    Ok(json!(ConnectThroughResult { ms }))
                } else {
                    Err(format!("chain {}: no node could be used", connection.chain))
                }
            }
            Command::TcpPing(ping) => {
                let ms = latency(&format!("{}:{}", ping.ip, ping.port));
                // What a real peer's agent answers for a failed ping.
                Ok(if ms.is_finite() {
                    json!({"ip":ping.ip,"port":ping.port,"success":true,"averageTime":ms,"packetLoss":0})
                } else {
                    json!({"ip":ping.ip,"port":ping.port,"success":false,"averageTime":0,"packetLoss":0,
                        "errorMessage":"all attempts failed"})
                })
            }
            Command::UpdateChains(chain) => match state.refuses.get(&chain.name) {
                Some(reason) => Err(reason.clone()),
                None => {
                    state.runs.insert(chain_key(&chain.name), digest(&chain));
                    state.chains.insert(chain.name.clone(), chain);
                    if std::mem::take(&mut state.dies_in_update) {
                        return Obeyed::Die;
                    }
                    Ok(Value::Null)
                }
            },
            Command::UpdateService(services) => {
                match services.iter().find_map(|service| state.refuses.get(&service.name)) {
                    Some(reason) => Err(reason.clone()),
                    None => {
                        for service in services {
                            state.runs.insert(service_key(&service.name), digest(&service));
                        }
                        Ok(Value::Null)
                    }
                }
            }
            Command::ChooseMember(choice) => match state.refuses.get(&choice.group) {
                Some(reason) => Err(reason.clone()),
                None => {
                    state.choices.insert(choice.group.clone(), choice.member.clone());
                    Ok(json!(group_state(&choice.group, choice.member)))
                }
            },
            Command::DeleteService(names) => {
                for name in names {
                    state.runs.remove(&service_key(&name));
                }
                Ok(Value::Null)
            }
            Command::DeleteChains(name) => {
                state.runs.remove(&chain_key(&name));
                Ok(Value::Null)
            }
            other => Err(format!("unexpected: {other:?}")),
        };
        Obeyed::Answer(outcome)
    }

    /// Sends a frame as this agent.
    pub(crate) fn say(&self, frame: Frame) {
        self.inner.connection.lock().unwrap().as_ref().unwrap().out.send(frame).unwrap();
    }

    /// Reports how the nodes of a chain are used.
    pub(crate) fn report(&self, chains: Vec<ChainReport>) {
        self.say(Frame::message("report", json!(Report { chains, ..Report::default() })));
    }

    /// Reports its group, in which this was chosen.
    pub(crate) fn report_group(&self, group: &str, choice: Option<&str>) {
        let groups = vec![group_state(group, choice.map(str::to_owned))];
        self.say(Frame::message("report", json!(Report { groups, ..Report::default() })));
    }

    /// Cuts its connection.
    pub(crate) fn cut(&self) {
        self.inner.connection.lock().unwrap().as_ref().unwrap().closed.cancel();
    }

    /// Returns when its connection has ended.
    pub(crate) async fn ended(&self) {
        let closed = self.inner.connection.lock().unwrap().as_ref().unwrap().closed.clone();
        closed.cancelled().await;
    }

    /// Whether its connection has ended.
    pub(crate) fn is_cut(&self) -> bool {
        self.inner.connection.lock().unwrap().as_ref().unwrap().closed.is_cancelled()
    }

    /// The commands since the last call, as short text.
    pub(crate) fn take_commands(&self) -> Vec<String> {
        let text = |command: Command| match command {
            Command::UpdateChains(chain) => format!("+{}", chain.name),
            Command::UpdateService(services) => {
                let names: Vec<String> = services.into_iter().map(|s| format!("+{}", s.name)).collect();
                names.join(" ")
            }
            Command::DeleteService(names) => format!("-{}", names.join(" -")),
            Command::DeleteChains(name) => format!("-{name}"),
            Command::ChooseMember(choice) => format!("{}: {:?}", choice.group, choice.member),
            other => format!("{other:?}"),
        };
        std::mem::take(&mut self.state().commands).into_iter().map(text).collect()
    }

    /// Addresses of the nodes of a chain, in order.
    pub(crate) fn order(&self, chain: &str) -> Vec<String> {
        let state = self.state();
        let Some(chain) = state.chains.get(chain) else { return Vec::new() };
        chain.hops[0].members().iter().map(|node| node.addr.clone()).collect()
    }

    pub(crate) fn latency(&self, target: &str, ms: f64) {
        self.state().latency.insert(target.into(), ms);
    }
}

/// A group of which member `node_2` lives and the chosen one, else the first, is in use.
fn group_state(name: &str, choice: Option<String>) -> GroupState {
    let member = choice.clone().unwrap_or_else(|| "node_1".into());
    let why = if choice.is_some() { InUse::Chosen } else { InUse::Default };
    let alive = MemberState {
        name: "node_2".into(),
        state: shared::policy::health::State::Alive,
        latency_ms: Some(12.0),
        average_ms: Some(13.0),
        age_ms: Some(500),
        failures: 0,
    };
    GroupState {
        name: name.into(),
        policy: "selector".into(),
        now: [("tcp4".to_owned(), MemberInUse { member, why, change: None })].into(),
        choice,
        members: vec![alive],
    }
}

enum Obeyed {
    Answer(Result<Value, String>),
    Nothing,
    Die,
}

pub(crate) fn url(panel: SocketAddr, kind: &str, secret: &str) -> String {
    format!("ws://{panel}/system-info?type={kind}&secret={secret}&version=1.0%20(test)")
}

/// Status of a refused upgrade.
pub(crate) async fn refused(url: String) -> u16 {
    match tokio_tungstenite::connect_async(url).await {
        Err(Error::Http(response)) => response.status().as_u16(),
        other => panic!("not refused: {other:?}"),
    }
}
