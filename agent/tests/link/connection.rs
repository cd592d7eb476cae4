//! Connecting, staying connected, and connecting again.

use crate::panel::{Panel, SECRET, patient, stopwatch};
use crate::rig::{Agent, chain, forward, free_address, link_options, quick};
use agent::link::{Backoff, Timings};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use shared::envelope::{NONCE_BYTES, Sealer};
use shared::link::{Command, Frame, Hello, Report, service_key};
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;

#[tokio::test]
async fn says_hello_first_and_who_it_is() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    assert!(
        session.uri.starts_with(&format!("/system-info?type=1&secret={SECRET}&version=")),
        "{}",
        session.uri
    );
    assert!(session.uri.ends_with("&http=0&tls=0&socks=0"), "{}", session.uri);
    let first = session.frame().await;
    assert_eq!((first.kind.as_str(), &first.request_id), ("hello", &None));
    let hello: Hello = serde_json::from_value(first.data).unwrap();
    assert_eq!(hello.agent, "exitpilot-agent");
    for capability in
        ["protocol:tls", "strategy:fifo", "probe-batch", "digest", "fail-closed", "gap-free-swap"]
    {
        assert!(hello.capabilities.iter().any(|c| c == capability), "{capability}");
    }
    assert!(hello.digests.is_empty() && hello.failed.is_empty());
    let report = session.frame_of("report").await;
    assert_eq!(serde_json::from_value::<Report>(report.data).unwrap(), Report::default());
    agent.stop().await;
    assert!(session.message().await.is_none() || session.message().await.is_none());
}

#[tokio::test]
async fn a_changed_report_is_sent_and_an_unchanged_one_is_not() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    session.frame_of("report").await;
    // Three metrics are three looks at the same report.
    for _ in 0..3 {
        assert_eq!(session.frame().await.kind, "metric");
    }
    session.send(&Command::AddChains(chain("chains_1", "127.0.0.1:9"))).await;
    let report: Report = serde_json::from_value(session.frame_of("report").await.data).unwrap();
    assert_eq!(report.chains[0].name, "chains_1");
    agent.stop().await;
}

#[tokio::test]
async fn an_object_that_stops_failing_is_told_in_a_new_hello() {
    let state = tempfile::tempdir().unwrap();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = forward("a", taken.local_addr().unwrap(), free_address().await);
    let saved = json!({"services": [service], "chains": []});
    std::fs::write(state.path().join("config.json"), saved.to_string()).unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    let hello: Hello = serde_json::from_value(session.frame().await.data).unwrap();
    assert!(hello.failed[&service_key("a")].contains("address already in use"), "{hello:?}");
    drop(taken);
    session.send(&Command::UpdateService(vec![service])).await;
    let hello: Hello = serde_json::from_value(session.frame_of("hello").await.data).unwrap();
    assert!(hello.failed.is_empty(), "{hello:?}");
    agent.stop().await;
}

#[tokio::test]
async fn a_peer_panel_gets_metrics_and_may_speak_plainly() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(false).await;
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    let first = session.frame().await;
    assert_eq!(first.kind, "metric");
    for key in [
        "uptime",
        "bytes_received",
        "bytes_transmitted",
        "cpu_usage",
        "memory_usage",
        "disk_usage",
        "load1",
        "load5",
        "load15",
        "tcp_conns",
        "udp_conns",
        "net_in_speed",
        "net_out_speed",
    ] {
        assert!(first.data[key].is_number(), "{key} in {}", first.data);
    }
    let text = json!({"type": "DeleteChains", "data": {"chain": "x"}, "requestId": "11_1"}).to_string();
    session.send_text(text).await;
    let answer = session.answer().await;
    assert_eq!((answer.kind.as_str(), answer.success), ("DeleteChainsResponse", Some(true)));
    // Neither hello nor report: this panel does not know them.
    for _ in 0..3 {
        assert_eq!(session.frame().await.kind, "metric");
    }
    agent.stop().await;
}

#[tokio::test]
async fn what_cannot_be_opened_is_answered_with_decrypt_error() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    let command = json!({"type": "DeleteChains", "data": {"chain": "x"}, "requestId": "11_1"}).to_string();
    let foreign = Sealer::new("another secret").seal(&command, [1; NONCE_BYTES], 0);
    // From our own panel an unsealed frame is not accepted either.
    for text in [foreign, command] {
        session.send_text(text).await;
        let answer = session.answer().await;
        let Frame { kind, success, request_id, .. } = answer;
        assert_eq!((kind.as_str(), success, request_id), ("DecryptError", Some(false), None));
    }
    // Nonsense inside a good envelope is ignored, and the connection goes on.
    session.send_sealed("{\"requestId\":\"11_2\"}").await;
    let answer = session.ask(&Command::DeleteChains("x".into())).await;
    assert_eq!(answer.kind, "DeleteChainsResponse");
    agent.stop().await;
}

#[tokio::test]
async fn a_refused_secret_waits_longer_each_time() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let backoff = Backoff::new(Duration::from_millis(80), Duration::from_secs(2));
    let timings = Timings { backoff, ..quick() };
    let agent = Agent::start_at(&format!("ws://{}", panel.address()), state.path(), timings);
    let elapsed = stopwatch();
    let mut at = Vec::new();
    for _ in 0..4 {
        panel.refuse().await;
        at.push(elapsed());
    }
    let gaps: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // 80, 160 and 320 ms, each at least three quarters; a millisecond for rounding.
    for (gap, at_least) in gaps.iter().zip([59, 119, 239]) {
        assert!(*gap >= at_least, "{gaps:?}");
    }
    // The secret was corrected on the panel: in, and the wait is short again.
    drop(panel.accept().await);
    let lost = elapsed();
    panel.accept().await;
    assert!(elapsed() - lost >= 59, "{}", elapsed() - lost);
    agent.stop().await;
}

