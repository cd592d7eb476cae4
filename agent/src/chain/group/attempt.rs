//! One use of a member of a group.

use super::steering::Steering;
use crate::chain::failure::FailureKind;
use crate::chain::filter::Tier;
use crate::chain::marks::FailRule;
use crate::chain::select::Draw;
use crate::chain::state::{NodeState, OpenConnection};
use crate::clock::{Clock, Random};
use crate::metadata::{ConfigError, MetadataReader};
use shared::gost::Metadata;
use shared::policy::{Leaf, Network, ParseError, Priority};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Draws for one connection of a group that is decided for.
pub(crate) fn steered_draw(steering: &Steering, network: Network, random: &Random) -> Draw {
    let random = if steering.draws() { random.next() } else { 0 };
    Draw { turn: 0, random, client: 0, current: None, network }
}

/// Takes the next member in the order that was decided.
pub(crate) fn steered_attempt(
    steering: &Arc<Steering>,
    tried: impl Fn(usize) -> bool,
    draw: &Draw,
    clock: &Clock,
) -> Option<Attempt> {
    steering.used(clock.now_ms());
    let (index, tie) = steering.next(draw.network, tried, draw.random)?;
    let by = By { steering: steering.clone(), network: draw.network, tie };
    let (state, rule) = (steering.state(index).clone(), FailRule::DEFAULT);
    let (refuted, clock, by) = (state.refuted(), clock.clone(), Some(by));
    Some(Attempt { index, tier: Tier::Usable, state, rule, trial: false, refuted, clock, by })
}

/// What a member of a group that is decided for says about itself.
pub(crate) fn leaf(path: &str, name: &str, metadata: &Metadata) -> Result<Leaf, ConfigError> {
    let reader = MetadataReader::new(path, metadata, &["addLatency", "priority"])?;
    let add_latency_ms = reader.signed_millis("addLatency")?.unwrap_or(0.0);
    let priority = match reader.number("priority") {
        Ok(number) => Priority::fixed(number.unwrap_or(0)),
        Err(_) => {
            let wrong = |error: ParseError| ConfigError::new(format!("{path}.priority"), error.to_string());
            Priority::parse(reader.text("priority")?.unwrap_or_default()).map_err(wrong)?
        }
    };
    Ok(Leaf { add_latency_ms, priority, ..Leaf::new(name) })
}

/// One use of a member that has not ended yet. Dropped without verdict it changes nothing but gives a trial back.
#[derive(Debug)]
pub struct Attempt {
    pub(super) index: usize,
    pub(super) tier: Tier,
    pub(super) state: Arc<NodeState>,
    pub(super) rule: FailRule,
    pub(super) trial: bool,
    /// Probes of the member that had failed when this began.
    pub(super) refuted: u64,
    pub(super) clock: Clock,
    pub(super) by: Option<By>,
}

/// Who decided for an attempt.
#[derive(Debug)]
pub(super) struct By {
    steering: Arc<Steering>,
    network: Network,
    /// Ends the connection.
    tie: Option<CancellationToken>,
}

impl Attempt {
    /// Which member of its group.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Where it stands among the others.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Counts a failure without holding it against the member yet.
    pub fn count_failure(&self, kind: FailureKind) {
        self.state.count_failure(kind);
    }

    /// Holds the failure against the member; whether it is left out from now on and was not before.
    pub fn mark(mut self) -> bool {
        self.trial = false;
        if let Some(By { steering, network, .. }) = &self.by {
            steering.failed(self.index, *network);
            return false;
        }
        self.state.mark(self.clock.now_ms(), self.rule)
    }

    /// The connection is through; whether the member had been left out and is no more. What a probe has found meanwhile
    /// stays: otherwise, of a member that is much used, every finding would be undone at once.
    pub fn succeed(mut self) -> bool {
        // The trial, if it was one, is over with the mark, or was ended by the probe.
        self.trial = false;
        self.state.confirm(self.refuted)
    }

    /// Counts a connection through the member, open until the result is dropped.
    pub fn open(&self) -> OpenConnection {
        OpenConnection::begin(self.state.clone(), self.tie().cloned())
    }

    /// What ends the connection because its group has left the member, if the group does that.
    pub fn tie(&self) -> Option<&CancellationToken> {
        self.by.as_ref()?.tie.as_ref()
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.trial {
            self.state.abandon_trial();
        }
    }
}
