//! Strategies that need more than marks: manual choices and those that test their members.

use crate::metadata::ConfigError;
use serde_json::Value;
use shared::gost::SelectorConfig;
use shared::policy::{Parsed, parse_with};

/// Their names; the other ones choose anew for each connection and need nobody who decides.
pub(crate) const NAMES: [&str; 8] = [
    "selector",
    "urltest",
    "fixed",
    "min",
    "min_last_latency",
    "min_avg10",
    "min_moving_avg",
    "fixed_fallback",
];

/// Reads a selector whose strategy is one of these; `None` if it is of another kind. `path` is the selector's.
pub(crate) fn read(path: &str, selector: &SelectorConfig) -> Result<Option<Parsed>, ConfigError> {
    let strategy = format!("{path}.strategy");
    let text = selector.strategy.trim();
    let name = text.split('(').next().unwrap_or_default().trim_end();
    if name == "best" {
        let reason = "`best` is not supported in a file: a panel measures the exits and sends them in order, as `fifo`";
        return Err(ConfigError::new(strategy, reason));
    }
    if !NAMES.contains(&name) {
        return match selector.metadata.keys().next() {
            None => Ok(None),
            Some(key) => {
                let reason = format!("is no option of the strategy `{text}`");
                Err(ConfigError::new(format!("{path}.metadata.{key}"), reason))
            }
        };
    }
    let foreign = [
        ("maxFails", selector.max_fails != 0, "`fall` and `rise` say when a member is left out"),
        ("failTimeout", !selector.fail_timeout.0.is_zero(), "a member is tested until it works again"),
        ("maxLatency", !selector.max_latency.0.is_zero(), "the strategy itself goes by latency"),
        ("tolerance", !selector.tolerance.0.is_zero(), "it stands in `metadata`"),
    ];
    if let Some((field, _, instead)) = foreign.iter().find(|(_, is_set, _)| *is_set) {
        let reason = format!("is no option of the strategy `{name}`: {instead}");
        return Err(ConfigError::new(format!("{path}.{field}"), reason));
    }
    let mut options = Vec::with_capacity(selector.metadata.len());
    for (key, value) in &selector.metadata {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let reason = format!("{value} is no text, number, true or false");
                return Err(ConfigError::new(format!("{path}.metadata.{key}"), reason));
            }
        };
        options.push((key.clone(), value));
    }
    match parse_with(text, &options) {
        Ok(parsed) => Ok(Some(parsed)),
        Err(error) => {
            let at = error.option.as_ref().map_or(strategy, |key| format!("{path}.metadata.{key}"));
            Err(ConfigError::new(at, error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shared::policy::Policy;
    use shared::policy::spec::Interrupt;

    fn policy(selector: Value) -> Result<Option<Policy>, String> {
        let selector = serde_json::from_value(selector).unwrap();
        match read("s", &selector) {
            Ok(parsed) => Ok(parsed.map(|parsed| parsed.policy)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn options_beside_the_text_are_those_inside_it() {
        let beside = json!({"strategy": "urltest", "metadata": {"url": "http://a.example/x", "interval": "10s",
            "tolerance": 50, "idleTimeout": "1m", "interruptExistConnections": true, "drain": "3s", "fall": 2}});
        let inside = "urltest(url=http://a.example/x, interval=10s, tolerance=50ms, idle_timeout=1m, \
                      interrupt=on_switch, drain=3s, fall=2)";
        assert_eq!(policy(beside).unwrap(), policy(json!({"strategy": inside})).unwrap());
        let both = json!({"strategy": "fixed_fallback(1, timeout=4s)", "metadata": {"retries": 7, "returnDelay": "5s"}});
        let Some(Policy::FixedFallback {
            index: 1, timeout_ms: 4000, retries: 7, return_delay_ms: 5000, ..
        }) = policy(both).unwrap()
        else {
            panic!()
        };
        let Some(Policy::Selector { default: Some(default), interrupt: Interrupt::OnDeath, .. }) =
            policy(json!(
                {"strategy": "selector", "metadata": {"default": "b", "interruptExistConnections": "onDeath"}}
            ))
            .unwrap()
        else {
            panic!()
        };
        assert_eq!(default, "b");
        assert_eq!(policy(json!({"strategy": "fifo", "maxFails": 3})).unwrap(), None);
        assert_eq!(policy(json!({"strategy": "hash(consistent)"})).unwrap(), None);
    }

    #[test]
    fn errors_name_the_place() {
        let table = [
            (json!({"strategy": "best"}), "s.strategy: `best` is not supported in a file: a panel"),
            (
                json!({"strategy": "min(limit=3)"}),
                "s.strategy: at character 5: expected an option that `min` has",
            ),
            (
                json!({"strategy": "min", "metadata": {"limit": 3}}),
                "s.metadata.limit: expected an option that",
            ),
            (
                json!({"strategy": "urltest(interval=5s)", "metadata": {"interval": "5s"}}),
                "s.metadata.interval: expected an option that `urltest` has, once",
            ),
            (
                json!({"strategy": "urltest", "metadata": {"idleTimeout": "1m"}}),
                "s.metadata.idleTimeout: expected an idle timeout not below the interval of 3m, found `1m`",
            ),
            (json!({"strategy": "min", "metadata": {"url": ["x"]}}), "s.metadata.url: [\"x\"] is no text"),
            (
                json!({"strategy": "fifo", "metadata": {"url": "x"}}),
                "s.metadata.url: is no option of the strategy",
            ),
            (json!({"strategy": "min", "maxFails": 2}), "s.maxFails: is no option of the strategy `min`"),
            (json!({"strategy": "urltest", "tolerance": "5ms"}), "s.tolerance: is no option"),
        ];
        for (selector, expected) in table {
            let error = policy(selector).unwrap_err();
            assert!(error.starts_with(expected), "{error} instead of {expected}");
        }
    }
}
