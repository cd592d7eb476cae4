//! Commands and their answers.

use crate::panel::{Panel, Session, patient};
use crate::rig::{Agent, chain, forward, free_address};
use serde_json::json;
use shared::link::{Command, Frame, Hello, TcpPing, chain_key, digest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn connected() -> (Panel, Session, Agent, tempfile::TempDir) {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    session.frame_of("hello").await;
    (panel, session, agent, state)
}

fn ok(answer: &Frame) {
    assert_eq!((answer.success, answer.message.as_deref()), (Some(true), Some("OK")), "{answer:?}");
}

fn refused(answer: &Frame, words: &str) {
    assert_eq!(answer.success, Some(false), "{answer:?}");
    assert!(answer.message.as_deref().unwrap().contains(words), "{answer:?}");
}

/// What the agent says it runs, from a fresh connection.
async fn digests(panel: &Panel, session: Session) -> (Hello, Session) {
    drop(session);
    let mut session = panel.accept().await;
    let hello = session.frame().await;
    assert_eq!(hello.kind, "hello");
    (serde_json::from_value(hello.data).unwrap(), session)
}

#[tokio::test]
async fn answers_carry_the_phrases_that_panels_match_on() {
    let (_panel, mut session, agent, _state) = connected().await;
    let one = chain("chains_1", "127.0.0.1:9");
    let answer = session.ask(&Command::AddChains(one.clone())).await;
    assert_eq!(answer.kind, "AddChainsResponse");
    ok(&answer);
    refused(&session.ask(&Command::AddChains(one.clone())).await, "chain chains_1 already exists");
    ok(&session.ask(&Command::UpdateChains(one)).await);
    ok(&session.ask(&Command::DeleteChains("chains_1".into())).await);
    ok(&session.ask(&Command::DeleteChains("chains_1".into())).await);

    let listen = free_address().await;
    let service = forward("1_2_3_tcp", listen, listen);
    ok(&session.ask(&Command::AddService(vec![service.clone()])).await);
    refused(&session.ask(&Command::AddService(vec![service])).await, "service 1_2_3_tcp already exists");
    refused(&session.ask(&Command::PauseService(vec!["nobody".into()])).await, "service nobody not found");
    ok(&session.ask(&Command::DeleteService(vec!["nobody".into(), "1_2_3_tcp".into()])).await);
    agent.stop().await;
}

#[tokio::test]
async fn what_the_agent_cannot_do_is_refused_by_name() {
    let (_panel, mut session, agent, _state) = connected().await;
    let answer = session.ask_raw("MakeCoffee", json!({})).await;
    assert_eq!(answer.kind, "UnknownCommandResponse");
    refused(&answer, "MakeCoffee");
    let answer = session.ask_raw("UdpPing", json!({"ip": "127.0.0.1", "port": 1})).await;
    assert_eq!(answer.kind, "UdpPingResponse");
    refused(&answer, "UdpPing is not supported by this agent yet");
    refused(&session.ask_raw("SetProtocol", json!({"http": 2})).await, "http: must be 0 or 1");
    refused(&session.ask_raw("SetProtocol", json!({"quic": 1})).await, "quic: is no protocol");
    // `call` has no answer: the next one belongs to the next command.
    session.send_frame(&Frame { request_id: Some("c".into()), ..Frame::message("call", json!({})) }).await;
    ok(&session.ask(&Command::DeleteChains("x".into())).await);
    agent.stop().await;
}

#[tokio::test]
async fn limiters_are_added_changed_deleted_and_saved() {
    let (_panel, mut session, agent, state) = connected().await;
    let saved = || {
        let text = std::fs::read(state.path().join("config.json")).unwrap();
        serde_json::from_slice::<shared::gost::GostConfig>(&text).unwrap()
    };
    let limiter = json!({"name": "5", "limits": ["$ 12.5MB 12.5MB"]});
    let answer = session.ask_raw("AddLimiters", limiter.clone()).await;
    assert_eq!(answer.kind, "AddLimitersResponse");
    ok(&answer);
    refused(&session.ask_raw("AddLimiters", limiter.clone()).await, "limiter 5 already exists");
    // Each kind has names of its own.
    ok(&session.ask_raw("AddCLimiters", json!({"name": "5", "limits": ["$ 100", "$$ 5"]})).await);
    let faster =
        json!({"limiter": "5", "data": {"name": "5", "limits": ["0.0.0.0/0 1MB 1MB", "::/0 1MB 1MB"]}});
    ok(&session.ask_raw("UpdateLimiters", faster).await);
    let wrong = json!({"limiter": "5", "data": {"name": "5", "limits": ["$ fast"]}});
    refused(&session.ask_raw("UpdateLimiters", wrong).await, "limiter 5: limits[0]: `fast`");
    let config = saved();
    assert_eq!(config.limiters[0].limits, ["0.0.0.0/0 1MB 1MB", "::/0 1MB 1MB"]);
    assert_eq!(config.climiters[0].limits, ["$ 100", "$$ 5"]);
    ok(&session.ask_raw("DeleteLimiters", json!({"limiter": "5"})).await);
    ok(&session.ask_raw("DeleteLimiters", json!({"limiter": "5"})).await);
    assert!(saved().limiters.is_empty() && saved().climiters.len() == 1);
    agent.stop().await;
}

#[tokio::test]
async fn a_malformed_command_names_the_field_and_changes_nothing() {
    let (panel, mut session, agent, state) = connected().await;
    let good = chain("chains_1", "127.0.0.1:9");
    ok(&session.ask(&Command::AddChains(good.clone())).await);
    let file = state.path().join("config.json");
    let before = std::fs::read(&file).unwrap();

    let mut unknown_key = serde_json::to_value(&good).unwrap();
    unknown_key["hops"][0]["nodes"][0]["dialer"]["speed"] = json!("fast");
    let answer = session.ask_raw("UpdateChains", json!({"chain": "chains_1", "data": unknown_key})).await;
    refused(&answer, "speed");
    let bare = serde_json::to_value(&good).unwrap();
    refused(&session.ask_raw("UpdateChains", bare).await, "data");
    // The first of two is fine, and still nothing happens.
    let listen = free_address().await;
    let service = serde_json::to_value(forward("a", listen, listen)).unwrap();
    refused(&session.ask_raw("AddService", json!([service, {"name": "b"}])).await, "addr");

    assert_eq!(std::fs::read(&file).unwrap(), before);
    let (hello, _session) = digests(&panel, session).await;
    let expected = [(chain_key("chains_1"), digest(&good))];
    assert_eq!(hello.digests, expected.into());
    agent.stop().await;
}

#[tokio::test]
async fn commands_for_the_same_object_run_in_the_order_sent() {
    let (panel, mut session, agent, _state) = connected().await;
    let mut ids = Vec::new();
    // Each of these fails when it overtakes the one before.
    for round in 0..30 {
        let chain = chain("chains_1", &format!("127.0.0.1:{}", 1000 + round));
        ids.push(session.send(&Command::AddChains(chain)).await);
        ids.push(session.send(&Command::DeleteChains("chains_1".into())).await);
    }
    let last = chain("chains_1", "127.0.0.1:9");
    for round in 0..30 {
        let chain = chain("chains_1", &format!("127.0.0.1:{}", 2000 + round));
        ids.push(session.send(&Command::UpdateChains(chain)).await);
    }
    ids.push(session.send(&Command::UpdateChains(last.clone())).await);
    for _ in &ids {
        ok(&session.answer().await);
    }
    let (hello, _session) = digests(&panel, session).await;
    assert_eq!(hello.digests, [(chain_key("chains_1"), digest(&last))].into());
    agent.stop().await;
}

#[tokio::test]
async fn a_slow_probe_delays_no_change() {
    let (_panel, mut session, agent, _state) = connected().await;
    let hole = crate::probes::BlackHole::dig().await;
    let address = hole.address();
    let ping = TcpPing { ip: address.ip().to_string(), port: address.port(), count: 1, timeout: 1500 };
    let ping = session.send(&Command::TcpPing(ping)).await;
    ok(&session.ask(&Command::AddChains(chain("chains_1", "127.0.0.1:9"))).await);
    let answer = session.answer().await;
    assert_eq!((answer.request_id, answer.success), (Some(ping), Some(true)));
    assert_eq!(answer.data["success"], false);
    agent.stop().await;
}

#[tokio::test]
async fn many_objects_at_once_are_all_answered() {
    let (panel, mut session, agent, _state) = connected().await;
    let names: Vec<String> = (0..300).map(|n| format!("chains_{n}")).collect();
    for name in &names {
        session.send(&Command::UpdateChains(chain(name, "127.0.0.1:9"))).await;
    }
    for _ in &names {
        ok(&session.answer().await);
    }
    let (hello, _session) = digests(&panel, session).await;
    assert_eq!(hello.digests.len(), names.len());
    agent.stop().await;
}

#[tokio::test]
async fn protocols_are_blocked_until_the_panel_says_otherwise() {
    let (panel, mut session, agent, state) = connected().await;
    let target = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = free_address().await;
    let service = forward("1_2_3_tcp", listen, target.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = target.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    ok(&session.ask(&Command::AddService(vec![service])).await);
    let get = b"GET / HTTP/1.1\r\n\r\n";
    let passes = async || {
        let mut stream = TcpStream::connect(listen).await.unwrap();
        stream.write_all(get).await.unwrap();
        let mut back = vec![0; get.len()];
        patient("an answer or its refusal", stream.read_exact(&mut back)).await.is_ok()
    };
    assert!(passes().await);
    let answer = session.ask_raw("SetProtocol", json!({"http": 1, "tls": 1, "socks": 0})).await;
    assert_eq!(answer.kind, "SetProtocolResponse");
    ok(&answer);
    assert!(!passes().await);
    // Another start, without a word of the panel.
    agent.stop().await;
    drop(session);
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    session.frame_of("hello").await;
    assert!(!passes().await);
    // What is left out is not blocked.
    ok(&session.ask_raw("SetProtocol", json!({"tls": 1})).await);
    assert!(passes().await);
    agent.stop().await;
}
