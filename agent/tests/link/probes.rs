//! Probes against what a network has to offer.

use crate::panel::{Panel, Session, patient, stopwatch};
use crate::rig::{Agent, free_address};
use shared::link::{Command, ProbeBatch, ProbeBatchResult, ProbeTarget, Sample, TcpPing, TcpPingResult};
use socket2::{Domain, Socket, Type};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// A port that answers nothing: the kernel drops a SYN when nobody takes the connections before it.
pub(crate) struct BlackHole {
    listener: Socket,
    waiting: Vec<TcpStream>,
}

impl BlackHole {
    pub(crate) async fn dig() -> Self {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let mut hole = Self { listener, waiting: Vec::new() };
        let address = hole.address();
        // Full as soon as a connect gets no answer.
        while let Ok(stream) =
            tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await
        {
            hole.waiting.push(stream.unwrap());
            assert!(hole.waiting.len() < 16, "the queue never fills");
        }
        hole
    }

    /// Waits until a SYN is on its way into the hole and takes all connections then, so that the next one is answered.
    async fn open_when_asked(mut self) -> Self {
        // State 02 is SYN_SENT; the port is in hexadecimal.
        let asked = format!(":{:04X} 02 ", self.address().port());
        let seen = async {
            while !std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&asked) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        patient("a SYN", seen).await;
        self.listener.set_nonblocking(true).unwrap();
        while let Ok((taken, _)) = self.listener.accept() {
            taken.set_nonblocking(true).unwrap();
            self.waiting.push(TcpStream::from_std(taken.into()).unwrap());
        }
        self
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap().as_socket().unwrap()
    }
}

async fn connected(ours: bool) -> (Session, Agent, tempfile::TempDir) {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(ours).await;
    let agent = Agent::start(&panel, state.path());
    (panel.accept().await, agent, state)
}

async fn ping(session: &mut Session, ip: &str, port: u16, count: u32, timeout: u64) -> TcpPingResult {
    let answer = session.ask(&Command::TcpPing(TcpPing { ip: ip.into(), port, count, timeout })).await;
    // Also a failed ping was carried out.
    assert_eq!((answer.kind.as_str(), answer.success), ("TcpPingResponse", Some(true)));
    for key in ["ip", "port", "success", "averageTime", "packetLoss"] {
        assert!(!answer.data[key].is_null(), "{key} in {}", answer.data);
    }
    serde_json::from_value(answer.data).unwrap()
}

async fn batch(session: &mut Session, batch: ProbeBatch) -> ProbeBatchResult {
    let answer = session.ask(&Command::ProbeBatch(batch)).await;
    assert_eq!((answer.kind.as_str(), answer.success), ("ProbeBatchResponse", Some(true)), "{answer:?}");
    serde_json::from_value(answer.data).unwrap()
}

#[tokio::test]
async fn a_ping_answers_as_the_peer_expects() {
    // A peer panel: pings are its way to measure.
    let (mut session, agent, _state) = connected(false).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let elapsed = stopwatch();
    let good = ping(&mut session, "127.0.0.1", port, 3, 900).await;
    assert!(good.success && good.average_time > 0.0 && good.packet_loss == 0.0, "{good:?}");
    assert_eq!((good.ip.as_str(), good.port, &good.error_message), ("127.0.0.1", port, &None));
    // Two pauses of 100 ms between three attempts.
    assert!(elapsed() >= 199, "{} ms", elapsed());
    assert!(ping(&mut session, "localhost", port, 1, 900).await.success);
    let closed = free_address().await.port();
    let hole = BlackHole::dig().await;
    for (host, port, words) in [
        ("127.0.0.1", closed, "refused"),
        ("127.0.0.1", hole.address().port(), "no answer in time"),
        ("exit.invalid", 443, "not resolved"),
        ("a b", 443, "neither a host name nor an address"),
        ("127.0.0.1", 0, "port"),
    ] {
        let failed = ping(&mut session, host, port, 2, 150).await;
        // The numbers of a failed ping are 0: only `success` tells it from a perfect one.
        assert_eq!((failed.success, failed.average_time, failed.packet_loss), (false, 0.0, 0.0), "{host}");
        assert!(failed.error_message.as_deref().is_some_and(|text| text.contains(words)), "{failed:?}");
    }
    agent.stop().await;
}

