//! Limiter commands of peer panels: `AddLimiters`, `UpdateCLimiters`, `DeleteRLimiters`, ….

use crate::limit::LimitKind;
use crate::runtime::Change;
use serde::Deserialize;
use shared::gost::LimiterConfig;
use shared::link::Frame;

#[derive(Deserialize)]
struct Update {
    #[serde(default)]
    limiter: String,
    data: LimiterConfig,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Object { limiter: String },
    Text(String),
}

/// The object that a limiter command touches and the change it asks for; `None` for any other command.
pub(super) fn change(frame: &Frame) -> Option<Result<(String, Change), String>> {
    let (verb, kind) = split(&frame.kind)?;
    Some(read(frame, verb, kind))
}

#[derive(Clone, Copy)]
enum Verb {
    Add,
    Update,
    Delete,
}

fn split(command: &str) -> Option<(Verb, LimitKind)> {
    let verbs = [("Add", Verb::Add), ("Update", Verb::Update), ("Delete", Verb::Delete)];
    let (verb, rest) =
        verbs.into_iter().find_map(|(word, verb)| Some((verb, command.strip_prefix(word)?)))?;
    let kind = match rest {
        "Limiters" => LimitKind::Traffic,
        "CLimiters" => LimitKind::Connections,
        "RLimiters" => LimitKind::Rate,
        _ => return None,
    };
    Some((verb, kind))
}

fn read(frame: &Frame, verb: Verb, kind: LimitKind) -> Result<(String, Change), String> {
    fn parse<T: serde::de::DeserializeOwned>(frame: &Frame) -> Result<T, String> {
        T::deserialize(&frame.data).map_err(|error| error.to_string())
    }
    let (name, change) = match verb {
        Verb::Add => {
            let config: LimiterConfig = parse(frame)?;
            (config.name.clone(), Change::AddLimiter(kind, config))
        }
        Verb::Update => {
            let Update { limiter, data: mut config } = parse(frame)?;
            // The wrapper's name wins, as for chains.
            if !limiter.trim().is_empty() {
                config.name = limiter;
            }
            (config.name.clone(), Change::UpsertLimiter(kind, config))
        }
        Verb::Delete => {
            let name = match parse(frame)? {
                Name::Object { limiter } => limiter,
                Name::Text(name) => name,
            };
            (name.clone(), Change::DeleteLimiter(kind, name))
        }
    };
    Ok((format!("{}:{name}", kind.field()), change))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn frame(kind: &str, data: Value) -> Frame {
        Frame { request_id: Some("11_1".into()), ..Frame::message(kind, data) }
    }

    fn config(name: &str, limits: &[&str]) -> LimiterConfig {
        serde_json::from_value(json!({"name": name, "limits": limits})).unwrap()
    }

    #[test]
    fn commands_as_a_peer_panel_sends_them() {
        let limits = json!({"name": "5", "limits": ["$ 12.5MB 12.5MB"]});
        let traffic = config("5", &["$ 12.5MB 12.5MB"]);
        let connections = config("rule_conn_limit_3", &["$ 10", "$$ 2"]);
        let data = json!({"limiter": "rule_conn_limit_3", "data": {"name": "", "limits": ["$ 10", "$$ 2"]}});
        let cases = [
            (
                frame("AddLimiters", limits.clone()),
                "limiter:5",
                Change::AddLimiter(LimitKind::Traffic, traffic.clone()),
            ),
            (
                frame("UpdateLimiters", json!({"limiter": "5", "data": limits})),
                "limiter:5",
                Change::UpsertLimiter(LimitKind::Traffic, traffic),
            ),
            (
                frame("DeleteLimiters", json!({"limiter": "5"})),
                "limiter:5",
                Change::DeleteLimiter(LimitKind::Traffic, "5".into()),
            ),
            (
                frame("UpdateCLimiters", data),
                "climiter:rule_conn_limit_3",
                Change::UpsertLimiter(LimitKind::Connections, connections),
            ),
            (
                frame("DeleteRLimiters", json!("r")),
                "rlimiter:r",
                Change::DeleteLimiter(LimitKind::Rate, "r".into()),
            ),
        ];
        for (frame, key, expected) in cases {
            let (object, change) = change(&frame).unwrap().unwrap();
            assert_eq!((object.as_str(), change), (key, expected), "{}", frame.kind);
        }
    }

    #[test]
    fn what_is_malformed_is_refused_and_what_is_no_limiter_left_alone() {
        for (kind, data) in [
            ("AddLimiters", json!({"name": "5", "limits": "$ 1MB"})),
            ("AddLimiters", json!({"name": "5", "limit": []})),
            ("UpdateLimiters", json!({"name": "5", "limits": []})),
            ("DeleteCLimiters", json!({})),
        ] {
            assert!(change(&frame(kind, data.clone())).unwrap().is_err(), "{kind} {data}");
        }
        for kind in ["AddService", "AddChains", "Limiters", "AddXLimiters", "PauseLimiters"] {
            assert!(change(&frame(kind, json!({}))).is_none(), "{kind}");
        }
    }
}
