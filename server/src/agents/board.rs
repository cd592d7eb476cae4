//! What one node is known to run, and what is still to be sent to it. Pure.

use crate::plan::{NodePlan, Planned, names};
use shared::api::DeploymentStatus;
use shared::gost::{ChainConfig, ServiceConfig};
use std::collections::{BTreeMap, BTreeSet};

/// First wait before an object that was refused, or not answered, is sent again.
const RETRY_FIRST_MS: u64 = 5_000;
/// Longest such wait.
const RETRY_MAX_MS: u64 = 60_000;

/// Names an object of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Chain(String),
    Service(String),
}

/// What is believed about an object on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is not there.
    Absent,
    /// It may be there, in whatever form.
    Unknown,
    /// It runs with this digest.
    Digest(String),
}

#[derive(Clone, Debug, PartialEq)]
struct Object {
    known: Known,
    in_flight: bool,
    trouble: Option<Trouble>,
}

/// The last attempt did not work.
#[derive(Clone, Debug, PartialEq)]
struct Trouble {
    /// What was attempted; `None` = deleting it.
    digest: Option<String>,
    /// The node said no; else it said nothing.
    refused: bool,
    reason: String,
    attempts: u32,
    retry_at: u64,
}

/// One command to be sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Chain(Planned<ChainConfig>),
    Service(Box<Planned<ServiceConfig>>),
    DeleteService(String),
    DeleteChain(String),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Accepted,
    Refused(String),
    /// It may have been carried out or not.
    Unanswered(String),
}

/// What a node should run: its plan, with the orders that it accepted since the plan was made.
pub(super) struct Desired<'a> {
    pub(super) plan: &'a NodePlan,
    /// In place of the plan's chain of the same name.
    pub(super) overrides: &'a BTreeMap<String, Planned<ChainConfig>>,
    /// Chains about which only the owner's next decision can tell: they are left alone while this digest is desired.
    pub(super) in_doubt: &'a BTreeMap<String, String>,
}

impl Desired<'_> {
    fn chain(&self, name: &str) -> Option<&Planned<ChainConfig>> {
        let planned = self.plan.chains.get(name)?;
        Some(self.overrides.get(name).unwrap_or(planned))
    }

    fn has(&self, key: &Key) -> bool {
        match key {
            Key::Chain(name) => self.plan.chains.contains_key(name),
            Key::Service(name) => self.plan.services.contains_key(name),
        }
    }

    fn doubted(&self, chain: &Planned<ChainConfig>) -> bool {
        self.in_doubt.get(&chain.config.name) == Some(&chain.digest)
    }
}

/// What is due now, and when something else will be.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Due {
    pub(super) steps: Vec<Step>,
    pub(super) next_retry_ms: Option<u64>,
}

/// What one node is known to run. Written by the node's driver only.
#[derive(Clone, Debug, Default)]
pub(super) struct Board {
    objects: BTreeMap<Key, Object>,
}

impl Board {
    /// A new connection of an agent that says what it runs: everything else is not there.
    pub(super) fn start_known(&mut self, digests: impl IntoIterator<Item = (Key, Known)>) {
        self.objects.clear();
        self.heard(digests);
    }

    /// A new connection of an agent that says nothing: what was there may still be. `suspects` are objects that it
    /// may run although this panel has not sent them since it was started.
    pub(super) fn start_unknown(&mut self, suspects: impl IntoIterator<Item = Key>) {
        self.objects.retain(|_, object| object.known != Known::Absent);
        for object in self.objects.values_mut() {
            *object = Object { known: Known::Unknown, in_flight: false, trouble: None };
        }
        for key in suspects {
            self.object(key).known = Known::Unknown;
        }
    }

    /// The agent says again what it runs. Answers that are under way have the last word about their object.
    pub(super) fn heard(&mut self, digests: impl IntoIterator<Item = (Key, Known)>) {
        for object in self.objects.values_mut() {
            object.known = Known::Absent;
        }
        for (key, known) in digests {
            self.object(key).known = known;
        }
        self.objects.retain(|_, object| {
            object.known != Known::Absent || object.in_flight || object.trouble.is_some()
        });
    }

    /// The connection ended: nothing is under way any more.
    pub(super) fn disconnected(&mut self) {
        for object in self.objects.values_mut() {
            if std::mem::take(&mut object.in_flight) {
                object.known = Known::Unknown;
            }
        }
    }