#[tokio::test]
async fn a_batch_tells_every_kind_of_target_apart_and_a_dead_one_costs_one_timeout() {
    let (mut session, agent, _state) = connected(true).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hole = BlackHole::dig().await;
    let port = |address: SocketAddr| address.port();
    let targets = [
        ("127.0.0.1", port(hole.address())),
        ("localhost", port(listener.local_addr().unwrap())),
        ("127.0.0.1", port(free_address().await)),
        ("exit.invalid", 443),
    ];
    let targets = targets.into_iter().zip([40, 30, 20, 10]);
    let targets = targets.map(|((host, port), id)| ProbeTarget { id, host: host.into(), port });
    let ask = ProbeBatch { targets: targets.collect(), count: 4, timeout_ms: 600, spacing_ms: 40 };
    let elapsed = stopwatch();
    let ProbeBatchResult { results } = batch(&mut session, ask).await;
    let took = elapsed();
    assert_eq!(results.iter().map(|r| r.id).collect::<Vec<_>>(), [40, 30, 20, 10]);
    assert_eq!(results[0].samples, vec![Sample::Lost; 4]);
    assert_eq!(results[1].samples.len(), 4);
    for sample in &results[1].samples {
        let Sample::Ok { ms, retransmits: 0 } = sample else { panic!("{sample:?}") };
        assert!(*ms > 0.0 && *ms < 600.0);
    }
    assert_eq!(results[2].samples, [Sample::Refused]);
    assert_eq!(results[3].samples, [Sample::Unresolved]);
    assert!(results[3].address.is_none() && results[0].address.is_some());
    // One after another the four lost samples alone would take 2400 ms.
    assert!((600..2400).contains(&took), "{took} ms");
    agent.stop().await;
}

#[tokio::test]
async fn a_lost_syn_shows_as_a_retransmission() {
    let (mut session, agent, _state) = connected(true).await;
    let hole = BlackHole::dig().await;
    let target = ProbeTarget { id: 1, host: "127.0.0.1".into(), port: hole.address().port() };
    // Longer than the second after which the kernel sends a lost SYN again.
    let ask = ProbeBatch { targets: vec![target], count: 1, timeout_ms: 10_000, spacing_ms: 0 };
    let (answer, _open) = tokio::join!(batch(&mut session, ask), hole.open_when_asked());
    let [Sample::Ok { ms, retransmits }] = answer.results[0].samples[..] else { panic!("{answer:?}") };
    assert!(retransmits >= 1 && ms >= 900.0, "{answer:?}");
    agent.stop().await;
}

#[tokio::test]
async fn a_batch_beyond_the_limits_is_refused_by_field() {
    let (mut session, agent, _state) = connected(true).await;
    let ask = ProbeBatch { targets: vec![], count: 1000, timeout_ms: 900, spacing_ms: 200 };
    let answer = session.ask(&Command::ProbeBatch(ask)).await;
    assert_eq!(answer.success, Some(false));
    assert!(answer.message.unwrap().starts_with("count"));
    agent.stop().await;
}

#[tokio::test]
async fn more_pings_than_there_is_room_for_are_turned_away_at_once() {
    let (mut session, agent, _state) = connected(false).await;
    let hole = BlackHole::dig().await;
    let ask = TcpPing { ip: "127.0.0.1".into(), port: hole.address().port(), count: 1, timeout: 2000 };
    let sent = 64 + 256 + 10;
    for _ in 0..sent {
        session.send(&Command::TcpPing(ask.clone())).await;
    }
    // The refusals come first: the others take at least two seconds.
    for _ in 0..10 {
        let answer = session.answer().await;
        assert_eq!(answer.success, Some(false), "{answer:?}");
        assert!(answer.message.unwrap().starts_with("busy"));
    }
    // 64 are answered in time. Those behind them began too late for the panel to wait for them (2.1 s + 1 s).
    for _ in 0..64 {
        assert_eq!(session.answer().await.data["success"], false);
    }
    agent.stop().await;
}
