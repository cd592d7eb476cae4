//! The text of policies.

use crate::rig::policy;
use proptest::prelude::*;
use shared::policy::spec::{Fallback, Interrupt};
use shared::policy::{Latency, Policy, parse};

pub(crate) fn errors_name_the_place_and_what_was_expected() {
    let table = [
        ("", 0, "a strategy's name", ""),
        ("quickest", 0, "one of fifo", "quickest"),
        ("fixed", 5, "the member's number", ""),
        ("fixed(x)", 6, "the member's number", "x"),
        ("fixed(-1)", 6, "the member's number", "-1"),
        ("fixed(1", 7, "`,` or `)`", ""),
        ("fixed(1) 2", 9, "the end of the text", "2"),
        ("fixed(1, 2)", 9, "no further value for `fixed`", "2"),
        ("min(limit=3)", 4, "an option that `min` has", "limit"),
        ("min(tolerance=1ms, tolerance=2ms)", 19, "an option that `min` has, once", "tolerance"),
        ("urltest(interval=3x)", 17, "a duration", "3x"),
        ("urltest(interval=0)", 17, "an interval above 0", "0"),
        ("urltest(interval=99999999999999999999s)", 17, "a duration", "99999999999999999999s"),
        ("urltest(url=ftp://x)", 12, "a URL", "ftp://x"),
        ("urltest(interval=3m, idle_timeout=1m)", 34, "an idle timeout not below the interval of 3m", "1m"),
        ("selector(default=\"a)", 20, "`\"` at the end", ""),
        ("selector(interrupt=maybe)", 19, "one of never, on_death, on_switch", "maybe"),
        ("fixed_fallback()", 16, "the member's number", ""),
        ("fixed_fallback(0, soon)", 18, "a duration", "soon"),
        ("fixed_fallback(0, 3s, many)", 22, "a number from 0 to 1000", "many"),
        ("fixed_fallback(0, 3s, 3, fixed)", 25, "one of random, min", "fixed"),
        ("fixed_fallback(0, 3s, 3, random, 5)", 33, "no further value", "5"),
        ("hash(colour)", 5, "one of client, host, consistent", "colour"),
        ("最优", 0, "one of fifo", "最优"),
    ];
    for (text, at, expected, found) in table {
        let error = parse(text).expect_err(text);
        assert_eq!((error.at, error.found.as_str()), (at, found), "{text}: {error}");
        assert!(error.expected.to_string().starts_with(expected), "{text}: {error}");
    }
}

pub(crate) fn defaults_are_those_of_the_sources() {
    let Policy::UrlTest { measure, idle_timeout_ms, interrupt, .. } = policy("urltest") else { panic!() };
    assert_eq!(measure.url, "https://www.gstatic.com/generate_204");
    assert_eq!((measure.interval_ms, measure.tolerance_ms, idle_timeout_ms), (180_000, 50, 1_800_000));
    assert_eq!(interrupt, Interrupt::Never);
    let Policy::Min { latency: Latency::Avg10, measure, .. } = policy("min_avg10") else { panic!() };
    assert_eq!((measure.interval_ms, measure.tolerance_ms, measure.fall, measure.rise), (30_000, 0, 1, 1));
    // Zero tolerance is a tolerance.
    let Policy::UrlTest { measure, .. } = policy("urltest(tolerance=0)") else { panic!() };
    assert_eq!(measure.tolerance_ms, 0);
    // Not written, the idle timeout follows the interval.
    let Policy::UrlTest { idle_timeout_ms, .. } = policy("urltest(interval=1h)") else { panic!() };
    assert_eq!(idle_timeout_ms, 3_600_000);
}

