//! One live connection of one agent.

use crate::clock::{Clock, random_bytes};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use shared::envelope::{NONCE_BYTES, Sealer};
use shared::ids::NodeId;
use shared::link::{Command, Frame, GroupState, Hello, MAX_FRAME_BYTES, Report};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// As the peer's panel does it.
const PING_EVERY: Duration = Duration::from_secs(15);
/// Without any frame, pongs included, for this long the connection is dead: three pings were not answered.
const SILENCE: Duration = Duration::from_secs(45);
/// A socket that takes no more bytes for this long is dead.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);
/// How long the agent may take to answer that the panel closes the connection.
const CLOSE_DEADLINE: Duration = Duration::from_secs(1);
/// Frames waiting to be written. More means that the agent does not read; senders then wait, within their deadline.
const QUEUE: usize = 64;
/// Commands without an answer. The driver has at most 32 under way, the prober one batch or some pings.
const MAX_PENDING: usize = 256;
/// Envelope and base64 around a frame.
const MAX_PLAIN_BYTES: usize = MAX_FRAME_BYTES / 4 * 3 - 256;

const GOING_AWAY: CloseFrame =
    CloseFrame { code: close_code::AWAY, reason: Utf8Bytes::from_static("the panel ends this connection") };

/// Why a command has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The agent is not connected, or the connection ended before it answered.
    #[error("the node is offline")]
    Offline,
    /// No answer in time; the command may have been carried out.
    #[error("no answer within {0} ms")]
    Timeout(u64),
    /// The agent said no; nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// Too many commands wait for an answer, or the command is too large. Nothing was sent.
    #[error("the connection to the node is overloaded")]
    Overloaded,
}

/// Makes request ids that are unique over all connections of this process, so that a late answer to an earlier
/// connection's command meets nothing.
#[derive(Debug)]
pub(super) struct RequestIds(AtomicU64);

impl RequestIds {
    pub(super) fn new(clock: &Clock) -> Self {
        // Starting from the time makes them differ from those of the process before.
        Self(AtomicU64::new(u64::try_from(clock.wall_ms()).unwrap_or(0).saturating_mul(1000)))
    }

    fn next(&self, node: NodeId) -> String {
        format!("{node}_{}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// One live connection of one agent.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) node: NodeId,
    /// As the agent wrote it into the address.
    pub(super) version: String,
    out: mpsc::Sender<String>,
    pending: Mutex<BTreeMap<String, oneshot::Sender<Frame>>>,
    hello: watch::Sender<Option<Arc<Hello>>>,
    identified: watch::Sender<Option<Kind>>,
    report: watch::Sender<Option<Report>>,
    ids: Arc<RequestIds>,
    pub(super) closed: CancellationToken,
}

/// Whose agent it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ours, with or without what not every version of it does.
    Ours {
        /// It measures many targets in one command.
        probe_batch: bool,
        /// It opens test connections through its chains.
        connect_through: bool,
    },
    /// A peer's, which says nothing about itself.
    Peer,
}

impl Session {
    pub(super) fn new(
        node: NodeId,
        version: String,
        ids: Arc<RequestIds>,
        closed: CancellationToken,
    ) -> (Arc<Self>, mpsc::Receiver<String>) {
        let (out, queue) = mpsc::channel(QUEUE);
        let session = Self {
            node,
            version,
            out,
            pending: Mutex::default(),
            hello: watch::Sender::new(None),
            identified: watch::Sender::new(None),
            report: watch::Sender::new(None),
            ids,
            closed,
        };
        (Arc::new(session), queue)
    }

