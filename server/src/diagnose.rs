//! Tries a tunnel or a forward piece by piece: every adjacent pair, then every exit to the target, then a real connection
//! through the tunnel by way of every exit.

use crate::agents::{Agents, CallError, Kind};
use crate::best_exit::ping_command;
use crate::plan::{Intent, Plans, TunnelIntent, dial, names};
use crate::state::AppState;
use futures_util::stream::{self, Stream, StreamExt as _};
use shared::address::HostPort;
use shared::api::{DiagnoseItem, DiagnoseLine, TunnelType};
use shared::best_exit::{Leg, LegFailure, Settings};
use shared::ids::{ForwardId, NodeId, TunnelId};
use shared::link::{Command, ConnectThrough, ConnectThroughResult, TcpPingResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Items tried at once.
const AT_ONCE: usize = 8;
/// For a real connection: less than an agent gives a client, since whoever diagnoses waits for it.
const CONNECTION_MS: u64 = 10_000;
/// For the way of the question and its answer.
const ON_THE_WAY: Duration = Duration::from_secs(1);

/// One thing to try.
struct Trial {
    item: DiagnoseItem,
    from: NodeId,
    /// What cannot be tried says why.
    what: Result<Attempt, String>,
}

enum Attempt {
    /// TCP connects.
    Pings(HostPort),
    /// Through a chain.
    Connection(ConnectThrough),
}

struct Outcome {
    success: bool,
    latency_ms: Option<f64>,
    loss: Option<f64>,
    message: String,
    code: Option<&'static str>,
}

/// Why a node could not try, and its code.
type Obstacle = (String, Option<&'static str>);

fn obstacle(error: &CallError) -> Obstacle {
    let code = match error {
        CallError::Offline => Some("node_offline"),
        CallError::Timeout(_) => Some("node_timeout"),
        CallError::Refused(_) | CallError::Overloaded => None,
    };
    (error.to_string(), code)
}

/// Tries a tunnel.
pub fn tunnel(
    state: &AppState,
    tunnel: TunnelId,
) -> impl Stream<Item = DiagnoseLine> + Send + 'static + use<> {
    lines(state, Box::new(move |intent, target| tunnel_trials(intent, tunnel, target)))
}

/// Tries a forward: its tunnel, then the way to each of its targets.
pub fn forward(
    state: &AppState,
    forward: ForwardId,
) -> impl Stream<Item = DiagnoseLine> + Send + 'static + use<> {
    lines(state, Box::new(move |intent, _| forward_trials(intent, forward)))
}

type Trials = Box<dyn FnOnce(&Intent, &HostPort) -> Vec<Trial> + Send>;

fn lines(state: &AppState, trials: Trials) -> impl Stream<Item = DiagnoseLine> + Send + 'static + use<> {
    let (agents, db) = (state.agents.clone(), state.db.clone());
    let prepared = async move {
        let settings = db.settings().await.map_or_else(
            |error| {
                tracing::error!(%error, "the settings could not be read; a diagnosis uses the defaults");
                Settings::default()
            },
            |(_, settings)| settings,
        );
        let target = HostPort::parse(&settings.probe_target);
        let plans: Arc<Plans> = agents.plans().unwrap_or_default();
        let trials = target.map(|target| trials(&plans.intent, &target)).unwrap_or_default();
        run(agents, settings, trials)
    };
    stream::once(prepared).flatten()
}

fn run(agents: Agents, settings: Settings, trials: Vec<Trial>) -> impl Stream<Item = DiagnoseLine> + Send {
    let start = DiagnoseLine::Start { items: trials.iter().map(|trial| trial.item.clone()).collect() };
    let (all, succeeded) = (trials.len(), Arc::new(AtomicUsize::new(0)));
    let counted = succeeded.clone();
    let results = stream::iter(trials.into_iter().enumerate())
        .map(move |(index, trial)| {
            let (agents, settings) = (agents.clone(), settings.clone());
            async move { (index, attempt(&agents, &settings, &trial).await) }
        })
        .buffer_unordered(AT_ONCE)
        .map(move |(index, outcome)| {
            let Outcome { success, latency_ms, loss, message, code } = outcome;
            counted.fetch_add(usize::from(success), Ordering::Relaxed);
            let code = code.map(str::to_owned);
            DiagnoseLine::Item { index, success, latency_ms, loss, message, code }
        });
    let done = stream::once(async move {
        let succeeded = succeeded.load(Ordering::Relaxed);
        DiagnoseLine::Done { succeeded, failed: all - succeeded }
    });
    stream::once(async move { start }).chain(results).chain(done)
}

