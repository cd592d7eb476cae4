//! All groups that are decided for, and the tasks that do it.

use super::deciding::decide;
use super::steering::Steering;
use crate::chain::probe::tasks::Place;
use crate::service::plane::Plane;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Tests that run at the same time, of all groups; further ones wait for their turn.
const AT_ONCE: usize = 32;

/// The groups that run, by their names. Read by everybody, written by the runtime's owner.
#[derive(Debug, Default)]
pub struct Groups(ArcSwap<BTreeMap<String, Arc<Steering>>>);

impl Groups {
    /// All of them.
    pub fn all(&self) -> Arc<BTreeMap<String, Arc<Steering>>> {
        self.0.load_full()
    }

    /// The group of this name.
    pub fn get(&self, name: &str) -> Option<Arc<Steering>> {
        self.0.load().get(name).cloned()
    }

    /// A chain leads another way now: those who measure it want to know.
    pub(super) fn changed_inside(&self, chain: &str) {
        for steering in self.0.load().values() {
            if let Some(member) = steering.member_that_is(chain) {
                steering.inbox.changed(member);
            }
        }
    }
}

/// A group that is to be decided for.
#[derive(Clone)]
pub struct Steered {
    /// The group.
    pub steering: Arc<Steering>,
    /// Where its members are, in their order.
    pub places: Vec<Place>,
}

/// The tasks that decide. Dropping it ends them.
pub struct Deciders {
    /// By what the groups are part of.
    running: BTreeMap<String, Vec<Running>>,
    slots: Arc<Semaphore>,
}

struct Running {
    steering: Arc<Steering>,
    _stop: DropGuard,
}

/// Groups whose choice holds already, and for which nobody decides yet.
#[must_use = "their tasks are to be started"]
pub struct Begun(Vec<Task>);

type Task = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

impl Default for Deciders {
    fn default() -> Self {
        Self { running: BTreeMap::new(), slots: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Deciders {
    /// From now on, of `object`, these are decided for and no others; those that were before go on. The choice of the
    /// new ones holds at once, so that it is there before connections are. Their tasks start with [`Deciders::start`],
    /// when what they test is there.
    pub fn follow(&mut self, object: &str, wanted: Vec<Steered>, plane: &Arc<Plane>) -> Begun {
        let mut before = self.running.remove(object).unwrap_or_default();
        let (mut kept, mut begun) = (Vec::with_capacity(wanted.len()), Vec::new());
        for Steered { steering, places } in wanted {
            for warning in steering.warnings() {
                tracing::warn!("{}: {warning}", steering.name());
            }
            steering.set_places(places);
            match before.iter().position(|running| Arc::ptr_eq(&running.steering, &steering)) {
                Some(at) => kept.push(before.swap_remove(at)),
                None => {
                    let stop = plane.stop.child_token();
                    let task = self.task(&steering, stop.clone(), plane);
                    begun.push(task);
                    kept.push(Running { steering, _stop: stop.drop_guard() });
                }
            }
        }
        drop(before);
        if !kept.is_empty() {
            self.running.insert(object.to_owned(), kept);
        }
        let running = self.running.values().flatten();
        let groups = running.map(|running| (running.steering.name().to_owned(), running.steering.clone()));
        plane.groups.0.store(Arc::new(groups.collect()));
        Begun(begun)
    }

    /// What is part of `object` is not decided for any more.
    pub fn end(&mut self, object: &str, plane: &Arc<Plane>) {
        let Begun(none) = self.follow(object, Vec::new(), plane);
        debug_assert!(none.is_empty(), "nothing was wanted");
    }

    /// Starts the tasks.
    pub fn start(&self, Begun(begun): Begun, plane: &Plane) {
        for task in begun {
            plane.tracker.spawn(task);
        }
    }

    /// How many groups are decided for.
    pub fn len(&self) -> usize {
        self.running.values().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    fn task(&self, steering: &Arc<Steering>, stop: CancellationToken, plane: &Arc<Plane>) -> Task {
        let begun = steering.begin(&plane.options.choices);
        let shared = (plane.clone(), self.slots.clone());
        Box::pin(decide(steering.clone(), begun, shared, stop))
    }
}
