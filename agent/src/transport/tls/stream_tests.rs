//! Beside another implementation of the same, over connections that pass on only little at once.

use super::*;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, ServerConfig, SupportedProtocolVersion};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream as Other};

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];
/// More than all buffers on the way, and no multiple of anything.
const MUCH: usize = 1_000_003;

fn configs(
    version: &'static SupportedProtocolVersion,
    names: usize,
) -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    // So many names that the certificate is as long as wanted.
    let names = (0..names).map(|i| format!("{i}.{}.example", "x".repeat(60))).collect::<Vec<_>>();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(&[version]);
    let client = client.unwrap().with_root_certificates(roots).with_no_client_auth();
    let server = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
    let server = server.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    (Arc::new(client), Arc::new(server))
}

fn name() -> ServerName<'static> {
    ServerName::try_from(format!("0.{}.example", "x".repeat(60))).unwrap()
}

type Client = TlsStream<UnbufferedClientConnection>;
type Server = TlsStream<UnbufferedServerConnection>;

/// Our client and the other server, with so many bytes between them at most.
async fn our_client(
    version: &'static SupportedProtocolVersion,
    between: usize,
    names: usize,
) -> (Client, Other<DuplexStream>) {
    let (near, far) = duplex(between);
    let (client, server) = configs(version, names);
    let session = UnbufferedClientConnection::new(client, name()).unwrap();
    let (ours, other) = tokio::join!(
        TlsStream::handshake(Stream::Layered(Box::new(near)), session),
        TlsAcceptor::from(server).accept(far)
    );
    (ours.unwrap(), other.unwrap().into())
}

async fn our_server(
    version: &'static SupportedProtocolVersion,
    between: usize,
    names: usize,
) -> (Server, Other<DuplexStream>) {
    let (near, far) = duplex(between);
    let (client, server) = configs(version, names);
    let session = UnbufferedServerConnection::new(server).unwrap();
    let (ours, other) = tokio::join!(
        TlsStream::handshake(Stream::Layered(Box::new(near)), session),
        TlsConnector::from(client).connect(name(), far)
    );
    (ours.unwrap(), other.unwrap().into())
}

fn pattern(seed: usize) -> Vec<u8> {
    (0..MUCH).map(|i| ((i * 7 + seed) % 251) as u8).collect()
}

/// Sends much in pieces of every size, and reads as much.
async fn side(stream: impl AsyncRead + AsyncWrite, mine: usize, theirs: usize) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sending = async {
        let (bytes, mut at, mut piece) = (pattern(mine), 0, 1);
        while at < MUCH {
            let end = (at + piece).min(MUCH);
            writer.write_all(&bytes[at..end]).await.unwrap();
            (at, piece) = (end, piece * 3 % 200_000 + 1);
        }
        writer.shutdown().await.unwrap();
    };
    let receiving = async {
        let (mut seen, mut piece) = (Vec::new(), 1);
        while (&mut reader).take(piece).read_to_end(&mut seen).await.unwrap() > 0 {
            piece = piece * 3 % 200_000 + 1;
        }
        assert!(seen == pattern(theirs), "the bytes are others");
    };
    tokio::join!(sending, receiving);
}

/// Sends much both ways at once and lets both ends end.
async fn exchange(a: impl AsyncRead + AsyncWrite, b: impl AsyncRead + AsyncWrite) {
    tokio::join!(side(a, 1, 2), side(b, 2, 1));
}

#[tokio::test]
async fn every_byte_arrives_in_both_roles_and_versions_whatever_the_pieces() {
    for version in VERSIONS {
        for between in [999, 16 * 1024, 300_000] {
            let (ours, other) = our_client(version, between, 1).await;
            exchange(ours, other).await;
            let (ours, other) = our_server(version, between, 1).await;
            exchange(ours, other).await;
        }
    }
}

#[tokio::test]
async fn nothing_is_held_while_nothing_is_on_its_way() {
    let (mut ours, mut other) = our_server(VERSIONS[0], 100_000, 1).await;
    other.write_all(&pattern(1)[..70_000]).await.unwrap();
    let mut seen = vec![0; 70_000];
    ours.read_exact(&mut seen).await.unwrap();
    ours.write_all(b"answer").await.unwrap();
    let waiting = std::future::poll_fn(|cx| {
        let mut byte = [0];
        Poll::Ready(Pin::new(&mut ours).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_pending())
    });
    assert!(waiting.await);
    assert!(ours.incoming.is_none() && ours.outgoing.is_none() && ours.surplus.bytes.capacity() == 0);
}

#[tokio::test]
async fn writing_goes_on_while_nobody_reads_what_came() {
    let (mut ours, mut other) = our_client(VERSIONS[0], 200_000, 1).await;
    let bytes = pattern(3);
    other.write_all(&bytes[..50_000]).await.unwrap();
    let mut first = [0];
    ours.read_exact(&mut first).await.unwrap();
    // The other records are there, and still closed.
    assert!(ours.incoming.is_some());
    ours.write_all(b"question").await.unwrap();
    let mut seen = [0; 8];
    other.read_exact(&mut seen).await.unwrap();
    assert_eq!(&seen, b"question");
    let mut rest = vec![0; 49_999];
    ours.read_exact(&mut rest).await.unwrap();
    assert!(first[0] == bytes[0] && rest == bytes[1..50_000]);
}

