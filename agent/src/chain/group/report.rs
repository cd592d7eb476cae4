//! What is to be seen of a group, and trying its members without changing anything.

use super::steering::{Steering, measure};
use crate::chain::marks::FailRule;
use crate::chain::probe::check::Finding;
use crate::chain::probe::glance::glance;
use crate::chain::probe::page::Page;
use crate::chain::probe::tasks::{Place, Probed};
use crate::chain::probe::{Kind, Probe};
use crate::service::plane::Plane;
use futures_util::StreamExt as _;
use serde::Serialize;
use shared::policy::health::State;
use shared::policy::spec::DEFAULT_URL;
use shared::policy::{Latency, Network};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Members that are tried at the same time.
const AT_ONCE: usize = 10;

/// A group at this moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupReport {
    /// By what it is known.
    pub name: String,
    /// How it chooses, complete.
    pub policy: String,
    /// The member that connections use, by network.
    pub now: BTreeMap<&'static str, String>,
    /// What a person has chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// In order.
    pub members: Vec<MemberReport>,
}

/// A member at this moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberReport {
    /// Its name.
    pub name: String,
    /// `no_data`, `not_applicable`, `alive` or `dead`; of connections over IPv4.
    pub state: State,
    /// Milliseconds of the last test that worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    /// Moving average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_ms: Option<f64>,
    /// Since the last test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Failures in a row.
    pub failures: u32,
}

/// What came of trying a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    /// It works; how long it took.
    Works(Duration),
    /// It was not done in time.
    TimedOut,
    /// It does not work, or something on the way to it does not.
    Fails(String),
}

impl Steering {
    /// What is to be seen of it.
    pub fn report(&self, now_ms: u64) -> GroupReport {
        let published = self.published();
        let name = |member: usize| self.members().get(member).cloned();
        let member = |(at, name): (usize, &String)| {
            let health = published.health.get(at).map(|health| health[Network::Tcp4.index()].clone());
            let health = health.unwrap_or_default();
            MemberReport {
                name: name.clone(),
                state: health.state,
                latency_ms: health.latency(Latency::Last),
                average_ms: health.latency(Latency::Moving),
                age_ms: health.at.map(|at| now_ms.saturating_sub(at)),
                failures: health.failures,
            }
        };
        let now =
            Network::ALL.into_iter().zip(["tcp4", "tcp6", "udp4", "udp6"]).filter_map(|(network, text)| {
                // Who carries it, not only who would be chosen.
                let first = published.orders[network.index()].members.first();
                Some((text, name(*first?)?))
            });
        GroupReport {
            name: self.name().to_owned(),
            policy: self.policy().to_string(),
            now: now.collect(),
            choice: published.manual.and_then(name),
            members: self.members().iter().enumerate().map(member).collect(),
        }
    }

    /// Tries every member now, whatever is known, and tells how many milliseconds each took, or why it failed. The
    /// choice is not touched. `page`: what to fetch instead of what the group's own tests do.
    pub async fn try_all(
        &self,
        page: Option<Page>,
        timeout: Duration,
        plane: &Arc<Plane>,
    ) -> Vec<(String, Result<f64, String>)> {
        let kind = match (page, self.probe()) {
            (Some(page), _) => Kind::Page(page),
            (None, Some(probe)) => probe.kind.clone(),
            (None, None) => match Page::new(DEFAULT_URL, None, None) {
                Ok(page) => Kind::Page(page),
                Err(error) => {
                    return self.members().iter().map(|m| (m.clone(), Err(error.clone()))).collect();
                }
            },
        };
        let probe = Arc::new(Probe { kind, interval: timeout, timeout });
        let tried = |(at, name): (usize, &String)| {
            let (name, state, probe, plane) =
                (name.clone(), self.state(at).clone(), probe.clone(), plane.clone());
            let place = self.place(at);
            async move {
                let Some(place) = place else { return (name, Err("it is gone".to_owned())) };
                let probed = Probed { state, probe, rule: FailRule::DEFAULT, name: name.clone(), place };
                let outcome = match glance(&probed, &plane).await {
                    Finding::Works(took) => Ok(took.as_secs_f64() * 1000.0),
                    Finding::Fails(error, _) | Finding::Nothing(error) => Err(error),
                };
                (name, outcome)
            }
        };
        let tries: Vec<_> = self.members().iter().enumerate().map(tried).collect();
        futures_util::stream::iter(tries).buffered(AT_ONCE).collect().await
    }

    /// Tries one member now, whatever is known, and changes nothing. `page`: what to fetch instead of what the group's own
    /// tests do. A target is no way to a page, so it is tested as its group does that.
    pub(crate) async fn try_one(
        &self,
        member: usize,
        page: Option<Page>,
        timeout: Duration,
        plane: &Arc<Plane>,
    ) -> Tried {
        let Some(place) = self.place(member) else { return Tried::Fails("it is gone".to_owned()) };
        let kind = match (&place, self.probe_of(&place), page) {
            (Place::Target { .. }, Some(probe), _) => probe.kind.clone(),
            (Place::Target { .. }, None, _) => Kind::Tcp { target: None },
            (_, _, Some(page)) => Kind::Page(page),
            (_, Some(probe), None) => probe.kind.clone(),
            (_, None, None) => match Page::new(DEFAULT_URL, None, None) {
                Ok(page) => Kind::Page(page),
                Err(error) => return Tried::Fails(error),
            },
        };
        let probe = Arc::new(Probe { kind, interval: timeout, timeout });
        let (state, name) = (self.state(member).clone(), self.members()[member].clone());
        let probed = Probed { state, probe, rule: FailRule::DEFAULT, name, place };
        let began = plane.options.clock.instant();
        match tokio::time::timeout(timeout, glance(&probed, plane)).await {
            Ok(Finding::Works(took)) => Tried::Works(took),
            Ok(Finding::Fails(error, _) | Finding::Nothing(error)) => {
                // Whatever stage it was in.
                let took = plane.options.clock.instant().saturating_duration_since(began);
                if took >= timeout { Tried::TimedOut } else { Tried::Fails(error) }
            }
            Err(_) => Tried::TimedOut,
        }
    }

    /// The authority of its own tests, for a page that a person names.
    pub(crate) fn ca_file(&self) -> Option<&str> {
        measure(self.policy())?.ca_file.as_deref()
    }
}
