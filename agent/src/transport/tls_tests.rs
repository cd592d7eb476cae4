//! Who verifies what.

use super::*;
use crate::net::ListenAddress;
use shared::address::HostPort;
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const LONG: Duration = Duration::from_secs(10);

/// Writes a self-signed certificate for `name`; returns the paths of certificate and key.
fn certificate(folder: &Path, name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let path = |end: &str| folder.join(format!("{name}.{end}")).to_str().unwrap().to_owned();
    std::fs::write(path("crt"), made.cert.pem()).unwrap();
    std::fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
    (path("crt"), path("key"))
}

/// One byte through TLS: the client's outcome.
async fn try_through(server: Option<TlsConfig>, client: Option<TlsConfig>) -> io::Result<()> {
    let listener = ListenAddress::parse("127.0.0.1:0").unwrap().listen().await?;
    let target = HostPort::new("127.0.0.1", listener.local_addr()?.port());
    let server = TlsServer::new(server.as_ref()).map_err(io::Error::other)?;
    let serving = tokio::spawn(async move {
        let (tcp, _) = listener.accept().await?;
        let mut stream = server.handshake(Stream::Tcp(tcp), LONG).await?;
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        stream.write_all(&byte).await?;
        stream.shutdown().await
    });
    let client = TlsClient::new(client.as_ref(), "exit.example").map_err(io::Error::other)?;
    let tcp = crate::net::connect(&target, None, LONG).await?;
    let outcome = async {
        let mut stream = client.handshake(Stream::Tcp(tcp), LONG).await?;
        stream.write_all(b"x").await?;
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        assert_eq!(&byte, b"x");
        Ok(())
    };
    let outcome = outcome.await;
    let _ = serving.await.unwrap();
    outcome
}

#[tokio::test]
async fn the_defaults_need_no_certificate_and_verify_nothing() {
    try_through(None, None).await.unwrap();
    try_through(Some(TlsConfig::default()), Some(TlsConfig::default())).await.unwrap();
}

#[tokio::test]
async fn a_secure_client_refuses_the_self_signed_server() {
    let secure = TlsConfig { secure: true, ..TlsConfig::default() };
    assert!(try_through(None, Some(secure)).await.is_err());
}

#[tokio::test]
async fn an_authority_file_is_checked_and_the_name_only_when_secure() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "exit.example");
    let (other, _) = certificate(folder.path(), "other.example");
    let server = || {
        Some(TlsConfig { cert_file: Some(cert.clone()), key_file: Some(key.clone()), ..TlsConfig::default() })
    };
    let client = |secure: bool, ca: &str, name: Option<&str>| {
        Some(TlsConfig {
            secure,
            ca_file: Some(ca.to_owned()),
            server_name: name.map(str::to_owned),
            ..TlsConfig::default()
        })
    };
    try_through(server(), client(true, &cert, None)).await.unwrap();
    try_through(server(), client(false, &cert, Some("elsewhere.example"))).await.unwrap();
    assert!(try_through(server(), client(true, &cert, Some("elsewhere.example"))).await.is_err());
    assert!(try_through(server(), client(false, &other, None)).await.is_err());
}

#[tokio::test]
async fn a_server_with_an_authority_file_wants_a_client_certificate() {
    let folder = tempfile::tempdir().unwrap();
    // A client certificate must be signed by an authority: a self-signed leaf is not enough here.
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(vec![]).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let client_key = rcgen::KeyPair::generate().unwrap();
    let client_pem = rcgen::CertificateParams::new(vec!["entry".into()])
        .unwrap()
        .signed_by(&client_key, &issuer)
        .unwrap()
        .pem();
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path.to_str().unwrap().to_owned())
    };
    let ca_file = write("ca.crt", authority_pem);
    let (cert, key) = certificate(folder.path(), "exit.example");
    let server = || {
        Some(TlsConfig {
            ca_file: ca_file.clone(),
            cert_file: Some(cert.clone()),
            key_file: Some(key.clone()),
            ..TlsConfig::default()
        })
    };
    let client = TlsConfig {
        cert_file: write("client.crt", client_pem),
        key_file: write("client.key", client_key.serialize_pem()),
        ..TlsConfig::default()
    };
    try_through(server(), Some(client)).await.unwrap();
    assert!(try_through(server(), None).await.is_err());
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let options = TlsConfig { ca_file: Some("/nonexistent/ca.pem".into()), ..TlsConfig::default() };
    assert!(TlsClient::new(Some(&options), "x").err().unwrap().contains("/nonexistent/ca.pem"));
    let options = TlsConfig { cert_file: Some("/nonexistent/c.pem".into()), ..TlsConfig::default() };
    assert!(TlsServer::new(Some(&options)).err().unwrap().contains("belong together"));
    assert!(TlsClient::new(None, "not a name").is_err());
}

/// With these options on either side.
async fn with_options(server: serde_json::Value, client: serde_json::Value) -> io::Result<()> {
    let config = |options| {
        Some(TlsConfig { options: serde_json::from_value(options).unwrap(), ..TlsConfig::default() })
    };
    try_through(config(server), config(client)).await
}

#[tokio::test]
async fn both_sides_keep_to_their_options() {
    use serde_json::json;
    let (only_12, only_13) = (json!({"maxVersion": "VersionTLS12"}), json!({"minVersion": "VersionTLS13"}));
    with_options(only_13.clone(), json!({})).await.unwrap();
    with_options(json!({}), only_12.clone()).await.unwrap();
    with_options(only_12.clone(), only_12.clone()).await.unwrap();
    assert!(with_options(only_12.clone(), only_13.clone()).await.is_err());
    assert!(with_options(only_13.clone(), only_12.clone()).await.is_err());

    let suites = |names: &[&str]| json!({"cipherSuites": names});
    let (aes, chacha) = (suites(&["TLS_AES_128_GCM_SHA256"]), suites(&["TLS_CHACHA20_POLY1305_SHA256"]));
    with_options(aes.clone(), aes.clone()).await.unwrap();
    assert!(
        with_options(
            json!({"minVersion": "VersionTLS13", "cipherSuites": ["TLS_AES_128_GCM_SHA256"]}),
            chacha
        )
        .await
        .is_err()
    );

    let speaks = |protocol: &str| json!({"alpn": [protocol]});
    with_options(speaks("h2"), speaks("h2")).await.unwrap();
    with_options(speaks("h2"), json!({})).await.unwrap();
    assert!(with_options(speaks("h2"), speaks("http/1.1")).await.is_err(), "nothing in common");
}

#[test]
fn options_that_do_not_exist_are_named() {
    let options = serde_json::from_value(serde_json::json!({"minVersion": "VersionSSL30"})).unwrap();
    let config = TlsConfig { options: Some(options), ..TlsConfig::default() };
    let client = TlsClient::new(Some(&config), "x").err().unwrap();
    let server = TlsServer::new(Some(&config)).err().unwrap();
    assert_eq!(client, "options.minVersion: VersionSSL30 is not supported (VersionTLS12, VersionTLS13)");
    assert_eq!(client, server);
}