#[tokio::test]
async fn new_keys_are_used_when_the_peer_asks_for_them() {
    let (mut ours, other) = our_server(VERSIONS[0], 100_000, 1).await;
    let Other::Client(mut other) = other else { panic!("a client") };
    for round in 0..3_u8 {
        other.get_mut().1.refresh_traffic_keys().unwrap();
        other.write_all(&[round]).await.unwrap();
        let mut seen = [9];
        ours.read_exact(&mut seen).await.unwrap();
        assert_eq!(seen, [round]);
        ours.write_all(&seen).await.unwrap();
        other.read_exact(&mut seen).await.unwrap();
        assert_eq!(seen, [round]);
    }
}

#[tokio::test]
async fn one_direction_ends_while_the_other_goes_on() {
    for version in VERSIONS {
        let (mut ours, mut other) = our_client(version, 100_000, 1).await;
        ours.write_all(b"all").await.unwrap();
        ours.shutdown().await.unwrap();
        let mut seen = Vec::new();
        other.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, b"all");
        if version.version == ProtocolVersion::TLSv1_3 {
            other.write_all(b"answer").await.unwrap();
            other.shutdown().await.unwrap();
            let mut seen = Vec::new();
            ours.read_to_end(&mut seen).await.unwrap();
            assert_eq!(seen, b"answer");
        }
    }
}

#[tokio::test]
async fn nothing_is_said_after_the_end() {
    for version in VERSIONS {
        let (mut ours, mut other) = our_client(version, 100_000, 1).await;
        ours.write_all(b"all").await.unwrap();
        ours.shutdown().await.unwrap();
        assert_eq!(ours.write(b"more").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        ours.flush().await.unwrap();
        ours.shutdown().await.unwrap();
        let mut seen = Vec::new();
        other.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, b"all");
    }
}

#[tokio::test]
async fn an_end_that_tls_does_not_know_of_is_none() {
    for version in VERSIONS {
        let (mut ours, mut other) = our_client(version, 100_000, 1).await;
        other.write_all(b"half").await.unwrap();
        other.flush().await.unwrap();
        drop(other);
        let mut seen = Vec::new();
        let error = ours.read_to_end(&mut seen).await.unwrap_err();
        assert_eq!((seen.as_slice(), error.kind()), (&b"half"[..], io::ErrorKind::UnexpectedEof));
    }
}

#[tokio::test]
async fn a_record_that_was_changed_ends_all_and_the_peer_is_told() {
    let (ours, other) = our_server(VERSIONS[0], 100_000, 1).await;
    let mut ours = ours;
    let Other::Client(other) = other else { panic!("a client") };
    let (mut below, mut session) = other.into_inner();
    std::io::Write::write_all(&mut session.writer(), b"good").unwrap();
    let mut records = Vec::new();
    session.write_tls(&mut records).unwrap();
    std::io::Write::write_all(&mut session.writer(), b"bad").unwrap();
    session.write_tls(&mut records).unwrap();
    *records.last_mut().unwrap() ^= 1;
    std::io::Write::write_all(&mut session.writer(), b"later").unwrap();
    session.write_tls(&mut records).unwrap();
    below.write_all(&records).await.unwrap();
    let mut seen = [0; 10];
    assert_eq!(ours.read(&mut seen).await.unwrap(), 4);
    assert_eq!(&seen[..4], b"good");
    for _ in 0..3 {
        assert_eq!(ours.read(&mut seen).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(ours.write(b"more").await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
    drop(ours);
    let mut told = Vec::new();
    below.read_to_end(&mut told).await.unwrap();
    session.read_tls(&mut told.as_slice()).unwrap();
    let error = session.process_new_packets().unwrap_err();
    assert_eq!(error, Error::AlertReceived(rustls::AlertDescription::BadRecordMac));
}

#[tokio::test]
async fn who_speaks_no_tls_or_goes_away_gets_no_connection() {
    for (bytes, kind) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], io::ErrorKind::InvalidData),
        (b"\x16\x03\x01", io::ErrorKind::UnexpectedEof),
    ] {
        let (near, mut far) = duplex(1000);
        far.write_all(bytes).await.unwrap();
        far.shutdown().await.unwrap();
        let session = UnbufferedServerConnection::new(configs(VERSIONS[0], 1).1).unwrap();
        let outcome = TlsStream::handshake(Stream::Layered(Box::new(near)), session).await;
        assert_eq!(outcome.err().unwrap().kind(), kind);
    }
}

#[tokio::test]
async fn long_certificates_arrive() {
    for version in VERSIONS {
        // 650 names of 70 bytes are longer than two records.
        let (ours, other) = our_client(version, 1000, 650).await;
        exchange(ours, other).await;
        let (ours, other) = our_server(version, 1000, 650).await;
        exchange(ours, other).await;
    }
}
