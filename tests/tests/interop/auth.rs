//! Wrong credentials: a reason that says so, and the next candidate.

use crate::address::exit_ip;
use crate::node::{self, Node, Product, chain, credentials, forward};
use crate::talk;
use crate::target::{Does, Target};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tests::rig::eventually;

fn wrong_credentials() -> Value {
    json!({ "username": "tunnel", "password": "of another tunnel" })
}

fn node(name: &str, addr: SocketAddr, kind: &str, auth: Value, nodelay: bool) -> Value {
    let mut connector = json!({ "type": kind, "auth": auth });
    if nodelay {
        connector["metadata"] = json!({ "nodelay": true });
    }
    json!({ "name": name, "addr": addr.to_string(), "connector": connector, "dialer": { "type": "tcp" } })
}

async fn exit(product: Product, kind: &str, n: u8, nodelay: bool) -> Option<(Node, SocketAddr)> {
    let mut handler = json!({ "type": kind, "auth": credentials() });
    if nodelay {
        handler["metadata"] = json!({ "nodelay": true });
    }
    let (service, addr) = node::exit(handler, "tcp", exit_ip(n));
    let exit = Node::start(product, &format!("exit {n}"), &json!({ "services": [service] })).await?;
    Some((exit, addr))
}

/// Our entry has a wrong password for the first GOST and the right one for the second.
async fn our_entry_goes_on_to_the_next(kind: &str, nodelay: bool, reasons: &[&str]) {
    let Some((_first, refusing)) = exit(Product::Gost, kind, 1, nodelay).await else { return };
    let Some((_second, fine)) = exit(Product::Gost, kind, 2, nodelay).await else { return };
    let target = Target::start(Does::Echo).await;
    let (service, entry) = forward("f", target.addr);
    let nodes = [
        node("refusing", refusing, kind, wrong_credentials(), nodelay),
        node("fine", fine, kind, credentials(), nodelay),
    ];
    let document = json!({ "services": [service], "chains": [chain(&nodes)] });
    let ours = Node::start(Product::Ours, "entry", &document).await.unwrap();
    talk::hold("through the second exit", talk::client_first(entry)).await;
    target.assert_reached_only_from(exit_ip(2));
    let said = eventually("the log says why the first exit is not used", node::PATIENCE, async || {
        let lines = ours.process.log().lines();
        let line = lines.iter().find(|line| line.contains("refusing") && line.contains("left out"));
        let line = line.ok_or_else(|| anyhow::anyhow!("nothing"))?;
        anyhow::ensure!(reasons.iter().any(|reason| line.contains(reason)), "{line}");
        Ok(())
    });
    said.await.unwrap_or_else(|error| panic!("{error:#}:\n{}", ours.process.log().tail(20)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relay_to_gost_that_answers_at_once() {
    our_entry_goes_on_to_the_next("relay", true, &["unauthorized"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relay_to_gost_with_the_defaults_of_both() {
    our_entry_goes_on_to_the_next("relay", false, &["unauthorized"]).await;
}

/// A GOST with the wrong password is told so, and our log names the service and the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gost_is_refused_by_our_exit_and_told_why() {
    let (ours, refusing) = exit(Product::Ours, "relay", 1, true).await.unwrap();
    let target = Target::start(Does::Echo).await;
    let (service, entry) = forward("f", target.addr);
    let nodes = [node("refusing", refusing, "relay", wrong_credentials(), true)];
    let document = json!({ "services": [service], "chains": [chain(&nodes)] });
    let Some(gost) = Node::start(Product::Gost, "entry", &document).await else { return };
    assert!(talk::client_first(entry).await.is_err());
    assert!(target.peers().is_empty());
    let said = eventually("both logs say why", node::PATIENCE, async || {
        // The words of each product for the same status.
        anyhow::ensure!(gost.says("nauthorized") > 0, "GOST's does not:\n{}", gost.process.log().tail(20));
        anyhow::ensure!(ours.says("credentials") > 0, "ours does not:\n{}", ours.process.log().tail(20));
        Ok(())
    });
    said.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks5_to_gost() {
    our_entry_goes_on_to_the_next("socks5", false, &["credentials", "unauthorized", "auth", "login"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_to_gost() {
    our_entry_goes_on_to_the_next("http", false, &["407"]).await;
}
