//! Services come, change and go, one change at a time and never by halves.

use crate::rig::*;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use shared::gost::GostConfig;
use std::io::ErrorKind;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A direct forward.
fn direct(name: &str, addr: impl ToString, target: SocketAddr) -> Value {
    let mut config = forward(name, target);
    config["addr"] = json!(addr.to_string());
    config["handler"] = json!({"type": "tcp"});
    config
}

async fn upsert(runtime: &Runtime, configs: &[&Value]) -> Result<(), String> {
    let configs = configs.iter().map(|config| service((*config).clone())).collect();
    runtime.apply(Change::UpsertServices(configs)).await.map_err(|error| error.to_string())
}

async fn connected(addr: SocketAddr) -> TcpStream {
    let mut stream = soon(TcpStream::connect(addr)).await.unwrap();
    assert_alive(&mut stream).await;
    stream
}

async fn assert_alive(stream: &mut TcpStream) {
    stream.write_all(b"ping").await.unwrap();
    let mut back = [0; 4];
    soon(stream.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"ping");
}

#[tokio::test]
async fn a_new_handler_takes_over_new_connections_and_leaves_listener_and_old_ones() {
    let (one, two) = (Target::start(Does::Echo).await, Target::start(Does::Echo).await);
    let runtime = Runtime::new(RuntimeOptions::default());
    upsert(&runtime, &[&direct("f", "127.0.0.1:0", one.addr)]).await.unwrap();
    let addr = runtime.listening("f").unwrap();
    let mut old = connected(addr).await;
    upsert(&runtime, &[&direct("f", "127.0.0.1:0", two.addr)]).await.unwrap();
    assert_eq!(runtime.listening("f"), Some(addr), "port 0 would be another one, had it been bound anew");
    connected(addr).await;
    assert_alive(&mut old).await;
    assert_eq!((one.peers().len(), two.peers().len()), (1, 1));
}

#[tokio::test]
async fn a_listener_changes_its_transport_in_place() {
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tcp").await;
    let entry = Entry::start(&[exit.node("a", "tcp")], target.addr).await;
    entry.echo().await.unwrap();
    let mut config = json!(exit.runtime.config().services[0]);
    config["listener"]["type"] = json!("tls");
    upsert(&exit.runtime, &[&config]).await.unwrap();
    entry.runtime.apply(Change::UpsertChain(fifo(&[exit.node("a", "tls")]))).await.unwrap();
    entry.echo().await.unwrap();
}

#[tokio::test]
async fn a_new_address_is_bound_before_the_old_one_is_left() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    upsert(&runtime, &[&direct("f", "127.0.0.1:0", target.addr)]).await.unwrap();
    let before = runtime.listening("f").unwrap();
    let mut old = connected(before).await;
    upsert(&runtime, &[&direct("f", "127.0.0.2:0", target.addr)]).await.unwrap();
    let after = runtime.listening("f").unwrap();
    assert_ne!(before, after);
    connected(after).await;
    assert_eq!(TcpStream::connect(before).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_alive(&mut old).await;
}

#[tokio::test]
async fn a_wider_address_on_the_same_port_is_possible() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    upsert(&runtime, &[&direct("f", "127.0.0.1:0", target.addr)]).await.unwrap();
    let port = runtime.listening("f").unwrap().port();
    upsert(&runtime, &[&direct("f", format!("0.0.0.0:{port}"), target.addr)]).await.unwrap();
    connected(SocketAddr::from(([127, 0, 0, 2], port))).await;
    upsert(&runtime, &[&direct("f", format!("127.0.0.1:{port}"), target.addr)]).await.unwrap();
    connected(SocketAddr::from(([127, 0, 0, 1], port))).await;
    assert!(TcpStream::connect(("127.0.0.2", port)).await.is_err());
}

#[tokio::test]
async fn two_services_change_places() {
    let (one, two) = (Target::start(Does::Echo).await, Target::start(Does::Echo).await);
    let runtime = Runtime::new(RuntimeOptions::default());
    let zero = "127.0.0.1:0";
    upsert(&runtime, &[&direct("a", zero, one.addr), &direct("b", zero, two.addr)]).await.unwrap();
    let (a, b) = (runtime.listening("a").unwrap(), runtime.listening("b").unwrap());
    upsert(&runtime, &[&direct("a", b, one.addr), &direct("b", a, two.addr)]).await.unwrap();
    assert_eq!((runtime.listening("a"), runtime.listening("b")), (Some(b), Some(a)));
    connected(a).await;
    assert_eq!((one.peers().len(), two.peers().len()), (0, 1));
}

