//! Our agent and a real sing-box on one host, with the same members over the same links of a lab.
//!
//! ```text
//!             ┌ ours ──┐         ┌─► a ─┐
//!   client ──►│        ├─ links ─┼─► b ─┼─► page, service
//!             └ theirs ┘         └─► c ─┘
//! ```
//!
//! The members are SOCKS5 servers. The service says through which of them a connection came, so none can pass by.

use super::page::Page;
use crate::node::PATIENCE;
use crate::peers;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tests::netlab::{Impairment, Lab, LabError};
use tests::rig::http::{Ask, ask};
use tests::rig::{Place, Process, Target, binaries, eventually};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;

/// The members, in their order in both groups.
pub(super) const MEMBERS: [&str; 3] = ["a", "b", "c"];
/// Where each member serves SOCKS5. Every host has its ports to itself.
const SOCKS: u16 = 1080;
/// For one request to an API, and for a connection that is known to come or to break soon.
const LIMIT: Duration = Duration::from_secs(30);

/// A group, as both are told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Group {
    /// Manual, with this default; `interrupt`: connections on a member that was left are to be closed.
    Selector { default: &'static str, interrupt: bool },
    /// The fastest in tests.
    UrlTest { interval: &'static str, tolerance_ms: u16 },
}

/// Whose program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    Ours,
    SingBox,
}

/// Everything that runs.
pub(super) struct Scene {
    // Processes end before their network does: fields are dropped in this order.
    pub(super) ours: Chooser,
    pub(super) theirs: Chooser,
    members: BTreeMap<&'static str, Process>,
    _page: Page,
    _target: Target,
    lab: Lab,
    _folder: TempDir,
}

/// One of the two, with its group.
pub(super) struct Chooser {
    product: Product,
    program: PathBuf,
    place: Place,
    folder: PathBuf,
    /// Where the service is reached through the group.
    entry: SocketAddr,
    api: SocketAddr,
    /// Where the group's tests go, and the service.
    page: SocketAddr,
    service: SocketAddr,
    nodes: BTreeMap<&'static str, SocketAddr>,
    process: Process,
}