impl Outcome {
    fn failed(message: impl Into<String>) -> Self {
        Self { success: false, latency_ms: None, loss: None, message: message.into(), code: None }
    }

    fn coded(self, code: impl Into<Option<&'static str>>) -> Self {
        Self { code: code.into(), ..self }
    }
}

async fn attempt(agents: &Agents, settings: &Settings, trial: &Trial) -> Outcome {
    let outcome = match &trial.what {
        Err(reason) => return Outcome::failed(reason),
        Ok(Attempt::Pings(to)) => pings(agents, settings, trial.from, to).await,
        Ok(Attempt::Connection(connection)) => connection_through(agents, trial.from, connection).await,
    };
    outcome.unwrap_or_else(|(reason, code)| {
        Outcome::failed(format!("{}: {reason}", trial.item.from)).coded(code)
    })
}

/// The error says why the node could not try.
async fn pings(
    agents: &Agents,
    settings: &Settings,
    from: NodeId,
    to: &HostPort,
) -> Result<Outcome, Obstacle> {
    let command = ping_command(to, settings.ping_count, settings.ping_timeout_ms);
    let deadline = Duration::from_millis(settings.answer_deadline_ms());
    let data = agents.call(from, &command, deadline).await.map_err(|error| obstacle(&error))?;
    let result: TcpPingResult = serde_json::from_value(data).map_err(|_| unreadable())?;
    Ok(match Leg::from_average(result.success, result.average_time, result.packet_loss) {
        Leg::Measured { latency_ms, loss } => Outcome {
            success: true,
            latency_ms: Some(latency_ms),
            loss: Some(loss),
            message: format!("{to} answers"),
            code: None,
        },
        Leg::Failed { reason } => match (result.error_message, reason) {
            (Some(message), _) => Outcome::failed(format!("{to}: {message}")),
            (None, LegFailure::AllLost) => {
                Outcome::failed(format!("{to} does not answer")).coded("no_answer")
            }
            (None, _) => Outcome::failed(format!("{to} cannot be reached")).coded("unreachable"),
        },
        Leg::Unmeasured { reason } => Outcome::failed(reason),
    })
}

/// The error says why the node could not try.
async fn connection_through(
    agents: &Agents,
    from: NodeId,
    connection: &ConnectThrough,
) -> Result<Outcome, Obstacle> {
    let is = |reason: &str, code| Err((format!("its agent {reason}"), Some(code)));
    match agents.kind(from) {
        Some(Kind::Ours { connect_through: true, .. }) => {}
        Some(Kind::Ours { .. }) => {
            return is("is too old to open test connections: upgrade it", "agent_old");
        }
        Some(Kind::Peer) => {
            return is("opens no test connections, which only ExitPilot's agent does", "agent_foreign");
        }
        None if agents.is_online(from) => {
            return is("has just connected and is not known yet: try again", "agent_new");
        }
        None => return Err(obstacle(&CallError::Offline)),
    }
    let deadline = Duration::from_millis(connection.timeout_ms) + ON_THE_WAY;
    match agents.call(from, &Command::ConnectThrough(connection.clone()), deadline).await {
        Ok(data) => {
            let result: ConnectThroughResult = serde_json::from_value(data).map_err(|_| unreadable())?;
            Ok(Outcome {
                success: true,
                latency_ms: Some(result.ms),
                loss: None,
                message: format!("{} was reached", connection.target),
                code: None,
            })
        }
        Err(CallError::Refused(reason)) => Ok(Outcome::failed(reason)),
        Err(error) => Err(obstacle(&error)),
    }
}

