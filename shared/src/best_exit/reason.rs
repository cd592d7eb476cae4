//! Why the exit of an owner was, or was not, switched.

use super::adaptive::{LegName, Trigger};
use crate::ids::NodeId;
use serde::{Deserialize, Serialize};

/// What the adaptive rules saw when they switched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// What spoke for it.
    pub trigger: Trigger,
    /// The leg of the exit that was left which made most of it.
    pub leg: LegName,
    /// The advantage that was needed, in milliseconds of score; null: none.
    pub need_ms: Option<f64>,
    /// Rounds that were looked at; 0: it was no matter of several rounds.
    pub rounds: u32,
}

/// The reason of a verdict, as data; the same reaches log, metrics, API and page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(no_recursion))]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase", tag = "code")]
pub enum Reason {
    /// No round was evaluated yet.
    NoDecision,
    /// There is nothing to choose.
    SingleExit,
    /// The tunnel is disabled, or lacks a part it needs.
    Incomplete,
    /// Monitoring is off.
    Paused,
    /// The owner is not connected, or did not answer in time.
    OwnerOffline,
    /// No candidate has a score.
    AllExitsFailed,
    /// The current exit is unmeasured while its leg A is good: kept for a while.
    CurrentUnmeasured {
        /// Of the grace, in milliseconds.
        remaining_ms: u64,
    },
    /// The current exit is the best.
    CurrentIsBest,
    /// Another exit is better, by too little.
    InsufficientAdvantage {
        /// The better exit.
        exit: NodeId,
        /// Its advantage in milliseconds of score.
        have_ms: f64,
        /// The advantage needed.
        need_ms: f64,
    },
    /// Better by enough, not yet often enough.
    Confirming {
        /// The better exit.
        exit: NodeId,
        /// Consecutive rounds so far.
        rounds: u32,
        /// Rounds needed.
        needed: u32,
    },
    /// Confirmed; the last switch is too recent.
    Cooldown {
        /// The better exit.
        exit: NodeId,
        /// Until the next switch is possible, in milliseconds.
        remaining_ms: u64,
    },
    /// Confirmed; the last push failed and is not tried again yet.
    ApplyRetryWait {
        /// The better exit.
        exit: NodeId,
        /// Until it is tried again, in milliseconds.
        remaining_ms: u64,
    },
    /// A pinned exit works and is in front.
    Pinned {
        /// The pinned exit.
        exit: NodeId,
    },
    /// The pinned exit fails; the rules choose among the others.
    PinFailed {
        /// The pinned exit.
        exit: NodeId,
        /// What the rules say about the others.
        among_others: Box<Reason>,
    },
    /// All rules hold: the order is being pushed, or was accepted.
    Switched {
        /// First exit before.
        from: Option<NodeId>,
        /// First exit now.
        to: NodeId,
        /// Advantage in milliseconds of score; null when the exit before had none.
        advantage_ms: Option<f64>,
        /// What the adaptive rules saw.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Why>,
    },
    /// A whole round of the current exit failed; the next one tells.
    Suspect {
        /// The current exit.
        exit: NodeId,
        /// The leg that failed.
        leg: LegName,
    },
    /// Another exit is better, but too little is known of it, or it has to prove itself after a failure.
    Held {
        /// The better exit.
        exit: NodeId,
        /// Samples per leg so far.
        samples: u32,
        /// Samples needed.
        needed: u32,
    },
    /// All ways of the owner failed at once: its own line is at fault.
    OwnerLine,
    /// The target failed for every exit: the exits are not to blame.
    TargetFailed,
    /// All rules hold, but the owner refused or did not answer.
    ApplyFailed {
        /// The exit that was to be first.
        exit: NodeId,
        /// What the owner said.
        error: String,
    },
}