impl Scene {
    /// Starts the members and the target; both choosers with `group`, which may test at once over links with these
    /// delays in each direction. `None`, with the reason said, where a lab or sing-box is missing.
    pub(super) async fn start(group: Group, delays_ms: [u32; 3], statuses: [u16; 3]) -> Option<Self> {
        let sing_box = peers::find(peers::SING_BOX)?;
        let lab = match Lab::new("groups") {
            Ok(lab) => lab,
            Err(LabError::Unavailable { reason }) => {
                println!("SKIPPED: network namespaces not available ({reason})");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let folder = tempfile::Builder::new().prefix("exitpilot-groups-").tempdir().unwrap();
        let agent = binaries::find(binaries::AGENT).unwrap();
        let (chooser, far) =
            (Place::from(lab.host("chooser").unwrap()), Place::from(lab.host("far").unwrap()));
        let (mut members, mut nodes) = (BTreeMap::new(), BTreeMap::new());
        let (mut names, mut by_status) = (BTreeMap::new(), BTreeMap::new());
        for ((name, delay_ms), status) in MEMBERS.into_iter().zip(delays_ms).zip(statuses) {
            let host = lab.host(name).unwrap();
            let delay = Duration::from_millis(delay_ms.into());
            lab.link("chooser", name).set_both(Impairment::delay(delay)).unwrap();
            let socks = json!({ "services": [{
                "name": "socks", "addr": format!(":{SOCKS}"),
                "handler": { "type": "socks5" }, "listener": { "type": "tcp" },
            }] });
            let place = Place::from(&host);
            let mut process = start(&agent, &place, &folder.path().join(name), &socks, &[]);
            listening(&mut process, &place, SOCKS).await;
            members.insert(name, process);
            nodes.insert(name, host.addr(SOCKS));
            names.insert(host.ip().into(), name.to_owned());
            by_status.insert(host.ip().into(), status);
        }
        let target = Target::start(far.clone(), names).unwrap();
        let page = Page::start(&far, by_status).unwrap();
        let both = [(Product::Ours, agent, 7001), (Product::SingBox, sing_box, 7002)];
        let mut choosers = Vec::new();
        for (product, program, port) in both {
            let folder = folder.path().join(format!("{product:?}"));
            std::fs::create_dir_all(&folder).unwrap();
            let process = launch(product, &program, &chooser, &folder, || {
                document(product, group, port, page.address(), target.service(), &nodes)
            });
            let mut started = Chooser {
                product,
                program,
                place: chooser.clone(),
                folder,
                entry: local(port),
                api: local(port + 1000),
                page: page.address(),
                service: target.service(),
                nodes: nodes.clone(),
                process,
            };
            started.ready().await;
            choosers.push(started);
        }
        let [ours, theirs] = <[Chooser; 2]>::try_from(choosers).ok().unwrap();
        Some(Self { ours, theirs, members, _page: page, _target: target, lab, _folder: folder })
    }

    /// Both, ours first.
    pub(super) fn both(&self) -> [&Chooser; 2] {
        [&self.ours, &self.theirs]
    }

    /// Makes the way to a member as long as this in each direction.
    pub(super) fn delay(&self, member: &str, ms: u32) {
        let delay = Impairment::delay(Duration::from_millis(ms.into()));
        self.lab.link("chooser", member).set_both(delay).unwrap();
    }

    /// `kill -9` of a member: its host refuses connections from now on.
    pub(super) async fn kill(&mut self, member: &str) {
        self.members.get_mut(member).unwrap().kill().await.unwrap();
    }
}

impl Chooser {
    /// The member that new connections use.
    pub(super) async fn now(&self) -> Result<String> {
        let group = self.group().await?;
        let now = match self.product {
            Product::Ours => &group["now"]["tcp4"],
            Product::SingBox => &group["now"],
        };
        now.as_str()
            .map(str::to_owned)
            .with_context(|| format!("{:?}: nothing is chosen: {group}", self.product))
    }

    /// What the last test of each member took, in ms, of those that have passed one.
    pub(super) async fn latencies(&self) -> Result<BTreeMap<String, f64>> {
        match self.product {
            Product::Ours => {
                let group = self.group().await?;
                let members = group["members"].as_array().context("no members")?;
                let alive = members.iter().filter(|member| member["state"] == "alive");
                let latency = |member: &Value| {
                    Some((member["name"].as_str()?.to_owned(), member["latencyMs"].as_f64()?))
                };
                Ok(alive.filter_map(latency).collect())
            }
            Product::SingBox => {
                let all = self.ask("GET", "/proxies", None).await?;
                let latency = |name: &&str| {
                    let delay = all["proxies"][*name]["history"][0]["delay"].as_f64()?;
                    Some(((*name).to_owned(), delay))
                };
                Ok(MEMBERS.iter().filter_map(latency).collect())
            }
        }
    }

    /// Chooses a member by hand.
    pub(super) async fn choose(&self, member: &str) -> Result<()> {
        match self.product {
            Product::Ours => {
                self.ask("PUT", "/v1/groups/chain/group/members", Some(json!({ "member": member }))).await?
            }
            Product::SingBox => self.ask("PUT", "/proxies/group", Some(json!({ "name": member }))).await?,
        };
        Ok(())
    }

    /// A new connection through the group: the member it came through, and the connection.
    pub(super) async fn connect(&self) -> Result<(String, Open)> {
        let opening = async {
            let mut stream = BufReader::new(self.place.connect(self.entry).await?);
            let mut name = String::new();
            ensure!(stream.read_line(&mut name).await? > 0, "closed before the service had said anything");
            Ok((name.trim_end().to_owned(), Open(stream)))
        };
        tokio::time::timeout(LIMIT, opening).await.context("no answer")?
    }

    /// Ends it in order and starts it again, told of this group, on the state that it left.
    pub(super) async fn restart(&mut self, group: Group) {
        self.process.terminate(PATIENCE).await.unwrap();
        self.process = launch(self.product, &self.program, &self.place, &self.folder, || {
            let port = self.entry.port();
            document(self.product, group, port, self.page, self.service, &self.nodes)
        });
        self.ready().await;
    }

    async fn ready(&mut self) {
        listening(&mut self.process, &self.place, self.entry.port()).await;
        listening(&mut self.process, &self.place, self.api.port()).await;
    }

    async fn group(&self) -> Result<Value> {
        let path = match self.product {
            Product::Ours => "/v1/groups/chain/group/members",
            Product::SingBox => "/proxies/group",
        };
        self.ask("GET", path, None).await
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        let body = body.map(|body| body.to_string().into_bytes());
        let (status, answer) =
            ask(&self.place, self.api, Ask { method, path, token: None, body, limit: LIMIT }).await?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(status < 300, "{:?} {method} {path}: {status} {text}", self.product);
        Ok(if answer.is_empty() { Value::Null } else { serde_json::from_slice(&answer)? })
    }
}

/// A connection that came through.
pub(super) struct Open(BufReader<TcpStream>);

impl Open {
    /// Whether what is sent comes back.
    pub(super) async fn echoes(&mut self) -> Result<()> {
        use tokio::io::AsyncWriteExt as _;
        let exchange = async {
            self.0.get_mut().write_all(b"still there").await?;
            let mut back = [0; 11];
            self.0.read_exact(&mut back).await?;
            ensure!(&back == b"still there", "something else came back");
            Ok(())
        };
        tokio::time::timeout(LIMIT, exchange).await.context("no echo")?
    }

    /// Waits until the other side has closed it.
    pub(super) async fn closed(&mut self) -> Result<()> {
        match tokio::time::timeout(LIMIT, self.0.read(&mut [0; 16])).await {
            Ok(Ok(0) | Err(_)) => Ok(()),
            Ok(Ok(_)) => bail!("something came"),
            Err(_) => bail!("it is still open"),
        }
    }
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// What each is told: the same group over the same members, and one way to the service through it.
fn document(
    product: Product,
    group: Group,
    port: u16,
    page: SocketAddr,
    service: SocketAddr,
    nodes: &BTreeMap<&'static str, SocketAddr>,
) -> Value {
    let url = format!("http://{page}/generate_204");
    match product {
        Product::Ours => {
            let selector = match group {
                Group::Selector { default, interrupt } => json!({
                    "strategy": "selector",
                    "metadata": { "default": default, "interruptExistConnections": interrupt },
                }),
                Group::UrlTest { interval, tolerance_ms } => json!({
                    "strategy": "urltest",
                    "metadata": { "url": url, "interval": interval, "tolerance": tolerance_ms },
                }),
            };
            let node = |(name, addr): (&&str, &SocketAddr)| json!({ "name": name, "addr": addr.to_string(), "connector": { "type": "socks5" } });
            let nodes: Vec<_> = nodes.iter().map(node).collect();
            json!({
                "services": [{
                    "name": "entry", "addr": local(port).to_string(),
                    "handler": { "type": "tcp", "chain": "group" }, "listener": { "type": "tcp" },
                    "forwarder": { "nodes": [{ "name": "service", "addr": service.to_string() }] },
                }],
                "chains": [{
                    "name": "group",
                    "hops": [{ "name": "members", "selector": selector, "nodes": nodes }],
                }],
            })
        }
        Product::SingBox => {
            let mut outbounds = vec![match group {
                Group::Selector { default, interrupt } => json!({
                    "type": "selector", "tag": "group", "outbounds": MEMBERS, "default": default,
                    "interrupt_exist_connections": interrupt,
                }),
                Group::UrlTest { interval, tolerance_ms } => json!({
                    "type": "urltest", "tag": "group", "outbounds": MEMBERS, "url": url,
                    "interval": interval, "tolerance": tolerance_ms,
                }),
            }];
            outbounds.extend(nodes.iter().map(|(name, addr)| {
                json!({ "type": "socks", "tag": name, "server": addr.ip(), "server_port": addr.port() })
            }));
            json!({
                "log": { "level": "debug", "timestamp": false },
                "experimental": {
                    "clash_api": { "external_controller": local(port + 1000).to_string() },
                    "cache_file": { "enabled": true, "path": "cache.db" },
                },
                "inbounds": [{
                    "type": "direct", "tag": "entry", "listen": "127.0.0.1", "listen_port": port,
                    "network": "tcp", "override_address": service.ip(), "override_port": service.port(),
                }],
                "outbounds": outbounds,
                "route": { "final": "group" },
            })
        }
    }
}

fn launch(
    product: Product,
    program: &PathBuf,
    place: &Place,
    folder: &PathBuf,
    document: impl FnOnce() -> Value,
) -> Process {
    let document = document();
    match product {
        Product::Ours => {
            let addr = document["services"][0]["addr"].as_str().unwrap();
            let port = addr.parse::<SocketAddr>().unwrap().port();
            let api = local(port + 1000).to_string();
            start(program, place, folder, &document, &["--api", &api, "--state-dir", "."])
        }
        Product::SingBox => {
            let file = folder.join("config.json");
            std::fs::write(&file, document.to_string()).unwrap();
            let mut command = place.command(program);
            command.arg("run").arg("-c").arg(file).current_dir(folder);
            Process::start("sing-box", command).unwrap()
        }
    }
}

/// Our agent on its own.
fn start(
    program: &PathBuf,
    place: &Place,
    folder: &PathBuf,
    document: &Value,
    arguments: &[&str],
) -> Process {
    std::fs::create_dir_all(folder).unwrap();
    let file = folder.join("agent.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let mut command: Command = place.command(program);
    command.arg("-C").arg(file).args(arguments).current_dir(folder).env("RUST_LOG", "info,agent=debug");
    Process::start("agent", command).unwrap()
}

/// Waits until something accepts there, for as long as the process lives.
async fn listening(process: &mut Process, place: &Place, port: u16) {
    let came = eventually("it accepts", PATIENCE, async || {
        if let Some(status) = process.ended()? {
            return Ok(Err(status));
        }
        place.connect(local(port)).await?;
        Ok(Ok(()))
    });
    came.await.unwrap().unwrap_or_else(|status| panic!("it ended ({status}):\n{}", process.log().tail(30)));
}
