//! The story: what the network does, and what must follow from it.

use super::record::Record;
use shared::api::SettingsInput;
use std::time::Duration;

/// Between the starts of two rounds. Fast, so that the story is short; all rules are the real ones.
pub const ROUND_INTERVAL_MS: u64 = 1000;
/// Rounds in which an exit must win.
pub const CONFIRMATIONS: u32 = 3;
/// Between two switches.
pub const COOLDOWN_MS: u64 = 8000;

/// One way between an owner and the exits when all is well. With 5 ms to the target the scores are 30, 50 and 110 ms.
pub const DELAYS: [(&str, Duration); 3] = [
    ("exit-a", Duration::from_millis(10)),
    ("exit-b", Duration::from_millis(20)),
    ("exit-c", Duration::from_millis(50)),
];
/// One way between an exit and the target.
pub const TARGET_DELAY: Duration = Duration::from_millis(5);
/// One way between the entry and the middle node.
pub const MID_DELAY: Duration = Duration::from_millis(2);
/// One way to exit A when it is slow: worse than C's 110 ms, and below the timeout, so that it is slow and not lost.
pub const SLOW: Duration = Duration::from_millis(100);
/// Lost in each direction to exit B when it is lossy: of 4 samples all come back in 10 rounds of 100.
pub const LOSS: f64 = 0.25;

/// Settings under which the story fits in two minutes.
#[must_use]
pub fn settings() -> SettingsInput {
    SettingsInput {
        round_interval_ms: Some(ROUND_INTERVAL_MS),
        // Spaced by 200 ms; with the last one's timeout a round ends within its interval.
        ping_count: Some(4),
        ping_timeout_ms: Some(250),
        confirmations: Some(CONFIRMATIONS),
        cooldown_ms: Some(COOLDOWN_MS),
        ..SettingsInput::default()
    }
}

/// Names of the phases, in order.
pub const PHASES: [&str; 5] = ["a_best", "a_slow", "b_lossy", "all_cut", "recovery"];
/// The phases that lead to a switch, and what it is.
pub const SWITCHES: [(&str, &str, &str); 3] =
    [("a_slow", "exit-a", "exit-b"), ("b_lossy", "exit-b", "exit-c"), ("recovery", "exit-c", "exit-a")];

/// The longest a switch may take: all confirmations, the cooldown, and one round that had just begun.
pub const LATEST_MS: i64 = ((CONFIRMATIONS as u64 + 1) * ROUND_INTERVAL_MS + COOLDOWN_MS) as i64;

