//! Groups whose choice is decided ahead of their connections.

use crate::rig::*;
use agent::chain::group::choices::Choices;
use agent::clock::Clock;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use shared::gost::ServiceConfig;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A page that answers each exit as it is told, and knows who asked.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) addr: SocketAddr,
    answers: Arc<Mutex<BTreeMap<IpAddr, (u16, Duration)>>>,
    asked: Arc<Mutex<Vec<IpAddr>>>,
}

impl Page {
    pub(crate) async fn start() -> Self {
        let answers: Arc<Mutex<BTreeMap<IpAddr, (u16, Duration)>>> = Arc::default();
        let asked: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
        let (told, seen) = (answers.clone(), asked.clone());
        let (addr, _) = scripted(move |mut stream: TcpStream| {
            let (told, seen) = (told.clone(), seen.clone());
            async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                assert!(request.starts_with(b"HEAD /generate_204 HTTP/1.1\r\n"));
                let peer = stream.peer_addr().unwrap().ip();
                let (status, pause) =
                    told.lock().unwrap().get(&peer).copied().unwrap_or((204, Duration::ZERO));
                tokio::time::sleep(pause).await;
                let _ = stream.write_all(format!("HTTP/1.1 {status} X\r\n\r\n").as_bytes()).await;
                seen.lock().unwrap().push(peer);
            }
        })
        .await;
        Self { addr, answers, asked }
    }

    /// How those who come from there are answered.
    pub(crate) fn answer(&self, from: IpAddr, status: u16, pause_ms: u64) {
        self.answers.lock().unwrap().insert(from, (status, Duration::from_millis(pause_ms)));
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/generate_204", self.addr)
    }

    pub(crate) fn asked_by(&self, from: IpAddr) -> usize {
        self.asked.lock().unwrap().iter().filter(|ip| **ip == from).count()
    }
}

pub(crate) async fn exits<const N: usize>() -> [Exit; N] {
    let mut exits = Vec::new();
    for number in 1..=N {
        exits.push(Exit::start(u8::try_from(number).unwrap(), "tcp").await);
    }
    exits.try_into().ok().unwrap()
}

/// A runtime with the chain `c`: one hop `h` over these exits, `a`, `b`, `c`, ….
async fn entry(options: RuntimeOptions, selector: Value, exits: &[Exit], target: SocketAddr) -> Entry {
    let names = ["a", "b", "c"];
    let nodes: Vec<_> = exits.iter().zip(names).map(|(exit, name)| exit.node(name, "tcp")).collect();
    let runtime = Runtime::new(options);
    let hop = json!({"name": "h", "selector": selector, "nodes": nodes});
    runtime.apply(Change::AddChain(chain(json!({"name": "c", "hops": [hop]})))).await.unwrap();
    Entry::in_runtime(runtime, target, json!({})).await
}

const GROUP: &str = "chain/c/h";

/// Who is used for connections over IPv4.
pub(crate) fn now(runtime: &Runtime, group: &str) -> Option<String> {
    runtime.group(group).unwrap().now.get("tcp4").cloned()
}

async fn until_used(runtime: &Runtime, group: &str, member: &str) {
    eventually(&format!("{group} uses {member}"), || now(runtime, group).as_deref() == Some(member)).await;
}

