//! Texts of policies.

use crate::Target;
use shared::gost::GoDuration;
use shared::policy::parse;

pub(crate) const TARGET: Target = Target {
    name: "policy",
    run: fuzz,
    words: &[
        "fifo",
        "round",
        "rand",
        "hash(",
        "parallel",
        "lowestlatency(",
        "best",
        "selector(",
        "urltest(",
        "fixed(",
        "min(",
        "min_avg10(",
        "min_moving_avg(",
        "fixed_fallback(",
        "host",
        "consistent",
        "default=",
        "interrupt=",
        "on_death",
        "on_switch",
        "drain=",
        "url=",
        "http://",
        "interval=",
        "tolerance=",
        "idle_timeout=",
        "fall=",
        "rise=",
        "index=",
        "timeout=",
        "retries=",
        "fallback=",
        "return_delay=",
        "random",
        "3m",
        "50ms",
        "1h30m",
        "0.5s",
        "720h",
        "\"",
        "\\",
        ",",
        "=",
        ")",
        "18446744073709551616",
    ],
};

fn fuzz(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(duration) = GoDuration::parse(text) {
        assert!(duration.0 <= GoDuration::LONGEST);
        let written = serde_json::to_string(&duration).expect("a duration can be written");
        assert_eq!(serde_json::from_str::<GoDuration>(&written).ok(), Some(duration));
    }
    let parsed = match parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            assert!(error.at <= text.chars().count() && !error.expected.to_string().is_empty(), "{error}");
            return;
        }
    };
    let canonical = parsed.policy.to_string();
    let again = parse(&canonical).unwrap_or_else(|error| panic!("{canonical}: {error}"));
    assert_eq!(again.policy, parsed.policy, "{canonical}");
    assert!(again.warnings.is_empty() && again.policy.to_string() == canonical);
}