pub(crate) fn fixed_fallback_as_the_source_writes_it() {
    let table = [
        ("fixed_fallback(0, 3s, 3, random)", (0, 3000, 3, Fallback::Random)),
        ("fixed_fallback(1, 5s, 2, min_moving_avg)", (1, 5000, 2, Fallback::Min(Latency::Moving))),
        ("fixed_fallback(0, 60s, 5)", (0, 60_000, 5, Fallback::Min(Latency::Moving))),
        ("fixed_fallback(0)", (0, 3000, 3, Fallback::Min(Latency::Moving))),
        ("fixed_fallback(3, 3, 3, random)", (3, 3000, 3, Fallback::Random)),
        ("fixed_fallback(0, 2m, 0, min)", (0, 120_000, 0, Fallback::Min(Latency::Last))),
        (
            "fixed_fallback(2, retries=1, fallback=min_avg10, timeout=4s)",
            (2, 4000, 1, Fallback::Min(Latency::Avg10)),
        ),
    ];
    for (text, expected) in table {
        let parsed = parse(text).unwrap();
        let Policy::FixedFallback { index, timeout_ms, retries, fallback, .. } = parsed.policy else {
            panic!()
        };
        assert_eq!((index, timeout_ms, retries, fallback), expected, "{text}");
        assert_eq!(parsed.warnings, Vec::<String>::new(), "{text}");
    }
}

pub(crate) fn a_short_timeout_is_raised_and_said_so() {
    let parsed = parse("fixed_fallback(0, 500ms, 3)").unwrap();
    let Policy::FixedFallback { timeout_ms, .. } = parsed.policy else { panic!() };
    assert_eq!(timeout_ms, 2000);
    assert_eq!(parsed.warnings, ["fixed_fallback: the timeout of 500ms is raised to 2s"]);
}

#[test]
fn all_spellings() {
    for (text, same) in [
        ("ha", "fifo"),
        ("rr", "round"),
        ("random", "rand"),
        ("ll", "lowestlatency"),
        (" hash ( client , consistent ) ", "hash(consistent)"),
        ("selector(interrupt_exist_connections=true)", "selector(interrupt=on_switch)"),
        ("fixed()", "fixed()"),
    ] {
        assert_eq!(parse(text).map(|p| p.policy), parse(same).map(|p| p.policy), "{text}");
    }
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let text = (
        prop::sample::select(vec![
            "selector",
            "urltest",
            "min",
            "min_avg10",
            "fixed(3)",
            "fixed_fallback",
            "hash",
            "ll",
        ]),
        1u64..100_000,
        0u64..100_000,
        0u32..50,
        any::<String>(),
    );
    text.prop_filter_map("valid", |(name, interval, tolerance, count, default)| {
        let text = match name {
            "selector" => format!(
                "selector(default=\"{}\", drain={tolerance}ms)",
                default.replace('\\', "\\\\").replace('"', "\\\"")
            ),
            "urltest" => format!("urltest(interval={interval}ms, tolerance={tolerance}, interrupt=on_death)"),
            "fixed_fallback" => {
                format!("fixed_fallback({count}, {interval}s, {count}, random, return_delay={tolerance}ms)")
            }
            "hash" => "hash(host, consistent)".to_owned(),
            "ll" => format!("ll(tolerance={tolerance})"),
            "fixed(3)" => name.to_owned(),
            _ => format!("{name}(interval={interval}s, tolerance={tolerance}ms, fall=2, rise=3)"),
        };
        parse(&text).ok().map(|parsed| parsed.policy)
    })
}

proptest! {
    /// What is written back is read as the same.
    #[test]
    fn written_policies_are_read_back(policy in any_policy()) {
        let text = policy.to_string();
        prop_assert_eq!(parse(&text).map(|parsed| parsed.policy), Ok(policy), "{}", text);
    }

    /// Any text: a policy, or an error inside the text; no panic.
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z_]{0,12}[(),=\"\\\\ 0-9a-z_:/.]{0,40}|\\PC{0,60}") {
        if let Err(error) = parse(&text) {
            prop_assert!(error.at <= text.chars().count());
            prop_assert!(!error.expected.to_string().is_empty());
        }
    }
}
