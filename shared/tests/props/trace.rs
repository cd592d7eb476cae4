//! Random traces, and the driver that feeds them to the machine and writes down what the rules may look at.

use proptest::prelude::*;
use shared::best_exit::{
    Applied, Candidate, Leg, LegFailure, MonoMs, OwnerState, Pin, Round, Settings, Verdict,
};
use shared::ids::NodeId;

/// What the owner says to a push.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Accept,
    Refuse,
}

/// One round of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Since the round before.
    pub(crate) after_ms: u64,
    pub(crate) complete: bool,
    pub(crate) monitoring: bool,
    pub(crate) online: bool,
    /// In saved order; exits come and go.
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) pin: Option<NodeId>,
    pub(crate) answer: Answer,
    /// The panel restarts before this round.
    pub(crate) restart: bool,
}

/// What was true in one round, from the driver's own books.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) step: Step,
    pub(crate) now: MonoMs,
    /// First exit of the applied order, exits that are gone left out.
    pub(crate) current: Option<NodeId>,
    pub(crate) last_switch: Option<MonoMs>,
    pub(crate) last_refusal: Option<MonoMs>,
    pub(crate) verdict: Verdict,
}

/// Runs the machine over a trace.
pub(crate) struct Driver {
    pub(crate) state: OwnerState,
    pub(crate) settings: Settings,
    pub(crate) seen: Vec<Seen>,
    order: Vec<NodeId>,
    now: MonoMs,
    last_switch: Option<MonoMs>,
    last_refusal: Option<MonoMs>,
}

impl Driver {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            state: OwnerState::new(Applied::default()),
            settings,
            seen: Vec::new(),
            order: Vec::new(),
            now: 1_000_000,
            last_switch: None,
            last_refusal: None,
        }
    }

    /// One round: evaluates, answers a push, and returns the round as it was before the answer.
    pub(crate) fn step(&mut self, step: &Step) -> &Seen {
        self.now += step.after_ms;
        if step.restart {
            self.state =
                OwnerState::new(Applied { order: self.order.clone(), last_switch: self.last_switch });
            self.last_refusal = None;
        }
        let saved: Vec<NodeId> = step.candidates.iter().map(|c| c.exit).collect();
        let applied = self.order.iter().find(|exit| saved.contains(exit));
        let current = applied.or(saved.first()).copied();
        let (last_switch, last_refusal) = (self.last_switch, self.last_refusal);
        let round = Round {
            now: self.now,
            complete: step.complete,
            monitoring: step.monitoring,
            owner_online: step.online,
            candidates: &step.candidates,
            pin: step.pin.map(|exit| Pin { exit }),
        };
        let verdict = self.state.evaluate(&round, &self.settings);
        if let Some(order) = &verdict.push {
            match step.answer {
                Answer::Accept => {
                    self.state.accepted(order.clone(), self.now);
                    self.order.clone_from(order);
                    self.last_switch = Some(self.now);
                    self.last_refusal = None;
                }
                Answer::Refuse => {
                    self.state.refused(order[0], "refused".into(), self.now);
                    self.last_refusal = Some(self.now);
                }
            }
        }
        self.seen.push(Seen {
            step: step.clone(),
            now: self.now,
            current,
            last_switch,
            last_refusal,
            verdict,
        });
        &self.seen[self.seen.len() - 1]
    }
}

/// Valid settings. Numbers are whole or eighths, so that scores are exact and a tie is a tie in any formula.
pub(crate) fn settings() -> impl Strategy<Value = Settings> {
    let times = (prop_oneof![Just(500u64), Just(1000), Just(5000)], 0u64..6, 0u64..6, 0u64..6);
    let numbers = (1u32..5, 0u32..60, 0u32..8, prop_oneof![Just(0u32), Just(1), Just(10), Just(100)]);
    (times, numbers).prop_map(
        |((interval, cooldown, retry, grace), (confirmations, ms, eighths, penalty))| {
            let settings = Settings {
                round_interval_ms: interval,
                cooldown_ms: cooldown * interval,
                apply_retry_ms: retry * interval,
                unmeasured_grace_ms: grace * interval,
                confirmations,
                min_advantage_ms: f64::from(ms),
                min_advantage_ratio: f64::from(eighths) / 8.0,
                loss_penalty_ms_per_percent: f64::from(penalty),
                ..Settings::default()
            };
            assert_eq!(settings.validate(), []);
            settings
        },
    )
}

/// A leg with exact numbers. Few different values, so that ties and near misses happen.
pub(crate) fn leg() -> impl Strategy<Value = Leg> + Clone {
    let measured = (0u32..12, prop_oneof![6 => Just(0.0), 1 => Just(0.25), 1 => Just(0.5)])
        .prop_map(|(tens, loss)| Leg::Measured { latency_ms: f64::from(tens) * 10.0, loss });
    prop_oneof![
        12 => measured,
        1 => Just(Leg::Failed { reason: LegFailure::AllLost }),
        2 => Just(Leg::Unmeasured { reason: "agent offline".into() }),
    ]
}

/// Any numbers at all, possible or not.
pub(crate) fn wild_leg() -> impl Strategy<Value = Leg> + Clone {
    let measured =
        (any::<f64>(), any::<f64>()).prop_map(|(latency_ms, loss)| Leg::Measured { latency_ms, loss });
    let tame = (0.0..1e4, 0.0..1.0).prop_map(|(latency_ms, loss)| Leg::Measured { latency_ms, loss });
    prop_oneof![1 => measured, 3 => tame, 1 => leg()]
}

/// Traces whose legs hold for a while, as real ones do: otherwise nothing would ever be confirmed.
pub(crate) fn trace(
    legs: impl Strategy<Value = Leg> + Clone,
    pins: bool,
) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(stretch(legs, pins), 1..12)
        .prop_map(|stretches| stretches.into_iter().flatten().collect())
}

/// Some rounds with the same legs, each with its own accidents.
fn stretch(legs: impl Strategy<Value = Leg> + Clone, pins: bool) -> impl Strategy<Value = Vec<Step>> {
    let exits = prop::sample::subsequence(vec![1i64, 2, 3, 4], 0..=4).prop_shuffle();
    let candidates = (exits, prop::collection::vec((legs.clone(), legs), 4)).prop_map(|(exits, legs)| {
        let pairs = exits.into_iter().zip(legs);
        pairs.map(|(exit, (leg_a, leg_b))| Candidate { exit: NodeId(exit), leg_a, leg_b }).collect::<Vec<_>>()
    });
    let pin = if pins { prop::option::of(1i64..5).boxed() } else { Just(None).boxed() };
    let mostly = |other: f64| prop::bool::weighted(1.0 - other);
    let accident = (
        prop_oneof![10 => Just(1000u64), 2 => Just(5000), 1 => Just(15_000), 1 => Just(15_001), 1 => Just(1)],
        mostly(0.03),
        mostly(0.03),
        mostly(0.05),
        prop_oneof![3 => Just(Answer::Accept), 1 => Just(Answer::Refuse)],
        prop::bool::weighted(0.02),
    );
    (candidates, pin, prop::collection::vec(accident, 1..9)).prop_map(|(candidates, pin, accidents)| {
        let step = |(after_ms, complete, monitoring, online, answer, restart)| Step {
            after_ms,
            complete,
            monitoring,
            online,
            candidates: candidates.clone(),
            pin: pin.map(NodeId),
            answer,
            restart,
        };
        accidents.into_iter().map(step).collect()
    })
}
