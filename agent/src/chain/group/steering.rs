//! A group whose choice is decided ahead of its connections: by a person, or by tests of its members.
//!
//! One task owns what is known and decides ([`super::deciding`]); connections read what it has published, and tell it
//! what they met with.

use super::choices::Choices;
use super::inbox::Inbox;
use super::published::Published;
use super::state_now::Changed;
use crate::chain::probe::page::Page;
use crate::chain::probe::tasks::Place;
use crate::chain::probe::{Kind, Probe};
use crate::chain::state::NodeState;
use crate::metadata::ConfigError;
use arc_swap::{ArcSwap, ArcSwapOption};
use shared::policy::spec::{DEFAULT_URL, Fallback, Interrupt, Measure};
use shared::policy::{BuildError, Forest, GroupSpec, Leaf, Network, Parsed, Policy};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// For one test of a member; sing-box's.
const TEST_DEADLINE: Duration = Duration::from_secs(15);

/// A group whose choice is decided ahead of its connections.
#[derive(Debug)]
pub struct Steering {
    spec: GroupSpec,
    leaves: Vec<Leaf>,
    states: Vec<Arc<NodeState>>,
    warnings: Vec<String>,
    /// What tests do; `None` if the policy needs none.
    probe: Option<Arc<Probe>>,
    /// Where the members are; the same places as in `leaves`.
    places: ArcSwap<Vec<Place>>,
    published: ArcSwap<Published>,
    pub(super) inbox: Inbox,
    /// To the task, while there is one.
    orders: ArcSwapOption<mpsc::Sender<Order>>,
    inherited: Mutex<Option<Inherited>>,
    /// The last change of the member in use, by network.
    pub(super) changes: Mutex<[Option<Changed>; 4]>,
}

/// What is left by the group that this one takes the place of.
#[derive(Debug)]
struct Inherited {
    names: Vec<String>,
    states: Vec<Arc<NodeState>>,
    /// Whether it measured the same.
    same_tests: bool,
    published: Arc<Published>,
}

/// A wish of a person.
#[derive(Debug)]
pub(super) struct Order {
    /// The member to use; `None`: whatever there is without a choice.
    pub(super) member: Option<String>,
    pub(super) answer: oneshot::Sender<Result<(), ChoiceError>>,
}

/// Why a choice is not as it was wished.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// Nothing was changed.
    #[error(transparent)]
    Refused(#[from] shared::policy::ChooseError),
    /// It holds, until the agent is started anew.
    #[error("chosen, but not stored: {0}")]
    NotStored(String),
    /// Nobody decides for the group at this moment.
    #[error("the group does not run")]
    NotRunning,
}

/// A member as it is configured.
pub(crate) struct SteeredMember {
    pub(crate) leaf: Leaf,
    pub(crate) state: Arc<NodeState>,
}

impl Steering {
    /// `path` is the selector's, for errors. If `previous` is the same group, it is the result; otherwise what it knows
    /// of its members is taken over.
    pub(crate) fn build(
        path: &str,
        name: String,
        Parsed { policy, warnings }: Parsed,
        members: Vec<SteeredMember>,
        previous: Option<&Arc<Steering>>,
    ) -> Result<Arc<Self>, ConfigError> {
        let names: Vec<String> = members.iter().map(|member| member.leaf.name.clone()).collect();
        let (leaves, states): (Vec<Leaf>, Vec<Arc<NodeState>>) =
            members.into_iter().map(|member| (member.leaf, member.state)).unzip();
        let spec = GroupSpec { name, members: names, policy };
        if let Some(previous) = previous.filter(|previous| {
            previous.spec == spec
                && previous.leaves == leaves
                && previous.states.iter().zip(&states).all(|(a, b)| Arc::ptr_eq(a, b))
        }) {
            return Ok(previous.clone());
        }
        let wrong = |error: BuildError| {
            let field = match error {
                BuildError::DefaultNotMember { .. } => "metadata.default",
                _ => "strategy",
            };
            ConfigError::new(format!("{path}.{field}"), error.to_string())
        };
        let forest = Forest::new(leaves.clone(), vec![spec.clone()], &BTreeMap::new()).map_err(wrong)?;
        let probe = probe(path, &spec.policy)?.map(Arc::new);
        let inherited = previous.map(|previous| Inherited {
            names: previous.spec.members.clone(),
            states: previous.states.clone(),
            same_tests: measure(&previous.spec.policy).map(|m| &m.url)
                == measure(&spec.policy).map(|m| &m.url),
            published: previous.published.load_full(),
        });
        let published = Published::of(&forest, leaves.len(), Vec::new());
        Ok(Arc::new(Self {
            inbox: Inbox::new(leaves.len()),
            spec,
            leaves,
            states,
            warnings,
            probe,
            places: ArcSwap::default(),
            published: ArcSwap::from_pointee(published),
            orders: ArcSwapOption::empty(),
            inherited: Mutex::new(inherited),
            changes: Mutex::default(),
        }))
    }

