//! Gets one client connection through a chain: path after path, until one is fully up.

use super::Chain;
use super::asking::Asking;
use super::blame::{Cause, ChainFailure, PathFailure};
use super::connector::Asked;
use super::failure::FailureKind;
use super::fault::AskError;
use super::node::Node;
use super::race::race;
use super::search::Search;
use super::sessions::{Sharing, Used, resume, way};
use super::state::OpenConnection;
use crate::net::{Interface, within};
use crate::options::RuntimeOptions;
use crate::relay::client::Unanswered;
use crate::stream::Stream;
use crate::transport::pool::DialFailure;
use shared::address::HostPort;
use std::io;
use std::time::Duration;
use tokio::time::Instant;

/// How long payload that is there waits for the answer of a node that may hold it until the target speaks. Until then
/// another node can still be used; most answers need less than this.
const GRACE: Duration = Duration::from_millis(300);
/// Pause before all nodes are tried once more for the same client.
const ROUND_PAUSE: Duration = Duration::from_millis(100);
/// The stage before all handshakes.
const CONNECT: &str = "connect";

/// What one client connection may spend until it is through.
#[derive(Clone, Debug)]
pub struct Budget {
    deadline: Instant,
    /// `None`: every candidate once.
    attempts: Option<u32>,
    options: RuntimeOptions,
}

impl Budget {
    /// `retries` 0 means every candidate once, n means n + 1 attempts.
    pub fn new(options: &RuntimeOptions, total: Duration, retries: u32) -> Self {
        let mut budget =
            Self { deadline: options.clock.instant() + total, attempts: None, options: options.clone() };
        budget.renew_attempts(retries);
        budget
    }

    /// Gives attempts for another target, but no time.
    pub fn renew_attempts(&mut self, retries: u32) {
        self.attempts = (retries > 0).then(|| retries.saturating_add(1));
    }

    /// Time left.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(self.options.clock.instant())
    }

    /// For one of several ways: what it may spend, so that one which is merely slow leaves time for another. A sound
    /// way needs far less than a connect's deadline, so more than that is not kept; nor is more than a third.
    fn for_one_of_several(&self) -> Self {
        let kept = self.options.deadlines.connect.min(self.left() / 3);
        Self { deadline: self.deadline - kept, ..self.clone() }
    }

    /// Takes one attempt; false if there is none, or no time.
    pub fn take(&mut self) -> bool {
        if self.left().is_zero() {
            return false;
        }
        match &mut self.attempts {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Whether the attempt that was taken last leaves no other.
    pub fn was_last(&self) -> bool {
        self.attempts == Some(0)
    }

    /// After every candidate was tried: pauses, and says whether they may be tried once more.
    pub async fn another_round(&self) -> bool {
        let more = self.attempts.is_some_and(|left| left > 0) && self.left() > ROUND_PAUSE;
        if more {
            tokio::time::sleep(ROUND_PAUSE).await;
        }
        more
    }
}

/// A connection through a chain.
pub struct Through {
    /// Carries payload.
    pub stream: Stream,
    /// Counts as open, per node passed.
    pub open: Vec<OpenConnection>,
}

/// How long a node's answer is waited for. A node behind which others are tried needs longer than one attempt takes.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    /// As long as its stage has, since another way is waiting.
    Stage,
    /// All the time that is left: there is no other way.
    All,
}

pub(super) enum Up {
    Answered(Stream),
    Unanswered(Unanswered),
}

/// Finds a way to `target`. Failures mark nodes, success clears them. `interface` is where hops without one of their own
/// are dialled from.
pub async fn reach(
    chain: &Chain,
    target: &HostPort,
    interface: Option<&Interface>,
    asking: &mut Asking<'_>,
    budget: &mut Budget,
) -> Result<Through, ChainFailure> {
    let options = budget.options.clone();
    let mut search = Search::new(chain, asking.key(), asking.network(target), &options);
    // Where several are tried at once, each gets the first datagram: so datagrams take one after another.
    let races = chain.hops.iter().any(|hop| hop.group.is_parallel()) && asking.may_race();
    loop {
        let Some(entrant) = search.next() else {
            if search.has_tried() && budget.another_round().await {
                search.walk.restart();
                continue;
            }
            break;
        };
        if !budget.take() {
            break;
        }
        let from = chain.hops[0].interface.as_ref().or(interface);
        let won = if races {
            race(&mut search, entrant, (target, from), asking, budget).await?
        } else {
            let last = search.walk.is_last(&entrant.indices) || budget.was_last();
            let (budget, patience) = match last {
                true => (budget.clone(), Patience::All),
                false => (budget.for_one_of_several(), Patience::Stage),
            };
            match through(&entrant.nodes, from, target, asking, (&budget, patience)).await {
                Ok(up) => Some((entrant, up)),
                Err(PathFailure { cause: Cause::ClientGone, .. }) => return Err(ChainFailure::ClientGone),
                Err(failure) => {
                    search.failed(entrant, failure);
                    None
                }
            }
        };
        if let Some((entrant, up)) = won {
            return Ok(search.won(entrant, up));
        }
    }
    Err(search.verdict(budget.left().is_zero()))
}