#[tokio::test]
async fn comes_back_after_the_panel_went_away() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, state.path());
    for _ in 0..3 {
        let mut session = panel.accept().await;
        assert_eq!(session.frame().await.kind, "hello");
        let answer = session.ask(&Command::DeleteChains("x".into())).await;
        assert_eq!(answer.success, Some(true));
    }
    agent.stop().await;
}

#[tokio::test]
async fn without_a_scheme_tls_is_tried_first_and_then_what_worked() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start_at(&panel.address().to_string(), state.path(), quick());
    let mut first = [0; 1];
    let stream = panel.connection().await;
    patient("a first byte", stream.peek(&mut first)).await.unwrap();
    // 22 = handshake record (RFC 8446, 5.1).
    assert_eq!(first, [22]);
    drop(stream);
    let mut session = panel.accept().await;
    session.frame_of("hello").await;
    drop(session);
    // Now the plain websocket comes first; a TLS record would fail this upgrade.
    panel.accept().await.frame_of("hello").await;
    agent.stop().await;
}

#[tokio::test]
async fn pings_are_answered_and_sent() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let timings = Timings { ping: Duration::from_millis(50), ..quick() };
    let agent = Agent::start_at(&format!("ws://{}", panel.address()), state.path(), timings);
    let mut session = panel.accept().await;
    session.socket.send(Message::Ping(b"you there?".to_vec().into())).await.unwrap();
    let (mut answered, mut pinged) = (false, false);
    while !(answered && pinged) {
        match patient("ping and pong", session.socket.next()).await.unwrap().unwrap() {
            Message::Pong(payload) => answered = payload.as_ref() == b"you there?",
            Message::Ping(_) => pinged = true,
            _ => {}
        }
    }
    agent.stop().await;
}

#[tokio::test]
async fn a_silent_panel_is_given_up() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let timings = Timings { read: Duration::from_millis(150), ..quick() };
    let agent = Agent::start_at(&format!("ws://{}", panel.address()), state.path(), timings);
    let silent = panel.accept().await;
    let mut second = panel.accept().await;
    assert_eq!(second.frame().await.kind, "hello");
    drop(silent);
    agent.stop().await;
}

#[tokio::test]
async fn a_panel_that_accepts_and_says_nothing_does_not_hold_the_agent() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let timings = Timings { handshake: Duration::from_millis(100), ..quick() };
    let agent = Agent::start_at(&format!("ws://{}", panel.address()), state.path(), timings);
    let stuck = panel.connection().await;
    panel.accept().await.frame_of("hello").await;
    drop(stuck);
    agent.stop().await;
}

#[tokio::test]
async fn stops_quickly_in_every_state() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let slow = Timings { backoff: Backoff::new(Duration::from_secs(60), Duration::from_secs(60)), ..quick() };
    // While it waits for the next attempt, and in the middle of a handshake.
    let elapsed = stopwatch();
    let waiting = Agent::start_at(&format!("ws://{}", free_address().await), &state.path().join("a"), slow);
    waiting.stop().await;
    let shaking = Agent::start(&panel, &state.path().join("b"));
    let stream = panel.connection().await;
    shaking.stop().await;
    drop(stream);
    // While connected: the panel is told.
    let agent = Agent::start(&panel, &state.path().join("c"));
    let mut session = panel.accept().await;
    session.frame_of("hello").await;
    agent.request_stop();
    while let Some(message) = patient("the end", session.socket.next()).await {
        if let Ok(Message::Close(_)) = message {
            break;
        }
        message.unwrap();
    }
    agent.stop().await;
    assert!(elapsed() < 5000, "{} ms", elapsed());
}

#[tokio::test]
async fn a_panel_behind_tls_must_show_a_trusted_certificate() {
    let state = tempfile::tempdir().unwrap();
    let (panel, certificate) = Panel::start_tls().await;
    let address = format!("wss://{}", panel.address());
    // Unknown authority: the agent ends the handshake and asks for nothing, so the secret is not shown.
    let stranger = Agent::start_at(&address, &state.path().join("a"), quick());
    assert!(panel.try_accept().await.is_none());
    stranger.stop().await;

    let ca_file = state.path().join("ca.pem");
    std::fs::write(&ca_file, certificate).unwrap();
    let mut options = link_options(&address, quick());
    options.ca_file = Some(ca_file.clone());
    let agent = Agent::start_with(options.clone(), &state.path().join("b"));
    let mut session = loop {
        // A last attempt of the stranger may be waiting still.
        if let Some(session) = panel.try_accept().await {
            break session;
        }
    };
    session.frame_of("hello").await;
    agent.stop().await;

    std::fs::write(&ca_file, "no certificate").unwrap();
    let options = agent::daemon::DaemonOptions {
        state_dir: state.path().join("c"),
        link: options,
        allow_commands: false,
        api: None,
        clash: None,
    };
    let error = agent::daemon::run(options, Default::default()).await.unwrap_err();
    assert!(error.to_string().contains("ca.pem"), "{error}");
}