#[tokio::test]
async fn a_taken_port_is_reported_and_nothing_of_the_command_happens() {
    let target = Target::start(Does::Echo).await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = (taken.local_addr().unwrap(), taken);
    let runtime = Runtime::new(RuntimeOptions::default());
    upsert(&runtime, &[&direct("f", "127.0.0.1:0", target.addr)]).await.unwrap();
    let (addr, before) = (runtime.listening("f").unwrap(), runtime.config());

    let new = direct("g", "127.0.0.1:0", target.addr);
    let moved = direct("f", taken.0, target.addr);
    let error = upsert(&runtime, &[&new, &moved]).await.unwrap_err();
    assert_eq!(error, format!("service f: listen on {}: address already in use", taken.0));
    assert_eq!((runtime.config(), runtime.listening("g")), (before.clone(), None));
    connected(addr).await;

    let error = upsert(&runtime, &[&direct("g", "192.0.2.77:0", target.addr)]).await.unwrap_err();
    assert_eq!(error, "service g: listen on 192.0.2.77:0: cannot assign requested address");

    let mut wrong = direct("h", "127.0.0.1:0", target.addr);
    wrong["handler"]["type"] = json!("sni");
    let error = upsert(&runtime, &[&new, &wrong]).await.unwrap_err();
    assert_eq!(error, "service h: handler.type: sni is not supported");
    assert_eq!(runtime.config(), before);
    assert!(runtime.failed().is_empty());
}

#[tokio::test]
async fn a_listener_that_made_room_in_vain_comes_back() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    upsert(&runtime, &[&direct("a", "127.0.0.1:0", target.addr)]).await.unwrap();
    let addr = runtime.listening("a").unwrap();
    // The wildcard needs the port on every address, and somebody else has it on one: `a` gives way in vain.
    let _taken = TcpListener::bind(("127.0.0.2", addr.port())).await.unwrap();
    let moved = direct("a", format!("0.0.0.0:{}", addr.port()), target.addr);
    let error = upsert(&runtime, &[&moved]).await.unwrap_err();
    assert!(error.contains("address already in use"), "{error}");
    connected(addr).await;
    assert!(runtime.failed().is_empty());
}

#[tokio::test]
async fn adding_what_exists_is_refused_and_names_may_not_repeat() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    let (f, g) = (direct("f", "127.0.0.1:0", target.addr), direct("g", "127.0.0.1:0", target.addr));
    let add = |configs: Vec<&Value>| {
        let configs = configs.into_iter().map(|config| service(config.clone())).collect();
        runtime.apply(Change::AddServices(configs))
    };
    add(vec![&f]).await.unwrap();
    assert_eq!(add(vec![&g, &f]).await.unwrap_err().to_string(), "service f already exists");
    assert_eq!(add(vec![&g, &g]).await.unwrap_err().to_string(), "service g: is there twice");
    assert_eq!(runtime.config().services.len(), 1);
}

#[tokio::test]
async fn an_unchanged_service_is_left_alone() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    let config = direct("f", "127.0.0.1:0", target.addr);
    upsert(&runtime, &[&config]).await.unwrap();
    let addr = runtime.listening("f").unwrap();
    let mut old = connected(addr).await;
    upsert(&runtime, &[&config]).await.unwrap();
    assert_eq!(runtime.listening("f"), Some(addr));
    assert_alive(&mut old).await;
}

