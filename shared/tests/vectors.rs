//! One set of vectors for every place this crate runs in: natively, and as WebAssembly in Node.js. Floating-point
//! results are compared bit by bit, with bits that were computed elsewhere.

#![expect(clippy::unwrap_used, reason = "the failure of a test is a panic")]

use serde::Deserialize;
use serde_json::Value;
use shared::address::HostPort;
use shared::api::TunnelInput;
use shared::best_exit::{
    Applied, Candidate, Leg, LegFailure, OwnerState, Pin, Reason, Round, Score, Settings,
};
use shared::field::FieldError;
use shared::ids::NodeId;
use shared::link::Sample;
use shared::topology::{KnownNode, World, validate_tunnel};
use std::collections::BTreeMap;

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn read<T: for<'de> Deserialize<'de>>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScoreVector {
    leg_a: (f64, f64),
    leg_b: (f64, f64),
    penalty: f64,
    total: f64,
    total_bits: String,
    loss_bits: String,
}

#[test]
fn scores() {
    let vectors: Vec<ScoreVector> = read(include_str!("vectors/scores.json"));
    assert!(vectors.len() >= 5);
    for v in vectors {
        let leg = |(latency_ms, loss)| Leg::Measured { latency_ms, loss };
        let score = Score::of(&leg(v.leg_a), &leg(v.leg_b), v.penalty).unwrap();
        assert!((score.total_ms - v.total).abs() < 1e-9 * v.total.max(1.0), "{score:?} {}", v.total);
        assert_eq!(bits(score.total_ms), v.total_bits, "{score:?}");
        assert_eq!(bits(score.loss), v.loss_bits, "{score:?}");
    }
}