    /// By what people know the group.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// How it chooses.
    pub fn policy(&self) -> &Policy {
        &self.spec.policy
    }

    /// What the group itself fetches, where its tests fetch something.
    pub(crate) fn url(&self) -> Option<&str> {
        Some(&measure(&self.spec.policy)?.url)
    }

    /// Whether the member of this place carries datagrams.
    pub(crate) fn carries_datagrams(&self, member: usize) -> bool {
        self.leaves.get(member).is_some_and(|leaf| leaf.udp)
    }

    /// The names of its members, in order.
    pub fn members(&self) -> &[String] {
        &self.spec.members
    }

    /// What was changed in what is configured.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(super) fn probe(&self) -> Option<&Arc<Probe>> {
        self.probe.as_ref()
    }

    /// What a test of a member at this place does. A target has the page only if one was named for it: the usual one
    /// is elsewhere.
    pub(super) fn probe_of(&self, place: &Place) -> Option<Arc<Probe>> {
        let probe = self.probe.clone()?;
        let usual = measure(&self.spec.policy).is_some_and(|measure| measure.url == DEFAULT_URL);
        match place {
            Place::Target { .. } if usual => {
                Some(Arc::new(Probe { kind: Kind::Tcp { target: None }, ..Probe::clone(&probe) }))
            }
            _ => Some(probe),
        }
    }

    pub(crate) fn place(&self, member: usize) -> Option<Place> {
        self.places.load().get(member).cloned()
    }

    pub(super) fn set_places(&self, places: Vec<Place>) {
        self.places.store(Arc::new(places));
    }

    /// Whether one of the members is the chain of this name, and which.
    pub(super) fn member_that_is(&self, chain: &str) -> Option<usize> {
        self.places.load().iter().position(|place| matches!(place, Place::Chain(name) if name == chain))
    }

    /// The chain whose hop this is.
    pub(super) fn within(&self) -> Option<String> {
        match self.places.load().first() {
            Some(Place::Node(chain)) => Some(chain.clone()),
            _ => None,
        }
    }

    pub(crate) fn state(&self, member: usize) -> &Arc<NodeState> {
        &self.states[member]
    }

    pub(super) fn published(&self) -> arc_swap::Guard<Arc<Published>> {
        self.published.load()
    }

    /// The next member for a connection, and what ends the connection if it is opened on it.
    pub(crate) fn next(
        &self,
        network: Network,
        tried: impl Fn(usize) -> bool,
        random: u64,
    ) -> Option<(usize, Option<CancellationToken>)> {
        let published = self.published.load();
        let member = published.next(network, tried, || random)?;
        Some((member, published.tie(member, network)))
    }

    /// A connection uses the group.
    pub(crate) fn used(&self, now_ms: u64) {
        self.inbox.used(now_ms);
    }

    /// A dial failed at a member.
    pub(crate) fn failed(&self, member: usize, network: Network) {
        self.inbox.failed(member, network);
    }

    /// Whether chance has a say.
    pub(crate) fn draws(&self) -> bool {
        matches!(self.spec.policy, Policy::FixedFallback { fallback: Fallback::Random, .. })
    }

    /// Whether a connection may use the member at all.
    pub(crate) fn offers(&self, member: usize, network: Network) -> bool {
        self.published.load().orders[network.index()].members.contains(&member)
    }

    /// Whether the member is known not to work.
    pub(crate) fn is_dead(&self, member: usize) -> bool {
        let published = self.published.load();
        let health = published.health.get(member);
        health.is_some_and(|health| health[0].state == shared::policy::health::State::Dead)
    }

    /// Chooses a member for all connections to come; `None` takes a choice back. Only for groups that leave it to a
    /// person.
    pub async fn choose(&self, member: Option<String>) -> Result<(), ChoiceError> {
        let orders = self.orders.load_full().ok_or(ChoiceError::NotRunning)?;
        let (answer, answered) = oneshot::channel();
        orders.send(Order { member, answer }).await.map_err(|_| ChoiceError::NotRunning)?;
        answered.await.map_err(|_| ChoiceError::NotRunning)?
    }

    /// Everything that is known when nobody decides yet: what was stored, and what the group before has left. From now
    /// on connections go by it.
    pub(super) fn begin(&self, choices: &Choices) -> (Forest, mpsc::Receiver<Order>) {
        let stored = choices.get(self.name()).map(|member| (self.name().to_owned(), member));
        let stored: BTreeMap<String, String> = stored.into_iter().collect();
        let mut forest = Forest::new(self.leaves.clone(), vec![self.spec.clone()], &stored)
            .expect("the same group was built when it was configured");
        let inherited = self.inherited.lock().unwrap_or_else(PoisonError::into_inner).take();
        let before = match &inherited {
            Some(inherited) => inherited.published.clone(),
            None => self.published.load_full(),
        };
        let place = |member: usize| match &inherited {
            Some(inherited) => {
                inherited.states.iter().position(|state| Arc::ptr_eq(state, &self.states[member]))
            }
            None => Some(member),
        };
        if inherited.as_ref().is_none_or(|inherited| inherited.same_tests) {
            for member in 0..self.leaves.len() {
                if let Some(health) = place(member).and_then(|place| before.health.get(place))
                    && health.iter().any(|health| health.at.is_some())
                {
                    forest.adopt(0, member, health.clone());
                }
            }
        }
        let mut ties = Vec::new();
        let interrupt = interrupt(&self.spec.policy);
        if interrupt != Interrupt::Never {
            let tie = |member: usize| {
                let kept =
                    place(member).and_then(|place| before.ties.get(place)).cloned().unwrap_or_default();
                // One that was used up in this very moment must not end what comes.
                kept.map(|tie| if tie.is_cancelled() { CancellationToken::new() } else { tie })
            };
            ties = (0..self.leaves.len()).map(tie).collect();
        }
        let mut published = Published::of(&forest, self.leaves.len(), ties);
        if interrupt == Interrupt::OnSwitch
            && let Some(inherited) = &inherited
        {
            for network in Network::ALL {
                let name = |names: &[String], at: Option<usize>| at.and_then(|at| names.get(at).cloned());
                let old = name(&inherited.names, before.chosen[network.index()]);
                let new = name(&self.spec.members, published.chosen[network.index()]);
                if let Some(old) = old.filter(|old| Some(old) != new.as_ref())
                    && let Some(left) = self.spec.members.iter().position(|member| *member == old)
                    && let Some(ties) = published.ties.get_mut(left)
                {
                    std::mem::take(&mut ties[network.index()]).cancel();
                }
            }
        }
        self.published.store(Arc::new(published));
        let (orders, received) = mpsc::channel(WAITING_ORDERS);
        self.orders.store(Some(Arc::new(orders)));
        (forest, received)
    }

    /// Connections see what `forest` has decided. `left` are ties that are replaced; returned to be cut.
    pub(super) fn publish(&self, forest: &Forest, left: &[(usize, Network)]) -> Vec<CancellationToken> {
        let mut ties = self.published.load().ties.clone();
        let mut cut = Vec::new();
        for (member, network) in left {
            if let Some(ties) = ties.get_mut(*member) {
                cut.push(std::mem::take(&mut ties[network.index()]));
            }
        }
        self.published.store(Arc::new(Published::of(forest, self.leaves.len(), ties)));
        cut
    }

    /// A task that decided has ended. Another may have begun in the meantime.
    pub(super) fn end(&self) {
        if self.orders.load().as_ref().is_some_and(|orders| orders.is_closed()) {
            self.orders.store(None);
        }
    }
}