#[tokio::test]
async fn pausing_closes_listener_and_connections_and_resuming_opens_again() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    upsert(&runtime, &[&direct("f", "127.0.0.1:0", target.addr)]).await.unwrap();
    let addr = runtime.listening("f").unwrap();
    // From here on with a fixed port, so that resuming has one to come back to.
    upsert(&runtime, &[&direct("f", addr, target.addr)]).await.unwrap();
    let mut old = connected(addr).await;

    let unknown = Change::PauseServices(vec!["f".into(), "x".into()]);
    assert_eq!(runtime.apply(unknown).await.unwrap_err().to_string(), "service x not found");
    assert_alive(&mut old).await;

    let names = || vec!["f".to_owned()];
    runtime.apply(Change::PauseServices(names())).await.unwrap();
    assert_eq!(soon(old.read(&mut [0; 1])).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(TcpStream::connect(addr).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(runtime.config().services[0].metadata["paused"], json!(true));
    assert_eq!(runtime.listening("f"), None);
    assert!(runtime.failed().is_empty(), "paused is not failed");

    let taken = TcpListener::bind(addr).await.unwrap();
    let error = runtime.apply(Change::ResumeServices(names())).await.unwrap_err().to_string();
    assert_eq!(error, format!("service f: listen on {addr}: address already in use"));
    assert_eq!(runtime.config().services[0].metadata["paused"], json!(true), "still paused");
    drop(taken);
    runtime.apply(Change::ResumeServices(names())).await.unwrap();
    assert!(runtime.config().services[0].metadata.is_empty());
    connected(addr).await;
    let error = runtime.apply(Change::ResumeServices(vec!["x".into()])).await.unwrap_err().to_string();
    assert_eq!(error, "service x not found");
}

#[tokio::test]
async fn deleting_closes_the_listener_and_lets_connections_end() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    upsert(&runtime, &[&direct("f", "127.0.0.1:0", target.addr)]).await.unwrap();
    let addr = runtime.listening("f").unwrap();
    let mut old = connected(addr).await;
    runtime.apply(Change::DeleteServices(vec!["f".into(), "unknown".into()])).await.unwrap();
    assert_eq!(TcpStream::connect(addr).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_alive(&mut old).await;
    assert!(runtime.config().services.is_empty());
}

#[tokio::test]
async fn loading_takes_each_object_on_its_own_and_keeps_trying_a_taken_port() {
    let target = Target::start(Does::Echo).await;
    let holder = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = holder.local_addr().unwrap();
    let mut wrong = direct("wrong", "127.0.0.1:0", target.addr);
    wrong["listener"]["type"] = json!("kcp");
    let mut paused = direct("paused", taken, target.addr);
    paused["metadata"] = json!({"paused": true});
    let document: GostConfig = serde_json::from_value(json!({
        "services": [
            direct("fine", "127.0.0.1:0", target.addr), paused, direct("taken", taken, target.addr), wrong
        ],
        "chains": [
            {"name": "bad", "hops": [], "metadata": {"x": 1}}, {"name": "good", "hops": []}
        ]
    }))
    .unwrap();
    let runtime = Runtime::new(RuntimeOptions::default());
    runtime.apply(Change::Load(document.clone())).await.unwrap();
    assert_eq!(runtime.config(), document, "nothing is lost, whatever fails");
    let failed: Vec<_> = runtime.failed().into_iter().collect();
    let pair = |key: &str, reason: &str| (key.to_owned(), reason.to_owned());
    assert_eq!(
        failed,
        [
            pair("chain:bad", "chain bad: metadata.x: is not supported"),
            pair("service:taken", &format!("listen on {taken}: address already in use")),
            pair("service:wrong", "service wrong: listener.type: kcp is not supported"),
        ]
    );
    connected(runtime.listening("fine").unwrap()).await;
    drop(holder);
    eventually("the port is taken over", || runtime.listening("taken").is_some()).await;
    connected(taken).await;
    assert_eq!(runtime.failed().len(), 2);
}

#[tokio::test]
async fn an_update_mends_what_was_loaded_broken() {
    let target = Target::start(Does::Echo).await;
    let mut broken = direct("f", "127.0.0.1:0", target.addr);
    broken["listener"]["type"] = json!("kcp");
    let runtime = Runtime::new(RuntimeOptions::default());
    let document =
        json!({"services": [broken.clone()], "chains": [{"name": "c", "hops": [], "metadata": {"x": 1}}]});
    runtime.apply(Change::Load(serde_json::from_value(document).unwrap())).await.unwrap();
    assert_eq!(runtime.failed().len(), 2);
    assert!(upsert(&runtime, &[&broken]).await.is_err(), "the same again is no better");
    upsert(&runtime, &[&direct("f", "127.0.0.1:0", target.addr)]).await.unwrap();
    runtime.apply(Change::UpsertChain(fifo(&[]))).await.unwrap();
    assert!(runtime.failed().is_empty());
    connected(runtime.listening("f").unwrap()).await;
}

#[tokio::test]
async fn too_many_connections_are_refused_and_the_others_stay() {
    let target = Target::start(Does::Echo).await;
    let options = RuntimeOptions { connection_limit: Some(2), ..RuntimeOptions::default() };
    let runtime = Runtime::new(options);
    upsert(&runtime, &[&direct("f", "127.0.0.1:0", target.addr)]).await.unwrap();
    let addr = runtime.listening("f").unwrap();
    let (mut one, two) = (connected(addr).await, connected(addr).await);
    let mut three = soon(TcpStream::connect(addr)).await.unwrap();
    assert_eq!(soon(three.read(&mut [0; 1])).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_alive(&mut one).await;
    drop(two);
    soon(async { while echo(addr).await.is_err() {} }).await;
}

#[tokio::test]
async fn shutting_down_frees_the_ports_and_ends_the_connections() {
    let target = Target::start(Does::Echo).await;
    let runtime = Runtime::new(RuntimeOptions::default());
    upsert(&runtime, &[&direct("f", "127.0.0.1:0", target.addr)]).await.unwrap();
    let addr = runtime.listening("f").unwrap();
    let mut old = connected(addr).await;
    soon(runtime.shutdown()).await;
    assert!(soon(old.read(&mut [0; 1])).await.is_err());
    TcpListener::bind(addr).await.unwrap();
    let error = upsert(&runtime, &[&direct("g", "127.0.0.1:0", target.addr)]).await.unwrap_err();
    assert_eq!(error, "the agent is shutting down");
}
