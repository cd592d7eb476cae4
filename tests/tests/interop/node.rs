//! One process that relays: our agent on its own or a GOST, both told by the same document.

use crate::{address, peers};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tests::rig::{Process, binaries, eventually};
use tokio::net::TcpStream;

/// Nothing here takes so long unless it hangs, on a machine that is busy with other things too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Whose program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Ours,
    Gost,
}

/// A running one. Killed when dropped.
pub(crate) struct Node {
    pub(crate) process: Process,
    /// The file that told it.
    pub(crate) document: PathBuf,
    _folder: TempDir,
}

impl Node {
    /// Starts it and waits until all TCP services of the document accept. `None` when it is a peer that is not there.
    pub(crate) async fn start(product: Product, name: &str, document: &Value) -> Option<Self> {
        let program = match product {
            Product::Ours => binaries::find(binaries::AGENT).unwrap(),
            Product::Gost => peers::find(peers::GOST)?,
        };
        let folder = tempfile::Builder::new().prefix("exitpilot-interop-").tempdir().unwrap();
        let file = folder.path().join("node.json");
        std::fs::write(&file, serde_json::to_vec_pretty(document).unwrap()).unwrap();
        let mut command = Command::new(program);
        // GOST looks for certificates in its home and in the working directory; those of this machine are not ours.
        command.arg("-C").arg(&file).current_dir(folder.path()).env("HOME", folder.path());
        command.env("RUST_LOG", "info,agent=debug");
        let mut process = Process::start(&format!("{product:?} {name}"), command).unwrap();
        for addr in listening(document) {
            accepts(&mut process, addr).await;
        }
        Some(Self { process, document: file, _folder: folder })
    }

    /// Lines of its log that hold this text.
    pub(crate) fn says(&self, text: &str) -> usize {
        self.process.log().count(text)
    }
}

/// Waits until somebody listens there, for as long as the process lives.
pub(crate) async fn accepts(process: &mut Process, addr: SocketAddr) {
    let what = format!("{} accepts on {addr}", process.name());
    let came = eventually(&what, PATIENCE, async || {
        if let Some(status) = process.ended()? {
            return Ok(Err(status));
        }
        TcpStream::connect(addr).await?;
        Ok(Ok(()))
    });
    let came = came.await.unwrap_or_else(|error| panic!("{error:#}"));
    came.unwrap_or_else(|status| panic!("{what}: it ended ({status}):\n{}", process.log().tail(30)));
}

/// Where the document's TCP services listen.
fn listening(document: &Value) -> Vec<SocketAddr> {
    let services = document["services"].as_array().into_iter().flatten();
    let tcp = services.filter(|service| service["listener"]["type"] != "udp");
    tcp.map(|service| service["addr"].as_str().unwrap().parse().unwrap()).collect()
}

/// The credentials that all rows use but those about wrong ones.
pub(crate) fn credentials() -> Value {
    json!({ "username": "tunnel", "password": "only for this tunnel" })
}

/// An exit's service of this handler, dialling from `from`.
pub(crate) fn exit(handler: Value, listener: &str, from: IpAddr) -> (Value, SocketAddr) {
    let addr = address::fresh();
    let service = json!({
        "name": "exit", "addr": addr.to_string(), "handler": handler, "listener": { "type": listener },
        "metadata": { "interface": from.to_string() },
    });
    (service, addr)
}

/// A forward to `target` through the chain `exits`.
pub(crate) fn forward(name: &str, target: SocketAddr) -> (Value, SocketAddr) {
    let addr = address::fresh();
    let service = json!({
        "name": name, "addr": addr.to_string(),
        "handler": { "type": "tcp", "chain": "exits" },
        "listener": { "type": "tcp" },
        "forwarder": { "nodes": [{ "name": "target", "addr": target.to_string() }] },
    });
    (service, addr)
}

/// The chain `exits`: these nodes, the first that works.
pub(crate) fn chain(nodes: &[Value]) -> Value {
    let selector = json!({ "strategy": "fifo", "maxFails": 1, "failTimeout": "600s" });
    json!({ "name": "exits", "hops": [{ "name": "hop", "selector": selector, "nodes": nodes }] })
}
