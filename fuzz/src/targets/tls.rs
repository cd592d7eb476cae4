//! TLS in both roles over a connection that cuts, delays and falsifies; and with anything that is no TLS.
//!
//! Keys are new each time, so the same input does not make the same records.

use crate::Target;
use crate::link::{Fate, connection};
use crate::script::{Script, Then, run};
use agent::stream::Stream;
use agent::transport::tls::{TlsClient, TlsServer};
use shared::gost::{TlsConfig, TlsOptions};
use std::sync::LazyLock;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};

pub(crate) const TARGET: Target = Target {
    name: "tls",
    run: fuzz,
    words: &[
        "\x16\x03\x01\u{0}\x05\x01\u{0}\u{0}\x01\u{0}",
        "\x16\x03\x03\u{0}\x04\x02\u{0}\u{0}\u{0}",
        "\x15\x03\x03\u{0}\x02\x01\u{0}",
        "\x14\x03\x03\u{0}\x01\x01",
        "\x17\x03\x03\u{0}\x01\u{0}",
    ],
};

/// Longer than anything takes here, on a clock that passes only while nothing else happens.
const STANDSTILL: Duration = Duration::from_secs(60);
/// Payload of each side at most: several records, and more than the connection holds.
const MOST: usize = 50_000;

/// For each version.
static ROLES: LazyLock<[(TlsClient, TlsServer); 2]> = LazyLock::new(|| {
    ["VersionTLS12", "VersionTLS13"].map(|version| {
        let version = Some(version.to_owned());
        let options =
            TlsOptions { min_version: version.clone(), max_version: version, ..TlsOptions::default() };
        let config = TlsConfig { options: Some(options), ..TlsConfig::default() };
        let client = TlsClient::new(Some(&config), "exit.example").expect("the options are right");
        (client, TlsServer::new(Some(&config)).expect("the options are right"))
    })
});

fn fuzz(bytes: &[u8]) {
    let [flags, rest @ ..] = bytes else { return };
    let (client, server) = &ROLES[usize::from(flags & 1)];
    if flags & 2 == 0 {
        return with_anything((client, server), flags & 4 != 0, rest);
    }
    let [kind, high, low, bits, sizes @ .., _] = rest else { return };
    let at = usize::from(u16::from_be_bytes([*high, *low]));
    let fate = match kind % 3 {
        0 => Fate::Arrive,
        1 => Fate::Turn { at, bits: (*bits).max(1) },
        _ => Fate::End { after: at },
    };
    // Which direction it happens to.
    let fates = if flags & 4 == 0 { [fate, Fate::Arrive] } else { [Fate::Arrive, fate] };
    let (pace, sizes) = sizes.split_at(sizes.len() / 2);
    let [near, far] = connection(pace, fates);
    let both = async {
        let (near, far) = tokio::join!(client.handshake(near, STANDSTILL), server.handshake(far, STANDSTILL));
        // Who may get false records ends last: rustls asserts, in debug builds, that a connection whose end it has told
        // finds no fault any more.
        let last = |ours: Fate| matches!(ours, Fate::Turn { .. });
        tokio::join!(
            side(near.ok(), sizes, (1, 2), last(fates[1])),
            side(far.ok(), sizes, (2, 1), last(fates[0]))
        )
    };
    let outcomes = run(async { tokio::time::timeout(2 * STANDSTILL, both).await });
    let Ok((near, far)) = outcomes else { panic!("both wait for ever") };
    if fate == Fate::Arrive {
        assert!(near && far, "not everything arrived");
    }
}

/// What side `seed` sends.
fn payload(sizes: &[u8], seed: u8) -> Vec<u8> {
    let length = sizes.iter().fold(usize::from(seed), |sum, size| (sum * 3 + usize::from(*size)) % MOST);
    (0..length).map(|at| (at as u8).wrapping_mul(seed)).collect()
}

/// Sends, ends and reads to the end; in this order, or reads before it ends. Whether all was as it should be; what came is
/// right in any case, and an end that is told is the end.
async fn side(stream: Option<Stream>, sizes: &[u8], (own, others): (u8, u8), ends_last: bool) -> bool {
    let Some(stream) = stream else { return false };
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sending = async {
        let sent = send(&mut writer, sizes, own).await;
        sent && (ends_last || end(&mut writer).await)
    };
    let (sent, read) = tokio::join!(sending, receive(&mut reader, sizes, others));
    let ended = !ends_last || end(&mut writer).await;
    sent && read && ended
}

async fn send(writer: &mut WriteHalf<Stream>, sizes: &[u8], seed: u8) -> bool {
    let payload = payload(sizes, seed);
    let (mut rest, mut sizes) = (&payload[..], sizes.iter().cycle());
    while !rest.is_empty() {
        // From a byte to more than a record holds.
        let size = sizes.next().map_or(MOST, |size| 1 + usize::from(*size) * usize::from(*size) / 3);
        let (piece, following) = rest.split_at(size.min(rest.len()));
        if writer.write_all(piece).await.is_err() {
            return false;
        }
        rest = following;
    }
    writer.flush().await.is_ok()
}

async fn end(writer: &mut WriteHalf<Stream>) -> bool {
    let ended = writer.shutdown().await.is_ok();
    assert!(!ended || writer.write_all(b"more").await.is_err(), "something was said after the end");
    ended
}

async fn receive(reader: &mut ReadHalf<Stream>, sizes: &[u8], seed: u8) -> bool {
    let expected = payload(sizes, seed);
    let mut got = Vec::new();
    let mut sizes = sizes.iter().rev().cycle();
    loop {
        let size = sizes.next().map_or(MOST, |size| 1 + usize::from(*size) * 100);
        match reader.take(size as u64).read_to_end(&mut got).await {
            Ok(0) => {
                assert!(got == expected, "an end before the end");
                return true;
            }
            Ok(_) => {}
            Err(_) => {
                assert!(expected.starts_with(&got), "other bytes than were sent");
                // It stays so.
                assert!(reader.read(&mut [0]).await.is_err());
                return false;
            }
        }
    }
}

/// A peer that says anything gets an error, the same however its words are cut.
fn with_anything((client, server): (&TlsClient, &TlsServer), is_client: bool, says: &[u8]) {
    let outcome = |piece| {
        let (peer, _) = Script::new(says, piece, Then::End).connection();
        let outcome = run(async {
            match is_client {
                true => client.handshake(peer, STANDSTILL).await,
                false => server.handshake(peer, STANDSTILL).await,
            }
        });
        outcome.err().map(|error| error.kind())
    };
    let whole = outcome(usize::MAX);
    assert!(whole.is_some(), "somebody without keys shook hands");
    assert_eq!(outcome(1), whole);
}
