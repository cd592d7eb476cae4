//! Groups that are decided for, for those who look at them and choose.

use super::Runtime;
use crate::chain::group::report::GroupReport;
use crate::chain::group::steering::{ChoiceError, Steering};
use crate::chain::probe::page::Page;
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
