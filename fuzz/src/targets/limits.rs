//! Lines of limiters. An empty line separates nothing: each line of the input is one of the limiter's.

use crate::Target;
use agent::limit::bucket::{Bucket, Rate};
use agent::limit::rules::Rules;
use std::net::IpAddr;

pub(crate) const TARGET: Target = Target {
    name: "limits",
    run: fuzz,
    words: &[
        "$ ",
        "$$ ",
        "10.0.0.0/8 ",
        "::/0 ",
        "0.0.0.0/0 ",
        "192.0.2.1 ",
        "::ffff:192.0.2.1/120 ",
        "1MB",
        "512KB ",
        "1.5GiB",
        "0TB",
        "-1",
        "100\n",
        "99999999999999999999999999999999999999",
        "1e308",
        "0.0000001",
        "inf",
        "nan",
    ],
};

fn fuzz(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let ips: [IpAddr; 4] = ["10.1.2.3", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"]
        .map(|ip| ip.parse().expect("an address"));
    if let Ok(rules) = Rules::traffic("limiter x", &lines) {
        let named = ips.iter().filter_map(|ip| rules.of(*ip));
        let all = rules.all.into_iter().chain(rules.each).chain(named);
        all.flat_map(|rates| [rates.input, rates.output]).flatten().for_each(hold);
        // An address and what it is as an IPv6 one are under the same line.
        assert_eq!(rules.of(ips[1]), rules.of(ips[3]));
    }
    if let Ok(rules) = Rules::connections("climiter x", &lines) {
        let named = ips.iter().filter_map(|ip| rules.of(*ip));
        assert!(rules.all.into_iter().chain(rules.each).chain(named).all(|most| most != Some(0)));
    }
    if let Ok(rules) = Rules::rates("rlimiter x", &lines) {
        let named = ips.iter().filter_map(|ip| rules.of(*ip));
        rules.all.into_iter().chain(rules.each).chain(named).flatten().for_each(hold);
    }
}

/// A bucket of this rate gives what it holds and what it gains, and says when there is more.
fn hold(rate: Rate) {
    assert!(rate.tokens() > 0 && rate.as_f64() > 0.0 && rate.as_f64().is_finite());
    let burst = rate.tokens();
    let mut bucket = Bucket::new(rate, burst, 0);
    assert_eq!(bucket.take(0, 1, u64::MAX), burst);
    assert_eq!(bucket.take(0, 1, u64::MAX), 0);
    let wait = bucket.wait_ns(0, 1);
    assert!(wait > 0 && bucket.take(wait, 1, 1) == 1, "nothing after {wait} ns at {rate:?}");
    let years = 100 * 365 * 86_400 * 1_000_000_000;
    assert!(bucket.take(years, 1, u64::MAX) <= burst);
}
