//! Tests that a person asks for through the API that dashboards speak.

use crate::clash::runtime;
use crate::clash_rig::*;
use crate::policies::{Page, exits};
use crate::rig::*;
use agent::runtime::{Change, Runtime};
use serde_json::{Value, json};

#[tokio::test]
async fn a_test_is_made_as_it_is_asked_for_and_changes_nothing() {
    let (target, page, exits) = (Target::start(Does::Echo).await, Page::start().await, exits::<2>().await);
    let runtime = runtime(&page, &exits, &target).await;
    let dashboard = Dashboard::of(&runtime).await;
    let other = Page::start().await;
    other.answer(exits[1].from, 500, 0);
    let seen = || {
        runtime
            .groups()
            .into_iter()
            .map(|group| {
                let members = group
                    .members
                    .into_iter()
                    .map(|member| (member.state, member.latency_ms, member.failures));
                (group.now, group.choice, members.collect::<Vec<_>>())
            })
            .collect::<Vec<_>>()
    };
    let before = seen();
    let delay = async |name: &str, query: &str| {
        let (status, body) = dashboard.request(&format!("GET /proxies/{name}/delay?{query}"), "").await;
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    let url = format!("url={}", other.url().replace(':', "%3A").replace('/', "%2F"));
    let ask = format!("{url}&timeout=30000");

    // It is another page than the group's, and asked for although the group has just tested.
    let (status, answer) = delay("chain%2Fm%2Ft%2Fa", &ask).await;
    assert!(status == 200 && answer["delay"].as_u64().unwrap() >= 1, "{answer}");
    assert_eq!((other.asked_by(exits[0].from), other.asked_by(exits[1].from)), (1, 0));
    let failed = (503, json!({"message": "An error occurred in the delay test"}));
    assert_eq!(delay("c", &ask).await, failed, "a wrong status");
    assert_eq!(delay("two", &ask).await, failed, "through both hops");
    assert_eq!(other.asked_by(exits[1].from), 2);
    // Of a group, the member that it uses; of a group of groups, that one's.
    for name in ["chain%2Fz%2Fh", "service%2Ff%2Fchains", "GLOBAL"] {
        assert_eq!(delay(name, &ask).await.0, 200, "{name}");
    }
    assert_eq!(other.asked_by(exits[0].from), 4);
    // Targets are no ways to a page.
    assert_eq!(delay("t1", &ask).await.0, 200);

    other.answer(exits[0].from, 204, 60_000);
    let timeout = (504, json!({"message": "Timeout"}));
    assert_eq!(delay("chain%2Fz%2Fh%2Fa", &format!("{url}&timeout=200")).await, timeout);
    let invalid = (400, json!({"message": "Body invalid"}));
    for query in [
        "timeout=2147483648",
        "timeout=0",
        "timeout=-1",
        "timeout=x",
        "timeout=",
        "url=ftp%3A%2F%2Fx",
        "url=x&timeout=100",
        "expected=x",
        "expected=99",
    ] {
        assert_eq!(delay("b", query).await, invalid, "{query}");
    }
    // As large as can be: not refused, and not what is waited for.
    let expected = format!("{url}&timeout=2147483647&expected=500");
    assert_eq!(delay("b", &expected).await.0, 200, "this status is the right one");
    assert_eq!(delay("x", &ask).await, (404, json!({"message": "Resource not found"})));
    assert_eq!(seen(), before, "groups learn nothing of it");

    // And those who ask see it.
    let history = dashboard.get("/proxies/chain%2Fz%2Fh%2Fa").await["history"].clone();
    let delays: Vec<_> =
        history.as_array().unwrap().iter().map(|point| point["delay"].as_u64().unwrap()).collect();
    assert!(delays.len() == 4 && delays[..3].iter().all(|delay| *delay > 0) && delays[3] == 0, "{delays:?}");
    assert_eq!(dashboard.get("/proxies/chain%2Fz%2Fh").await["history"], history);
}

#[tokio::test]
async fn all_members_of_a_group_are_tested_at_once() {
    let (target, page, exits) = (Target::start(Does::Echo).await, Page::start().await, exits::<2>().await);
    let runtime = runtime(&page, &exits, &target).await;
    let dashboard = Dashboard::of(&runtime).await;
    runtime.choose("service/f/chains", Some("m".into())).await.unwrap();
    let other = Page::start().await;
    let delays = async |group: &str, timeout: u32| {
        let line = format!("GET /group/{group}/delay?url={}&timeout={timeout}", other.url());
        let (status, body) = dashboard.request(&line, "").await;
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    let names = |answer: &Value| answer.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let (status, answer) = delays("chain%2Fm%2Ft", 30_000).await;
    assert_eq!((status, names(&answer)), (200, vec!["c".to_owned(), "chain/m/t/a".to_owned()]));
    assert_eq!(
        (page.asked_by(exits[0].from), other.asked_by(exits[0].from)),
        (1, 1),
        "the page that was named"
    );
    let (status, answer) = delays("service%2Ff%2Fchains", 30_000).await;
    assert_eq!((status, names(&answer).len()), (200, 3), "{answer}");

    // Who does not answer is left out; where nobody does, it was not done in time.
    other.answer(exits[1].from, 204, 60_000);
    let (status, answer) = delays("chain%2Fm%2Ft", 1500).await;
    assert_eq!((status, names(&answer)), (200, vec!["chain/m/t/a".to_owned()]));
    other.answer(exits[0].from, 204, 60_000);
    assert_eq!(delays("chain%2Fm%2Ft", 300).await, (504, json!({"message": "Timeout"})));
    // An error is none.
    other.answer(exits[0].from, 500, 0);
    assert_eq!(delays("chain%2Fm%2Ft", 300).await, (200, json!({})));
    let invalid = (400, json!({"message": "Body invalid"}));
    let line = "GET /group/chain%2Fm%2Ft/delay?timeout=4294967296";
    let (status, body) = dashboard.request(line, "").await;
    assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), invalid);
    assert_eq!(runtime.group("service/f/chains").unwrap().choice.as_deref(), Some("m"), "still chosen");
}