/// Goes one path to its end. A multiplexed session that turns out to be dead says nothing about its node: the path is then
/// gone once more without it.
pub(super) async fn through(
    nodes: &[&Node],
    interface: Option<&Interface>,
    target: &HostPort,
    asking: &mut Asking<'_>,
    (budget, patience): (&Budget, Patience),
) -> Result<Up, PathFailure> {
    let mut used = Used::default();
    let outcome = go(nodes, interface, target, asking, (budget, patience), &mut used).await;
    match outcome {
        Err(failure) if failure.is_silence() && used.distrust() && !budget.left().is_zero() => {
            tracing::debug!(cause = %failure.cause, "a session seems to be dead");
            go(nodes, interface, target, asking, (budget, patience), &mut Used::default()).await
        }
        outcome => outcome,
    }
}

async fn go(
    nodes: &[&Node],
    interface: Option<&Interface>,
    target: &HostPort,
    asking: &mut Asking<'_>,
    (budget, patience): (&Budget, Patience),
    used: &mut Used,
) -> Result<Up, PathFailure> {
    let stream = approach(nodes, interface, (budget, patience), Sharing::With(used)).await?;
    let hop = nodes.len() - 1;
    let patience = used.patience(patience);
    ask_last(stream, nodes[hop], target, asking, (budget, patience))
        .await
        .map_err(|cause| PathFailure { hop, cause })
}

/// Goes one path to its last node, up to the handshake with it.
pub(super) async fn approach(
    nodes: &[&Node],
    interface: Option<&Interface>,
    (budget, patience): (&Budget, Patience),
    mut sharing: Sharing<'_>,
) -> Result<Stream, PathFailure> {
    let (mut stream, mut next) = (None, 0);
    if let Sharing::With(used) = &mut sharing
        && let Some((hop, opened)) = resume(nodes, interface)
    {
        used.push(opened.session);
        (stream, next) = (Some(opened.stream), hop + 1);
    }
    for hop in next..nodes.len() {
        let carried = match (stream.take(), hop.checked_sub(1)) {
            (Some(carrier), Some(before)) => {
                let patience = sharing.patience(patience);
                let asked = ask_next(carrier, nodes[before], &nodes[hop].addr, (budget, patience)).await;
                let carried = asked.map_err(|(whose, cause)| match whose {
                    Whose::Next => PathFailure { hop, cause },
                    Whose::Asked => PathFailure { hop: before, cause },
                })?;
                Some(carried)
            }
            (None, _) | (_, None) => None,
        };
        let up = raise(nodes, hop, carried, interface, budget, &mut sharing).await;
        stream = Some(up.map_err(|cause| PathFailure { hop, cause })?);
    }
    // Walks hand out no empty paths; were there one, it leads nowhere.
    let empty = || Cause::Hurried { error: "empty path".into(), kind: FailureKind::NoNodes };
    stream.ok_or_else(|| PathFailure { hop: 0, cause: empty() })
}

/// Gets a connection to one node up to its connector: over TCP, or over what the hop before carries.
async fn raise(
    nodes: &[&Node],
    hop: usize,
    carried: Option<Stream>,
    interface: Option<&Interface>,
    budget: &Budget,
    sharing: &mut Sharing<'_>,
) -> Result<Stream, Cause> {
    let (node, options) = (nodes[hop], &budget.options);
    let failure = |stage, hurried, error: io::Error| DialFailure {
        stage,
        kind: if stage == CONNECT {
            FailureKind::of_connect(&error)
        } else {
            FailureKind::of_handshake(&error)
        },
        hurried: hurried && error.kind() == io::ErrorKind::TimedOut,
        text: error.to_string(),
    };
    // In three places below, and large.
    let connect = Box::pin(async {
        let carried = match carried {
            Some(carried) => carried,
            None => {
                let (deadline, hurried) = cut(options.deadlines.connect, budget.left());
                let connected = crate::net::connect(&node.addr, interface, deadline).await;
                Stream::Tcp(connected.map_err(|error| failure(CONNECT, hurried, error))?)
            }
        };
        let (_, hurried) = cut(options.deadlines.handshake, budget.left());
        let raised = node.transport.handshake(carried, options, budget.left()).await;
        raised.map_err(|error| failure("handshake", hurried, error))
    });
    let raised = match (node.transport.mux(), sharing) {
        (None, _) => connect.await,
        (Some(mux), Sharing::Alone) => {
            let alone = |conn| {
                mux.alone(conn, options).map_err(|error| failure("open", false, io::Error::other(error)))
            };
            connect.await.and_then(alone)
        }
        (Some(mux), Sharing::With(used)) => {
            let way = way(nodes, hop, interface);
            let session = async { connect.await.map(|conn| mux.start(conn, options)) };
            // Boxed, so that ways without sessions do not carry its size around.
            let opening = Box::pin(mux.pool.open_or_dial(&way, session));
            // Another connection may be dialling, and its time is not this one's.
            match tokio::time::timeout(budget.left(), opening).await {
                Ok(opened) => opened.map(|opened| {
                    used.push(opened.session);
                    opened.stream
                }),
                Err(_) => Err(failure(CONNECT, true, io::ErrorKind::TimedOut.into())),
            }
        }
    };
    raised.map_err(|failure| match failure.hurried {
        true => Cause::Hurried { error: failure.to_string(), kind: FailureKind::OutOfTime },
        false => Cause::Node { error: failure.to_string(), kind: failure.kind, everywhere: false },
    })
}

