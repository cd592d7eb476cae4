//! What was really measured, as a file, and as a trace.
//!
//! ```json
//! {
//!   "exitpilotHistory": 1,
//!   "name": "hk-best",
//!   "settings": { "roundIntervalMs": 5000, "pingCount": 4 },
//!   "owners": [ {
//!     "owner": "entry-1",
//!     "exits": ["hk-1", "hk-2"],
//!     "rounds": [
//!       [1785542400000, [ [[31.2, 0], [18.4, 0.25]], [[40.1, 0], "all_lost"] ]],
//!       [1785542405000, [ [[31.0, 0], [18.9, 0]],    [[39.8, 0], null] ]]
//!     ]
//!   } ]
//! }
//! ```
//!
//! A round is its time and, for each exit in the order of `exits`, both legs: owner → exit, exit → target. A leg is mean
//! latency in milliseconds and loss (0 to 1), or why it failed (`all_lost`, `refused`, `unresolved`, `unreachable`,
//! `unsuccessful`), or `null`: it was not measured.

use super::best::node;
use super::run::STEP_MS;
use super::trace::{Dead, Exit, LegState, Script, Trace};
use crate::api::{LegHistory, WallMs};
use crate::best_exit::{Candidate, Leg, LegFailure, Settings};
use crate::ids::NodeId;
use serde::de::{self, Error as _, IgnoredAny, IntoDeserializer as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// The only version of the file so far.
const VERSION: u32 = 1;
/// Larger histories are refused: they would be years.
const MOST_ROUNDS: usize = 5_000_000;
/// More rounds apart than this many intervals, nothing is known of the time between.
const GAP_INTERVALS: u64 = 3;
/// Histories up to this length are replayed second by second.
const SHORT_MS: u64 = 6 * 3_600_000;
/// Rounds on each side over which loss is averaged for what is held to be true: one round has few samples.
const LOSS_ROUNDS: usize = 6;
/// The same for latency, which a round knows better.
const LATENCY_ROUNDS: usize = 1;

/// A file of what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct History {
    /// The version of the format: 1.
    #[serde(rename = "exitpilotHistory")]
    pub version: u32,
    /// The tunnel, or what was recorded.
    pub name: String,
    /// How it was measured, and by which rules it was decided then.
    #[serde(default)]
    pub settings: Settings,
    /// Everyone who chose.
    pub owners: Vec<OwnerHistory>,
}

/// What one owner measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnerHistory {
    /// Its name.
    pub owner: String,
    /// Names of the exits, in saved order.
    pub exits: Vec<String>,
    /// Ascending in time: the time, and for each exit both legs, `[[latency in ms, loss], [latency in ms, loss]]`. Instead of
    /// the numbers there is why a leg failed, or null: it was not measured.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Vec<serde_json::Value>>))]
    pub rounds: Vec<(WallMs, Vec<(Recorded, Recorded)>)>,
}

/// One leg in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded(pub Leg);

impl Serialize for Recorded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.0, self.0.numbers()) {
            (_, Some((ms, loss))) => written(ms, loss).serialize(serializer),
            (Leg::Failed { reason }, None) => reason.serialize(serializer),
            (Leg::Measured { .. }, None) => LegFailure::Unsuccessful.serialize(serializer),
            (Leg::Unmeasured { .. }, None) => serializer.serialize_unit(),
        }
    }
}

impl<'de> Deserialize<'de> for Recorded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RecordedForm)
    }
}

/// Reads a leg in whatever of its forms it comes. There are millions of them in a history, and trying one form after the
/// other would copy each first.
struct RecordedForm;

