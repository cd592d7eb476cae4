//! What comes from JavaScript may be anything: every function of the npm package answers or says what is wrong, and none
//! panics, which would end a WebAssembly module for good. Overflows are panics here.

#![expect(clippy::unwrap_used, reason = "the failure of a test is a panic")]

use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use shared::field::FieldError;
use shared::wasm::machine::Machine;
use shared::wasm::{replay, scoring, strategies, validation};

/// An argument's value of any form, with the numbers and words that mean something here.
fn anything() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2i64..70_000).prop_map(Value::from),
        prop::sample::select(vec![
            json!(0),
            json!(1e308),
            json!(-1),
            json!(9007199254740991i64),
            json!(0.999999)
        ]),
    ];
    let words = [
        "best",
        "measured",
        "all_lost",
        "refused",
        "urltest(",
        "fixed(9)",
        "selector(default=x)",
        "1-9",
        "::1",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        prop::sample::select(words.to_vec()).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let keys = prop::sample::select(vec!["exit", "legA", "nodes", "order", "state", "rounds", "x"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..4)
                .prop_map(|members| members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

/// Puts values into places of a right argument.
fn spoilt(right: Value) -> impl Strategy<Value = String> {
    let place = any::<prop::sample::Index>();
    prop::collection::vec((place, anything()), 0..3).prop_map(move |changes| {
        let mut value = right.clone();
        for (place, new) in changes {
            let mut pointers = Vec::new();
            collect("", &value, &mut pointers);
            let pointer = place.get(&pointers).clone();
            *value.pointer_mut(&pointer).unwrap() = new;
        }
        value.to_string()
    })
}

fn collect(at: &str, value: &Value, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, inner)| collect(&format!("{at}/{i}"), inner, found));
        }
        Value::Object(map) => {
            // `~` and `/` in a name are written otherwise in a pointer; no right argument has them.
            let plain = map.iter().filter(|(key, _)| !key.contains(['~', '/']));
            plain.for_each(|(key, inner)| collect(&format!("{at}/{key}"), inner, found));
        }
        _ => {}
    }
}

fn sound<T: Serialize>(outcome: Result<T, FieldError>) -> Result<(), TestCaseError> {
    match outcome {
        Ok(value) => {
            let json = serde_json::to_string(&value).unwrap();
            // JSON has no infinity: a number that became one would be a null that nobody has declared.
            prop_assert!(serde_json::from_str::<Value>(&json).is_ok());
        }
        Err(error) => {
            prop_assert!(!error.code.is_empty() && error.code != "internal", "{error:?}");
            prop_assert!(!error.message.is_empty());
        }
    }
    Ok(())
}

fn candidates() -> Value {
    let leg = |ms: f64| json!({ "state": "measured", "latencyMs": ms, "loss": 0.1 });
    json!([
        { "exit": 1, "legA": leg(100.0), "legB": leg(10.0) },
        { "exit": 2, "legA": leg(20.0), "legB": { "state": "failed", "reason": "refused" } },
        { "exit": 3, "legA": { "state": "unmeasured", "reason": "" }, "legB": leg(1.0) },
    ])
}

fn tunnel() -> Value {
    let group =
        |strategy: &str, nodes: Value| json!({ "strategy": strategy, "protocol": "tls", "nodes": nodes });
    json!({
        "tunnel": {
            "name": "hk", "type": "tunnel", "entry": { "nodes": [{ "nodeId": 1 }] },
            "hops": [group("round", json!([{ "nodeId": 2 }]))],
            "exit": group("best", json!([{ "nodeId": 3, "port": 7, "connectIp": "::1" }, { "nodeId": 4 }])),
        },
        "world": {
            "nodes": [{ "id": 1, "name": "a", "portRange": "1-9", "capabilities": ["strategy:fifo"], "seen": true,
                "takenPorts": { "7": "x" } }],
            "tunnelNames": ["y"],
        },
    })
}

