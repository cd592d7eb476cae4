//! The one task that decides for a group.

use super::inbox::News;
use super::steering::{ChoiceError, Order, Steering};
use crate::chain::marks::FailRule;
use crate::chain::probe::check::Finding;
use crate::chain::probe::tasks::{Probed, find};
use crate::service::plane::Plane;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use shared::policy::{Effect, Event, Forest, Network, Outcome};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// A round of tests comes later by up to this part of the interval, so that many agents do not act in step.
const LATE: f64 = 0.1;

type Test = Pin<Box<dyn Future<Output = (usize, [Option<Outcome>; 4])> + Send>>;

/// Decides until `stop`.
pub(super) async fn decide(
    steering: Arc<Steering>,
    (forest, orders): (Forest, mpsc::Receiver<Order>),
    (plane, slots): (Arc<Plane>, Arc<Semaphore>),
    stop: CancellationToken,
) {
    let late = Duration::ZERO;
    let mut deciding =
        Deciding { steering: steering.clone(), forest, plane, slots, tests: FuturesUnordered::new(), late };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = deciding.run(orders) => {}
    }
    // Tests that are under way end with it.
    drop(deciding);
    steering.end();
}

struct Deciding {
    steering: Arc<Steering>,
    /// The group alone.
    forest: Forest,
    plane: Arc<Plane>,
    slots: Arc<Semaphore>,
    tests: FuturesUnordered<Test>,
    /// By how much the next round comes later.
    late: Duration,
}

impl Deciding {
    async fn run(&mut self, mut orders: mpsc::Receiver<Order>) {
        let steering = self.steering.clone();
        self.happened(&Event::Started);
        loop {
            let due = self.due();
            tokio::select! {
                biased;
                order = orders.recv() => {
                    let Some(order) = order else { return };
                    self.choose(order).await;
                }
                () = steering.inbox.arrived() => {
                    for news in steering.inbox.take() {
                        let event = match news {
                            News::Used => Event::Used { group: 0 },
                            News::Failed(leaf, network) => Event::DialFailed { leaf, network },
                            News::Changed(leaf) => Event::TestMember { group: 0, leaf },
                        };
                        self.happened(&event);
                    }
                }
                Some((leaf, outcomes)) = self.tests.next(), if !self.tests.is_empty() => {
                    self.happened(&Event::Tested { group: 0, leaf, outcomes });
                }
                () = due => self.tick(),
            }
        }
    }

    /// Ends when there is something to do by the time.
    fn due(&self) -> impl Future<Output = ()> + use<> {
        let now = self.plane.options.clock.now_ms();
        let left = |at: u64| Duration::from_millis(at.saturating_sub(now));
        let round = self.forest.round_due().map(|at| left(at) + self.late);
        let phase = self.forest.phase_due().map(left);
        let due = round.into_iter().chain(phase).min();
        async move {
            match due {
                Some(due) => tokio::time::sleep(due).await,
                None => std::future::pending().await,
            }
        }
    }

    fn tick(&mut self) {
        self.happened(&Event::Tick);
        let interval = self.steering.probe().map_or(Duration::ZERO, |probe| probe.interval);
        self.late = interval.mul_f64(LATE * self.plane.options.random.unit());
    }

    fn happened(&mut self, event: &Event) {
        let effects = self.forest.observe(event, self.plane.options.clock.now_ms());
        self.carry_out(&effects);
    }

    async fn choose(&mut self, Order { member, answer }: Order) {
        let (steering, now) = (self.steering.clone(), self.plane.options.clock.now_ms());
        let name = steering.name();
        let effects = match &member {
            Some(member) => self.forest.choose(name, member, now),
            None => self.forest.clear(name, now),
        };
        let outcome = match effects {
            Err(refused) => Err(ChoiceError::Refused(refused)),
            Ok(effects) => {
                self.carry_out(&effects);
                let noted = self.plane.options.choices.note(name, member.as_deref()).await;
                noted.map_err(|error| {
                    tracing::error!(group = name, %error, "a choice could not be stored");
                    ChoiceError::NotStored(error.to_string())
                })
            }
        };
        // Whoever asked may have stopped waiting; the choice holds all the same.
        let _ = answer.send(outcome);
    }

    /// What was decided is published, and then what it leads to is done.
    fn carry_out(&mut self, effects: &[Effect]) {
        let (steering, plane) = (self.steering.clone(), self.plane.clone());
        let left: Vec<(usize, Network, u64)> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Interrupt { network, member, drain_ms, .. } => Some((*member, *network, *drain_ms)),
                _ => None,
            })
            .collect();
        let places: Vec<(usize, Network)> =
            left.iter().map(|(member, network, _)| (*member, *network)).collect();
        for (tie, (_, _, drain_ms)) in steering.publish(&self.forest, &places).into_iter().zip(left) {
            cut(tie, Duration::from_millis(drain_ms), &plane);
        }
        for effect in effects {
            match effect {
                Effect::Test { leaf, .. } => self.test(*leaf),
                Effect::Switched { network, from, to, why, .. } => {
                    steering.changed(*network, *from, *why, plane.options.clock.now_ms());
                    let member = |at: &usize| steering.members().get(*at).map(String::as_str);
                    let (from, to) = (member(from), member(to));
                    tracing::info!(group = steering.name(), ?network, from, to, ?why, "uses another member");
                    if let Some(chain) = steering.within() {
                        plane.groups.changed_inside(&chain);
                    }
                }
                // Both are done by whoever caused them.
                Effect::Interrupt { .. } | Effect::Remember { .. } => {}
            }
        }
    }

    fn test(&mut self, leaf: usize) {
        let Some(place) = self.steering.place(leaf) else { return };
        let Some(probe) = self.steering.probe_of(&place) else { return };
        let name = format!("{}: {}", self.steering.name(), self.steering.members()[leaf]);
        let state = self.steering.state(leaf).clone();
        let probed = Probed { state, probe, rule: FailRule::DEFAULT, name, place };
        let (plane, slots) = (self.plane.clone(), self.slots.clone());
        self.tests.push(Box::pin(async move {
            // The semaphore is never closed.
            let Ok(_slot) = slots.acquire().await else { return (leaf, [None; 4]) };
            let finding = find(&probed, &plane).await;
            tracing::debug!(member = probed.name, ?finding, "tested");
            let outcome = match finding {
                Finding::Works(took) => Some(Outcome::Ok(took.as_secs_f64() * 1000.0)),
                Finding::Fails(..) => Some(Outcome::Failed),
                Finding::Nothing(_) => None,
            };
            // A member that carries a network at all lives or dies in all of them; what fails in one only is found out
            // by its connections.
            (leaf, [outcome; 4])
        }));
    }
}

/// Ends the connections of a tie, after what they still get.
fn cut(tie: CancellationToken, drain: Duration, plane: &Arc<Plane>) {
    if drain.is_zero() {
        return tie.cancel();
    }
    let stop = plane.stop.clone();
    plane.tracker.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(drain) => tie.cancel(),
        }
    });
}

#[cfg(test)]
#[path = "deciding_tests.rs"]
mod tests;
