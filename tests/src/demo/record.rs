//! What happened, as it is written to the file of `--json`. Times are milliseconds since the start of the story.

use serde::Serialize;
use std::collections::BTreeMap;

/// The whole story.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// It went as told.
    pub ok: bool,
    /// From its start to its end.
    pub duration_ms: i64,
    /// Between the starts of two rounds of measurements.
    pub round_interval_ms: u64,
    /// In order.
    pub phases: Vec<Phase>,
    /// Of the direct tunnel's owner, in order.
    pub switches: Vec<Switch>,
    /// Opened all the time, through both tunnels.
    pub connections: Connections,
    /// Kept open over switches.
    pub long_lived: Vec<LongLived>,
}

/// A part of the story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// `a_best`, `a_slow`, `b_lossy`, `all_cut`, `recovery`.
    pub name: String,
    /// When the network changed.
    pub start_ms: i64,
    /// When the next change came.
    pub end_ms: i64,
}

/// A change of the first exit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Switch {
    /// When the owner had accepted it.
    pub at_ms: i64,
    /// The node that holds the chain.
    pub owner: String,
    /// First exit before.
    pub from: String,
    /// First exit from then on.
    pub to: String,
    /// Code of the reason.
    pub reason: String,
    /// When the network changed before.
    pub cause_at_ms: i64,
}

/// Connections of the users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Connections {
    /// All.
    pub total: usize,
    /// Of these, not served.
    pub failed: usize,
    /// Of these, without any moment in which everything was cut.
    pub failed_outside_cut: usize,
    /// Reached the target past the exits.
    pub direct: usize,
    /// Were open through an exit and broke, without any moment in which everything was cut; those kept open too.
    pub interrupted_by_switch: usize,
    /// Served, by exit.
    pub per_exit: BTreeMap<String, usize>,
}

/// A connection kept open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LongLived {
    /// When it was open.
    pub opened_at_ms: i64,
    /// The exit it went through, from its beginning to its end.
    pub exit: String,
    /// Bytes that came back.
    pub bytes: u64,
    /// `client`, or how it broke.
    pub ended_by: String,
}

impl Record {
    /// The phase of this name.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Programs outside the project read this file.
    #[test]
    fn the_file_has_exactly_these_names() {
        let record = Record {
            ok: true,
            duration_ms: 1,
            round_interval_ms: 1000,
            phases: vec![Phase { name: "a_slow".into(), start_ms: 0, end_ms: 0 }],
            switches: vec![Switch {
                at_ms: 0,
                owner: "entry-1".into(),
                from: "exit-a".into(),
                to: "exit-b".into(),
                reason: "switched".into(),
                cause_at_ms: 0,
            }],
            connections: Connections {
                per_exit: [("exit-a".to_owned(), 0)].into(),
                ..Connections::default()
            },
            long_lived: vec![LongLived {
                opened_at_ms: 0,
                exit: "exit-a".into(),
                bytes: 0,
                ended_by: "client".into(),
            }],
        };
        assert_eq!(
            serde_json::to_value(record).unwrap(),
            json!({ "ok": true, "durationMs": 1, "roundIntervalMs": 1000,
                "phases": [{ "name": "a_slow", "startMs": 0, "endMs": 0 }],
                "switches": [{ "atMs": 0, "owner": "entry-1", "from": "exit-a", "to": "exit-b",
                    "reason": "switched", "causeAtMs": 0 }],
                "connections": { "total": 0, "failed": 0, "failedOutsideCut": 0, "direct": 0,
                    "interruptedBySwitch": 0, "perExit": { "exit-a": 0 } },
                "longLived": [{ "openedAtMs": 0, "exit": "exit-a", "bytes": 0, "endedBy": "client" }] })
        );
    }
}