impl Reason {
    /// Stable code, as in the JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::NoDecision => "no_decision",
            Reason::SingleExit => "single_exit",
            Reason::Incomplete => "incomplete",
            Reason::Paused => "paused",
            Reason::OwnerOffline => "owner_offline",
            Reason::AllExitsFailed => "all_exits_failed",
            Reason::CurrentUnmeasured { .. } => "current_unmeasured",
            Reason::CurrentIsBest => "current_is_best",
            Reason::InsufficientAdvantage { .. } => "insufficient_advantage",
            Reason::Confirming { .. } => "confirming",
            Reason::Cooldown { .. } => "cooldown",
            Reason::ApplyRetryWait { .. } => "apply_retry_wait",
            Reason::Pinned { .. } => "pinned",
            Reason::PinFailed { .. } => "pin_failed",
            Reason::Switched { .. } => "switched",
            Reason::ApplyFailed { .. } => "apply_failed",
            Reason::Suspect { .. } => "suspect",
            Reason::Held { .. } => "held",
            Reason::OwnerLine => "owner_line",
            Reason::TargetFailed => "target_failed",
        }
    }

    /// All codes, for metrics and translations.
    pub const CODES: [&str; 20] = [
        "no_decision",
        "single_exit",
        "incomplete",
        "paused",
        "owner_offline",
        "all_exits_failed",
        "current_unmeasured",
        "current_is_best",
        "insufficient_advantage",
        "confirming",
        "cooldown",
        "apply_retry_wait",
        "pinned",
        "pin_failed",
        "switched",
        "apply_failed",
        "suspect",
        "held",
        "owner_line",
        "target_failed",
    ];

    /// One English sentence for logs; `name` turns a node id into what people call it.
    pub fn describe(&self, name: &dyn Fn(NodeId) -> String) -> String {
        match self {
            Reason::NoDecision => "no round was evaluated yet".into(),
            Reason::SingleExit => "there is only one exit".into(),
            Reason::Incomplete => "the tunnel is disabled or incomplete".into(),
            Reason::Paused => "monitoring is off".into(),
            Reason::OwnerOffline => "the owner is offline or did not answer".into(),
            Reason::AllExitsFailed => "every exit failed, so nothing is changed".into(),
            Reason::CurrentUnmeasured { remaining_ms } => {
                format!("the current exit's agent is away, kept for another {remaining_ms} ms")
            }
            Reason::CurrentIsBest => "the current exit is the best".into(),
            Reason::InsufficientAdvantage { exit, have_ms, need_ms } => {
                format!("{} is better by {have_ms:.0} ms, {need_ms:.0} ms are needed", name(*exit))
            }
            Reason::Confirming { exit, rounds, needed } => {
                format!("{} is better, round {rounds} of {needed}", name(*exit))
            }
            Reason::Cooldown { exit, remaining_ms } => {
                format!("{} is better, the cooldown ends in {remaining_ms} ms", name(*exit))
            }
            Reason::ApplyRetryWait { exit, remaining_ms } => {
                format!("{} is better, the push is tried again in {remaining_ms} ms", name(*exit))
            }
            Reason::Pinned { exit } => format!("{} is pinned", name(*exit)),
            Reason::PinFailed { exit, among_others } => {
                format!("the pinned {} fails; among the others: {}", name(*exit), among_others.describe(name))
            }
            Reason::Switched { from, to, advantage_ms, why } => {
                let from = from.map_or_else(|| "nothing".into(), name);
                let why = why.map_or_else(String::new, |why| format!(" ({})", why.describe()));
                match advantage_ms {
                    Some(ms) => format!("switched from {from} to {}, better by {ms:.0} ms{why}", name(*to)),
                    None => format!("switched from {from}, which had failed, to {}{why}", name(*to)),
                }
            }
            Reason::Suspect { exit, leg } => {
                format!("a round of {} failed ({}); the next one tells", name(*exit), leg.describe())
            }
            Reason::Held { exit, samples, needed } => {
                format!("{} is better, but only {samples} of {needed} samples are known", name(*exit))
            }
            Reason::OwnerLine => "all exits failed at once: the owner's own line".into(),
            Reason::TargetFailed => "the probe target failed for every exit".into(),
            Reason::ApplyFailed { exit, error } => format!("{} could not be applied: {error}", name(*exit)),
        }
    }
}

impl LegName {
    fn describe(self) -> &'static str {
        match self {
            LegName::A => "owner -> exit",
            LegName::B => "exit -> target",
        }
    }
}

impl Why {
    fn describe(self) -> String {
        let leg = self.leg.describe();
        let rounds = self.rounds;
        let need = self.need_ms.map_or_else(String::new, |ms| format!(", {ms:.0} ms were needed"));
        match self.trigger {
            Trigger::Down => format!("{leg} does not work"),
            Trigger::Step => format!("{leg} rose for {rounds} rounds{need}"),
            Trigger::Loss => format!("{leg} loses more than before, over {rounds} rounds{need}"),
            Trigger::Window => format!("mostly {leg}, over {rounds} rounds{need}"),
            Trigger::Unmeasured => format!("{leg} is not measured any more"),
        }
    }
}
