//! Websockets as both sides, from the handshake or after one: what a peer says must be understood the same however it is
//! cut, and what we say must be understood by the other side of ours.

use crate::Target;
use crate::script::{Heard, Script, Then, run};
use agent::clock::Random;
use agent::stream::Stream;
use agent::transport::ws::{WsClient, WsServer};
use std::io;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

pub(crate) const TARGET: Target = Target {
    name: "websocket",
    run: fuzz,
    words: &[
        "\u{1}\u{0}",
        "\x01\x03hel",
        "\x0a\x00",
        "\r\n\r\n",
        "GET /ws HTTP/1.1\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n",
        "Upgrade: websocket\r\n",
        "Connection: Upgrade\r\n",
        "Sec-WebSocket-Version: 13\r\n",
        "Sec-WebSocket-Key: k\r\n",
        "Sec-WebSocket-Protocol: half-close\r\n",
    ],
};

const SECONDS: Duration = Duration::from_secs(5);
/// Both clients and servers are seeded, so that a client's key is the same every time.
const SEED: u64 = 1;

/// What a client of ours asks for.
static REQUEST: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let (stream, heard) = Script::new(&[], 1, Then::End).connection();
    let outcome = run(client().handshake(stream, &Random::seeded(SEED), SECONDS));
    assert!(outcome.is_err(), "nobody answers");
    heard.bytes()
});

fn client() -> WsClient {
    WsClient { path: "/ws".into(), host: "exit.example".into(), headers: Vec::new(), ping: None }
}

fn server() -> WsServer {
    WsServer { path: "/ws".into(), headers: Vec::new() }
}

/// Who we are, and what the peer is like.
#[derive(Clone, Copy)]
struct Case {
    is_client: bool,
    /// The peer knows ends of single directions.
    half_close: bool,
    /// The peer's handshake is part of the input.
    raw: bool,
    ends_first: bool,
}

fn fuzz(bytes: &[u8]) {
    let Some((&[flags, length], rest)) = bytes.split_first_chunk::<2>() else { return };
    let has = |bit: u8| flags & 1 << bit != 0;
    let case = Case { is_client: has(0), half_close: has(1), raw: has(2), ends_first: has(3) };
    let (data, says) = rest.split_at(usize::from(length).min(rest.len()));
    let (whole, heard) = exchange(case, data, says, usize::MAX);
    let (cut, heard_cut) = exchange(case, data, says, 1);
    assert_eq!(cut, whole);
    assert_eq!(heard_cut.bytes().len() >= data.len(), heard.bytes().len() >= data.len());
    // The other side reads from what we sent what was written, whatever else is there.
    if whole.is_some() && !case.raw {
        let heard = heard.bytes();
        let got = if case.is_client { read_as_server(&heard) } else { read_as_client(&heard) };
        assert_eq!(got, data);
    }
}

/// What was read, and how it ended; `None` without a websocket.
type Outcome = Option<(Vec<u8>, Result<(), String>)>;

fn exchange(case: Case, data: &[u8], says: &[u8], piece: usize) -> (Outcome, Heard) {
    let script = if case.raw {
        Script::new(says, piece, Then::End)
    } else if case.is_client {
        Script::new(says, piece, Then::End).answering(move |request| answer(request, case.half_close))
    } else {
        let mut request = REQUEST.clone();
        if !case.half_close {
            let text =
                String::from_utf8_lossy(&request).replace("Sec-WebSocket-Protocol: half-close\r\n", "");
            request = text.into_bytes();
        }
        Script::new(&[&*request, says].concat(), piece, Then::End)
    };
    let (stream, heard) = script.connection();
    let outcome = run(async {
        let random = Random::seeded(SEED);
        let stream = if case.is_client {
            client().handshake(stream, &random, SECONDS).await
        } else {
            server().handshake(stream, &random, SECONDS).await
        };
        let mut stream = stream.ok()?;
        stream.write_all(data).await.expect("nothing has been read yet");
        stream.flush().await.expect("a script takes everything");
        if case.ends_first {
            stream.shutdown().await.expect("a script takes everything");
        }
        let mut read = Vec::new();
        let end = read_all(&mut stream, &mut read, piece).await.map_err(|error| error.to_string());
        if !case.ends_first {
            // Fails after what the peer did, or not.
            let _ = stream.shutdown().await;
        }
        Some((read, end))
    });
    (outcome, heard)
}

/// With buffers as large as the pieces, if these are small.
async fn read_all(stream: &mut Stream, all: &mut Vec<u8>, piece: usize) -> io::Result<()> {
    let mut buffer = vec![0; piece.clamp(3, 5000)];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        all.extend_from_slice(&buffer[..length]);
    }
}

fn answer(request: &[u8], half_close: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(request);
    let key = text.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap_or_default();
    let accept = derive_accept_key(key.as_bytes());
    let protocol = if half_close { "Sec-WebSocket-Protocol: half-close\r\n" } else { "" };
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    format!("{head}Sec-WebSocket-Accept: {accept}\r\n{protocol}\r\n").into_bytes()
}

fn read_as_server(said: &[u8]) -> Vec<u8> {
    let (stream, _) = Script::new(said, usize::MAX, Then::End).connection();
    run(async {
        let stream = server().handshake(stream, &Random::seeded(SEED), SECONDS).await;
        let (mut stream, mut all) = (stream.expect("a request of ours"), Vec::new());
        // How it ends depends on the peer's ends.
        let _ = read_all(&mut stream, &mut all, usize::MAX).await;
        all
    })
}

fn read_as_client(said: &[u8]) -> Vec<u8> {
    let (stream, _) = Script::new(said, usize::MAX, Then::End).connection();
    run(async {
        let stream = client().handshake(stream, &Random::seeded(SEED), SECONDS).await;
        let (mut stream, mut all) = (stream.expect("an answer of ours"), Vec::new());
        let _ = read_all(&mut stream, &mut all, usize::MAX).await;
        all
    })
}
