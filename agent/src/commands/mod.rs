//! Carrying out what the panel asks.
//!
//! A command is parsed completely before anything happens. Commands for the same service or chain run in arrival
//! order, others at the same time. Probes have their own queue, so they never delay a change and are never delayed by
//! one.

mod choosing;
mod lanes;
mod limiters;

use crate::guard::blocked::Blocked;
use crate::probe::Prober;
use crate::probe::gate::Gate;
use crate::runtime::{Change, Runtime, trial};
use crate::state::Saver;
use lanes::Lanes;
use serde_json::Value;
use shared::link::{Command, Frame, GROUPS, chain_key, service_key};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Changes accepted and not finished. Beyond it a command is answered `success:false` with a text that begins with
/// `busy`: it has no effect, and the panel sends it again when it compares what should run with what runs.
pub const MAX_CHANGES: usize = 1024;

/// Test connections at the same time, and waiting for their turn: a person looks at them.
const TRIALS: usize = 8;
/// See [`TRIALS`].
const TRIALS_WAITING: usize = 64;

/// The one object that `SetProtocol` changes. No service or chain has such a key.
const PROTOCOLS: &str = "protocols";

/// Commands of peer panels that this agent knows and cannot do.
const UNSUPPORTED: [&str; 4] = ["UdpPing", "ServiceMonitorCheck", "UpgradeAgent", "RollbackAgent"];

/// Executes commands. Lives longer than a connection to the panel: the order of commands holds across reconnects.
#[derive(Clone)]
pub struct Commands {
    runtime: Runtime,
    saver: Saver,
    prober: Prober,
    lanes: Lanes,
    trials: Gate,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Where answers go: the queue of the connection on which the command came. Answers to a connection that is gone are
/// dropped; after a reconnect the panel reads the digests of the hello instead.
#[derive(Clone, Debug)]
pub struct Replies(pub mpsc::Sender<Frame>);

impl Replies {
    /// Sends at once or not at all; for refusals, which cost nothing to produce.
    fn offer(&self, frame: Frame) {
        if self.0.try_send(frame).is_err() {
            tracing::warn!("an answer was dropped: the panel does not read as fast as it asks");
        }
    }
}

impl Commands {
    /// `tasks` and `stop` bound the life of running commands.
    pub fn new(
        runtime: Runtime,
        saver: Saver,
        prober: Prober,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        Self {
            runtime,
            saver,
            prober,
            lanes: Lanes::new(MAX_CHANGES),
            trials: Gate::new(TRIALS, TRIALS_WAITING),
            tasks,
            stop,
        }
    }

    /// Takes a received frame. Returns at once; the answer comes through `replies`.
    pub fn handle(&self, frame: Frame, replies: &Replies) {
        // The peer's panel sends it and expects no answer.
        if frame.kind == "call" {
            return;
        }
        let Frame { kind, request_id, .. } = &frame;
        let answer = Answer { kind: kind.clone(), request_id: request_id.clone(), replies: replies.clone() };
        match Command::from_frame(&frame) {
            Err(error) => {
                tracing::warn!("refused a command: {error}");
                answer.refuse(error.detail);
            }
            Ok(Command::TcpPing(ping)) => match self.prober.admit_ping(ping) {
                Ok(ping) => self.probe(answer, async move { ping.run().await.map(to_value) }),
                Err(refused) => answer.refuse(refused.to_string()),
            },
            Ok(Command::ProbeBatch(batch)) => match self.prober.admit_batch(batch) {
                Ok(batch) => self.probe(answer, async move { batch.run().await.map(to_value) }),
                Err(refused) => answer.refuse(refused.to_string()),
            },
            Ok(Command::ConnectThrough(ask)) => match self.trials.enter() {
                Some(ticket) => {
                    let runtime = self.runtime.clone();
                    self.probe(answer, async move {
                        let connecting = Box::pin(runtime.connect_through(&ask));
                        let outcome = ticket.run(trial::deadline(&ask), connecting).await?;
                        Some(outcome.and_then(to_value))
                    });
                }
                None => answer.refuse("busy: too many test connections are waiting".to_owned()),
            },
            Ok(Command::ChooseMember(choice)) => self.choose(answer, choice),
            Ok(Command::SetProtocol(blocked)) => match Blocked::from_command(&blocked) {
                Ok(blocked) => self.block(answer, blocked),
                Err(reason) => answer.refuse(reason),
            },
            Ok(Command::Unknown(kind)) => {
                if let Some(wanted) = limiters::change(&frame) {
                    match wanted {
                        Ok((key, change)) => self.change(answer, vec![key], change),
                        Err(reason) => answer.refuse(reason),
                    }
                } else if UNSUPPORTED.contains(&kind.as_str()) {
                    answer.refuse(format!("{kind} is not supported by this agent yet"));
                } else {
                    let unknown = Answer { kind: "UnknownCommand".to_owned(), ..answer };
                    unknown.refuse(format!("unknown command {kind}"));
                }
            }
            Ok(command) => match to_change(command) {
                Ok((keys, change)) => self.change(answer, keys, change),
                Err(reason) => answer.refuse(reason),
            },
        }
    }