/// What did not go as told, one sentence each.
#[must_use]
pub fn complaints(record: &Record) -> Vec<String> {
    let mut complaints = Vec::new();
    let names: Vec<&str> = record.phases.iter().map(|phase| phase.name.as_str()).collect();
    if names != PHASES {
        complaints.push(format!("the phases were {names:?} and not {PHASES:?}"));
    }
    let told: Vec<(&str, &str)> = record.switches.iter().map(|s| (s.from.as_str(), s.to.as_str())).collect();
    let planned: Vec<(&str, &str)> = SWITCHES.iter().map(|(_, from, to)| (*from, *to)).collect();
    if told != planned {
        complaints.push(format!("the switches were {told:?} and not {planned:?}"));
    }
    for (switch, (name, _, _)) in record.switches.iter().zip(SWITCHES) {
        let way = format!("the switch from {} to {}", switch.from, switch.to);
        if switch.reason != "switched" {
            complaints.push(format!("{way} has the reason {}", switch.reason));
        }
        let Some(phase) = record.phase(name) else { continue };
        let took = switch.at_ms - switch.cause_at_ms;
        if switch.cause_at_ms != phase.start_ms || !(phase.start_ms..=phase.end_ms).contains(&switch.at_ms) {
            complaints.push(format!("{way} came at {} ms, not in the phase {name}", switch.at_ms));
        } else if took > LATEST_MS {
            complaints.push(format!("{way} took {took} ms, at most {LATEST_MS} are allowed"));
        }
    }
    if let Some(cut) = record.phase("all_cut") {
        for switch in &record.switches {
            if (cut.start_ms..=cut.end_ms).contains(&switch.at_ms) {
                complaints.push(format!("it switched to {} while everything was cut", switch.to));
            }
        }
    }
    let connections = &record.connections;
    for (count, what) in [
        (connections.direct, "connections went past the exits"),
        (connections.interrupted_by_switch, "connections were interrupted"),
        (connections.failed_outside_cut, "connections failed although not everything was cut"),
    ] {
        if count > 0 {
            complaints.push(format!("{count} {what}"));
        }
    }
    for (exit, _) in DELAYS {
        if connections.per_exit.get(exit).is_none_or(|count| *count == 0) {
            complaints.push(format!("no connection went through {exit}"));
        }
    }
    if record.long_lived.is_empty() {
        complaints.push("no connection was kept open".to_owned());
    }
    for kept in &record.long_lived {
        if kept.bytes == 0 {
            complaints.push(format!("the connection kept open through {} carried nothing", kept.exit));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::record::{Connections, LongLived, Phase, Switch};
    use super::*;

    fn good() -> Record {
        let phase = |(i, name): (i64, &str)| Phase {
            name: name.to_owned(),
            start_ms: i * 20_000,
            end_ms: (i + 1) * 20_000,
        };
        let phases: Vec<Phase> = (0..).zip(PHASES).map(phase).collect();
        let switches = SWITCHES.iter().map(|(name, from, to)| {
            let start = phases.iter().find(|phase| phase.name == *name).unwrap().start_ms;
            Switch {
                at_ms: start + 4000,
                owner: "entry-1".into(),
                from: (*from).into(),
                to: (*to).into(),
                reason: "switched".into(),
                cause_at_ms: start,
            }
        });
        Record {
            switches: switches.collect(),
            connections: Connections {
                total: 40,
                failed: 10,
                per_exit: DELAYS.iter().map(|(exit, _)| ((*exit).to_owned(), 10)).collect(),
                ..Connections::default()
            },
            long_lived: vec![LongLived {
                opened_at_ms: 0,
                exit: "exit-a".into(),
                bytes: 1,
                ended_by: "client".into(),
            }],
            phases,
            ..Record::default()
        }
    }

    #[test]
    fn a_story_as_planned_has_no_complaints() {
        assert_eq!(complaints(&good()), [""; 0]);
    }

    #[test]
    fn everything_that_can_go_wrong_is_told() {
        type Spoil = fn(&mut Record);
        let table: [(Spoil, &str); 13] = [
            (|r| r.phases.truncate(4), "the phases were"),
            (|r| r.switches.truncate(2), "the switches were"),
            (|r| r.switches[0].to = "exit-c".into(), "the switches were"),
            (|r| r.switches[1].reason = "pinned".into(), "has the reason pinned"),
            (|r| r.switches[0].at_ms = r.switches[0].cause_at_ms + LATEST_MS + 1, "are allowed"),
            (|r| r.switches[0].at_ms = 100, "not in the phase a_slow"),
            (|r| r.switches[2].at_ms = 61_000, "while everything was cut"),
            (|r| r.connections.direct = 1, "1 connections went past the exits"),
            (|r| r.connections.interrupted_by_switch = 1, "interrupted"),
            (|r| r.connections.failed_outside_cut = 2, "2 connections failed"),
            (|r| r.connections.per_exit.clear(), "no connection went through exit-b"),
            (|r| r.long_lived.clear(), "no connection was kept open"),
            (|r| r.long_lived[0].bytes = 0, "carried nothing"),
        ];
        for (spoil, sentence) in table {
            let mut record = good();
            spoil(&mut record);
            let found = complaints(&record);
            assert!(found.iter().any(|complaint| complaint.contains(sentence)), "{sentence}: {found:?}");
        }
    }
}
