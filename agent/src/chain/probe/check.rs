//! One probe of one node.

use super::{Kind, Probe, command, http};
use crate::chain::connector::Asked;
use crate::chain::dial::{Budget, Patience, approach};
use crate::chain::fault::AskError;
use crate::chain::marks::Health;
use crate::chain::node::Node;
use crate::chain::sessions::Sharing;
use crate::chain::{Chain, Hop};
use crate::net::within;
use crate::options::RuntimeOptions;
use crate::stream::Stream;
use shared::address::HostPort;
use std::io;
use std::time::Duration;

/// What a probe has found.
#[derive(Debug)]
pub(crate) enum Finding {
    /// The node works; how long it took.
    Works(Duration),
    /// It does not; why, and after how long.
    Fails(String, Duration),
    /// Nothing about the node: it was not reached for a reason that is not its own.
    Nothing(String),
}

impl Finding {
    pub(super) fn of(outcome: Result<(), String>, took: Duration) -> Self {
        match outcome {
            Ok(()) => Finding::Works(took),
            Err(error) => Finding::Fails(error, took),
        }
    }
}

/// Runs a command and takes its time.
pub(super) async fn by_command(command: &str, probe: &Probe, options: &RuntimeOptions) -> Finding {
    let began = options.clock.instant();
    let outcome = command::run(command, probe.timeout).await;
    Finding::of(outcome, options.clock.instant().saturating_duration_since(began))
}

/// Probes the node at (`hop`, `index`) of a chain; nodes of later hops through those of the hops before.
pub(super) async fn node(
    chain: &Chain,
    (hop, index): (usize, usize),
    probe: &Probe,
    options: &RuntimeOptions,
) -> Finding {
    if let Kind::Command(command) = &probe.kind {
        return by_command(command, probe, options).await;
    }
    through_node(chain, (hop, index), (probe.kind.target(), probe), options).await
}

/// Connects to the target, if there is one, through the node at (`hop`, `index`) of a chain, and asks there for what the
/// probe names.
pub(super) async fn through_node(
    chain: &Chain,
    (hop, index): (usize, usize),
    (target, probe): (Option<&HostPort>, &Probe),
    options: &RuntimeOptions,
) -> Finding {
    let will_speak = probe.kind.will_speak();
    let Some(mut path) = way_to(chain, hop, options.clock.now_ms()) else {
        return Finding::Nothing("an earlier hop has no nodes".to_owned());
    };
    let node = &chain.hops[hop].nodes[index];
    path.push(node);
    let began = options.clock.instant();
    let took = || options.clock.instant().saturating_duration_since(began);
    let budget = Budget::new(options, probe.timeout, 0);
    let interface = chain.hops[0].interface.as_ref();
    let approached = tokio::time::timeout(
        probe.timeout,
        approach(&path, interface, (&budget, Patience::All), Sharing::Alone),
    );
    let stream = match approached.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(failure)) if failure.hop < hop => return Finding::Nothing(failure.cause.to_string()),
        Ok(Err(failure)) => return Finding::Fails(failure.cause.to_string(), took()),
        // The stages are cut to the time there is, so that one of them has told already.
        Err(_) => return Finding::Fails(format!("not done within {:?}", probe.timeout), took()),
    };
    let handshake = took();
    let asked = match target {
        None => Ok(Some(stream)),
        Some(target) => ask(node, stream, target, will_speak, budget.left()).await,
    };
    let stream = match asked {
        Ok(Some(stream)) => stream,
        Ok(None) => return Finding::Works(handshake),
        Err(error) => return Finding::Fails(error.to_string(), took()),
    };
    Finding::of(speak(stream, probe, budget.left()).await, took())
}

/// Asks for the page, if that is what the probe does.
pub(super) async fn speak(mut stream: Stream, probe: &Probe, left: Duration) -> Result<(), String> {
    if let Kind::Page(page) = &probe.kind {
        return page.fetch(stream, left).await;
    }
    let Kind::Http { request, status: expected, .. } = &probe.kind else { return Ok(()) };
    match within(left, http::status(&mut stream, request)).await {
        Ok(status) if status == *expected => Ok(()),
        Ok(status) => Err(format!("status {status} instead of {expected}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Asks a node for a connection to `target`. `None`: it may hold its answer until the target speaks, and has not answered
/// in time; then nothing is known but that there was no error.
async fn ask(
    node: &Node,
    stream: Stream,
    target: &HostPort,
    will_speak: bool,
    left: Duration,
) -> Result<Option<Stream>, AskError> {
    let asking = async {
        match node.connector.ask(stream, target).await? {
            Asked::Answered(stream) => Ok(Some(stream)),
            // The answer comes at the head of what the target says.
            Asked::Unanswered(unanswered) if will_speak => Ok(Some(unanswered.into_stream(None))),
            Asked::Unanswered(mut unanswered) => {
                match within(left / 2, async { Ok(unanswered.answer().await) }).await {
                    Ok(answer) => {
                        answer?;
                        Ok(Some(unanswered.into_answered()))
                    }
                    Err(_) => Ok(None),
                }
            }
        }
    };
    match tokio::time::timeout(left, asking).await {
        Ok(asked) => asked,
        Err(_) => Err(AskError::Io(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))),
    }
}

/// One node of each hop before `hop`. `None` if a hop has none.
fn way_to(chain: &Chain, hop: usize, now_ms: u64) -> Option<Vec<&Node>> {
    chain.hops[..hop].iter().map(|hop| hop.nodes.get(in_use(hop, now_ms)?)).collect()
}

/// The node of a hop that was decided, or the first that is not left out, else the first. `None` if it has none.
pub(super) fn in_use(hop: &Hop, now_ms: u64) -> Option<usize> {
    let usable = |i: &usize| hop.group.state(*i).health(now_ms, hop.group.rule(*i)) == Health::Clear;
    let first = || (0..hop.nodes.len()).find(usable).unwrap_or(0);
    let node = hop.group.decided().unwrap_or_else(first);
    (node < hop.nodes.len()).then_some(node)
}