    fn change(&self, answer: Answer, keys: Vec<String>, change: Change) {
        let Some(turn) = self.lanes.turn(keys.clone()) else {
            answer.refuse(format!("busy: {MAX_CHANGES} changes are waiting"));
            return;
        };
        let (runtime, saver, stop) = (self.runtime.clone(), self.saver.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let work = async {
                turn.begin().await;
                let outcome = match runtime.apply(change).await {
                    Ok(()) => saver.save().await.map_err(|reason| format!("applied but not saved: {reason}")),
                    Err(error) => Err(error.to_string()),
                };
                match &outcome {
                    Ok(()) => tracing::info!(command = answer.kind, objects = keys.join(" "), "done"),
                    Err(reason) => {
                        tracing::warn!(command = answer.kind, objects = keys.join(" "), "refused: {reason}");
                    }
                }
                // The next command for the object may begin; sending the answer is no part of the turn.
                drop(turn);
                answer.send(outcome.map(|()| Value::Null)).await;
            };
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Blocks protocols; in its turn, as any change.
    fn block(&self, answer: Answer, blocked: Blocked) {
        let Some(turn) = self.lanes.turn(vec![PROTOCOLS.to_owned()]) else {
            answer.refuse(format!("busy: {MAX_CHANGES} changes are waiting"));
            return;
        };
        let (protocols, stop) = (self.runtime.blocked().clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let work = async {
                turn.begin().await;
                let outcome = protocols.set(blocked).await;
                let outcome = outcome.map_err(|reason| format!("applied but not saved: {reason}"));
                match &outcome {
                    Ok(()) => tracing::info!(blocked = %blocked.to_command(), "protocols blocked"),
                    Err(reason) => tracing::warn!("protocols blocked, {reason}"),
                }
                drop(turn);
                answer.send(outcome.map(|()| Value::Null)).await;
            };
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }

    fn probe(
        &self,
        answer: Answer,
        work: impl Future<Output = Option<Result<Value, String>>> + Send + 'static,
    ) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let work = async {
                match work.await {
                    Some(outcome) => answer.send(outcome).await,
                    None => tracing::warn!(command = answer.kind, "too late for an answer, dropped"),
                }
            };
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

/// What is needed to answer one command.
struct Answer {
    kind: String,
    request_id: Option<String>,
    replies: Replies,
}

impl Answer {
    async fn send(self, outcome: Result<Value, String>) {
        // An error means that the connection is gone.
        let _ = self.replies.0.send(Frame::answer(&self.kind, self.request_id, outcome)).await;
    }

    fn offer(self, outcome: Result<Value, String>) {
        self.replies.offer(Frame::answer(&self.kind, self.request_id, outcome));
    }

    fn refuse(self, reason: String) {
        self.offer(Err(reason));
    }
}

fn to_value<T: serde::Serialize>(result: T) -> Result<Value, String> {
    serde_json::to_value(result).map_err(|error| error.to_string())
}

/// The objects a command touches and the change it asks for.
fn to_change(command: Command) -> Result<(Vec<String>, Change), String> {
    let keys_of = |names: &[String]| names.iter().map(|name| service_key(name)).collect::<Vec<_>>();
    Ok(match command {
        Command::AddService(services) => {
            let names: Vec<String> = services.iter().map(|service| service.name.clone()).collect();
            (keys_of(&names), Change::AddServices(services))
        }
        Command::UpdateService(services) => {
            let names: Vec<String> = services.iter().map(|service| service.name.clone()).collect();
            (keys_of(&names), Change::UpsertServices(services))
        }
        Command::DeleteService(names) => (keys_of(&names), Change::DeleteServices(names)),
        Command::PauseService(names) => (keys_of(&names), Change::PauseServices(names)),
        Command::ResumeService(names) => (keys_of(&names), Change::ResumeServices(names)),
        Command::AddChains(chain) => (vec![chain_key(&chain.name)], Change::AddChain(chain)),
        Command::UpdateChains(chain) => (vec![chain_key(&chain.name)], Change::UpsertChain(chain)),
        Command::DeleteChains(name) => (vec![chain_key(&name)], Change::DeleteChain(name)),
        Command::TcpPing(_)
        | Command::ProbeBatch(_)
        | Command::ConnectThrough(_)
        | Command::ChooseMember(_)
        | Command::SetProtocol(_)
        | Command::Unknown(_) => {
            return Err("not a change".to_owned());
        }
    })
}

/// A list of what this agent can do, for the panel's hello.
pub fn capabilities() -> Vec<String> {
    CAPABILITIES.iter().map(|capability| (*capability).to_owned()).collect()
}

const CAPABILITIES: [&str; 30] = [
    "protocol:tcp",
    "protocol:tls",
    "protocol:ws",
    "protocol:wss",
    "protocol:mtcp",
    "protocol:mtls",
    "protocol:mwss",
    "strategy:fifo",
    "strategy:round",
    "strategy:rand",
    "strategy:hash",
    "strategy:parallel",
    "strategy:lowestlatency",
    "strategy:selector",
    "strategy:urltest",
    "strategy:fixed",
    "strategy:min",
    "strategy:min_avg10",
    "strategy:min_moving_avg",
    "strategy:fixed_fallback",
    "udp",
    "probe-batch",
    "digest",
    "report",
    "fail-closed",
    "gap-free-swap",
    "limits",
    "connect-through",
    "block-protocols",
    GROUPS,
];
