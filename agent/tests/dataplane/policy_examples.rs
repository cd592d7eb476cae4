//! sing-box's two example groups, as files of ours, with real exits and a page over TLS.

use crate::policies::{exits, now};
use crate::proxy_rig::{ping, socks5, socks5_request};
use crate::rig::*;
use agent::document::parse;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use rustls_pki_types::PrivateKeyDer;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const FILE: &str = include_str!("examples/sing_box.yaml");

/// A page over TLS; answers 204 to those it likes. Also the certificate, and who asked.
async fn page(likes: IpAddr) -> (SocketAddr, tempfile::NamedTempFile, Arc<Mutex<Vec<IpAddr>>>) {
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), own.cert.pem()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
    let seen = asked.clone();
    tokio::spawn(async move {
        loop {
            let (tcp, peer) = listener.accept().await.unwrap();
            let (acceptor, seen) = (acceptor.clone(), seen.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(tcp).await else { return };
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let status = if peer.ip() == likes { 204 } else { 502 };
                let _ = stream.write_all(format!("HTTP/1.1 {status} X\r\n\r\n").as_bytes()).await;
                seen.lock().unwrap().push(peer.ip());
            });
        }
    });
    (addr, file, asked)
}

#[test]
fn the_file_is_valid_as_it_is() {
    let config = parse(FILE).unwrap();
    assert_eq!(Runtime::validate(&config), Ok(()));
    assert_eq!(Runtime::warnings(&config), Vec::<String>::new());
}

#[tokio::test]
async fn both_groups_run() {
    let (target, exits) = (Target::start(Does::Echo).await, exits::<3>().await);
    let (page, authority, asked) = page(exits[1].from).await;
    let mut text = FILE.to_owned();
    for (number, exit) in (1..).zip(&exits) {
        text = text.replace(&format!("192.0.2.{number}:1080"), &exit.addr.to_string());
    }
    let url = "url: https://www.gstatic.com/generate_204";
    assert!(text.contains(url));
    let own = format!("url: https://{page}/generate_204\n            caFile: {}", authority.path().display());
    text = text.replace(url, &own).replace("127.0.0.1:1108", "127.0.0.1:0 # ");
    let runtime = Runtime::new(RuntimeOptions::default());
    runtime.apply(Change::Load(parse(&text).unwrap())).await.unwrap();
    assert_eq!(runtime.failed().len(), 0, "{:?}", runtime.failed());
    let echo = async |service: &str| {
        let proxy = runtime.listening(service).unwrap();
        let (mut stream, reply) = socks5(proxy, &socks5_request(target.addr)).await.unwrap();
        assert_eq!(reply, 0);
        ping(&mut stream).await;
    };

    let (by_hand, by_test) = ("chain/proxy/servers", "chain/auto/servers");
    assert_eq!(now(&runtime, by_hand).as_deref(), Some("server-a"));
    echo("by-hand").await;
    runtime.choose(by_hand, Some("server-c".into())).await.unwrap();
    echo("by-hand").await;
    assert_eq!(target.peers(), [exits[0].from, exits[2].from]);

    eventually("the one that the page likes is used", || {
        now(&runtime, by_test).as_deref() == Some("server-b")
    })
    .await;
    echo("by-test").await;
    assert_eq!(target.peers().last(), Some(&exits[1].from));
    target.assert_only_exits_came();
    assert!(asked.lock().unwrap().iter().all(|from| *from != IpAddr::from([127, 0, 0, 1])));

    // Without the authority nobody vouches for the page.
    let tried = runtime.try_members(by_hand, Some(&format!("https://{page}/x")), LONG).await.unwrap();
    assert!(tried.iter().all(|(_, outcome)| outcome.is_err()), "{tried:?}");
    // With it, whatever the choice is, and without changing it.
    let tried = runtime.try_members(by_test, None, LONG).await.unwrap();
    let works: Vec<_> = tried.iter().map(|(name, outcome)| (name.as_str(), outcome.is_ok())).collect();
    assert_eq!(works, [("server-a", false), ("server-b", true), ("server-c", false)]);
    assert_eq!(now(&runtime, by_hand).as_deref(), Some("server-c"));
}