fn unreadable() -> Obstacle {
    ("the answer cannot be read".to_owned(), None)
}

fn tunnel_trials(intent: &Intent, id: TunnelId, target: &HostPort) -> Vec<Trial> {
    let Some(tunnel) = intent.tunnels.get(&id).filter(|tunnel| tunnel.kind == TunnelType::Tunnel) else {
        // A port tunnel has no links of its own; its forwards have.
        return Vec::new();
    };
    let mut trials = Vec::new();
    let mut before = tunnel.entry.clone();
    for group in tunnel.hops.iter().chain(&tunnel.exit) {
        for from in &before {
            for member in &group.nodes {
                let (Some(a), Some(b)) = (intent.nodes.get(from), intent.nodes.get(&member.node)) else {
                    continue;
                };
                let to = dial::address(a, b, member, tunnel.ip_preference).map_err(|e| e.to_string());
                trials.push(ping("link", intent, *from, b.name.clone(), to));
            }
        }
        before = group.nodes.iter().map(|member| member.node).collect();
    }
    for exit in before {
        trials.push(ping("target", intent, exit, target.to_string(), Ok(target.clone())));
    }
    trials.extend(connections(intent, id, tunnel, target));
    trials
}

/// From every owner, one connection by way of each exit.
fn connections(intent: &Intent, id: TunnelId, tunnel: &TunnelIntent, target: &HostPort) -> Vec<Trial> {
    let Some(exit) = &tunnel.exit else { return Vec::new() };
    let mut trials = Vec::new();
    for owner in tunnel.owners() {
        for member in &exit.nodes {
            let (Some(a), Some(b)) = (intent.nodes.get(&owner), intent.nodes.get(&member.node)) else {
                continue;
            };
            let via = dial::address(a, b, member, tunnel.ip_preference);
            let what = via.map_err(|error| error.to_string()).map(|via| {
                Attempt::Connection(ConnectThrough {
                    chain: names::chain(id),
                    via: Some(via.to_string()),
                    target: target.to_string(),
                    timeout_ms: CONNECTION_MS,
                })
            });
            trials.push(trial("connection", intent, owner, format!("{} → {target}", b.name), what));
        }
    }
    trials
}

fn forward_trials(intent: &Intent, id: ForwardId) -> Vec<Trial> {
    let Some(forward) = intent.forwards.get(&id) else { return Vec::new() };
    let Some(tunnel) = intent.tunnels.get(&forward.tunnel) else { return Vec::new() };
    // Whoever dials the targets: the exits, or without any the entry.
    let last = match &tunnel.exit {
        Some(exit) if tunnel.kind == TunnelType::Tunnel => exit.nodes.iter().map(|m| m.node).collect(),
        _ => tunnel.entry.clone(),
    };
    let mut trials = Vec::new();
    for text in &forward.targets {
        let target = HostPort::parse(text).map_err(|error| format!("{text}: {error}"));
        if trials.is_empty()
            && let Ok(target) = &target
        {
            let links = tunnel_trials(intent, forward.tunnel, target);
            trials.extend(links.into_iter().filter(|trial| trial.item.kind == "link"));
        }
        for node in &last {
            trials.push(ping("target", intent, *node, text.clone(), target.clone()));
        }
        if tunnel.kind == TunnelType::Tunnel
            && let Ok(target) = &target
        {
            trials.extend(connections(intent, forward.tunnel, tunnel, target));
        }
    }
    trials
}

fn ping(kind: &str, intent: &Intent, from: NodeId, to_name: String, to: Result<HostPort, String>) -> Trial {
    trial(kind, intent, from, to_name, to.map(Attempt::Pings))
}

fn trial(kind: &str, intent: &Intent, from: NodeId, to_name: String, what: Result<Attempt, String>) -> Trial {
    let from_name = intent.nodes.get(&from).map_or_else(|| from.to_string(), |node| node.name.clone());
    Trial { item: DiagnoseItem { kind: kind.to_owned(), from: from_name, to: to_name }, from, what }
}
