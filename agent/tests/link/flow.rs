//! What services have carried, as a compatible panel hears of it.

use crate::panel::{Panel, SECRET, Session, patient};
use crate::rig::{Agent, forward, free_address, quick};
use agent::link::Timings;
use serde_json::{Value, json};
use shared::envelope::Sealer;
use shared::link::Command;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const NAME: &str = "7_1_0_tcp";

/// An agent with one service, and its panel's connection.
async fn serving(panel: &Panel, state: &std::path::Path) -> (Agent, Session, SocketAddr) {
    serving_with(Timings { traffic: Duration::from_millis(20), ..quick() }, panel, state).await
}

async fn serving_with(
    timings: Timings,
    panel: &Panel,
    state: &std::path::Path,
) -> (Agent, Session, SocketAddr) {
    let agent = Agent::start_at(&format!("ws://{}", panel.address()), state, timings);
    let mut session = panel.accept().await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = target.local_addr().unwrap();
    // Answers five bytes with three, so that up and down differ.
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = target.accept().await {
            stream.read_exact(&mut [0; 5]).await.unwrap();
            stream.write_all(b"abc").await.unwrap();
        }
    });
    let listen = free_address().await;
    let answer = session.ask(&Command::UpdateService(vec![forward(NAME, listen, at)])).await;
    assert_eq!(answer.success, Some(true), "{answer:?}");
    (agent, session, listen)
}

/// Carries five bytes up and three down.
async fn visit(listen: SocketAddr) {
    let mut stream = patient("a connection", TcpStream::connect(listen)).await.unwrap();
    stream.write_all(b"12345").await.unwrap();
    let mut back = Vec::new();
    patient("the answer", stream.read_to_end(&mut back)).await.unwrap();
    assert_eq!(back, b"abc");
}

/// The next report of traffic, and the connection on which its sender waits.
async fn report(panel: &Panel) -> (Value, TcpStream) {
    report_to("/flow/upload", panel).await
}

async fn report_to(path: &str, panel: &Panel) -> (Value, TcpStream) {
    let mut stream = panel.connection().await;
    let mut received = Vec::new();
    let (head, body) = loop {
        assert_ne!(patient("a request", stream.read_buf(&mut received)).await.unwrap(), 0, "cut off");
        let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(received[..end].to_vec()).unwrap();
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length")).unwrap().1;
        let length: usize = length.parse().unwrap();
        if received.len() == end + 4 + length {
            break (head, String::from_utf8(received[end + 4..].to_vec()).unwrap());
        }
    };
    assert!(head.starts_with(&format!("POST {path}?secret={SECRET} HTTP/1.1")), "{head}");
    let opened = Sealer::new(SECRET).open(&body).unwrap();
    (serde_json::from_str(&opened).unwrap(), stream)
}

async fn answer(mut stream: TcpStream, status: &str, body: &str) {
    let text =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// Adds up reports, each accepted, until a service's sums are these.
async fn until(panel: &Panel, mut sums: (u64, u64), expected: (u64, u64)) {
    while sums != expected {
        assert!(sums.0 <= expected.0 && sums.1 <= expected.1, "{sums:?} is more than {expected:?}");
        let (entries, stream) = report(panel).await;
        sums = add(sums, &entries);
        answer(stream, "200 OK", "ok").await;
    }
}

fn add(sums: (u64, u64), entries: &Value) -> (u64, u64) {
    let [entry] = &entries.as_array().unwrap()[..] else { panic!("{entries}") };
    assert_eq!(entry["n"], json!(NAME));
    (sums.0 + entry["u"].as_u64().unwrap(), sums.1 + entry["d"].as_u64().unwrap())
}

#[tokio::test]
async fn a_compatible_panel_is_told_every_byte_once() {
    let (panel, state) = (Panel::start(false).await, tempfile::tempdir().unwrap());
    let (agent, _session, listen) = serving(&panel, state.path()).await;
    visit(listen).await;
    until(&panel, (0, 0), (5, 3)).await;
    visit(listen).await;
    // Refused: told again.
    for (status, body) in [("500 Internal Server Error", "ok"), ("200 OK", "no such node")] {
        let (_, stream) = report(&panel).await;
        answer(stream, status, body).await;
    }
    until(&panel, (0, 0), (5, 3)).await;
    agent.stop().await;
}

#[tokio::test]
async fn what_was_sent_and_not_answered_is_not_told_again() {
    let (panel, state) = (Panel::start(false).await, tempfile::tempdir().unwrap());
    let (agent, _session, listen) = serving(&panel, state.path()).await;
    visit(listen).await;
    let mut lost = (0, 0);
    while lost != (5, 3) {
        let (entries, stream) = report(&panel).await;
        lost = add(lost, &entries);
        drop(stream);
    }
    visit(listen).await;
    until(&panel, (0, 0), (5, 3)).await;
    agent.stop().await;
}

#[tokio::test]
async fn a_compatible_panel_is_told_what_is_configured_again_and_again() {
    let (panel, state) = (Panel::start(false).await, tempfile::tempdir().unwrap());
    let soon = Duration::from_millis(20);
    let timings = Timings { first_config: soon, config: soon, ..quick() };
    let (agent, mut session, _) = serving_with(timings, &panel, state.path()).await;
    let named = async || {
        let (config, stream) = report_to("/flow/config", &panel).await;
        answer(stream, "200 OK", "ok").await;
        config["services"].as_array().map(|services| services.iter().map(|s| s["name"].clone()).collect())
    };
    // The first may have been made before the service was there.
    while named().await != Some(vec![json!(NAME)]) {}
    session.ask(&Command::DeleteService(vec![NAME.to_owned()])).await;
    while named().await.is_some_and(|names| !names.is_empty()) {}
    agent.stop().await;
}

#[tokio::test]
async fn our_own_panel_is_told_nothing_there() {
    let (panel, state) = (Panel::start(true).await, tempfile::tempdir().unwrap());
    let (agent, mut session, listen) = serving(&panel, state.path()).await;
    visit(listen).await;
    // Several periods of the reports go by between these.
    for _ in 0..3 {
        session.frame_of("metric").await;
    }
    let nobody = futures_util::FutureExt::now_or_never(panel.connection());
    assert!(nobody.is_none());
    agent.stop().await;
}