impl<'de> Visitor<'de> for RecordedForm {
    type Value = Recorded;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("latency and loss, why it failed, or null")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Recorded, A::Error> {
        let mut number = |place| {
            let number = pair.next_element::<f64>()?;
            number.ok_or_else(|| A::Error::invalid_length(place, &"latency and loss"))
        };
        let (ms, loss) = (number(0)?, number(1)?);
        if pair.next_element::<IgnoredAny>()?.is_some() {
            return Err(A::Error::invalid_length(3, &"latency and loss"));
        }
        // Numbers that cannot be are a failure, here too.
        Ok(Recorded(Leg::from_average(true, ms, loss * 100.0)))
    }

    fn visit_str<E: de::Error>(self, reason: &str) -> Result<Recorded, E> {
        let reason = LegFailure::deserialize(reason.into_deserializer())?;
        Ok(Recorded(Leg::Failed { reason }))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Recorded, E> {
        Ok(missing())
    }
}

/// Latency and loss as precise as files have them.
fn written(ms: f64, loss: f64) -> (f64, f64) {
    ((ms * 100.0).round() / 100.0, (loss * 1e4).round() / 1e4)
}

fn missing() -> Recorded {
    Recorded(Leg::Unmeasured { reason: "not measured".to_owned() })
}

/// Why a text is no history.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HistoryError {
    /// It is no JSON, or has another form.
    #[error("{0}")]
    Form(String),
    /// A version of another program.
    #[error("exitpilotHistory: version {0} is not known, only {VERSION} is")]
    Version(u32),
    /// There is nothing to replay.
    #[error("there is no round with two exits in it")]
    Empty,
    /// It is too long.
    #[error("{0} rounds are too many; at most {MOST_ROUNDS} are read")]
    TooLong(usize),
    /// A round is not like the others.
    #[error("owners[{owner}].rounds[{round}]: {what}")]
    Round {
        /// Whose, by number.
        owner: usize,
        /// Which, by number.
        round: usize,
        /// What is wrong.
        what: String,
    },
}

impl History {
    /// Reads a file: a history, or the answer of `GET /tunnels/{id}/quality` (without a step), which knows no names.
    pub fn parse(text: &str) -> Result<Self, HistoryError> {
        let form = |error: serde_json::Error| HistoryError::Form(error.to_string());
        let history = if text.trim_start().starts_with('[') {
            let legs: Vec<LegHistory> = serde_json::from_str(text).map_err(form)?;
            Self::of_legs("", &Settings::default(), &legs, &|node| format!("node {}", node.0))
        } else {
            serde_json::from_str(text).map_err(form)?
        };
        history.check()?;
        Ok(history)
    }

    /// From the stored history of a tunnel's legs. All legs of a round have the same time.
    pub fn of_legs(
        name: &str,
        settings: &Settings,
        legs: &[LegHistory],
        name_of: &dyn Fn(NodeId) -> String,
    ) -> Self {
        let points = |leg: &LegHistory| -> BTreeMap<WallMs, Recorded> {
            leg.points
                .iter()
                .map(|point| (point.at, Recorded(leg_of(point.latency_ms, point.loss))))
                .collect()
        };
        let b_legs: BTreeMap<NodeId, BTreeMap<WallMs, Recorded>> =
            legs.iter().filter(|leg| leg.leg == "b").map(|leg| (leg.exit_node_id, points(leg))).collect();
        let mut owners: Vec<NodeId> = Vec::new();
        for leg in legs.iter().filter(|leg| leg.leg == "a") {
            if !owners.contains(&leg.from_node_id) {
                owners.push(leg.from_node_id);
            }
        }
        let owner = |owner: &NodeId| {
            let a_legs: Vec<(NodeId, BTreeMap<WallMs, Recorded>)> = legs
                .iter()
                .filter(|leg| leg.leg == "a" && leg.from_node_id == *owner)
                .map(|leg| (leg.exit_node_id, points(leg)))
                .collect();
            // A moment in which the owner measured nothing is no round of it.
            let times: BTreeSet<WallMs> =
                a_legs.iter().flat_map(|(_, points)| points.keys().copied()).collect();
            let round = |at: WallMs| {
                let exit = |(exit, a): &(NodeId, BTreeMap<WallMs, Recorded>)| {
                    let b = b_legs.get(exit).and_then(|points| points.get(&at));
                    (a.get(&at).cloned().unwrap_or_else(missing), b.cloned().unwrap_or_else(missing))
                };
                (at, a_legs.iter().map(exit).collect())
            };
            OwnerHistory {
                owner: name_of(*owner),
                exits: a_legs.iter().map(|(exit, _)| name_of(*exit)).collect(),
                rounds: times.into_iter().map(round).collect(),
            }
        };
        Self {
            version: VERSION,
            name: name.to_owned(),
            settings: settings.clone(),
            owners: owners.iter().map(owner).collect(),
        }
    }

