//! Groups: rules, trials, counters.

use super::super::state::Counters;
use super::*;
use std::net::IpAddr;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn group(selector: serde_json::Value, members: &[serde_json::Value]) -> Result<Group, ConfigError> {
    let selector: SelectorConfig = serde_json::from_value(selector).unwrap();
    let metadata: Vec<Metadata> =
        members.iter().map(|m| serde_json::from_value(m.clone()).unwrap()).collect();
    let addrs: Vec<String> = (0..members.len()).map(|i| format!("192.0.2.{i}:1")).collect();
    let members = metadata.iter().zip(&addrs).enumerate().map(|(i, (metadata, addr))| MemberConfig {
        path: format!("nodes[{i}]"),
        addr,
        metadata,
        state: Arc::default(),
    });
    Group::build("hop", Some(&selector), members, None)
}

fn next(group: &Group, clock: &Clock) -> Attempt {
    let draw = group.draw(CLIENT, &Random::seeded(1));
    group.pick(|_| false, &draw, clock).unwrap()
}

#[tokio::test]
async fn an_expired_mark_admits_one_connection_until_it_is_decided() {
    let clock = Clock::system();
    let none = serde_json::json!({});
    let group = group(serde_json::json!({"strategy": "fifo"}), &[none.clone(), none]).unwrap();
    assert!(next(&group, &clock).mark(), "newly left out");
    assert_eq!(next(&group, &clock).index(), 1);
    clock.advance(Duration::from_secs(10));
    let trial = next(&group, &clock);
    assert_eq!(trial.index(), 0);
    assert_eq!(next(&group, &clock).index(), 1, "the others wait for the verdict");
    drop(trial);
    let trial = next(&group, &clock);
    assert_eq!(trial.index(), 0, "an abandoned trial is taken by the next");
    assert!(!trial.mark(), "was left out before");
    assert_eq!(next(&group, &clock).index(), 1);
    clock.advance(Duration::from_secs(10));
    assert!(next(&group, &clock).succeed());
    assert_eq!(next(&group, &clock).index(), 0);
    assert_eq!(next(&group, &clock).index(), 0);
}

#[tokio::test]
async fn rules_fall_back_from_member_to_selector_to_default() {
    let clock = Clock::system();
    let selector = serde_json::json!({"strategy": "fifo", "maxFails": 2, "failTimeout": "600s"});
    let own = serde_json::json!({"maxFails": "1", "failTimeout": "250ms"});
    let group = group(selector, &[serde_json::json!({"maxFails": 0}), own, serde_json::json!({})]).unwrap();
    assert!(!next(&group, &clock).mark(), "two failures are allowed");
    assert!(next(&group, &clock).mark());
    assert!(next(&group, &clock).mark(), "one is, for the second");
    assert_eq!(next(&group, &clock).index(), 2);
    clock.advance(Duration::from_millis(250));
    assert_eq!(next(&group, &clock).index(), 1);
    clock.advance(Duration::from_millis(599_750));
    assert_eq!(next(&group, &clock).index(), 0);
}

#[test]
fn configuration_errors_name_the_place() {
    let none = serde_json::json!({});
    let error = |selector, member| group(selector, &[serde_json::json!({}), member]).unwrap_err().to_string();
    assert!(
        error(serde_json::json!({"strategy": "fastest"}), none.clone())
            .starts_with("hop.selector.strategy: `fastest`")
    );
    assert_eq!(
        error(none.clone(), serde_json::json!({"priority": 1})),
        "nodes[1].metadata.priority: is not supported"
    );
    assert_eq!(
        error(serde_json::json!({"maxFails": 1001}), none),
        "hop.selector.maxFails: must not exceed 1000"
    );
}

#[tokio::test]
async fn counters_follow_connections() {
    let clock = Clock::system();
    let group = group(serde_json::json!({}), &[serde_json::json!({})]).unwrap();
    let attempt = next(&group, &clock);
    attempt.count_failure();
    let open = attempt.open();
    let counters = |connections, open, failures| Counters { connections, open, failures };
    assert_eq!(group.state(0).counters(), counters(1, 1, 1));
    drop(open);
    assert_eq!(group.state(0).counters(), counters(1, 0, 1));
}
