//! Asks the nodes.

use crate::agents::{Agents, CallError, Kind};
use crate::clock::random_u64;
use futures_util::StreamExt as _;
use shared::address::HostPort;
use shared::best_exit::{Leg, Settings};
use shared::ids::NodeId;
use shared::link::{
    Command, MAX_BATCH_TARGETS, ProbeBatch, ProbeBatchResult, ProbeTarget, TcpPing, TcpPingResult,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// Legs under way in the whole panel. Each costs the panel some hundred bytes and the network a packet now and then;
/// the number only keeps a panel with very many tunnels from asking everything in one instant.
pub(super) const LEGS_IN_FLIGHT: usize = 16_384;
/// Pings under way at one peer's agent, which runs each in a thread of its own and has been killed for too many.
const PINGS_PER_PEER: usize = 4;
/// Between the starts of two samples of one target, so that one burst of loss does not take them all.
const SPACING_MS: u64 = 200;
/// The starts of a round's questions are spread over this share of the interval, at most [`MAX_JITTER_MS`].
const JITTER_SHARE: u64 = 10;
/// See [`JITTER_SHARE`].
const MAX_JITTER_MS: u64 = 250;

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    count: u32,
    timeout_ms: u64,
    deadline: Duration,
    jitter_ms: u64,
}

impl How {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            count: settings.ping_count,
            timeout_ms: settings.ping_timeout_ms,
            deadline: Duration::from_millis(settings.answer_deadline_ms()),
            jitter_ms: (settings.round_interval_ms / JITTER_SHARE).min(MAX_JITTER_MS),
        }
    }
}

/// What one node had to say.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) round: u64,
    pub(super) node: NodeId,
    pub(super) said: Said,
}

#[derive(Debug)]
pub(super) enum Said {
    /// Results; more may follow.
    Legs(Vec<(usize, Leg)>),
    /// No more will come, because everything is measured.
    Finished,
    /// No more will come, because the deadline passed.
    Silent,
    /// No more will come, because the connection ended.
    Gone,
}

/// What one node is asked in one round.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) round: u64,
    pub(super) node: NodeId,
    pub(super) kind: Kind,
    /// Each leg's index, and where to connect.
    pub(super) legs: Vec<(usize, HostPort)>,
    pub(super) how: How,
}

/// Has one node measure its legs of one round, and sends what it says to `answers`.
pub(super) async fn ask(
    agents: Agents,
    question: Question,
    gate: Arc<Semaphore>,
    answers: mpsc::Sender<Answer>,
) {
    let Question { round, node, kind, legs, how } = question;
    tokio::time::sleep(Duration::from_millis(random_u64() % (how.jitter_ms + 1))).await;
    let tell = async |said| {
        // An error says that nobody decides any more: the panel stops.
        let _ = answers.send(Answer { round, node, said }).await;
    };
    let mut last = Said::Finished;
    match kind {
        Kind::Ours { probe_batch: true, .. } => {
            for chunk in legs.chunks(MAX_BATCH_TARGETS) {
                match batch(&agents, node, chunk, how, &gate).await {
                    Ok(results) => tell(Said::Legs(results)).await,
                    Err(said) => {
                        last = said;
                        break;
                    }
                }
            }
        }
        Kind::Ours { probe_batch: false, .. } | Kind::Peer => {
            let pings = legs.into_iter().map(|(leg, to)| {
                let (agents, gate) = (&agents, &gate);
                async move { (leg, ping(agents, node, &to, how, gate).await) }
            });
            let mut pings = futures_util::stream::iter(pings).buffer_unordered(PINGS_PER_PEER);
            while let Some((leg, result)) = pings.next().await {
                match result {
                    Ok(result) => tell(Said::Legs(vec![(leg, result)])).await,
                    Err(said) => {
                        last = said;
                        break;
                    }
                }
            }
        }
    }
    tell(last).await;
}

async fn batch(
    agents: &Agents,
    node: NodeId,
    legs: &[(usize, HostPort)],
    how: How,
    gate: &Semaphore,
) -> Result<Vec<(usize, Leg)>, Said> {
    let Ok(_permit) = gate.acquire_many(u32::try_from(legs.len()).unwrap_or(u32::MAX)).await else {
        return Err(Said::Gone);
    };
    let targets =
        (0u32..).zip(legs).map(|(id, (_, to))| ProbeTarget { id, host: to.host.clone(), port: to.port });
    let command = Command::ProbeBatch(ProbeBatch {
        targets: targets.collect(),
        count: how.count,
        timeout_ms: how.timeout_ms,
        spacing_ms: SPACING_MS.min(how.timeout_ms),
    });
    let unmeasured = |reason: &str| Leg::Unmeasured { reason: reason.to_owned() };
    let data = match agents.call(node, &command, how.deadline).await {
        Ok(data) => data,
        Err(error) => return settle(error, legs.iter().map(|(leg, _)| *leg)),
    };
    let mut results: Vec<(usize, Leg)> =
        legs.iter().map(|(leg, _)| (*leg, unmeasured("the node left it out"))).collect();
    match serde_json::from_value::<ProbeBatchResult>(data) {
        Ok(answer) => {
            for result in answer.results {
                if let Some(slot) = usize::try_from(result.id).ok().and_then(|id| results.get_mut(id)) {
                    slot.1 = Leg::from_samples(&result.samples);
                }
            }
        }
        Err(error) => {
            tracing::warn!(node.id = node.0, %error, "the node's measurements cannot be read");
            results.iter_mut().for_each(|slot| slot.1 = unmeasured("the answer cannot be read"));
        }
    }
    Ok(results)
}

async fn ping(agents: &Agents, node: NodeId, to: &HostPort, how: How, gate: &Semaphore) -> Result<Leg, Said> {
    let Ok(_permit) = gate.acquire().await else { return Err(Said::Gone) };
    let command = ping_command(to, how.count, how.timeout_ms);
    match agents.call(node, &command, how.deadline).await {
        Ok(data) => Ok(match serde_json::from_value::<TcpPingResult>(data) {
            Ok(result) => Leg::from_average(result.success, result.average_time, result.packet_loss),
            Err(_) => Leg::Unmeasured { reason: "the answer cannot be read".to_owned() },
        }),
        Err(error) => settle(error, [0usize]).map(|mut legs| legs.swap_remove(0).1),
    }
}

/// The peer's way to measure one target.
pub(crate) fn ping_command(to: &HostPort, count: u32, timeout_ms: u64) -> Command {
    Command::TcpPing(TcpPing { ip: to.host.clone(), port: to.port, count, timeout: timeout_ms })
}

/// A refused command measured nothing, which says nothing against the legs.
fn settle(error: CallError, legs: impl IntoIterator<Item = usize>) -> Result<Vec<(usize, Leg)>, Said> {
    match error {
        CallError::Offline => Err(Said::Gone),
        CallError::Timeout(_) => Err(Said::Silent),
        CallError::Refused(_) | CallError::Overloaded => {
            let reason = error.to_string();
            Ok(legs.into_iter().map(|leg| (leg, Leg::Unmeasured { reason: reason.clone() })).collect())
        }
    }
}