    /// Whether it can be replayed.
    pub fn check(&self) -> Result<(), HistoryError> {
        if self.version != VERSION {
            return Err(HistoryError::Version(self.version));
        }
        let count = self.owners.iter().map(|owner| owner.rounds.len()).sum();
        if count > MOST_ROUNDS {
            return Err(HistoryError::TooLong(count));
        }
        if let Some(error) = self.settings.validate().first() {
            return Err(HistoryError::Form(format!("settings.{}: {}", error.field, error.message)));
        }
        for (i, owner) in self.owners.iter().enumerate() {
            let mut last = WallMs::MIN;
            for (j, (at, exits)) in owner.rounds.iter().enumerate() {
                let what = if exits.len() != owner.exits.len() {
                    format!("{} exits, not {}", exits.len(), owner.exits.len())
                } else if *at <= last {
                    "not later than the round before".to_owned()
                } else {
                    last = *at;
                    continue;
                };
                return Err(HistoryError::Round { owner: i, round: j, what });
            }
        }
        let good = |owner: &OwnerHistory| owner.exits.len() > 1 && owner.rounds.len() > 1;
        if self.owners.iter().any(good) { Ok(()) } else { Err(HistoryError::Empty) }
    }

    /// How long it is, over all owners, in days.
    pub fn days(&self) -> f64 {
        let span = |owner: &OwnerHistory| match (owner.rounds.first(), owner.rounds.last()) {
            (Some(first), Some(last)) => last.0.saturating_sub(first.0) as f64,
            _ => 0.0,
        };
        self.owners.iter().map(span).sum::<f64>() / 86_400_000.0
    }

    /// Every owner that has something to choose, with its trace.
    pub fn subjects(&self) -> Vec<Subject> {
        let owners = self.owners.iter().enumerate();
        let owners = owners.filter(|(_, owner)| owner.exits.len() > 1 && owner.rounds.len() > 1);
        let subject = |(number, owner): (usize, &OwnerHistory)| Subject {
            owner: owner.owner.clone(),
            exits: owner.exits.clone(),
            start: owner.rounds.first().map_or(0, |(at, _)| *at),
            trace: owner.trace(number as u64),
        };
        owners.map(subject).collect()
    }

    /// One trace for every owner that has something to choose.
    pub fn traces(&self) -> Vec<Trace> {
        self.subjects().into_iter().map(|subject| subject.trace).collect()
    }
}

/// An owner that has something to choose.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name.
    pub owner: String,
    /// Names of the exits, in saved order.
    pub exits: Vec<String>,
    /// When the trace starts.
    pub start: WallMs,
    /// What it measured.
    pub trace: Trace,
}

impl OwnerHistory {
    /// The usual time between two rounds, in milliseconds.
    pub fn interval_ms(&self) -> u64 {
        let mut steps: Vec<u64> = self.rounds.windows(2).map(|pair| pair[1].0.abs_diff(pair[0].0)).collect();
        steps.sort_unstable();
        steps.get(steps.len() / 2).copied().unwrap_or(5000).max(1)
    }