    /// What was planned for this node changed: what failed is tried again at once.
    pub(super) fn forgive(&mut self) {
        for trouble in self.objects.values_mut().filter_map(|object| object.trouble.as_mut()) {
            trouble.retry_at = 0;
        }
    }

    /// Whether a command about this object is under way.
    pub(super) fn is_in_flight(&self, key: &Key) -> bool {
        self.objects.get(key).is_some_and(|object| object.in_flight)
    }

    /// A command about this object is sent now.
    pub(super) fn begin(&mut self, key: Key) {
        self.object(key).in_flight = true;
    }

    /// A command ended. `digest` is what was sent; `None` = the object was to be deleted.
    pub(super) fn end(&mut self, key: &Key, digest: Option<String>, outcome: Outcome, peer: bool, now: u64) {
        let object = self.object(key.clone());
        object.in_flight = false;
        let (refused, reason) = match outcome {
            Outcome::Accepted => {
                object.trouble = None;
                match digest {
                    Some(digest) => object.known = Known::Digest(digest),
                    None => {
                        self.objects.remove(key);
                        // Whatever it held, a port for example, is free now.
                        self.forgive();
                    }
                }
                return;
            }
            Outcome::Refused(reason) => {
                // Our agents leave everything as it was. A peer's may have closed the old one before it failed.
                if peer {
                    object.known = Known::Unknown;
                }
                (true, reason)
            }
            Outcome::Unanswered(reason) => {
                object.known = Known::Unknown;
                (false, reason)
            }
        };
        let attempts = object.trouble.as_ref().filter(|t| t.digest == digest).map_or(0, |t| t.attempts) + 1;
        let wait = (RETRY_FIRST_MS << (attempts - 1).min(8)).min(RETRY_MAX_MS);
        object.trouble =
            Some(Trouble { digest, refused, reason, attempts, retry_at: now.saturating_add(wait) });
    }

    /// An order was pushed and not answered, or the push broke off.
    pub(super) fn unsettle(&mut self, key: &Key) {
        let object = self.object(key.clone());
        object.in_flight = false;
        object.known = Known::Unknown;
    }

    /// The object is to be sent again, whatever was acknowledged. One that is under way is being sent as it is.
    pub(super) fn resend(&mut self, key: &Key) {
        if let Some(object) = self.objects.get_mut(key).filter(|object| !object.in_flight) {
            object.known = Known::Unknown;
            object.trouble = None;
        }
    }

    /// A pushed order was refused: the object is as it was.
    pub(super) fn abandon(&mut self, key: &Key) {
        if let Some(object) = self.objects.get_mut(key) {
            object.in_flight = false;
        }
    }

    /// The digest with which an object is known to run.
    pub(super) fn known_digest(&self, key: &Key) -> Option<&str> {
        match &self.objects.get(key)?.known {
            Known::Digest(digest) => Some(digest),
            Known::Absent | Known::Unknown => None,
        }
    }

    /// The commands to send now, at most `limit`: chains first, then the services that need them, and what is no
    /// longer wanted only when nothing new is under way. Never a teardown first.
    pub(super) fn due(&self, desired: &Desired<'_>, now: u64, limit: usize) -> Due {
        let mut due = Due::default();
        if limit == 0 {
            return due;
        }
        let mut coming = BTreeSet::new();
        for name in desired.plan.chains.keys() {
            let Some(chain) = desired.chain(name) else { continue };
            if !desired.doubted(chain) && self.wants(&mut due, &Key::Chain(name.clone()), &chain.digest, now)
            {
                coming.insert(name.as_str());
                if due.steps.len() < limit {
                    due.steps.push(Step::Chain(chain.clone()));
                }
            }
        }
        for (name, service) in &desired.plan.services {
            if due.steps.len() == limit {
                break;
            }
            if self.chain_is_ready(desired, service, &coming)
                && self.wants(&mut due, &Key::Service(name.clone()), &service.digest, now)
            {
                due.steps.push(Step::Service(Box::new(service.clone())));
            }
        }
        let busy = !due.steps.is_empty() || self.objects.values().any(|object| object.in_flight);
        if !busy {
            self.removals(desired, now, &mut due);
            due.steps.truncate(limit);
        }
        due
    }