/// Whose fault it is that a node gave no connection to the next one.
enum Whose {
    Asked,
    Next,
}

/// Asks a node for a connection to the next one.
async fn ask_next(
    carrier: Stream,
    node: &Node,
    next: &HostPort,
    (budget, patience): (&Budget, Patience),
) -> Result<Stream, (Whose, Cause)> {
    let (deadline, hurried) = for_answer(node.connector.timeout(), budget, patience);
    match timed(deadline, node.connector.ask(carrier, next)).await {
        Ok(Asked::Answered(stream)) => Ok(stream),
        // The next node speaks only after its handshake has begun, so a held answer comes with it.
        Ok(Asked::Unanswered(unanswered)) => Ok(unanswered.into_stream(None)),
        Err(AskError::Node(error, kind)) => {
            Err((Whose::Asked, Cause::Node { error, kind, everywhere: true }))
        }
        Err(other) => {
            Err((Whose::Next, Cause::of(hurried, &format!("through {}", node.config.name), &other)))
        }
    }
}

/// Asks the last node for the target.
async fn ask_last(
    stream: Stream,
    node: &Node,
    target: &HostPort,
    asking: &mut Asking<'_>,
    (budget, patience): (&Budget, Patience),
) -> Result<Up, Cause> {
    let (deadline, hurried) = for_answer(node.connector.timeout(), budget, patience);
    let failed = |error: AskError| match error {
        AskError::Target(fault) => Cause::Target(fault),
        AskError::Node(error, kind) => Cause::Node { error, kind, everywhere: true },
        // Not held against the node, which does what it shall for connections.
        error @ (AskError::NoDatagrams | AskError::DatagramsDenied(_)) => {
            Cause::Hurried { error: error.to_string(), kind: error.kind() }
        }
        other => match Cause::of(hurried, &node.config.connector.kind, &other) {
            Cause::Node { error, kind, .. } => Cause::Node { error, kind, everywhere: true },
            cause @ (Cause::Hurried { .. } | Cause::Target(_) | Cause::ClientGone) => cause,
        },
    };
    let ask = node.connector.ask_for(stream, target, asking.wanted());
    let mut unanswered = match timed(deadline, ask).await.map_err(failed)? {
        Asked::Answered(stream) => return Ok(Up::Answered(stream)),
        Asked::Unanswered(unanswered) => unanswered,
    };
    let spoken = async {
        asking.has_spoken().await?;
        tokio::time::sleep(GRACE).await;
        io::Result::Ok(())
    };
    tokio::select! {
        biased;
        answer = unanswered.answer() => {
            answer.map_err(|error| failed(error.into()))?;
            Ok(Up::Answered(unanswered.into_answered()))
        }
        spoken = spoken => match spoken {
            Ok(()) => Ok(Up::Unanswered(unanswered)),
            Err(_) => Err(Cause::ClientGone),
        },
        // Neither side speaks. Failing here would cut every idle client of a node that holds its answer.
        () = tokio::time::sleep(deadline) => Ok(Up::Unanswered(unanswered)),
    }
}

/// The time for a stage, and whether it is less than half of what the stage should have: a failure by time out is not
/// held against a node then.
fn cut(stage: Duration, left: Duration) -> (Duration, bool) {
    (stage.min(left), left < stage / 2)
}

/// The time for a node's answer, and whether it is too little to hold a failure against the node.
fn for_answer(timeout: Option<Duration>, budget: &Budget, patience: Patience) -> (Duration, bool) {
    let (deadline, hurried) = cut(timeout.unwrap_or(budget.options.deadlines.relay_status), budget.left());
    match (timeout, patience) {
        (None, Patience::All) => (budget.left(), hurried),
        (Some(_), _) | (_, Patience::Stage) => (deadline, hurried),
    }
}

async fn timed<T>(
    deadline: Duration,
    future: impl Future<Output = Result<T, AskError>>,
) -> Result<T, AskError> {
    within(deadline, async { Ok(future.await) }).await?
}
