//! HTTP and SOCKS5 proxies with credentials: GOST, sing-box and curl on the other side of ours.

use crate::address::exit_ip;
use crate::node::{self, Node, Product, chain, credentials, forward};
use crate::talk;
use crate::target::{Does, HTTP_BODY, Target};
use crate::{address, peers};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;
use tests::rig::{Process, eventually};

/// An entry of either product with a forward per target, through one proxy at `exit`.
async fn entry(
    product: Product,
    kind: &str,
    dialer: &str,
    exit: SocketAddr,
) -> Option<(Node, Conversations)> {
    let node = json!({
        "name": "exit", "addr": exit.to_string(), "dialer": { "type": dialer },
        "connector": { "type": kind, "auth": credentials() },
    });
    let targets = Conversations::start(forward).await;
    let document = json!({ "services": targets.services, "chains": [chain(&[node])] });
    Some((Node::start(product, "entry", &document).await?, targets))
}

/// A proxy of either product.
async fn proxy(product: Product, kind: &str, listener: &str) -> Option<(Node, SocketAddr)> {
    let handler = json!({ "type": kind, "auth": credentials() });
    let (service, addr) = node::exit(handler, listener, exit_ip(1));
    Some((Node::start(product, "proxy", &json!({ "services": [service] })).await?, addr))
}

/// Three targets and the address at which the entry forwards to each.
struct Conversations {
    services: Vec<Value>,
    echo: (Target, SocketAddr),
    greet: (Target, SocketAddr),
    digest: (Target, SocketAddr),
}

impl Conversations {
    async fn start(mut inbound: impl FnMut(&str, SocketAddr) -> (Value, SocketAddr)) -> Self {
        let mut services = Vec::new();
        let mut add = async |name: &str, does| {
            let target = Target::start(does).await;
            let (service, addr) = inbound(name, target.addr);
            services.push(service);
            (target, addr)
        };
        let echo = add("echo", Does::Echo).await;
        let greet = add("greet", Does::Greet).await;
        let digest = add("digest", Does::Digest).await;
        Self { services, echo, greet, digest }
    }

    async fn hold(&self, able: Able) {
        talk::hold("client first", talk::client_first(self.echo.1)).await;
        if able.server_first {
            talk::hold("server first", talk::server_first(self.greet.1)).await;
            self.greet.0.assert_reached_only_from(exit_ip(1));
        }
        if able.client_ends {
            talk::hold("client ends its direction", talk::client_ends(self.digest.1)).await;
            self.digest.0.assert_reached_only_from(exit_ip(1));
        }
        talk::hold("many connections", talk::many(self.echo.1)).await;
        self.echo.0.assert_reached_only_from(exit_ip(1));
    }
}

/// What can be asked of a row.
#[derive(Clone, Copy, Debug)]
struct Able {
    server_first: bool,
    client_ends: bool,
}

const ALL: Able = Able { server_first: true, client_ends: true };

impl Able {
    fn of(entry: Product, kind: &str) -> Self {
        match (entry, kind) {
            // It reads the answer into a buffer and forgets what came behind it: the first words of a quick server.
            // Its connection through a SOCKS5 proxy has no end of one direction; through another GOST neither.
            (Product::Gost, kind) => Self { server_first: false, client_ends: kind != "socks5" },
            (Product::Ours, _) => ALL,
        }
    }
}

async fn between(entry_is: Product, proxy_is: Product, kind: &str, transport: &str) {
    let Some((_proxy, addr)) = proxy(proxy_is, kind, transport).await else { return };
    let Some((_entry, conversations)) = entry(entry_is, kind, transport, addr).await else { return };
    conversations.hold(Able::of(entry_is, kind)).await;
}