    fn removals(&self, desired: &Desired<'_>, now: u64, due: &mut Due) {
        let mut chains = Vec::new();
        for (key, object) in self.objects.iter().rev() {
            let ours = match key {
                Key::Chain(name) => names::is_our_chain(name),
                Key::Service(name) => names::is_our_service(name),
            };
            if !ours
                || desired.has(key)
                || object.known == Known::Absent
                || !self.may_try(due, object, None, now)
            {
                continue;
            }
            match key {
                Key::Service(name) => due.steps.push(Step::DeleteService(name.clone())),
                Key::Chain(name) => chains.push(Step::DeleteChain(name.clone())),
            }
        }
        // A service that still names a chain must not outlive it.
        if due.steps.is_empty() {
            due.steps = chains;
        }
    }

    fn wants(&self, due: &mut Due, key: &Key, digest: &str, now: u64) -> bool {
        let Some(object) = self.objects.get(key) else { return true };
        match &object.known {
            Known::Digest(known) if known == digest => false,
            _ => self.may_try(due, object, Some(digest), now),
        }
    }

    fn may_try(&self, due: &mut Due, object: &Object, digest: Option<&str>, now: u64) -> bool {
        if object.in_flight {
            return false;
        }
        match &object.trouble {
            Some(trouble) if trouble.digest.as_deref() == digest && trouble.retry_at > now => {
                let next = due.next_retry_ms.map_or(trouble.retry_at, |next| next.min(trouble.retry_at));
                due.next_retry_ms = Some(next);
                false
            }
            _ => true,
        }
    }

    /// A service is sent when the chain it names is there: at some agents it would dial directly without it.
    fn chain_is_ready(
        &self,
        desired: &Desired<'_>,
        service: &Planned<ServiceConfig>,
        coming: &BTreeSet<&str>,
    ) -> bool {
        let Some(name) = &service.config.handler.chain else { return true };
        let Some(chain) = desired.chain(name) else { return false };
        if desired.doubted(chain) {
            return true;
        }
        let object = self.objects.get(&Key::Chain(name.clone()));
        !coming.contains(name.as_str())
            && object.is_some_and(|o| !o.in_flight && matches!(o.known, Known::Digest(_)))
    }

    /// Where an object stands. `digest`: `None` = it should not be there.
    pub(super) fn status(
        &self,
        key: &Key,
        digest: Option<&str>,
        online: bool,
    ) -> (DeploymentStatus, Option<String>) {
        let object = self.objects.get(key);
        let settled = match (digest, object.map(|object| &object.known)) {
            (Some(digest), Some(Known::Digest(known))) => digest == known,
            (None, None | Some(Known::Absent)) => true,
            _ => false,
        };
        if settled {
            return (DeploymentStatus::Applied, None);
        }
        let trouble = object.and_then(|object| object.trouble.as_ref());
        let trouble = trouble.filter(|trouble| trouble.digest.as_deref() == digest);
        let reason = match trouble {
            Some(trouble) if trouble.refused => {
                return (DeploymentStatus::Failed, Some(trouble.reason.clone()));
            }
            Some(trouble) => trouble.reason.clone(),
            None if !online => "the node is offline".to_owned(),
            None => "the node has not answered yet".to_owned(),
        };
        (DeploymentStatus::Pending, Some(reason))
    }

    fn object(&mut self, key: Key) -> &mut Object {
        let absent = || Object { known: Known::Absent, in_flight: false, trouble: None };
        self.objects.entry(key).or_insert_with(absent)
    }
}

impl Step {
    /// The object it is about.
    pub(super) fn key(&self) -> Key {
        match self {
            Step::Chain(chain) => Key::Chain(chain.config.name.clone()),
            Step::Service(service) => Key::Service(service.config.name.clone()),
            Step::DeleteService(name) => Key::Service(name.clone()),
            Step::DeleteChain(name) => Key::Chain(name.clone()),
        }
    }

    /// What the object will run with; `None` = it will be gone.
    pub(super) fn digest(&self) -> Option<String> {
        match self {
            Step::Chain(chain) => Some(chain.digest.clone()),
            Step::Service(service) => Some(service.digest.clone()),
            Step::DeleteService(_) | Step::DeleteChain(_) => None,
        }
    }
}

impl Key {
    /// From a key of a hello.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("chain", name) => Some(Key::Chain(name.to_owned())),
            ("service", name) => Some(Key::Service(name.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