/// Wishes that wait; whoever has more waits for room.
const WAITING_ORDERS: usize = 16;

pub(super) fn measure(policy: &Policy) -> Option<&Measure> {
    match policy {
        Policy::UrlTest { measure, .. }
        | Policy::Min { measure, .. }
        | Policy::FixedFallback { measure, .. } => Some(measure),
        _ => None,
    }
}

fn interrupt(policy: &Policy) -> Interrupt {
    match policy {
        Policy::Selector { interrupt, .. }
        | Policy::UrlTest { interrupt, .. }
        | Policy::Min { interrupt, .. }
        | Policy::FixedFallback { interrupt, .. } => *interrupt,
        _ => Interrupt::Never,
    }
}

/// What tests of a member do.
fn probe(path: &str, policy: &Policy) -> Result<Option<Probe>, ConfigError> {
    let Some(measure) = measure(policy) else { return Ok(None) };
    let page = Page::new(&measure.url, measure.expected_status, measure.ca_file.as_deref());
    let page = page.map_err(|reason| ConfigError::new(format!("{path}.metadata.url"), reason))?;
    let timeout = match policy {
        // A retry has ended before the next one begins.
        Policy::FixedFallback { timeout_ms, .. } => TEST_DEADLINE.min(Duration::from_millis(*timeout_ms)),
        _ => TEST_DEADLINE,
    };
    Ok(Some(Probe { kind: Kind::Page(page), interval: Duration::from_millis(measure.interval_ms), timeout }))
}