    /// What is held to be true is what was measured, averaged over the rounds around; the panel's rules get the rounds
    /// themselves.
    fn trace(&self, seed: u64) -> Trace {
        let start = self.rounds.first().map_or(0, |(at, _)| *at);
        let time = |at: WallMs| at.abs_diff(start);
        let interval = self.interval_ms();
        let exits = (0..self.exits.len()).map(|exit| {
            let legs = |pick: fn(&(Recorded, Recorded)) -> &Recorded| {
                let legs: Vec<&Leg> = self.rounds.iter().map(|(_, exits)| &pick(&exits[exit]).0).collect();
                let mut states: Vec<Option<LegState>> = (0..legs.len()).map(|i| state(&legs, i)).collect();
                // What is not measured is as it was before; at the beginning, as it is found later.
                let mut last = states.iter().flatten().next().copied();
                for state in &mut states {
                    *state = state.or(last);
                    last = *state;
                }
                let timed = self.rounds.iter().zip(states);
                let recorded = timed.filter_map(|((at, _), state)| Some((time(*at), state?))).collect();
                Script { recorded, ..Script::new(0.1, 0.0) }
            };
            Exit::new(legs(|(a, _)| a), legs(|(_, b)| b))
        });
        let length = self.rounds.last().map_or(0, |(at, _)| time(*at)) + interval;
        let mut trace = Trace::new(seed, length, exits.collect());
        trace.recorded_every_ms = interval;
        // Long ones go by rounds: nothing that decides looks more often.
        trace.step_ms = if length <= SHORT_MS { STEP_MS } else { interval.clamp(STEP_MS, 60_000) };
        for pair in self.rounds.windows(2) {
            let (from, to) = (time(pair[0].0), time(pair[1].0));
            if to - from > GAP_INTERVALS * interval {
                trace.unknown.push((from + interval, to));
            }
        }
        trace.recorded = self
            .rounds
            .iter()
            .map(|(at, exits)| {
                let candidate = |(i, (a, b)): (usize, &(Recorded, Recorded))| Candidate {
                    exit: node(i),
                    leg_a: a.0.clone(),
                    leg_b: b.0.clone(),
                };
                (time(*at), exits.iter().enumerate().map(candidate).collect())
            })
            .collect();
        trace
    }
}

/// What is held to be true in round `at` of a leg; `None`: nothing was measured around it.
fn state(legs: &[&Leg], at: usize) -> Option<LegState> {
    let mean = |rounds: usize, value: fn((f64, f64)) -> f64| {
        let around = &legs[at.saturating_sub(rounds)..(at + rounds + 1).min(legs.len())];
        let values = around.iter().filter_map(|leg| leg.numbers()).map(value);
        let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    };
    let state = |base_ms, loss, dead| {
        Some(LegState { base_ms, jitter_ms: 0.0, loss, mode_share: 0.0, mode_ms: 0.0, dead })
    };
    if let Leg::Failed { reason } = legs[at] {
        let dead = if *reason == LegFailure::Refused { Dead::Refused } else { Dead::Silent };
        return state(0.1, 1.0, Some(dead));
    }
    let ms = mean(LATENCY_ROUNDS, |(ms, _)| ms).or_else(|| mean(LOSS_ROUNDS, |(ms, _)| ms))?;
    state(ms, mean(LOSS_ROUNDS, |(_, loss)| loss)?, None)
}

/// What a stored point says; why a leg failed is not kept with it. Rounded as in a file, so that a file of it gives the same
/// replay.
fn leg_of(latency_ms: Option<f64>, loss: Option<f64>) -> Leg {
    match (latency_ms, loss) {
        (Some(ms), Some(loss)) => {
            let (ms, loss) = written(ms, loss);
            Leg::from_average(true, ms, loss * 100.0)
        }
        (None, Some(_)) => Leg::Failed { reason: LegFailure::AllLost },
        _ => Leg::Unmeasured { reason: "not measured".to_owned() },
    }
}
