//! Sessions over a pipe, against each other and against a peer that knows nothing but the library's protocol. Time is
//! Tokio's, paused: waiting takes none.

use super::frame::{Body, Frame, GREETING, HEADER_LEN, KEEPALIVE, decode, encode};
use super::*;
use crate::clock::Clock;
use crate::stream::Stream;
use crate::tasks::Tasks;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const PIPE: usize = 64 * 1024;

fn stream(pipe: DuplexStream) -> Stream {
    Stream::Layered(Box::new(pipe))
}

fn version(version: u8) -> MuxOptions {
    MuxOptions { version: Some(version), ..MuxOptions::default() }
}

fn pair(options: MuxOptions) -> (Session, Accepting) {
    let (a, b) = duplex(PIPE);
    let (clock, tasks) = (Clock::system(), Tasks::default());
    // A server without a version takes the client's.
    let server = MuxOptions { version: None, ..options };
    (Session::start(stream(a), options, &clock, &tasks), Accepting::start(stream(b), server, &clock, &tasks))
}

/// A peer that speaks in frames.
struct Peer {
    pipe: DuplexStream,
    version: u8,
    input: Vec<u8>,
}

/// What it hears; payload is only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Open(u32),
    End(u32),
    Data(u32, usize),
    Nothing(u32),
    Window(u32),
}

impl Peer {
    fn client(options: MuxOptions) -> (Session, Self) {
        let (a, b) = duplex(PIPE);
        let session = Session::start(stream(a), options, &Clock::system(), &Tasks::default());
        (session, Self { pipe: b, version: options.version.unwrap_or(1), input: Vec::new() })
    }

    fn server(options: MuxOptions) -> (Accepting, Self) {
        let (a, b) = duplex(PIPE);
        let accepting = Accepting::start(stream(a), options, &Clock::system(), &Tasks::default());
        (accepting, Self { pipe: b, version: options.version.unwrap_or(1), input: Vec::new() })
    }

    async fn say(&mut self, stream: u32, body: Body<'_>) {
        let mut out = Vec::new();
        encode(self.version, Frame { stream, body }, &mut out);
        self.pipe.write_all(&out).await.unwrap();
    }