    /// Sends a command and waits for its answer's data.
    pub(super) async fn call(
        &self,
        command: &Command,
        deadline: Duration,
    ) -> Result<serde_json::Value, CallError> {
        let id = self.ids.next(self.node);
        let Ok(text) = serde_json::to_string(&command.to_frame(id.clone())) else {
            return Err(CallError::Overloaded);
        };
        if text.len() > MAX_PLAIN_BYTES {
            return Err(CallError::Overloaded);
        }
        let (answered, answer) = oneshot::channel();
        {
            let mut pending = self.pending();
            if pending.len() >= MAX_PENDING {
                return Err(CallError::Overloaded);
            }
            pending.insert(id.clone(), answered);
        }
        let _forget = Forget { session: self, id };
        let exchange = async {
            self.out.send(text).await.map_err(|_| CallError::Offline)?;
            answer.await.map_err(|_| CallError::Offline)
        };
        let frame = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(CallError::Offline),
            result = tokio::time::timeout(deadline, exchange) => match result {
                Ok(frame) => frame?,
                Err(_) => return Err(CallError::Timeout(u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX))),
            },
        };
        if frame.success == Some(true) {
            Ok(frame.data)
        } else {
            Err(CallError::Refused(frame.message.unwrap_or_else(|| "the node gave no reason".to_owned())))
        }
    }

    /// What the agent said about itself, and every time it says it again.
    pub(super) fn hello(&self) -> watch::Receiver<Option<Arc<Hello>>> {
        self.hello.subscribe()
    }

    /// Whose agent it is, once that is clear.
    pub(super) fn kind(&self) -> Option<Kind> {
        *self.identified.borrow()
    }

    pub(super) fn identify(&self, kind: Kind) {
        self.identified.send_replace(Some(kind));
    }

    pub(super) fn report(&self) -> Option<Report> {
        self.report.borrow().clone()
    }

    /// What the agent reports, and every time it does.
    pub(super) fn reports(&self) -> watch::Receiver<Option<Report>> {
        self.report.subscribe()
    }

    /// The agent told of one group alone.
    pub(super) fn told(&self, state: GroupState) {
        self.report.send_modify(|report| {
            let groups = &mut report.get_or_insert_default().groups;
            match groups.iter_mut().find(|group| group.name == state.name) {
                Some(group) => *group = state,
                None => groups.push(state),
            }
        });
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, oneshot::Sender<Frame>>> {
        // The map is consistent after every step, so a panic elsewhere does not spoil it.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn received(&self, text: &str) {
        let Ok(frame) = serde_json::from_str::<Frame>(text) else {
            // A peer's older agent sends its metrics without a type.
            tracing::debug!(node.id = self.node.0, "a frame without a type was left out");
            return;
        };
        if let (Some(id), Some(_)) = (&frame.request_id, frame.success) {
            // Only commands of this connection are here: an agent cannot answer for another node, and an answer that
            // comes too late meets nothing.
            let waiting = self.pending().remove(id);
            match waiting {
                // An error says that the caller gave up in this moment.
                Some(waiting) => drop(waiting.send(frame)),
                None => tracing::debug!(node.id = self.node.0, "an answer nobody waits for was left out"),
            }
            return;
        }
        match frame.kind.as_str() {
            "hello" => match serde_json::from_value::<Hello>(frame.data) {
                Ok(hello) => {
                    self.hello.send_replace(Some(Arc::new(hello)));
                }
                Err(error) => tracing::warn!(node.id = self.node.0, %error, "the agent's hello is malformed"),
            },
            "report" => match serde_json::from_value::<Report>(frame.data) {
                Ok(report) => {
                    self.report.send_replace(Some(report));
                }
                Err(error) => {
                    tracing::warn!(node.id = self.node.0, %error, "the agent's report is malformed")
                }
            },
            _ => {}
        }
    }

    /// Carries the connection until it ends; answers why.
    pub(super) async fn serve(
        &self,
        socket: WebSocket,
        sealer: &Sealer,
        queue: mpsc::Receiver<String>,
        clock: &Clock,
    ) -> String {
        let (mut sink, stream) = socket.split();
        let mut read = std::pin::pin!(self.read(stream, sealer));
        let why = tokio::select! {
            () = self.closed.cancelled() => {
                // Said, and the answer read, so that nothing is reset and the agent can tell this from a bad line.
                let farewell = async {
                    let _ = sink.send(Message::Close(Some(GOING_AWAY))).await;
                    read.as_mut().await
                };
                let _ = tokio::time::timeout(CLOSE_DEADLINE, farewell).await;
                "closed by the panel".to_owned()
            }
            why = read.as_mut() => why,
            why = write(&mut sink, sealer, queue, clock) => why,
        };
        self.closed.cancel();
        // Dropping the senders fails every command that waits for an answer, at once.
        self.pending().clear();
        why
    }

    async fn read(&self, mut stream: SplitStream<WebSocket>, sealer: &Sealer) -> String {
        loop {
            let message = match tokio::time::timeout(SILENCE, stream.next()).await {
                Err(_) => return format!("silent for {} s", SILENCE.as_secs()),
                Ok(None) => return "closed by the agent".to_owned(),
                Ok(Some(Err(error))) => return error.to_string(),
                Ok(Some(Ok(message))) => message,
            };
            match message {
                Message::Text(text) => match sealer.open(&text) {
                    Ok(plain) => self.received(&plain),
                    Err(error) => {
                        tracing::warn!(node.id = self.node.0, %error, "a frame of the agent was left out");
                    }
                },
                Message::Close(_) => return "closed by the agent".to_owned(),
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) => {}
            }
        }
    }
}

async fn write(
    sink: &mut SplitSink<WebSocket, Message>,
    sealer: &Sealer,
    mut queue: mpsc::Receiver<String>,
    clock: &Clock,
) -> String {
    let mut ping = tokio::time::interval(PING_EVERY);
    ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ping.tick().await;
    loop {
        let message = tokio::select! {
            text = queue.recv() => match text {
                Some(text) => {
                    let nonce = random_bytes::<NONCE_BYTES>();
                    Message::Text(sealer.seal(&text, nonce, clock.wall_ms()).into())
                }
                None => return "closed by the panel".to_owned(),
            },
            _ = ping.tick() => Message::Ping(Default::default()),
        };
        match tokio::time::timeout(WRITE_DEADLINE, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return format!("took no bytes for {} s", WRITE_DEADLINE.as_secs()),
        }
    }
}

struct Forget<'a> {
    session: &'a Session,
    id: String,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.session.pending().remove(&self.id);
    }
}