macro_rules! rows {
    ($($name:ident: $kind:literal over $transport:literal;)*) => { $(
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn our_entry_to_gost() {
                between(Product::Ours, Product::Gost, $kind, $transport).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn gost_entry_to_ours() {
                between(Product::Gost, Product::Ours, $kind, $transport).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sing_box_to_ours() {
                super::sing_box_to_ours($kind, $transport).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn our_entry_to_sing_box() {
                super::our_entry_to_sing_box($kind, $transport).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn curl_to_ours() {
                super::curl_to_ours($kind, $transport).await;
            }
        }
    )* };
}

rows! {
    http: "http" over "tcp";
    https: "http" over "tls";
    socks5: "socks5" over "tcp";
}

// sing-box

struct SingBox {
    _process: Process,
    _folder: TempDir,
}

impl SingBox {
    /// Starts it and waits until it accepts at all of `listens`. `None` when it is not installed.
    async fn start(document: Value, folder: TempDir, listens: &[SocketAddr]) -> Option<Self> {
        let program = peers::find(peers::SING_BOX)?;
        let file = folder.path().join("sing-box.json");
        std::fs::write(&file, document.to_string()).unwrap();
        let mut command = Command::new(program);
        command.arg("run").arg("-c").arg(&file).arg("-D").arg(folder.path());
        let mut process = Process::start("sing-box", command).unwrap();
        for addr in listens {
            node::accepts(&mut process, *addr).await;
        }
        Some(Self { _process: process, _folder: folder })
    }
}

fn new_folder() -> TempDir {
    tempfile::Builder::new().prefix("exitpilot-interop-").tempdir().unwrap()
}

/// The names of the same things there.
fn sing_box_kind(kind: &str) -> &str {
    if kind == "socks5" { "socks" } else { kind }
}

async fn sing_box_to_ours(kind: &str, transport: &str) {
    let (_ours, proxy) = proxy(Product::Ours, kind, transport).await.unwrap();
    let conversations = Conversations::start(|name, target| {
        let addr = address::fresh();
        let inbound = json!({
            "type": "direct", "tag": name, "listen": addr.ip().to_string(), "listen_port": addr.port(),
            "override_address": target.ip().to_string(), "override_port": target.port(),
        });
        (inbound, addr)
    });
    let conversations = conversations.await;
    let mut outbound = json!({
        "type": sing_box_kind(kind), "server": proxy.ip().to_string(), "server_port": proxy.port(),
        "username": credentials()["username"], "password": credentials()["password"],
    });
    if transport == "tls" {
        outbound["tls"] = json!({ "enabled": true, "insecure": true });
    }
    let document = json!({ "inbounds": conversations.services, "outbounds": [outbound] });
    let listens = [conversations.echo.1, conversations.greet.1, conversations.digest.1];
    let Some(_sing_box) = SingBox::start(document, new_folder(), &listens).await else { return };
    conversations.hold(ALL).await;
}

async fn our_entry_to_sing_box(kind: &str, transport: &str) {
    let addr = address::fresh();
    let folder = new_folder();
    let mut inbound = json!({
        "type": sing_box_kind(kind), "listen": addr.ip().to_string(), "listen_port": addr.port(), "users": [credentials()],
    });
    if transport == "tls" {
        let (cert, key) = certificate(&folder);
        inbound["tls"] = json!({ "enabled": true, "certificate_path": cert, "key_path": key });
    }
    let outbound = json!({ "type": "direct", "inet4_bind_address": exit_ip(1).to_string() });
    let document = json!({ "inbounds": [inbound], "outbounds": [outbound] });
    let Some(_sing_box) = SingBox::start(document, folder, &[addr]).await else { return };
    let (_entry, conversations) = entry(Product::Ours, kind, transport, addr).await.unwrap();
    conversations.hold(ALL).await;
}

/// Files of a certificate for localhost and of its key.
fn certificate(folder: &TempDir) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (cert, key)
}

// curl

/// Runs curl; its output, and how it ended.
async fn curl(program: &PathBuf, proxy: &str, more: &[&str], target: SocketAddr) -> Output {
    let mut command = tokio::process::Command::new(program);
    command.args([
        "--silent",
        "--show-error",
        "--fail",
        "--max-time",
        "60",
        "--noproxy",
        "",
        "--proxy-insecure",
    ]);
    command.args(["--proxy", proxy]).args(more).arg(format!("http://{target}/page"));
    // Whatever this machine has set for other programs is not for this one.
    for name in ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "HTTPS_PROXY"] {
        command.env_remove(name);
    }
    command.kill_on_drop(true).output().await.unwrap()
}

async fn curl_to_ours(kind: &str, transport: &str) {
    let Some(program) = peers::find(peers::CURL) else { return };
    let (ours, addr) = proxy(Product::Ours, kind, transport).await.unwrap();
    let target = Target::start(Does::Http).await;
    let login = |password: &str| {
        let scheme = if transport == "tls" { "https" } else { kind };
        format!("{scheme}://tunnel:{password}@{addr}")
    };
    let right = login("only%20for%20this%20tunnel");
    // A proxy for pages by itself; a tunnel when asked for one.
    let ways: &[&[&str]] = if kind == "http" { &[&[], &["--proxytunnel"]] } else { &[&[]] };
    for way in ways {
        let output = curl(&program, &right, way, target.addr).await;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{way:?}: {errors}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), HTTP_BODY, "{way:?}");
    }
    target.assert_reached_only_from(exit_ip(1));
    let served = target.peers().len();
    for way in ways {
        let output = curl(&program, &login("wrong"), way, target.addr).await;
        assert!(!output.status.success(), "{way:?} with a wrong password");
    }
    assert_eq!(target.peers().len(), served);
    let said = eventually("the log says why", node::PATIENCE, async || {
        let lines = ours.process.log().lines();
        let told = lines.iter().any(|line| line.contains("client refused") && line.contains("credentials"));
        anyhow::ensure!(told, "{}", ours.process.log().tail(20));
        Ok(())
    });
    said.await.unwrap();
}