#[tokio::test]
async fn a_failed_test_of_a_chain_is_not_held_against_its_nodes() {
    let exits = exits::<1>().await;
    let runtime = Runtime::new(impatient());
    let (refused, _held) = refusing();
    let nodes = [node("dead", refused, "tcp"), exits[0].node("works", "tcp")];
    let inner = json!({"name": "h", "selector": {"strategy": "urltest(interval=1h, url=http://192.0.2.1/)"}, "nodes": nodes});
    let plain =
        json!({"name": "p", "selector": {"strategy": "fifo"}, "nodes": [node("lone", refused, "tcp")]});
    runtime.apply(Change::AddChain(chain(json!({"name": "c", "hops": [inner, plain]})))).await.unwrap();
    let service = service(json!({
        "name": "f", "addr": "127.0.0.1:0", "handler": {"type": "relay", "chainGroup":
            {"chains": ["c"], "selector": {"strategy": "selector"}}}, "listener": {"type": "tcp"}
    }));
    runtime.apply(Change::AddServices(vec![service])).await.unwrap();
    eventually("the group has tested", || {
        runtime.group("chain/c/h").unwrap().members.iter().all(|member| member.failures > 0)
    })
    .await;
    let failures = || {
        let members = runtime.group("chain/c/h").unwrap().members;
        let nodes = runtime.chain_members().remove(0).1;
        (
            members.iter().map(|member| member.failures).collect::<Vec<_>>(),
            nodes.iter().map(|node| (node.failures, node.connections)).collect::<Vec<_>>(),
        )
    };
    let before = failures();
    let dashboard = Dashboard::of(&runtime).await;
    for _ in 0..3 {
        let line = "GET /proxies/c/delay?timeout=2000&url=http%3A%2F%2F127.0.0.1%3A1%2F";
        assert_eq!(dashboard.request(line, "").await.0, 503);
    }
    assert_eq!(failures(), before);
}
