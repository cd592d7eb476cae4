//! A whole session of the multiplexer, as client and as server, against a peer that says anything. Its streams send
//! back what they get.

use crate::Target;
use crate::script::{Script, Then, run};
use agent::clock::Clock;
use agent::stream::Stream;
use agent::tasks::Tasks;
use agent::transport::smux::frame::{Body, GO_AWAY, GREETING, KEEPALIVE, decode};
use agent::transport::smux::{Accepting, MuxOptions, Session};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub(crate) const TARGET: Target = Target {
    name: "smux_session",
    run: fuzz,
    words: &[
        "\x01\u{0}\u{0}\u{0}\x03\u{0}\u{0}\u{0}",
        "\x01\x01\u{0}\u{0}\x03\u{0}\u{0}\u{0}",
        "\x01\x02\x05\u{0}\x03\u{0}\u{0}\u{0}hello",
        "\x01\x03\u{0}\u{0}\x01\u{0}\u{0}\u{0}",
        "\x02\u{0}\u{0}\u{0}\x03\u{0}\u{0}\u{0}",
        "\x02\x02\x02\u{0}\x03\u{0}\u{0}\u{0}hi",
        "\x02\x04\x08\u{0}\x03\u{0}\u{0}\u{0}",
        "\x02\x03\u{0}\u{0}\x03\u{0}\u{0}\u{0}",
    ],
};

/// Longer than any patience of a session. Streams that wait for each other through a peer's fault may wait that long.
const PATIENCE: Duration = Duration::from_secs(1000);
/// Streams that a client opens.
const OPENED: usize = 3;

/// What one side did.
#[derive(Default)]
struct Carried {
    read: usize,
    written: usize,
}

fn fuzz(bytes: &[u8]) {
    let Some((&[flags, piece], says)) = bytes.split_first_chunk::<2>() else { return };
    let has = |bit: u8| flags & 1 << bit != 0;
    let small = has(3);
    let options = MuxOptions {
        version: [None, Some(1), Some(2), Some(2)][usize::from(flags & 3)],
        max_frame_size: if small { 5 } else { MuxOptions::default().max_frame_size },
        max_receive_buffer: if small { 64 } else { MuxOptions::default().max_receive_buffer },
        max_stream_buffer: if small { 16 } else { MuxOptions::default().max_stream_buffer },
        ..MuxOptions::default()
    };
    let is_client = has(4);
    let then = if has(5) { Then::Silence } else { Then::End };
    let (stream, heard) = Script::new(says, usize::from(piece) * 4, then).connection();
    let carried = run(async {
        let (clock, tasks) = (Clock::system(), Tasks::default());
        let carried = if is_client {
            client(Session::start(stream, options, &clock, &tasks), has(6)).await
        } else {
            server(Accepting::start(stream, options, &clock, &tasks), has(6)).await
        };
        tasks.stop.cancel();
        tasks.tracker.close();
        timeout(PATIENCE, tasks.tracker.wait()).await.expect("a session ends when it is told to");
        carried
    });
    let heard = heard.bytes();
    let written = check(&heard, says, is_client, options.version);
    assert!(written <= carried.written, "{written} bytes sent, {} written", carried.written);
    assert!(carried.read <= says.len(), "{} bytes read of {}", carried.read, says.len());
}

async fn client(session: Session, drains: bool) -> Carried {
    let mut streams = JoinSet::new();
    for _ in 0..OPENED {
        if let Ok(mut stream) = session.open() {
            streams.spawn(async move {
                let asked = stream.write_all(b"ask").await;
                let asked = Carried { read: 0, written: if asked.is_ok() { 3 } else { 0 } };
                echo(stream, asked).await
            });
        }
    }
    if drains {
        session.drain();
    }
    sum(streams).await
}

async fn server(mut session: Accepting, leaves_early: bool) -> Carried {
    let mut streams = JoinSet::new();
    while let Ok(Some(stream)) = timeout(PATIENCE, session.accept()).await {
        streams.spawn(echo(stream, Carried::default()));
        if leaves_early && streams.len() == 2 {
            break;
        }
    }
    drop(session);
    sum(streams).await
}

async fn sum(streams: JoinSet<Carried>) -> Carried {
    let all = streams.join_all().await;
    Carried { read: all.iter().map(|one| one.read).sum(), written: all.iter().map(|one| one.written).sum() }
}

async fn echo(mut stream: Stream, mut carried: Carried) -> Carried {
    let work = async {
        let mut buffer = [0; 1000];
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => return stream.shutdown().await,
                Ok(length) => {
                    carried.read += length;
                    // Counted before: a write that fails may have been sent in part.
                    carried.written += length;
                    stream.write_all(&buffer[..length]).await?;
                }
                Err(error) => return Err(error),
            }
        }
    };
    match timeout(PATIENCE, work).await {
        Ok(Ok(())) => drop(stream),
        _ => stream.abort(),
    }
    carried
}

/// Reads what we sent, which must be whole frames of one version about streams that exist; returns the payload.
fn check(heard: &[u8], says: &[u8], is_client: bool, version: Option<u8>) -> usize {
    let Some(&spoken) = heard.first() else { return 0 };
    assert!(matches!(spoken, 1 | 2));
    match version {
        Some(version) => assert_eq!(spoken, version),
        None => assert_eq!(spoken, if is_client || says.first() != Some(&2) { 1 } else { 2 }),
    }
    let theirs = opened(says, spoken);
    let (mut ours, mut payload, mut rest) = (BTreeMap::new(), 0, heard);
    while !rest.is_empty() {
        let (frame, length) = decode(spoken, rest).expect("frames").expect("whole frames");
        rest = &rest[length..];
        let exists = |ours: &BTreeMap<u32, bool>| {
            if is_client { ours.contains_key(&frame.stream) } else { theirs.contains(&frame.stream) }
        };
        match frame.body {
            Body::Open => {
                assert!(
                    is_client && ours.insert(frame.stream, false).is_none(),
                    "opened twice or by a server"
                );
            }
            Body::Nothing if [KEEPALIVE, GREETING, GO_AWAY].contains(&frame.stream) => {}
            // A client refuses streams that servers open.
            Body::Nothing | Body::End => {
                assert!(exists(&ours) || theirs.contains(&frame.stream), "ended without a beginning");
                if let Some(ended) = ours.get_mut(&frame.stream) {
                    *ended |= frame.body == Body::End;
                }
            }
            Body::Data(data) => {
                assert!(exists(&ours), "payload without a beginning");
                assert_ne!(ours.get(&frame.stream), Some(&true), "payload after the end");
                payload += data.len();
            }
            Body::Window { .. } => assert!(spoken == 2 && exists(&ours)),
        }
    }
    payload
}

/// The streams that a peer begins.
fn opened(says: &[u8], version: u8) -> BTreeSet<u32> {
    let (mut opened, mut rest) = (BTreeSet::new(), says);
    while let Ok(Some((frame, length))) = decode(version, rest) {
        if frame.body == Body::Open {
            opened.insert(frame.stream);
        }
        rest = &rest[length..];
    }
    opened
}
