//! Measuring TCP connect times for the panel.

mod batch;
mod connect;
pub(crate) mod gate;
mod ping;
mod resolve;

use crate::clock::{Clock, Random};
use gate::{Gate, Ticket};
use resolve::Resolver;
use shared::link::{ProbeBatch, ProbeBatchResult, TcpPing, TcpPingResult};

/// Pings measured at the same time.
const PINGS: usize = 64;
/// Pings waiting for their turn.
const PINGS_WAITING: usize = 256;
/// Batches at the same time. A batch opens a socket per target and overlapping sample, some thousand at most; rounds
/// follow each other every half second at the fastest and take less than two.
const BATCHES: usize = 4;
/// Batches waiting for their turn.
const BATCHES_WAITING: usize = 16;

/// Answers probe commands, a limited number at a time.
#[derive(Clone, Debug)]
pub struct Prober {
    tools: Tools,
    pings: Gate,
    batches: Gate,
}

/// An accepted probe that has not run yet.
#[derive(Debug)]
pub(crate) struct Admitted<T> {
    ask: T,
    ticket: Ticket,
    tools: Tools,
}

/// What a probe needs from outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tools {
    resolver: Resolver,
    clock: Clock,
    random: Random,
}

/// Why a probe is not even begun; the text is the answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("busy: too many probes are waiting")]
    Busy,
    #[error("{0}")]
    Invalid(String),
}

impl Prober {
    /// Nothing running.
    pub fn new(clock: Clock, random: Random) -> Self {
        Self {
            tools: Tools { resolver: Resolver::default(), clock, random },
            pings: Gate::new(PINGS, PINGS_WAITING),
            batches: Gate::new(BATCHES, BATCHES_WAITING),
        }
    }

    pub(crate) fn admit_ping(&self, ask: TcpPing) -> Result<Admitted<TcpPing>, Refused> {
        let ticket = self.pings.enter().ok_or(Refused::Busy)?;
        Ok(Admitted { ask, ticket, tools: self.tools.clone() })
    }

    pub(crate) fn admit_batch(&self, ask: ProbeBatch) -> Result<Admitted<ProbeBatch>, Refused> {
        batch::check(&ask).map_err(Refused::Invalid)?;
        let ticket = self.batches.enter().ok_or(Refused::Busy)?;
        Ok(Admitted { ask, ticket, tools: self.tools.clone() })
    }
}

impl Admitted<TcpPing> {
    /// `None` when the panel no longer waits for it.
    pub(crate) async fn run(self) -> Option<TcpPingResult> {
        self.ticket.run(ping::deadline(&self.ask), ping::ping(&self.ask, &self.tools)).await
    }
}

impl Admitted<ProbeBatch> {
    /// `None` when the panel no longer waits for it.
    pub(crate) async fn run(self) -> Option<ProbeBatchResult> {
        let work = batch::probe(&self.ask, &self.tools);
        self.ticket.run(batch::deadline(&self.ask), work).await
    }
}