fn bits(number: f64) -> String {
    format!("{:#018x}", number.to_bits())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LegVector {
    average: Option<(bool, f64, f64)>,
    samples: Option<Vec<String>>,
    leg: Leg,
}

#[test]
fn legs() {
    let vectors: Vec<LegVector> = read(include_str!("vectors/legs.json"));
    for v in vectors {
        let leg = match (v.average, &v.samples) {
            (Some((success, ms, percent)), None) => Leg::from_average(success, ms, percent),
            (None, Some(samples)) => {
                Leg::from_samples(&samples.iter().map(|text| sample(text)).collect::<Vec<_>>())
            }
            _ => panic!("one of average and samples"),
        };
        assert_eq!(leg, v.leg, "{:?} {:?}", v.average, v.samples);
    }
}

/// `lost`, `refused`, …, `12.5` (milliseconds) or `12.5+2` (with retransmissions).
fn sample(text: &str) -> Sample {
    match text {
        "lost" => Sample::Lost,
        "refused" => Sample::Refused,
        "unresolved" => Sample::Unresolved,
        "unreachable" => Sample::Unreachable,
        _ => {
            let (ms, retransmits) = text.split_once('+').unwrap_or((text, "0"));
            Sample::Ok { ms: ms.parse().unwrap(), retransmits: retransmits.parse().unwrap() }
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Story {
    name: String,
    #[serde(default)]
    settings: Settings,
    rounds: Vec<StoryRound>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoryRound {
    /// In saved order: the exit, and its score in milliseconds, `"failed"`, or `"away"` (no leg B).
    exits: Vec<(i64, Value)>,
    #[serde(default = "one")]
    times: usize,
    #[serde(default = "five_seconds")]
    after_ms: u64,
    #[serde(default = "yes")]
    complete: bool,
    #[serde(default = "yes")]
    monitoring: bool,
    #[serde(default = "yes")]
    online: bool,
    pin: Option<i64>,
    reason: String,
    among_others: Option<String>,
    push: Option<Vec<i64>>,
    #[serde(default)]
    refuse: bool,
}

fn one() -> usize {
    1
}

fn five_seconds() -> u64 {
    5000
}

fn yes() -> bool {
    true
}

#[test]
fn stories_of_every_reason() {
    let stories: Vec<Story> = read(include_str!("vectors/stories.json"));
    let mut told = std::collections::BTreeSet::new();
    for story in stories {
        let mut state = OwnerState::new(Applied::default());
        told.insert(state.reason.code());
        let mut now = 1_000_000;
        for (i, round) in story.rounds.iter().enumerate() {
            for time in 0..round.times {
                now += round.after_ms;
                let place = format!("{}, round {i}, time {time}", story.name);
                told.extend(play(&mut state, &story.settings, round, now, &place));
            }
        }
    }
    // The reasons that only the adaptive rules give are told in tests/replay.rs.
    let adaptive = ["suspect", "held", "owner_line", "target_failed"];
    assert_eq!(told, Reason::CODES.into_iter().filter(|code| !adaptive.contains(code)).collect());
}

/// Plays one round, checks it, and says which reasons were seen.
fn play(
    state: &mut OwnerState,
    settings: &Settings,
    round: &StoryRound,
    now: u64,
    place: &str,
) -> [&'static str; 2] {
    let candidates: Vec<Candidate> = round.exits.iter().map(|(exit, seen)| candidate(*exit, seen)).collect();
    let verdict = state.evaluate(
        &Round {
            now,
            complete: round.complete,
            monitoring: round.monitoring,
            owner_online: round.online,
            candidates: &candidates,
            pin: round.pin.map(|exit| Pin { exit: NodeId(exit) }),
        },
        settings,
    );
    assert_eq!(verdict.reason.code(), round.reason, "{place}: {:?}", verdict.reason);
    if let Reason::PinFailed { among_others, .. } = &verdict.reason {
        assert_eq!(Some(among_others.code()), round.among_others.as_deref(), "{place}");
    }
    let pushed = verdict.push.as_ref().map(|order| order.iter().map(|exit| exit.0).collect::<Vec<_>>());
    assert_eq!(pushed, round.push, "{place}");
    if let Some(order) = verdict.push {
        if round.refuse {
            state.refused(order[0], "refused".into(), now);
        } else {
            state.accepted(order, now);
        }
    }
    [verdict.reason.code(), state.reason.code()]
}

fn candidate(exit: i64, seen: &Value) -> Candidate {
    let half = |ms: f64| Leg::Measured { latency_ms: ms / 2.0, loss: 0.0 };
    let (leg_a, leg_b) = match seen {
        Value::Number(ms) => (half(ms.as_f64().unwrap()), half(ms.as_f64().unwrap())),
        Value::String(text) if text == "failed" => (Leg::Failed { reason: LegFailure::AllLost }, half(2.0)),
        Value::String(text) if text == "away" => {
            (half(20.0), Leg::Unmeasured { reason: "agent offline".into() })
        }
        other => panic!("{other}"),
    };
    Candidate { exit: NodeId(exit), leg_a, leg_b }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Validation {
    nodes: Vec<NodeVector>,
    tunnel_names: Vec<String>,
    tunnel: Value,
    tunnels: Vec<Change>,
    addresses: Vec<Address>,
    settings: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NodeVector {
    id: i64,
    name: String,
    port_range: String,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    seen: bool,
    #[serde(default)]
    taken: BTreeMap<u16, String>,
}

/// A valid object with some places changed, and what is wrong with it then (`field code`).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    set: BTreeMap<String, Value>,
    errors: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

impl Change {
    fn on(&self, value: &Value) -> Value {
        let mut value = value.clone();
        for (pointer, new) in &self.set {
            *value.pointer_mut(pointer).unwrap() = new.clone();
        }
        value
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Address {
    text: String,
    code: Option<String>,
}

fn found(findings: &[FieldError]) -> Vec<String> {
    findings.iter().map(|e| format!("{} {}", e.field, e.code)).collect()
}

#[test]
fn validation() {
    let vectors: Validation = read(include_str!("vectors/validation.json"));
    let known = |node: NodeVector| KnownNode {
        name: node.name,
        port_range: node.port_range,
        seen: node.seen,
        capabilities: node.capabilities,
        taken_ports: node.taken,
    };
    let world = World {
        nodes: vectors.nodes.into_iter().map(|node| (NodeId(node.id), known(node))).collect(),
        tunnel_names: vectors.tunnel_names.into_iter().collect(),
    };
    for change in &vectors.tunnels {
        let input: TunnelInput = serde_json::from_value(change.on(&vectors.tunnel)).unwrap();
        let findings = validate_tunnel(&input, &world);
        assert_eq!(found(&findings.errors), change.errors, "{:?}", change.set);
        assert_eq!(found(&findings.warnings), change.warnings, "{:?}", change.set);
    }
    let default = serde_json::to_value(Settings::default()).unwrap();
    for change in &vectors.settings {
        let settings: Settings = serde_json::from_value(change.on(&default)).unwrap();
        assert_eq!(found(&settings.validate()), change.errors, "{:?}", change.set);
    }
    for address in vectors.addresses {
        let code = HostPort::parse(&address.text).err().map(|error| error.code());
        assert_eq!(code, address.code.as_deref(), "{}", address.text);
    }
}