fn member_state(runtime: &Runtime, member: usize) -> String {
    serde_json::to_value(runtime.group(GROUP).unwrap().members[member].state)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

/// A connection that stays open; something went through it.
async fn opened(addr: SocketAddr) -> TcpStream {
    soon(async {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(b"ping").await.unwrap();
        stream.read_exact(&mut [0; 4]).await.unwrap();
        stream
    })
    .await
}

async fn is_open(stream: &mut TcpStream) -> bool {
    soon(async {
        let sent = stream.write_all(b"more").await;
        sent.is_ok() && stream.read_exact(&mut [0; 4]).await.is_ok()
    })
    .await
}

/// Waits for the end, without sending.
async fn ends(stream: &mut TcpStream) {
    let read = soon(stream.read(&mut [0; 4])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

#[tokio::test]
async fn urltest_uses_the_exit_through_which_the_page_comes_fastest() {
    let (target, page, exits) = (Target::start(Does::Echo).await, Page::start().await, exits::<3>().await);
    page.answer(exits[0].from, 204, 1000);
    page.answer(exits[1].from, 500, 0);
    let strategy = format!("urltest(url={}, interval=1h)", page.url());
    let entry = entry(RuntimeOptions::default(), json!({"strategy": strategy}), &exits, target.addr).await;
    until_used(&entry.runtime, GROUP, "c").await;
    entry.echo().await.unwrap();
    assert_eq!(target.peers(), [exits[2].from]);
    assert_eq!(member_state(&entry.runtime, 1), "dead", "a wrong status is a failure");
    assert_eq!(page.asked_by(IpAddr::from([127, 0, 0, 1])), 0, "tested through the exits only");
    let latency = entry.runtime.group(GROUP).unwrap().members[0].latency_ms.unwrap();
    assert!(latency >= 1000.0, "{latency}");
    target.assert_only_exits_came();
}

#[tokio::test]
async fn a_failed_dial_goes_on_with_the_next_and_is_followed_by_a_test() {
    let (target, page, exits) = (Target::start(Does::Echo).await, Page::start().await, exits::<2>().await);
    let selector =
        json!({"strategy": "urltest", "metadata": {"url": page.url(), "interval": "1h", "tolerance": 50}});
    let entry = entry(impatient(), selector, &exits, target.addr).await;
    eventually("both are tested", || (0..2).all(|member| member_state(&entry.runtime, member) == "alive"))
        .await;
    let (first, other) = if now(&entry.runtime, GROUP).as_deref() == Some("a") { (0, 1) } else { (1, 0) };
    exits[first].runtime.shutdown().await;
    entry.echo().await.unwrap();
    assert_eq!(target.peers(), [exits[other].from], "the same connection went on with the other");
    // One failure is the dial's, the other the test's.
    let failures = || entry.runtime.group(GROUP).unwrap().members[first].failures;
    eventually("it is tested at once", || failures() == 2).await;
    assert_ne!(now(&entry.runtime, GROUP), Some(["a", "b"][first].to_owned()));
    assert_eq!(entry.marked(), [["a", "b"][first]]);
}

#[tokio::test]
async fn a_choice_is_kept_over_a_restart_and_can_be_taken_back() {
    let (target, exits) = (Target::start(Does::Echo).await, exits::<3>().await);
    let folder = tempfile::tempdir().unwrap();
    let start = async |default: Value| {
        let options = RuntimeOptions { choices: Choices::open(folder.path()), ..RuntimeOptions::default() };
        let selector = json!({"strategy": "selector", "metadata": default});
        entry(options, selector, &exits, target.addr).await
    };
    let first = start(json!({})).await;
    assert_eq!(now(&first.runtime, GROUP).as_deref(), Some("a"), "the first");
    let wrong = first.runtime.choose(GROUP, Some("x".into())).await.unwrap_err();
    assert_eq!(wrong.to_string(), "chain/c/h: x is not a member");
    assert_eq!(first.runtime.group(GROUP).unwrap().choice, None);
    first.runtime.choose(GROUP, Some("a".into())).await.unwrap();
    first.runtime.shutdown().await;

    let second = start(json!({"default": "b"})).await;
    assert_eq!(now(&second.runtime, GROUP).as_deref(), Some("a"), "choosing the one in use was stored");
    second.runtime.choose(GROUP, Some("c".into())).await.unwrap();
    second.echo().await.unwrap();
    second.runtime.choose(GROUP, None).await.unwrap();
    second.echo().await.unwrap();
    assert_eq!(target.peers(), [exits[2].from, exits[1].from], "chosen, then the default");
    second.runtime.shutdown().await;
    assert_eq!(now(&start(json!({})).await.runtime, GROUP).as_deref(), Some("a"));
}

#[tokio::test]
async fn a_chosen_exit_that_is_down_is_not_replaced() {
    let (target, exits) = (Target::start(Does::Echo).await, exits::<2>().await);
    let entry = entry(impatient(), json!({"strategy": "fixed(1)"}), &exits, target.addr).await;
    entry.echo().await.unwrap();
    exits[1].runtime.shutdown().await;
    assert!(entry.echo().await.is_err());
    assert_eq!(target.peers(), [exits[1].from]);
    let refused = entry.runtime.choose(GROUP, Some("a".into())).await.unwrap_err();
    assert_eq!(refused.to_string(), "chain/c/h is no selector");
}

#[tokio::test]
async fn only_connections_on_the_member_that_was_left_are_closed() {
    let (target, exits) = (Target::start(Does::Echo).await, exits::<2>().await);
    let metadata = json!({"interruptExistConnections": true});
    let selector = json!({"strategy": "selector", "metadata": metadata});
    let entry = entry(RuntimeOptions::default(), selector, &exits, target.addr).await;
    let mut on_a = opened(entry.addr).await;
    entry.runtime.choose(GROUP, Some("a".into())).await.unwrap();
    assert!(is_open(&mut on_a).await, "nothing changed");
    entry.runtime.choose(GROUP, Some("b".into())).await.unwrap();
    ends(&mut on_a).await;
    let mut on_b = opened(entry.addr).await;
    entry.runtime.choose(GROUP, Some("b".into())).await.unwrap();
    assert!(is_open(&mut on_b).await);
    entry.runtime.choose(GROUP, Some("a".into())).await.unwrap();
    ends(&mut on_b).await;
    assert_eq!(target.peers(), [exits[0].from, exits[1].from]);
}

#[tokio::test]
async fn without_being_asked_for_no_connection_is_closed() {
    let (target, exits) = (Target::start(Does::Echo).await, exits::<2>().await);
    let entry = entry(RuntimeOptions::default(), json!({"strategy": "selector"}), &exits, target.addr).await;
    let mut on_a = opened(entry.addr).await;
    entry.runtime.choose(GROUP, Some("b".into())).await.unwrap();
    entry.echo().await.unwrap();
    assert!(is_open(&mut on_a).await);
}

#[tokio::test]
async fn a_drained_connection_gets_its_time() {
    let (target, exits) = (Target::start(Does::Echo).await, exits::<2>().await);
    let metadata = json!({"interruptExistConnections": "onSwitch", "drain": "1500ms"});
    let selector = json!({"strategy": "selector", "metadata": metadata});
    let entry = entry(RuntimeOptions::default(), selector, &exits, target.addr).await;
    let mut on_a = opened(entry.addr).await;
    let clock = Clock::system();
    entry.runtime.choose(GROUP, Some("b".into())).await.unwrap();
    ends(&mut on_a).await;
    assert!(clock.now_ms() >= 1500, "{}", clock.now_ms());
}

#[tokio::test]
async fn a_fixed_exit_that_dies_is_replaced_and_returns() {
    let (target, page, exits) = (Target::start(Does::Echo).await, Page::start().await, exits::<2>().await);
    let metadata = json!({"url": page.url(), "interval": "1h", "interruptExistConnections": "onDeath"});
    let selector = json!({"strategy": "fixed_fallback(0, timeout=2s, retries=3)", "metadata": metadata});
    let entry = entry(RuntimeOptions::default(), selector, &exits, target.addr).await;
    eventually("both are tested", || (0..2).all(|member| member_state(&entry.runtime, member) == "alive"))
        .await;
    let mut on_a = opened(entry.addr).await;
    let running = exits[0].runtime.config().services;
    // Its connections go on; only new ones find nobody.
    exits[0].runtime.apply(Change::DeleteServices(vec!["exit".into()])).await.unwrap();
    entry.echo().await.unwrap();
    ends(&mut on_a).await;
    until_used(&entry.runtime, GROUP, "b").await;
    let mut on_b = opened(entry.addr).await;
    let again = running.into_iter().map(|exit| ServiceConfig { addr: exits[0].addr.to_string(), ..exit });
    exits[0].runtime.apply(Change::AddServices(again.collect())).await.unwrap();
    until_used(&entry.runtime, GROUP, "a").await;
    entry.echo().await.unwrap();
    assert!(is_open(&mut on_b).await, "b has not died");
    assert_eq!(target.peers(), [exits[0].from, exits[1].from, exits[1].from, exits[0].from]);
}

#[tokio::test]
async fn an_update_keeps_the_choice_and_what_is_known() {
    let (target, page, exits) = (Target::start(Does::Echo).await, Page::start().await, exits::<2>().await);
    page.answer(exits[0].from, 204, 1000);
    let metadata = json!({"url": page.url(), "interval": "1h", "interruptExistConnections": true});
    let selector = json!({"strategy": "min", "metadata": metadata});
    let first = entry(RuntimeOptions::default(), selector.clone(), &exits, target.addr).await;
    until_used(&first.runtime, GROUP, "b").await;
    let mut on_b = opened(first.addr).await;
    // Another member, and the others in another order.
    let (refused, _held) = refusing();
    let nodes = [node("new", refused, "tcp"), exits[1].node("b", "tcp"), exits[0].node("a", "tcp")];
    let hop = json!({"name": "h", "selector": selector, "nodes": nodes});
    let changed = chain(json!({"name": "c", "hops": [hop]}));
    first.runtime.apply(Change::UpsertChain(changed)).await.unwrap();
    assert_eq!(now(&first.runtime, GROUP).as_deref(), Some("b"));
    assert!(is_open(&mut on_b).await);
    first.echo().await.unwrap();
    assert_eq!(target.peers(), [exits[1].from, exits[1].from]);
    first.runtime.apply(Change::DeleteChain("c".into())).await.unwrap();
    assert_eq!(first.runtime.groups(), []);
    assert!(first.echo().await.is_err());
}

#[tokio::test]
async fn targets_and_chains_are_members_too() {
    let (first, second, exits) =
        (Target::start(Does::Echo).await, Target::start(Does::Echo).await, exits::<2>().await);
    let runtime = Runtime::new(RuntimeOptions::default());
    for (exit, name) in exits.iter().zip(["x", "y"]) {
        let hop = json!({"name": "h", "nodes": [exit.node(name, "tcp")]});
        runtime.apply(Change::AddChain(chain(json!({"name": name, "hops": [hop]})))).await.unwrap();
    }
    let nodes = json!([{"name": "t0", "addr": first.addr.to_string()}, {"name": "t1", "addr": second.addr.to_string()}]);
    let service = service(json!({
        "name": "f", "addr": "127.0.0.1:0", "listener": {"type": "tcp"},
        "handler": {"type": "tcp", "chainGroup": {"chains": ["x", "y"], "selector": {"strategy": "selector"}}},
        "forwarder": {"nodes": nodes, "selector": {"strategy": "fixed_fallback(1, interval=1h)"}}
    }));
    runtime.apply(Change::AddServices(vec![service])).await.unwrap();
    let addr = runtime.listening("f").unwrap();
    assert_eq!(runtime.groups().len(), 2);
    // Targets are tested by connecting to them, through the chains.
    eventually("the targets are tested", || {
        let members = runtime.group("service/f/targets").unwrap().members;
        members.iter().all(|member| member.latency_ms.is_some())
    })
    .await;
    runtime.choose("service/f/chains", Some("y".into())).await.unwrap();
    let before = (first.peers().len(), second.peers().len());
    echo(addr).await.unwrap();
    assert_eq!((first.peers().len(), second.peers().len()), (before.0, before.1 + 1));
    assert_eq!(second.peers().last(), Some(&exits[1].from));
    second.assert_only_exits_came();
}

#[test]
fn what_makes_no_sense_is_refused_with_its_path() {
    let table = [
        (json!({"strategy": "best"}), "selector.strategy: `best` is not supported in a file: a panel"),
        (
            json!({"strategy": "selector(default=x)"}),
            "selector.metadata.default: chain/c/h: the default x is not a member",
        ),
        (
            json!({"strategy": "selector", "metadata": {"default": "x"}}),
            "selector.metadata.default: chain/c/h: the default",
        ),
        (
            json!({"strategy": "fixed(2)"}),
            "selector.strategy: chain/c/h: there is no member 2; the last is 1",
        ),
        (
            json!({"strategy": "urltest", "metadata": {"idle": "5m"}}),
            "selector.metadata.idle: expected an option that",
        ),
        (
            json!({"strategy": "urltest", "metadata": {"url": "http://u@x/"}}),
            "selector.metadata.url: `http://u@x/` is no URL",
        ),
        (json!({"strategy": "fifo", "metadata": {"url": "x"}}), "selector.metadata.url: is no option"),
        (
            json!({"strategy": "urltes"}),
            "selector.strategy: `urltes` is not supported: not understood from character 7, expected urltest",
        ),
    ];
    for (selector, expected) in table {
        let nodes = json!([{"name": "a", "addr": "192.0.2.1:1"}, {"name": "b", "addr": "192.0.2.2:1"}]);
        let hop = json!({"name": "h", "selector": selector, "nodes": nodes});
        let config = serde_json::from_value(json!({"chains": [{"name": "c", "hops": [hop]}]})).unwrap();
        let problems = Runtime::validate(&config).unwrap_err();
        assert!(
            problems[0].starts_with(&format!("chain c: hops[0].{expected}")),
            "{problems:?} instead of {expected}"
        );
    }
    let hop = json!({"name": "h", "selector": {"strategy": "min"}, "nodes": [
        {"name": "a", "addr": "192.0.2.1:1", "metadata": {"addLatency": "-20ms", "weight": 2}}]});
    let config = serde_json::from_value(json!({"chains": [{"name": "c", "hops": [hop]}]})).unwrap();
    let problems = Runtime::validate(&config).unwrap_err();
    assert_eq!(problems, ["chain c: hops[0].nodes[0].metadata.weight: is not supported"]);
    let with = |priority: serde_json::Value| {
        let node = json!({"name": "a", "addr": "192.0.2.1:1", "metadata": {"priority": priority}});
        let hop = json!({"name": "h", "selector": {"strategy": "min"}, "nodes": [node]});
        Runtime::validate(&serde_json::from_value(json!({"chains": [{"name": "c", "hops": [hop]}]})).unwrap())
    };
    for priority in [json!(2), json!("2"), json!("0,2(,100ms),1(100ms,200ms)")] {
        assert_eq!(with(priority.clone()), Ok(()), "{priority}");
    }
    assert_eq!(
        with(json!("1,2(x)")).unwrap_err(),
        [
            "chain c: hops[0].nodes[0].metadata.priority: at character 5: expected milliseconds such as 50 or 50ms, \
          at most 30 days, found `x`"
        ]
    );
}
