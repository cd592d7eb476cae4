//! Groups that are decided for, for those who look at them and choose.

use super::Runtime;
use crate::chain::Chain;
use crate::chain::group::report::{GroupReport, Tried};
use crate::chain::group::steering::{ChoiceError, Steering};
use crate::chain::probe::page::Page;
use shared::link::{GroupState, MAX_REPORTED_MEMBERS};
use std::sync::Arc;
use std::time::Duration;

/// Why members are not tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryError {
    /// No such group.
    #[error("there is no group {0}")]
    NoGroup(String),
    /// What is to be fetched makes no sense.
    #[error("{0}")]
    Url(String),
}

impl Runtime {
    /// All groups that are decided for, sorted by name.
    pub fn groups(&self) -> Vec<GroupReport> {
        let now_ms = self.now_ms();
        self.plane.groups.all().values().map(|group| group.report(now_ms)).collect()
    }

    /// All groups that are decided for, in the order in which they are configured: those of chains hop after hop, then those
    /// of services.
    pub(crate) fn groups_in_order(&self) -> Vec<Arc<Steering>> {
        let view = self.view.load();
        let (mut chains, mut services): (Vec<_>, Vec<_>) = {
            let all = self.plane.registry.all();
            (all.values().cloned().collect(), view.services.iter().collect())
        };
        chains.sort_by_key(|chain| view.places.of_chain(&chain.config.name));
        services.sort_by_key(|(name, _)| view.places.of_service(name));
        let steered = chains.iter().flat_map(|chain| chain.steered());
        let steered = steered.chain(services.iter().flat_map(|(_, service)| service.steered()));
        // Those of a service that is paused are not decided for.
        steered.filter_map(|steered| self.plane.groups.get(steered.steering.name())).collect()
    }

    /// The chain of this name.
    pub(crate) fn chain(&self, name: &str) -> Option<Arc<Chain>> {
        self.plane.registry.get(name)
    }

    /// Tries one member of a group now and changes nothing; see [`Steering::try_one`].
    pub(crate) async fn try_member(
        &self,
        (group, member): (&Steering, usize),
        (url, status): (Option<&str>, Option<u16>),
        timeout: Duration,
    ) -> Result<Tried, TryError> {
        let file = group.ca_file().filter(|_| url.is_some_and(|url| url.starts_with("https:")));
        let page = url.map(|url| Page::new(url, status, file)).transpose().map_err(TryError::Url)?;
        Ok(group.try_one(member, page, timeout, &self.plane).await)
    }

    /// What a panel is told of all groups, and what of one; see [`Steering::state_now`].
    pub(crate) fn group_states(&self) -> Vec<GroupState> {
        let now_ms = self.now_ms();
        let mut room = MAX_REPORTED_MEMBERS;
        let all = self.plane.groups.all();
        let fitting = all.values().take_while(|group| {
            let members = group.members().len();
            let fits = members <= room;
            room = room.saturating_sub(members);
            fits
        });
        fitting.map(|group| group.state_now(now_ms)).collect()
    }

    /// See [`Runtime::group_states`].
    pub(crate) fn group_state(&self, name: &str) -> Option<GroupState> {
        Some(self.group_named(name)?.state_now(self.now_ms()))
    }

    fn group_named(&self, name: &str) -> Option<Arc<Steering>> {
        self.plane.groups.get(name)
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<GroupReport> {
        Some(self.group_named(name)?.report(self.now_ms()))
    }

    /// Chooses a member of a group that leaves it to a person; `None` takes the choice back. Stored before it returns.
    pub async fn choose(&self, group: &str, member: Option<String>) -> Result<(), ChoiceError> {
        let no_group = || shared::policy::ChooseError::NoGroup(group.to_owned());
        self.group_named(group).ok_or_else(no_group)?.choose(member).await
    }

    /// Tries every member of a group now; see [`Steering::try_all`].
    pub async fn try_members(
        &self,
        group: &str,
        url: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<(String, Result<f64, String>)>, TryError> {
        let group = self.group_named(group).ok_or_else(|| TryError::NoGroup(group.to_owned()))?;
        let file = group.ca_file().filter(|_| url.is_some_and(|url| url.starts_with("https:")));
        let page = url.map(|url| Page::new(url, None, file)).transpose().map_err(TryError::Url)?;
        Ok(group.try_all(page, timeout, &self.plane).await)
    }
}