fn history() -> Value {
    let round = |i: i64| {
        json!([
            i * 5000,
            [[[20 + i, 0], [10, 0]], [[25, 0.1], if i == 3 { json!("all_lost") } else { Value::Null }]]
        ])
    };
    let rounds: Vec<Value> = (0..12).map(round).collect();
    json!({ "exitpilotHistory": 1, "name": "x", "settings": { "pingCount": 4 },
        "owners": [{ "owner": "a", "exits": ["b", "c"], "rounds": rounds }] })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn texts(policy in "\\PC{0,40}", name in "(urltest|fixed|min|hash|selector|fixed_fallback)\\(\\PC{0,20}") {
        for text in [policy, name] {
            sound(strategies::parse(&json!({ "policy": text }).to_string()))?;
            sound(strategies::describe(&json!({ "strategy": text }).to_string()))?;
        }
    }

    #[test]
    fn no_json_at_all(text in "\\PC{0,60}") {
        sound(strategies::parse(&text))?;
        sound(strategies::describe(&text))?;
        sound(validation::tunnel(&text))?;
        sound(validation::settings(&text))?;
        sound(scoring::leg(&text))?;
        sound(scoring::score(&text))?;
        sound(scoring::rank(&text))?;
        sound(replay::replay(&text, &text))?;
        sound(Machine::new(&text).map(|_| ()))?;
    }

    #[test]
    fn tunnels(json in spoilt(tunnel())) {
        sound(validation::tunnel(&json))?;
    }

    #[test]
    fn settings(json in spoilt(json!({ "settings": shared::best_exit::Settings::default() }))) {
        sound(validation::settings(&json))?;
    }

    #[test]
    fn legs(
        samples in spoilt(json!({ "measured": { "samples": [{ "outcome": "ok", "ms": 5, "retransmits": 1 }, { "outcome": "lost" }] } })),
        average in spoilt(json!({ "measured": { "average": { "success": true, "latencyMs": 1, "lossPercent": 50 } } })),
        counts in spoilt(json!({ "measured": { "counts": { "sent": 3, "received": 2, "rttsMs": [1, 2] } } })),
        ranking in spoilt(json!({ "candidates": candidates(), "lossPenaltyMsPerPercent": 100 })),
        score in spoilt(json!({ "legA": candidates()[0]["legA"], "legB": candidates()[1]["legB"] })),
    ) {
        for json in [samples, average, counts] {
            sound(scoring::leg(&json))?;
        }
        sound(scoring::rank(&ranking))?;
        sound(scoring::score(&score))?;
    }

    /// A machine that is used in any order, at any time, under both sets of rules.
    #[test]
    fn machines(
        new in spoilt(json!({ "settings": { "confirmations": 2, "decisionRules": "adaptive", "cooldownMs": 0 },
            "exits": [1, 2, 3], "applied": { "order": [2, 1], "lastSwitch": 5 } })),
        rules in prop::sample::select(vec!["classic", "adaptive"]),
        calls in prop::collection::vec((0..6u8, any::<u64>(), spoilt(candidates()),
            spoilt(json!({ "order": [2, 1, 3], "nowMs": 9 }))), 1..12),
    ) {
        sound(Machine::new(&new).map(|_| ()))?;
        let right = json!({ "settings": { "decisionRules": rules, "confirmations": 1 }, "exits": [1, 2, 3] });
        let mut machine = Machine::new(&right.to_string()).unwrap();
        for (call, now, candidates, accepted) in calls {
            let now = if call == 0 { now & ((1 << 53) - 1) } else { now % 100_000 };
            let round = format!(r#"{{"round":{{"candidates":{candidates},"pin":{}}},"nowMs":{now}}}"#, call % 4);
            match call {
                4 => sound(machine.accepted(&accepted))?,
                5 => sound(machine.refused(&json!({ "exit": now % 4, "error": candidates, "nowMs": now }).to_string()))?,
                _ => sound(machine.evaluate(&round))?,
            }
            sound(Ok(machine.applied()))?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn histories(
        history in spoilt(history()),
        request in spoilt(json!({ "settings": { "cooldownMs": 0, "decisionRules": "classic" }, "policies": ["fixed(0)", "urltest(tolerance=20ms)"] })),
    ) {
        sound(replay::replay(&history, &request))?;
    }
}
