//! Tries a tunnel or a forward piece by piece: every adjacent pair, then every exit to the probe target.

use crate::agents::Agents;
use crate::best_exit::ping_command;
use crate::plan::{Intent, Plans, dial};
use crate::state::AppState;
use futures_util::stream::{self, Stream, StreamExt as _};
use shared::address::HostPort;
use shared::api::{DiagnoseItem, DiagnoseLine, TunnelType};
use shared::best_exit::{Leg, LegFailure, Settings};
use shared::ids::{ForwardId, NodeId, TunnelId};
use shared::link::TcpPingResult;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Items tried at once.
const AT_ONCE: usize = 8;

/// One thing to try.
struct Trial {
    item: DiagnoseItem,
    from: NodeId,
    /// What cannot be tried says why.
    to: Result<HostPort, String>,
}

struct Outcome {
    success: bool,
    latency_ms: Option<f64>,
    loss: Option<f64>,
    message: String,
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
            let Outcome { success, latency_ms, loss, message } = outcome;
            counted.fetch_add(usize::from(success), Ordering::Relaxed);
            DiagnoseLine::Item { index, success, latency_ms, loss, message }
        });
    let done = stream::once(async move {
        let succeeded = succeeded.load(Ordering::Relaxed);
        DiagnoseLine::Done { succeeded, failed: all - succeeded }
    });
    stream::once(async move { start }).chain(results).chain(done)
}

async fn attempt(agents: &Agents, settings: &Settings, trial: &Trial) -> Outcome {
    let failed = |message: String| Outcome { success: false, latency_ms: None, loss: None, message };
    let to = match &trial.to {
        Ok(to) => to,
        Err(reason) => return failed(reason.clone()),
    };
    let command = ping_command(to, settings.ping_count, settings.ping_timeout_ms);
    let deadline = Duration::from_millis(settings.answer_deadline_ms());
    let data = match agents.call(trial.from, &command, deadline).await {
        Ok(data) => data,
        Err(error) => return failed(format!("{}: {error}", trial.item.from)),
    };
    let Ok(result) = serde_json::from_value::<TcpPingResult>(data) else {
        return failed(format!("{}: the answer cannot be read", trial.item.from));
    };
    match Leg::from_average(result.success, result.average_time, result.packet_loss) {
        Leg::Measured { latency_ms, loss } => Outcome {
            success: true,
            latency_ms: Some(latency_ms),
            loss: Some(loss),
            message: format!("{to} answers"),
        },
        Leg::Failed { reason } => failed(match (result.error_message, reason) {
            (Some(message), _) => format!("{to}: {message}"),
            (None, LegFailure::AllLost) => format!("{to} does not answer"),
            (None, _) => format!("{to} cannot be reached"),
        }),
        Leg::Unmeasured { reason } => failed(reason),
    }
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
                trials.push(trial("link", intent, *from, b.name.clone(), to));
            }
        }
        before = group.nodes.iter().map(|member| member.node).collect();
    }
    for exit in before {
        trials.push(trial("target", intent, exit, target.to_string(), Ok(target.clone())));
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
            trials.push(trial("target", intent, *node, text.clone(), target.clone()));
        }
    }
    trials
}

fn trial(kind: &str, intent: &Intent, from: NodeId, to_name: String, to: Result<HostPort, String>) -> Trial {
    let from_name = intent.nodes.get(&from).map_or_else(|| from.to_string(), |node| node.name.clone());
    Trial { item: DiagnoseItem { kind: kind.to_owned(), from: from_name, to: to_name }, from, to }
}
