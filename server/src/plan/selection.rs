//! A group's strategy → the selector that an agent understands.

use super::names;
use shared::gost::{GoDuration, ProbeConfig, SelectorConfig};
use shared::policy::Policy;
use shared::strategy::Strategy;
use std::time::Duration;

/// The selector, and what is wrong with it if something is: it works all the same.
///
/// `filter`: failures, and the time for which they count, of strategies that go by them. `members`: by what operators
/// know them, in saved order; agents know them as [`names::member`].
pub(super) fn selector(
    strategy: &Strategy,
    filter: (u32, Duration),
    members: &[&str],
) -> (SelectorConfig, Option<String>) {
    let (max_fails, fail_timeout) = filter;
    let filtered = |text: &str| SelectorConfig {
        strategy: text.to_owned(),
        max_fails,
        fail_timeout: GoDuration(fail_timeout),
        ..SelectorConfig::default()
    };
    let ahead = |strategy: String| SelectorConfig { strategy, ..SelectorConfig::default() };
    match strategy.policy() {
        None => (filtered(strategy.rendered().as_str()), None),
        Some(Policy::LowestLatency { tolerance_ms }) => {
            let tolerance = GoDuration(Duration::from_millis(*tolerance_ms));
            (SelectorConfig { tolerance, ..filtered("lowestlatency") }, None)
        }
        Some(Policy::Hash { consistent: true, .. }) => (filtered("hash(consistent)"), None),
        Some(Policy::Selector { default: Some(default), interrupt, drain_ms }) => {
            let found = members.iter().position(|member| member == default);
            let problem = found
                .is_none()
                .then(|| format!("the default `{default}` of the strategy is none of the members"));
            let default = found.map(names::member);
            let policy = Policy::Selector { default, interrupt: *interrupt, drain_ms: *drain_ms };
            (ahead(policy.to_string()), problem)
        }
        Some(policy) if policy.is_decided_ahead() => (ahead(strategy.to_string()), None),
        Some(policy) => (filtered(policy.name()), None),
    }
}

/// How a member is probed, for strategies that go by latency without testing by themselves. `address` is the member's
/// own: only the way to it is of interest.
pub(super) fn probe(strategy: &Strategy, address: &str) -> Option<ProbeConfig> {
    matches!(strategy.policy(), Some(Policy::LowestLatency { .. }))
        .then(|| ProbeConfig { addr: address.to_owned(), ..ProbeConfig::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> (SelectorConfig, Option<String>) {
        selector(&Strategy::from(text), (3, Duration::from_secs(30)), &["hk", "jp"])
    }

    #[test]
    fn the_fail_filter_goes_to_strategies_that_know_it_and_to_no_others() {
        for (text, strategy) in [
            ("best", "fifo"),
            ("round", "round"),
            ("parallel", "parallel"),
            ("hash(client, consistent)", "hash(consistent)"),
            ("ll(tolerance=20ms)", "lowestlatency"),
        ] {
            let (selector, problem) = rendered(text);
            assert_eq!((selector.strategy.as_str(), selector.max_fails, problem), (strategy, 3, None));
            assert_eq!(selector.fail_timeout.0, Duration::from_secs(30));
        }
        assert_eq!(rendered("ll(tolerance=20ms)").0.tolerance.0, Duration::from_millis(20));
        for text in ["urltest(interval=1m)", "min_avg10", "fixed(1)", "fixed_fallback(1, 5s)", "selector"] {
            let (selector, problem) = rendered(text);
            let expected = SelectorConfig { strategy: text.to_owned(), ..SelectorConfig::default() };
            assert_eq!((selector, problem), (expected, None));
        }
    }

    #[test]
    fn a_default_is_said_by_the_nodes_name_and_sent_by_the_members() {
        let (selector, problem) = rendered("selector(default=jp, drain=3s)");
        assert_eq!(selector.strategy, "selector(default=node_2, interrupt=never, drain=3s)");
        assert_eq!(problem, None);
        // Its node was renamed since: the group goes on without, and says so.
        let (selector, problem) = rendered("selector(default=us)");
        assert_eq!(selector.strategy, "selector(interrupt=never, drain=0ms)");
        assert!(problem.unwrap().contains("`us`"));
    }

    #[test]
    fn only_what_goes_by_probes_is_probed() {
        let probe = |text| probe(&Strategy::from(text), "192.0.2.1:443").map(|probe| probe.addr);
        assert_eq!(probe("lowestlatency").as_deref(), Some("192.0.2.1:443"));
        for text in ["fifo", "urltest", "parallel"] {
            assert_eq!(probe(text), None);
        }
    }
}