    /// The next frame that is no keepalive; `None` at the end.
    async fn hear(&mut self) -> Option<Said> {
        loop {
            if let Some((frame, len)) = decode(self.version, &self.input).unwrap() {
                let id = frame.stream;
                let said = match frame.body {
                    Body::Open => Said::Open(id),
                    Body::End => Said::End(id),
                    Body::Data(payload) => Said::Data(id, payload.len()),
                    Body::Nothing => Said::Nothing(id),
                    Body::Window { .. } => Said::Window(id),
                };
                self.input.drain(..len);
                if said != Said::Nothing(KEEPALIVE) {
                    return Some(said);
                }
                continue;
            }
            if self.pipe.read_buf(&mut self.input).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Hears this next, within `time`.
    async fn hears(&mut self, said: Said) {
        assert_eq!(self.hear().await, Some(said));
    }

    async fn hears_nothing_for(&mut self, time: Duration) {
        let heard = tokio::time::timeout(time, self.hear()).await;
        assert!(heard.is_err(), "{heard:?}");
    }
}

async fn read_exact(stream: &mut Stream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes
}

#[tokio::test(start_paused = true)]
async fn streams_carry_both_ways_and_each_direction_ends_on_its_own() {
    for options in [version(1), version(2)] {
        let (session, mut accepting) = pair(options);
        for _ in 0..3 {
            let mut ours = session.open().unwrap();
            ours.write_all(&[7; 300_000]).await.unwrap();
            ours.shutdown().await.unwrap();
            let mut theirs = accepting.accept().await.unwrap();
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).await.unwrap();
            assert_eq!(all, [7; 300_000]);
            theirs.write_all(b"answer").await.unwrap();
            theirs.shutdown().await.unwrap();
            let mut answer = Vec::new();
            ours.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, b"answer");
        }
        // Nothing of the streams is left.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(session.streams(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_abort_is_no_end_and_leaves_the_other_streams_alone() {
    let (session, mut accepting) = pair(version(1));
    let (mut cut, mut kept) = (session.open().unwrap(), session.open().unwrap());
    cut.write_all(b"half").await.unwrap();
    kept.write_all(b"whole").await.unwrap();
    let (mut their_cut, mut their_kept) =
        (accepting.accept().await.unwrap(), accepting.accept().await.unwrap());
    assert_eq!(read_exact(&mut their_cut, 4).await, b"half");
    cut.abort();
    assert_eq!(their_cut.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(their_cut.write_all(b"x").await.is_err());
    assert_eq!(read_exact(&mut their_kept, 5).await, b"whole");
    // A stream that is dropped half-way is aborted too.
    drop(their_kept);
    assert_eq!(kept.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn a_peer_of_another_make_is_not_told_the_end_of_one_direction_until_it_has_answered() {
    let (session, mut peer) = Peer::client(version(1));
    let mut ours = session.open().unwrap();
    ours.write_all(b"ask").await.unwrap();
    ours.shutdown().await.unwrap();
    for said in [Said::Nothing(GREETING), Said::Open(3), Said::Data(3, 3)] {
        peer.hears(said).await;
    }
    peer.hears_nothing_for(Duration::from_secs(8)).await;
    // What comes renews the patience.
    peer.say(3, Body::Data(b"answer")).await;
    peer.hears_nothing_for(Duration::from_secs(8)).await;
    peer.say(3, Body::End).await;
    peer.hears(Said::End(3)).await;
    let mut answer = Vec::new();
    ours.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"answer");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_drops_its_answer_at_our_end_does_not_make_it_look_empty() {
    let (session, mut peer) = Peer::client(version(1));
    let mut ours = session.open().unwrap();
    ours.write_all(b"ask").await.unwrap();
    ours.shutdown().await.unwrap();
    for said in [Said::Nothing(GREETING), Said::Open(3), Said::Data(3, 3), Said::End(3)] {
        peer.hears(said).await;
    }
    peer.say(3, Body::End).await;
    assert_eq!(ours.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_had_the_last_word_ends_cleanly_at_our_end() {
    let (session, mut peer) = Peer::client(version(1));
    let mut ours = session.open().unwrap();
    ours.write_all(b"ask").await.unwrap();
    for said in [Said::Nothing(GREETING), Said::Open(3), Said::Data(3, 3)] {
        peer.hears(said).await;
    }
    peer.say(3, Body::Data(b"answer")).await;
    assert_eq!(read_exact(&mut ours, 6).await, b"answer");
    ours.shutdown().await.unwrap();
    peer.hears(Said::End(3)).await;
    peer.say(3, Body::End).await;
    assert_eq!(ours.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_of_another_make_is_told_at_once_that_the_server_is_done() {
    let (mut accepting, mut peer) = Peer::server(version(1));
    peer.say(3, Body::Open).await;
    peer.say(3, Body::Data(b"ask")).await;
    let mut ours = accepting.accept().await.unwrap();
    assert_eq!(read_exact(&mut ours, 3).await, b"ask");
    ours.write_all(b"answer").await.unwrap();
    ours.shutdown().await.unwrap();
    peer.hears(Said::Data(3, 6)).await;
    let told = tokio::time::timeout(Duration::from_secs(1), peer.hear()).await;
    assert_eq!(told.unwrap(), Some(Said::End(3)));
    // What it still says arrives all the same.
    peer.say(3, Body::Data(b"late")).await;
    peer.say(3, Body::End).await;
    let mut late = Vec::new();
    ours.read_to_end(&mut late).await.unwrap();
    assert_eq!(late, b"late");
}

#[tokio::test(start_paused = true)]
async fn what_a_peer_of_another_make_has_ended_is_written_to_for_ten_seconds_only() {
    let (session, mut peer) = Peer::client(version(1));
    let mut ours = session.open().unwrap();
    ours.write_all(b"ask").await.unwrap();
    peer.say(3, Body::Data(b"bye")).await;
    peer.say(3, Body::End).await;
    let mut answer = Vec::new();
    ours.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"bye");
    ours.write_all(b"more").await.unwrap();
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert!(ours.write_all(b"still more").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_malformed_frame_ends_the_session_and_no_stream_looks_complete() {
    let malformed: [&[u8]; 3] =
        [&[9, 0, 0, 0, 3, 0, 0, 0], &[1, 7, 0, 0, 3, 0, 0, 0], &[1, 0, 5, 0, 3, 0, 0, 0]];
    for bytes in malformed {
        let (session, mut peer) = Peer::client(version(1));
        let mut ours = session.open().unwrap();
        peer.say(3, Body::Data(b"begin")).await;
        assert_eq!(read_exact(&mut ours, 5).await, b"begin");
        peer.pipe.write_all(bytes).await.unwrap();
        assert_eq!(ours.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(ours.write_all(b"x").await.is_err());
        assert!(session.open().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_session_is_kept_alive_and_a_dead_one_found() {
    let (session, mut peer) = Peer::client(version(1));
    let mut ours = session.open().unwrap();
    // The peer says something every ten seconds, as long as it lives.
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        peer.say(KEEPALIVE, Body::Nothing).await;
    }
    assert!(session.is_alive() && session.is_fresh());
    let mut heard = Vec::new();
    while let Ok(Ok(n)) = tokio::time::timeout(Duration::from_millis(1), peer.pipe.read_buf(&mut heard)).await
    {
        assert!(n > 0);
    }
    let keepalives = heard.chunks(HEADER_LEN).filter(|frame| **frame == [1, 3, 0, 0, 0, 0, 0, 0]).count();
    assert!((8..=11).contains(&keepalives), "{keepalives} in 100 s");
    tokio::time::sleep(Duration::from_secs(21)).await;
    assert!(session.is_alive() && !session.is_fresh(), "it gets no new streams, those it has go on");
    let error = ours.read(&mut [0; 1]).await.unwrap_err();
    assert!(error.to_string().contains("nothing heard for 30s"), "{error}");
    assert!(!session.is_alive());
}

/// Sends to the first stream until nothing more goes, then to the second. When the second hears it is returned, with how
/// much of the first was on its way.
async fn behind_a_stream_that_is_not_read(options: MuxOptions) -> (Duration, usize) {
    let (session, mut accepting) = pair(options);
    let (mut slow, mut other) = (session.open().unwrap(), session.open().unwrap());
    slow.write_all(b"x").await.unwrap();
    other.write_all(b"x").await.unwrap();
    let (mut their_slow, mut their_other) =
        (accepting.accept().await.unwrap(), accepting.accept().await.unwrap());
    assert_eq!(read_exact(&mut their_other, 1).await, b"x");
    let mut sent = 1;
    while let Ok(written) = tokio::time::timeout(Duration::from_millis(100), slow.write(&[1; 4096])).await {
        sent += written.unwrap();
    }
    let clock = Clock::system();
    other.write_all(b"urgent").await.unwrap();
    assert_eq!(read_exact(&mut their_other, 6).await, b"urgent");
    let waited = Duration::from_millis(clock.now_ms());
    if waited > Duration::from_secs(1) {
        let mut all = Vec::new();
        assert!(their_slow.read_to_end(&mut all).await.is_err(), "it was cut");
    } else {
        assert_eq!(read_exact(&mut their_slow, sent).await.len(), sent);
    }
    (waited, sent)
}

#[tokio::test(start_paused = true)]
async fn in_version_1_a_stream_that_is_not_read_holds_up_others_for_a_while_and_no_more_memory_than_allowed()
{
    let options = MuxOptions { max_receive_buffer: 256 * 1024, max_stream_buffer: 65536, ..version(1) };
    let (waited, sent) = behind_a_stream_that_is_not_read(options).await;
    assert!(waited >= Duration::from_secs(10) && waited < Duration::from_secs(20), "{waited:?}");
    // The receive buffer, the pipe, one frame and batch on each side.
    assert!(sent < 256 * 1024 + PIPE + 5 * 64 * 1024, "{sent}");
}

#[tokio::test(start_paused = true)]
async fn in_version_2_nobody_waits_for_a_stream_that_is_not_read() {
    let options = MuxOptions { max_receive_buffer: 1024 * 1024, max_stream_buffer: 65536, ..version(2) };
    let (waited, sent) = behind_a_stream_that_is_not_read(options).await;
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    // The first window is the library's, and the outbox waits behind it.
    assert!(sent <= 262_144 + 64 * 1024, "{sent}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_ignores_the_window_loses_the_stream_only() {
    let (mut accepting, mut peer) = Peer::server(MuxOptions { version: Some(2), ..MuxOptions::default() });
    for id in [3, 5] {
        peer.say(id, Body::Open).await;
    }
    let (mut flooded, mut kept) = (accepting.accept().await.unwrap(), accepting.accept().await.unwrap());
    for _ in 0..10 {
        peer.say(3, Body::Data(&[1; 40_000])).await;
    }
    peer.say(5, Body::Data(b"x")).await;
    assert_eq!(read_exact(&mut kept, 1).await, b"x");
    let mut all = Vec::new();
    assert!(flooded.read_to_end(&mut all).await.is_err());
    assert!(all.len() <= 262_144);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_of_streams_waits_until_it_is_accepted() {
    for speaks in [1, 2] {
        let (mut accepting, mut peer) = Peer::server(version(speaks));
        let mut crowd = Vec::new();
        for stream in (3_u32..).step_by(2).take(1000) {
            encode(speaks, Frame { stream, body: Body::Open }, &mut crowd);
            encode(speaks, Frame { stream, body: Body::Data(&stream.to_le_bytes()) }, &mut crowd);
        }
        // As one piece, while nobody accepts; nothing is refused meanwhile, however long that takes.
        peer.pipe.write_all(&crowd).await.unwrap();
        tokio::time::sleep(Duration::from_secs(100)).await;
        for id in (3_u32..).step_by(2).take(1000) {
            let mut stream = accepting.accept().await.unwrap();
            assert_eq!(read_exact(&mut stream, 4).await, id.to_le_bytes(), "version {speaks}");
            // Not aborted when it is dropped.
            stream.shutdown().await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_leaves_says_so_and_serves_what_it_has() {
    let (session, mut accepting) = pair(version(1));
    let mut ours = session.open().unwrap();
    ours.write_all(b"ping").await.unwrap();
    let mut theirs = accepting.accept().await.unwrap();
    drop(accepting);
    assert_eq!(read_exact(&mut theirs, 4).await, b"ping");
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(session.open().is_err());
    theirs.write_all(b"pong").await.unwrap();
    theirs.shutdown().await.unwrap();
    let mut answer = Vec::new();
    ours.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"pong");
}

#[tokio::test(start_paused = true)]
async fn a_drained_session_ends_with_its_last_stream_and_an_idle_one_by_itself() {
    let (session, mut peer) = Peer::client(version(1));
    let ours = session.open().unwrap();
    for said in [Said::Nothing(GREETING), Said::Open(3)] {
        peer.hears(said).await;
    }
    session.drain();
    assert!(session.open().is_err());
    peer.hears_nothing_for(Duration::from_secs(8)).await;
    drop(ours);
    peer.hears(Said::End(3)).await;
    assert_eq!(peer.hear().await, None);

    let (_session, mut peer) = Peer::client(MuxOptions { keepalive: None, ..version(1) });
    peer.hears(Said::Nothing(GREETING)).await;
    peer.hears_nothing_for(Duration::from_secs(290)).await;
    assert_eq!(peer.hear().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_full_session_takes_no_further_stream_until_one_has_ended() {
    let (session, mut accepting) = pair(version(1));
    let accepted = tokio::spawn(async move {
        let mut streams = Vec::new();
        while let Some(stream) = accepting.accept().await {
            streams.push(stream);
        }
    });
    let mut streams: Vec<_> = (0..256).map(|_| session.open().unwrap()).collect();
    assert!(session.open().is_err() && session.is_alive());
    streams.pop().unwrap().abort();
    tokio::time::sleep(Duration::from_secs(1)).await;
    session.open().unwrap();
    accepted.abort();
}
