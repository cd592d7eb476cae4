//! TLS with its options, both roles: who verifies whom, and which versions and suites are spoken.

use crate::address::{self, exit_ip};
use crate::node::{self, Node, Product, chain, credentials, forward};
use crate::talk;
use crate::target::{Does, Target};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// An authority, and what it has signed: a server and a client.
struct Certificates {
    folder: TempDir,
}

impl Certificates {
    fn make() -> Self {
        let folder = tempfile::Builder::new().prefix("exitpilot-interop-tls-").tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let mut authority = rcgen::CertificateParams::new(vec![]).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        std::fs::write(folder.path().join("ca.crt"), authority.self_signed(&key).unwrap().pem()).unwrap();
        let issuer = rcgen::Issuer::new(authority, key);
        for name in ["exit", "entry"] {
            let key = rcgen::KeyPair::generate().unwrap();
            let leaf = rcgen::CertificateParams::new(vec![format!("{name}.example")]).unwrap();
            let leaf = leaf.signed_by(&key, &issuer).unwrap();
            std::fs::write(folder.path().join(format!("{name}.crt")), leaf.pem()).unwrap();
            std::fs::write(folder.path().join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        Self { folder }
    }

    fn path(&self, file: &str) -> Value {
        json!(Path::join(self.folder.path(), file))
    }

    /// The certificate of `name`.
    fn own(&self, name: &str) -> Value {
        json!({"certFile": self.path(&format!("{name}.crt")), "keyFile": self.path(&format!("{name}.key"))})
    }

    /// A dialer that wants a server of the authority by this name.
    fn verify(&self, name: &str) -> Value {
        json!({"secure": true, "caFile": self.path("ca.crt"), "serverName": name})
    }
}

fn both(a: &Value, b: &Value) -> Value {
    let mut all = a.clone();
    all.as_object_mut().unwrap().extend(b.as_object().unwrap().clone());
    all
}

/// Whether a conversation gets through a relay over TLS. `None` if a product is not there.
async fn carries(entry: Product, exit: Product, dialer: Value, listener: Value) -> Option<bool> {
    let relay = json!({"type": "relay", "auth": credentials(), "metadata": {"nodelay": true}});
    let (mut service, addr) = node::exit(relay.clone(), "tls", exit_ip(1));
    service["listener"]["tls"] = listener;
    let _exit = Node::start(exit, "exit", &json!({"services": [service]})).await?;
    let target = Target::start(Does::Echo).await;
    let (service, client) = forward("f", target.addr);
    let node = json!({
        "name": "exit", "addr": addr.to_string(), "connector": relay, "dialer": {"type": "tls", "tls": dialer},
    });
    let _entry =
        Node::start(entry, "entry", &json!({"services": [service], "chains": [chain(&[node])]})).await?;
    let outcome = talk::try_hold("client first", node::PATIENCE, talk::client_first(client)).await;
    match &outcome {
        Ok(()) => target.assert_reached_only_from(exit_ip(1)),
        Err(error) => {
            assert!(!error.contains("hangs"), "{error}");
            assert!(target.peers().is_empty(), "the target was reached");
        }
    }
    Some(outcome.is_ok())
}

/// In both roles: what a dialer and a listener with these options make of each other.
async fn rows(cases: &[(&str, Value, Value, bool)]) {
    for (entry, exit) in [(Product::Ours, Product::Gost), (Product::Gost, Product::Ours)] {
        for (what, dialer, listener, expected) in cases {
            let Some(carried) = carries(entry, exit, dialer.clone(), listener.clone()).await else { return };
            assert_eq!(carried, *expected, "{entry:?} to {exit:?}: {what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_verified_by_authority_and_name() {
    let made = Certificates::make();
    let (own, foreign) = (made.own("exit"), Certificates::make());
    rows(&[
        ("the right name", made.verify("exit.example"), own.clone(), true),
        ("another name", made.verify("other.example"), own.clone(), false),
        ("another authority", foreign.verify("exit.example"), own.clone(), false),
        ("a self-signed one", made.verify("exit.example"), json!({}), false),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_needs_the_certificate_that_the_server_wants() {
    let (made, foreign) = (Certificates::make(), Certificates::make());
    let wants = both(&made.own("exit"), &json!({"caFile": made.path("ca.crt")}));
    let verified = made.verify("exit.example");
    rows(&[
        ("with it", both(&verified, &made.own("entry")), wants.clone(), true),
        ("without any", verified.clone(), wants.clone(), false),
        ("of another authority", both(&verified, &foreign.own("entry")), wants.clone(), false),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_and_suites_are_kept_to() {
    let options = |options: Value| json!({"options": options});
    let only_13 = options(json!({"minVersion": "VersionTLS13"}));
    let only_12 = options(json!({"maxVersion": "VersionTLS12"}));
    let suite = |name: &str| options(json!({"maxVersion": "VersionTLS12", "cipherSuites": [name]}));
    let (aes, chacha) = (
        suite("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
        suite("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    );
    // GOST's own certificate has an RSA key, which these suites cannot use.
    let made = Certificates::make();
    let with = |options: &Value| both(options, &made.own("exit"));
    rows(&[
        ("1.3 is spoken by default", only_13.clone(), json!({}), true),
        ("1.3 is asked for", json!({}), only_13.clone(), true),
        ("1.2 is spoken too", only_12.clone(), only_12.clone(), true),
        ("a listener below the dialer", only_13.clone(), only_12.clone(), false),
        ("a listener above the dialer", only_12.clone(), only_13.clone(), false),
        ("the same suite", aes.clone(), with(&aes), true),
        ("another suite", aes.clone(), with(&chacha), false),
        ("the same protocol", options(json!({"alpn": ["x"]})), options(json!({"alpn": ["y", "x"]})), true),
        ("another protocol", options(json!({"alpn": ["x"]})), options(json!({"alpn": ["y"]})), false),
    ])
    .await;
}

/// The reason is in the log, and counted by its word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_entry_says_what_is_wrong_with_a_certificate_of_gost() {
    let made = Certificates::make();
    let relay = json!({"type": "relay", "metadata": {"nodelay": true}});
    let (mut service, addr) = node::exit(relay.clone(), "tls", exit_ip(1));
    service["listener"]["tls"] = made.own("exit");
    let document = json!({"services": [service]});
    let Some(_exit) = Node::start(Product::Gost, "exit", &document).await else { return };
    let (service, client) = forward("f", address::fresh());
    let node = json!({
        "name": "exit", "addr": addr.to_string(), "connector": relay,
        "dialer": {"type": "tls", "tls": made.verify("other.example")},
    });
    let document = json!({"services": [service], "chains": [chain(&[node])]});
    let entry = Node::start(Product::Ours, "entry", &document).await.unwrap();
    assert!(talk::client_first(client).await.is_err());
    assert!(entry.says("not valid for name") > 0, "{}", entry.process.log().tail(20));
}
