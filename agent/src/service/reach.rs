//! Gets a client connection to its target: through the service's chain, or directly if it has none.

use super::plane::Plane;
use super::race::race;
use super::refused::RefusedBy;
use super::{Forwarder, Service};
use crate::chain::asking::Asking;
use crate::chain::blame::ChainFailure;
use crate::chain::dial::{Budget, Through};
use crate::chain::failure::FailureKind;
use crate::chain::fault::TargetFault;
use crate::chain::group::Attempt;
use crate::chain::state::OpenConnection;
use crate::net::{Interface, within};
use crate::proxy_protocol;
use crate::relay::pump::Client;
use crate::relay::wire::Status;
use crate::stream::Stream;
use shared::address::HostPort;
use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

/// Where a client wants to go.
#[derive(Clone, Copy)]
pub(super) enum Goal<'a> {
    /// To one of the service's targets.
    Fixed(&'a Forwarder),
    /// To its own.
    Asked(&'a HostPort),
}

/// Why a client connection got nowhere. Never a reason to go another way than the configured one.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("chain {0} does not exist")]
    NoChain(String),
    #[error("chain {name}: {failure}")]
    Chain { name: String, failure: ChainFailure },
    #[error("{target}: {error}")]
    Direct { target: HostPort, error: io::Error },
    #[error("the service has no target")]
    NoTarget,
    #[error("the target did not take the PROXY header: {0}")]
    Announce(io::Error),
    #[error("no time left")]
    Time,
    #[error("the client is gone")]
    ClientGone,
}

impl Refusal {
    /// What the client is told about the target, if it is about that; otherwise, that there is no way to it.
    pub(super) fn fault(&self) -> Option<TargetFault> {
        match self {
            Refusal::Time | Refusal::Chain { failure: ChainFailure::Time(_), .. } => {
                Some(TargetFault::Timeout)
            }
            Refusal::Chain { failure: ChainFailure::Target(fault), .. } => Some(*fault),
            Refusal::NoChain(_)
            | Refusal::NoTarget
            | Refusal::Chain { .. }
            | Refusal::Announce(_)
            | Refusal::ClientGone => None,
            Refusal::Direct { error, .. } => Some(TargetFault::of_io(error)),
        }
    }

    /// The word by which a failure of a target is counted.
    pub(super) fn kind(&self) -> FailureKind {
        match self {
            Refusal::Direct { error, .. } => FailureKind::of_connect(error),
            Refusal::Chain { failure, .. } => failure.kind().unwrap_or(FailureKind::Lost),
            Refusal::Announce(_) | Refusal::ClientGone => FailureKind::Lost,
            Refusal::NoChain(_) | Refusal::NoTarget => FailureKind::NoNodes,
            Refusal::Time => FailureKind::OutOfTime,
        }
    }

    /// The word by which a refused client is counted.
    pub(super) fn refused_by(&self) -> RefusedBy {
        match self {
            Refusal::NoChain(_) => RefusedBy::NoChain,
            Refusal::Chain { failure, .. } => match failure {
                ChainFailure::Empty | ChainFailure::Nodes { .. } => RefusedBy::NoExit,
                ChainFailure::Target(_) => RefusedBy::Target,
                ChainFailure::Time(_) => RefusedBy::OutOfTime,
                ChainFailure::ClientGone => RefusedBy::ClientLeft,
            },
            Refusal::Direct { .. } | Refusal::Announce(_) | Refusal::NoTarget => RefusedBy::Target,
            Refusal::Time => RefusedBy::OutOfTime,
            Refusal::ClientGone => RefusedBy::ClientLeft,
        }
    }

    /// What a relay client is told.
    pub(super) fn status(&self) -> Status {
        self.fault().map_or(Status::ServiceUnavailable, TargetFault::status)
    }

    /// Whether another target could still be reached.
    pub(super) fn blames_target(&self) -> bool {
        match self {
            Refusal::Direct { .. } | Refusal::Chain { failure: ChainFailure::Target(_), .. } => true,
            Refusal::NoChain(_)
            | Refusal::NoTarget
            | Refusal::Chain { .. }
            | Refusal::Announce(_)
            | Refusal::Time
            | Refusal::ClientGone => false,
        }
    }

    /// Whether the client itself went away.
    pub(super) fn is_client_gone(&self) -> bool {
        matches!(self, Refusal::ClientGone | Refusal::Chain { failure: ChainFailure::ClientGone, .. })
    }
}

/// What leads to a target.
pub(super) trait Way: Sized + Send {
    /// Through a chain.
    fn through(through: Through) -> Self;

    /// Without one.
    fn direct(
        target: &HostPort,
        interface: Option<&Interface>,
        deadline: Duration,
    ) -> impl Future<Output = io::Result<Self>> + Send;
}

impl Way for Through {
    fn through(through: Through) -> Self {
        through
    }

    async fn direct(
        target: &HostPort,
        interface: Option<&Interface>,
        deadline: Duration,
    ) -> io::Result<Self> {
        let tcp = crate::net::connect(target, interface, deadline).await?;
        Ok(Through { stream: Stream::Tcp(tcp), open: Vec::new() })
    }
}

/// What leads datagrams to a target.
pub(super) enum DatagramWay {
    /// A stream that carries them in frames.
    Framed(Through),
    /// A socket that is connected to the target.
    Socket(UdpSocket),
}

impl Way for DatagramWay {
    fn through(through: Through) -> Self {
        DatagramWay::Framed(through)
    }

