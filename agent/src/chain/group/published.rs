//! What connections see of a group: one immutable value that is swapped as a whole.

use shared::policy::{Forest, Health, Network, Order};
use tokio_util::sync::CancellationToken;

/// What is decided at this moment, and what is known.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// By network.
    pub(super) orders: [Order; 4],
    /// By member, then network: ends the connections that were opened on it. Empty where nothing is ever interrupted.
    /// In the same value as the choice, so that a connection cannot have the choice of before a change and the token of
    /// after it.
    pub(super) ties: Vec<[CancellationToken; 4]>,
    /// By network.
    pub(super) chosen: [Option<usize>; 4],
    /// A person's choice.
    pub(super) manual: Option<usize>,
    /// By member.
    pub(super) health: Vec<[Health; 4]>,
}

impl Published {
    /// What the only group of `forest` has decided; `ties` as they are now.
    pub(super) fn of(forest: &Forest, members: usize, ties: Vec<[CancellationToken; 4]>) -> Self {
        let health = |member: usize| {
            Network::ALL.map(|network| forest.health(0, member, network).cloned().unwrap_or_default())
        };
        Self {
            orders: Network::ALL.map(|network| forest.order(0, network)),
            ties,
            chosen: Network::ALL.map(|network| forest.chosen(0, network)),
            manual: forest.manual(0),
            health: (0..members).map(health).collect(),
        }
    }

    /// The next member to try for a connection that has tried some; among equals `random` decides, for the first.
    pub(super) fn next(
        &self,
        network: Network,
        tried: impl Fn(usize) -> bool,
        random: impl FnOnce() -> u64,
    ) -> Option<usize> {
        let Order { members, equals } = &self.orders[network.index()];
        if *equals > 1 && !members.iter().any(|member| tried(*member)) {
            let nth = usize::try_from(random() % *equals as u64).unwrap_or(0);
            return members.get(nth).copied();
        }
        members.iter().copied().find(|member| !tried(*member))
    }

    /// What ends a connection that is opened on this member now.
    pub(super) fn tie(&self, member: usize, network: Network) -> Option<CancellationToken> {
        Some(self.ties.get(member)?[network.index()].clone())
    }
}
