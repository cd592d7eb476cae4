//! The decision machine of one owner.

use super::scoring::Placed;
use super::{Outcome, input};
use crate::best_exit::{Applied, Candidate, Leg, OwnerState, Pin, Reason, Round, Settings};
use crate::field::FieldError;
use crate::ids::NodeId;
use crate::topology::MAX_GROUP_NODES;
use serde::{Deserialize, Serialize};

/// Decides for one owner which of its exits is first. It takes in rounds; whoever calls it pushes what it says and tells
/// what became of it.
#[derive(Clone, Debug)]
pub struct Machine {
    settings: Settings,
    exits: Vec<NodeId>,
    state: OwnerState,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    #[serde(default)]
    settings: Settings,
    exits: Vec<NodeId>,
    #[serde(default)]
    applied: Option<AppliedInput>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AppliedInput {
    order: Vec<NodeId>,
    #[serde(default)]
    last_switch: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Evaluate {
    round: RoundInput,
    now_ms: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RoundInput {
    candidates: Vec<Candidate>,
    #[serde(default = "yes")]
    complete: bool,
    #[serde(default = "yes")]
    monitoring: bool,
    #[serde(default = "yes")]
    owner_online: bool,
    #[serde(default)]
    pin: Option<NodeId>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Accepted {
    order: Vec<NodeId>,
    now_ms: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Refused {
    exit: NodeId,
    error: String,
    now_ms: f64,
}

/// What a round leads to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Best first; empty when the round was not evaluated.
    pub ranked: Vec<Placed>,
    /// Why.
    pub reason: Reason,
    /// The reason as an English sentence.
    pub message: String,
    /// The order to push, if all rules hold.
    pub push: Option<Vec<NodeId>>,
}

impl Machine {
    /// `{ settings?, exits, applied? }`: the exits are in saved order, `applied` is what was accepted last.
    pub fn new(json: &str) -> Outcome<Self> {
        let New { settings, exits, applied } = input::arguments(json)?;
        if let Some(error) = settings.validate().into_iter().next() {
            return Err(error.within("settings"));
        }
        unique("exits", &exits)?;
        if exits.is_empty() || exits.len() > MAX_GROUP_NODES {
            let message = format!("give 1 to {MAX_GROUP_NODES} exits");
            return Err(FieldError::new("exits", "out_of_range", message)
                .with("min", 1)
                .with("max", MAX_GROUP_NODES));
        }
        let applied = match applied {
            None => Applied::default(),
            Some(AppliedInput { order, last_switch }) => {
                unique("applied.order", &order)?;
                let last_switch =
                    last_switch.map(|ms| input::time_ms("applied.lastSwitch", ms)).transpose()?;
                Applied { order, last_switch }
            }
        };
        Ok(Self { settings, exits, state: OwnerState::new(applied) })
    }

    /// Takes a round in: `{ round: { candidates, complete?, monitoring?, ownerOnline?, pin? }, nowMs }`. An exit without
    /// a candidate was not measured.
    pub fn evaluate(&mut self, json: &str) -> Outcome<Verdict> {
        let Evaluate { round, now_ms } = input::arguments(json)?;
        let now = input::time_ms("nowMs", now_ms)?;
        let field = |i: usize| format!("round.candidates[{i}].exit");
        for (i, candidate) in round.candidates.iter().enumerate() {
            self.known(&field(i), candidate.exit)?;
            if round.candidates[..i].iter().any(|other| other.exit == candidate.exit) {
                return Err(twice(&field(i), candidate.exit));
            }
        }
        if let Some(pin) = round.pin {
            self.known("round.pin", pin)?;
        }
        let unmeasured = || Leg::Unmeasured { reason: "not measured".to_owned() };
        let candidate = |exit: &NodeId| {
            let given = round.candidates.iter().find(|candidate| candidate.exit == *exit);
            given.cloned().unwrap_or_else(|| Candidate {
                exit: *exit,
                leg_a: unmeasured(),
                leg_b: unmeasured(),
            })
        };
        let candidates: Vec<Candidate> = self.exits.iter().map(candidate).collect();
        let round = Round {
            now,
            complete: round.complete,
            monitoring: round.monitoring,
            owner_online: round.owner_online,
            candidates: &candidates,
            pin: round.pin.map(|exit| Pin { exit }),
        };
        let verdict = self.state.evaluate(&round, &self.settings);
        Ok(Verdict {
            ranked: verdict.ranked.into_iter().map(|it| Placed { exit: it.exit, score: it.score }).collect(),
            message: verdict.reason.describe(&|exit| format!("exit {exit}")),
            reason: verdict.reason,
            push: verdict.push,
        })
    }

    /// The order that was pushed is in force: `{ order, nowMs }`.
    pub fn accepted(&mut self, json: &str) -> Outcome<()> {
        let Accepted { order, now_ms } = input::arguments(json)?;
        let now = input::time_ms("nowMs", now_ms)?;
        unique("order", &order)?;
        for (i, exit) in order.iter().enumerate() {
            self.known(&format!("order[{i}]"), *exit)?;
        }
        if order.is_empty() {
            return Err(FieldError::new("order", "missing_field", "give the order that is in force"));
        }
        self.state.accepted(order, now);
        Ok(())
    }

    /// The order that was pushed is not in force: `{ exit, error, nowMs }`, the exit being its first.
    pub fn refused(&mut self, json: &str) -> Outcome<()> {
        let Refused { exit, error, now_ms } = input::arguments(json)?;
        let now = input::time_ms("nowMs", now_ms)?;
        self.known("exit", exit)?;
        self.state.refused(exit, error, now);
        Ok(())
    }

    /// What was accepted last; an empty order: nothing was, and the saved order counts.
    pub fn applied(&self) -> &Applied {
        &self.state.applied
    }

    fn known(&self, field: &str, exit: NodeId) -> Outcome<()> {
        if self.exits.contains(&exit) {
            return Ok(());
        }
        let message = format!("{exit} is none of the machine's exits");
        Err(FieldError::new(field, "exit_unknown", message).with("exit", exit))
    }
}

fn unique(field: &str, exits: &[NodeId]) -> Outcome<()> {
    match (1..exits.len().min(MAX_GROUP_NODES)).find(|i| exits[..*i].contains(&exits[*i])) {
        Some(i) => Err(twice(&format!("{field}[{i}]"), exits[i])),
        None if exits.len() > MAX_GROUP_NODES => {
            let message = format!("at most {MAX_GROUP_NODES} are possible here");
            Err(FieldError::new(field, "too_many", message).with("max", MAX_GROUP_NODES))
        }
        None => Ok(()),
    }
}

fn twice(field: &str, exit: NodeId) -> FieldError {
    FieldError::new(field, "exit_twice", format!("{exit} is there twice")).with("exit", exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(a: u32, b: u32, now: u32) -> String {
        let leg = |ms| format!(r#"{{"state":"measured","latencyMs":{ms},"loss":0}}"#);
        let exit = |id, ms| format!(r#"{{"exit":{id},"legA":{},"legB":{}}}"#, leg(ms), leg(0));
        format!(r#"{{"round":{{"candidates":[{},{}]}},"nowMs":{now}}}"#, exit(2, b), exit(1, a))
    }

    #[test]
    fn it_switches_after_three_rounds_and_remembers_what_was_accepted() {
        let mut machine = Machine::new(r#"{"exits":[1,2]}"#).unwrap();
        for now in [0, 5000] {
            let verdict = machine.evaluate(&round(200, 50, now)).unwrap();
            assert_eq!((verdict.reason.code(), verdict.push), ("confirming", None));
        }
        let verdict = machine.evaluate(&round(200, 50, 10_000)).unwrap();
        assert_eq!(verdict.push, Some(vec![NodeId(2), NodeId(1)]));
        assert_eq!(verdict.message, "switched from exit 1 to exit 2, better by 150 ms");
        machine.accepted(r#"{"order":[2,1],"nowMs":10000}"#).unwrap();
        assert_eq!(machine.applied().order, [NodeId(2), NodeId(1)]);
        assert_eq!(machine.evaluate(&round(200, 50, 15_000)).unwrap().reason, Reason::CurrentIsBest);
    }

    #[test]
    fn what_does_not_belong_is_refused() {
        let wrong = |json: &str| {
            let error = Machine::new(json).unwrap_err();
            format!("{} {}", error.field, error.code)
        };
        assert_eq!(wrong(r#"{"exits":[]}"#), "exits out_of_range");
        assert_eq!(wrong(r#"{"exits":[1,2,1]}"#), "exits[2] exit_twice");
        assert_eq!(
            wrong(r#"{"exits":[1],"settings":{"confirmations":0}}"#),
            "settings.confirmations out_of_range"
        );
        assert_eq!(
            wrong(r#"{"exits":[1],"applied":{"order":[1],"lastSwitch":-1}}"#),
            "applied.lastSwitch out_of_range"
        );
        let mut machine = Machine::new(r#"{"exits":[1,2]}"#).unwrap();
        let error = machine.accepted(r#"{"order":[3],"nowMs":0}"#).unwrap_err();
        assert_eq!((error.field.as_str(), error.code.as_str()), ("order[0]", "exit_unknown"));
        let error = machine.evaluate(r#"{"round":{"candidates":[],"pin":9},"nowMs":0}"#).unwrap_err();
        assert_eq!((error.field.as_str(), error.code.as_str()), ("round.pin", "exit_unknown"));
        assert_eq!(
            machine.evaluate(r#"{"round":{"candidates":[]},"nowMs":0}"#).unwrap().reason.code(),
            "all_exits_failed"
        );
    }
}