    async fn direct(
        target: &HostPort,
        interface: Option<&Interface>,
        deadline: Duration,
    ) -> io::Result<Self> {
        crate::datagram::socket::connect(target, interface, deadline).await.map(DatagramWay::Socket)
    }
}

/// A way, and the one of the service's targets it leads to, about which there is no verdict yet.
pub(super) struct Reached<W> {
    pub(super) way: W,
    pub(super) target: Option<Attempt>,
}

impl Reached<DatagramWay> {
    /// What it holds open on its way.
    pub(super) fn open(&self) -> &[OpenConnection] {
        match &self.way {
            DatagramWay::Framed(through) => through.open.as_slice(),
            DatagramWay::Socket(_) => &[],
        }
    }

    /// What ends it because a group has left the member that it is on.
    pub(super) fn ties(&self) -> Vec<CancellationToken> {
        let target = self.target.as_ref().and_then(Attempt::tie);
        self.open().iter().filter_map(OpenConnection::tie).chain(target).cloned().collect()
    }
}

/// Finds a way for a connection to the goal within the service's limits. If the service says so, the target has been
/// told who the client is.
pub(super) async fn reach(
    service: &Service,
    goal: Goal<'_>,
    client: &mut Client,
    plane: &Plane,
) -> Result<Through, Refusal> {
    let ends = client.ends;
    let mut asking = Asking::Connection { client, datagrams: false };
    let Reached { mut way, target } = find::<Through>(service, goal, &mut asking, plane).await?;
    if let (Some(version), Some(ends)) = (service.proxy_out, ends) {
        let announce = async {
            way.stream.write_all(&proxy_protocol::header(version, ends)?).await?;
            way.stream.flush().await
        };
        within(plane.options.deadlines.handshake, announce).await.map_err(Refusal::Announce)?;
    }
    if let Some(watched) = client.watched() {
        watched.has_taken(service.taken_way(goal, target.as_ref(), &way.open, plane));
    }
    target.into_iter().for_each(|target| {
        way.open.push(target.open());
        target.succeed();
    });
    Ok(way)
}

/// Finds a way for datagrams to the goal within the service's limits. That there is one says nothing about the target.
pub(super) async fn reach_for_datagrams(
    service: &Service,
    goal: Goal<'_>,
    asking: &mut Asking<'_>,
    plane: &Plane,
) -> Result<Reached<DatagramWay>, Refusal> {
    find(service, goal, asking, plane).await
}

async fn find<W: Way>(
    service: &Service,
    goal: Goal<'_>,
    asking: &mut Asking<'_>,
    plane: &Plane,
) -> Result<Reached<W>, Refusal> {
    let total = service.dial_timeout.unwrap_or(plane.options.deadlines.dial);
    let mut budget = Budget::new(&plane.options, total, service.retries);
    let forwarder = match goal {
        Goal::Asked(target) => {
            let way = reach_target(service, target, asking, plane, &mut budget).await?;
            return Ok(Reached { way, target: None });
        }
        Goal::Fixed(forwarder) => forwarder,
    };
    if forwarder.group.is_parallel() && asking.may_race() {
        return Box::pin(race(service, forwarder, asking, plane, &budget)).await;
    }
    let draw =
        forwarder.group.draw(asking.key(), asking.network(&forwarder.targets[0]), &plane.options.random);
    let mut tried = BTreeSet::new();
    let mut last = Refusal::Time;
    while let Some(attempt) = forwarder.group.pick(|i| tried.contains(&i), &draw, &plane.options.clock) {
        if budget.left().is_zero() {
            break;
        }
        tried.insert(attempt.index());
        budget.renew_attempts(service.retries);
        let target = &forwarder.targets[attempt.index()];
        match reach_target(service, target, asking, plane, &mut budget).await {
            Ok(way) => return Ok(Reached { way, target: Some(attempt) }),
            Err(refusal) if refusal.blames_target() => {
                attempt.count_failure(refusal.kind());
                if attempt.mark() {
                    tracing::info!(service = service.name, %target, %refusal, "target is left out");
                }
                last = refusal;
            }
            Err(refusal) => return Err(refusal),
        }
    }
    Err(last)
}

pub(super) async fn reach_target<W: Way>(
    service: &Service,
    target: &HostPort,
    asking: &mut Asking<'_>,
    plane: &Plane,
    budget: &mut Budget,
) -> Result<W, Refusal> {
    if let Some(chains) = &service.chains {
        let settings = (plane, service.retries);
        let reached = chains.reach(target, service.interface.as_ref(), asking, settings, budget).await;
        return reached.map(W::through);
    }
    let Some(name) = &service.chain else { return direct(service, target, plane, budget).await };
    // Resolved once: this connection keeps the chain it starts with.
    let Some(chain) = plane.registry.get(name) else { return Err(Refusal::NoChain(name.clone())) };
    crate::chain::dial::reach(&chain, target, service.interface.as_ref(), asking, budget)
        .await
        .map(W::through)
        .map_err(|failure| Refusal::Chain { name: name.clone(), failure })
}

async fn direct<W: Way>(
    service: &Service,
    target: &HostPort,
    plane: &Plane,
    budget: &mut Budget,
) -> Result<W, Refusal> {
    let mut last = Refusal::Time;
    while budget.take() {
        let deadline = plane.options.deadlines.connect.min(budget.left());
        match W::direct(target, service.interface.as_ref(), deadline).await {
            Ok(way) => return Ok(way),
            Err(error) => last = Refusal::Direct { target: target.clone(), error },
        }
        if !budget.another_round().await {
            break;
        }
    }
    Err(last)
}
