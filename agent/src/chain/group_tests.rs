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
        name: addr,
        addr,
        udp: true,
        metadata,
        state: Arc::default(),
    });
    Group::build("hop", "g".into(), Some(&selector), members, None)
}

fn next(group: &Group, clock: &Clock) -> Attempt {
    let draw = group.draw(CLIENT, shared::policy::Network::Tcp4, &Random::seeded(1));
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
async fn a_connection_that_was_on_its_way_does_not_undo_what_a_probe_found() {
    let clock = Clock::system();
    let none = serde_json::json!({});
    let group = group(serde_json::json!({"strategy": "fifo"}), &[none.clone(), none]).unwrap();
    let refute = || group.state(0).refute(clock.now_ms(), FailRule::DEFAULT);
    let on_its_way = next(&group, &clock);
    assert!(refute(), "newly left out");
    assert!(!on_its_way.succeed());
    assert_eq!(next(&group, &clock).index(), 1);
    // The same for a trial, which the probe has ended: after its time the next one is there.
    clock.advance(Duration::from_secs(10));
    let trial = next(&group, &clock);
    assert_eq!(trial.index(), 0);
    assert!(!refute(), "was left out before");
    clock.advance(Duration::from_secs(10));
    let another = next(&group, &clock);
    assert_eq!(another.index(), 0);
    assert!(!trial.succeed());
    assert_eq!(next(&group, &clock).index(), 1, "the other trial goes on");
    // What began afterwards is newer news; and a failure of connections is undone by any that gets through.
    assert!(another.succeed());
    let on_its_way = next(&group, &clock);
    assert!(next(&group, &clock).mark());
    assert!(on_its_way.succeed());
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
    attempt.count_failure(crate::chain::failure::FailureKind::Lost);
    let open = attempt.open();
    let counters = |connections, open, failures| Counters { connections, open, failures };
    assert_eq!(group.state(0).counters(), counters(1, 1, 1));
    drop(open);
    assert_eq!(group.state(0).counters(), counters(1, 0, 1));
}

#[tokio::test]
async fn zeros_mean_the_defaults() {
    let clock = Clock::system();
    let zeros = serde_json::json!({"strategy": "fifo", "maxFails": 0, "failTimeout": 0, "maxLatency": 0});
    let own = serde_json::json!({"maxFails": 0, "failTimeout": "0s", "weight": 0});
    for (selector, member) in [(zeros.clone(), serde_json::json!({})), (zeros, own)] {
        let group = group(selector, &[member.clone(), member]).unwrap();
        assert_eq!(group.rule(0), FailRule { max_fails: 1, fail_timeout_ms: 10_000 });
        assert!(next(&group, &clock).mark(), "one failure is enough");
        clock.advance(Duration::from_millis(9_999));
        assert_eq!(next(&group, &clock).index(), 1);
        clock.advance(Duration::from_millis(1));
        assert_eq!(next(&group, &clock).index(), 0);
    }
}

#[tokio::test]
async fn many_at_once_get_turns_of_their_own() {
    let none = serde_json::json!({});
    let group =
        Arc::new(group(serde_json::json!({"strategy": "rr"}), &[none.clone(), none.clone(), none]).unwrap());
    let picks = (0..99).map(|_| {
        let group = group.clone();
        tokio::spawn(async move { next(&group, &Clock::system()).index() })
    });
    let mut counts = [0; 3];
    for pick in futures_util::future::join_all(picks).await {
        counts[pick.unwrap()] += 1;
    }
    assert_eq!(counts, [33; 3]);
}

#[tokio::test]
async fn a_named_client_is_the_same_from_everywhere() {
    let clock = Clock::system();
    let none = serde_json::json!({});
    let members: Vec<_> = (0..5).map(|_| none.clone()).collect();
    let group = group(serde_json::json!({"strategy": "hash"}), &members).unwrap();
    let picked = |key: ClientKey| {
        let draw = group.draw(key, shared::policy::Network::Tcp4, &Random::seeded(1));
        group.pick(|_| false, &draw, &clock).unwrap().index()
    };
    for last in 0..50 {
        let key = ClientKey::from(IpAddr::from([10, 0, 0, last]));
        assert_eq!(picked(key.named("test-client")), 4);
        assert_eq!(picked(key), picked(key));
    }
    assert_eq!(picked(IpAddr::from([127, 0, 0, 1]).into()), 3_619_153_832 % 5);
}

#[tokio::test]
async fn the_node_in_use_is_remembered_over_a_swap() {
    let clock = Clock::system();
    let states: Vec<Arc<NodeState>> = (0..3).map(|_| Arc::default()).collect();
    let took = |i: usize, ms| {
        states[i].measured.note(states[i].measured.epoch(), Ok(()), Duration::from_millis(ms), 0);
    };
    let selector: SelectorConfig =
        serde_json::from_value(serde_json::json!({"strategy": "ll", "tolerance": "5ms"})).unwrap();
    let (nothing, addr) = (Metadata::new(), "192.0.2.1:1");
    let build = |order: &[usize], previous: Option<&Group>| {
        let members = order.iter().map(|i| MemberConfig {
            path: String::new(),
            name: addr,
            addr,
            udp: true,
            metadata: &nothing,
            state: states[*i].clone(),
        });
        Group::build("hop", "g".into(), Some(&selector), members, previous).unwrap()
    };
    [(0, 20), (1, 10), (2, 30)].into_iter().for_each(|(i, ms)| took(i, ms));
    let old = build(&[0, 1, 2], None);
    assert_eq!(next(&old, &clock).index(), 1);
    took(0, 6);
    assert_eq!(next(&old, &clock).index(), 1, "within the tolerance");
    let new = build(&[2, 0, 1], Some(&old));
    assert_eq!(next(&new, &clock).index(), 2, "the same node, wherever it stands now");
    took(0, 4);
    assert_eq!(next(&new, &clock).index(), 1);
    let fresh = build(&[2, 1], Some(&new));
    assert_eq!(next(&fresh, &clock).index(), 1, "who was in use is gone");
}

#[tokio::test]
async fn large_groups_are_chosen_from_as_well() {
    let clock = Clock::system();
    let members: Vec<_> = (0..SMALL + 8).map(|_| serde_json::json!({})).collect();
    let group = group(serde_json::json!({}), &members).unwrap();
    let picks: Vec<_> = (0..members.len()).map(|_| next(&group, &clock).index()).collect();
    assert_eq!(picks, (0..members.len()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn half_open_follows_the_time_of_the_runtime() {
    let clock = Clock::system();
    let none = serde_json::json!({});
    let selector = serde_json::json!({"strategy": "fifo", "maxFails": 2, "failTimeout": "1500ms"});
    let group = group(selector, &[none.clone(), none]).unwrap();
    let wait = |ms| tokio::time::advance(Duration::from_millis(ms));
    assert!(!next(&group, &clock).mark());
    wait(1_499).await;
    assert!(next(&group, &clock).mark(), "the second inside the window");
    wait(1_499).await;
    assert_eq!(next(&group, &clock).index(), 1);
    wait(1).await;
    let trial = next(&group, &clock);
    assert_eq!((trial.index(), next(&group, &clock).index()), (0, 1), "exactly one connection tries");
    wait(60_000).await;
    assert_eq!(next(&group, &clock).index(), 1, "however long it takes");
    trial.mark();
    wait(1_499).await;
    assert_eq!(next(&group, &clock).index(), 1, "one failure leaves out for the full time again");
    wait(1).await;
    assert!(next(&group, &clock).succeed());
    assert!(!next(&group, &clock).mark(), "after a success two failures are allowed again");
}
