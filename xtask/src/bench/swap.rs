//! New connections while the chain they go through is replaced again and again.
//!
//! Two exits dial from addresses of their own, so the target's first byte says how a connection came. The agent reads
//! its file again when told to; GOST gets the chain through its own web API.

use super::load::{self, Target, spawn};
use super::product::Product;
use super::report::{Measure, Report};
use super::running::{Listens, Running, free_address};
use super::{Settings, in_turn};
use crate::{clock, run};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

const SCENARIO: &str = "chain replaced under load";
const SWAPS: usize = 500;
const CLIENTS: usize = 16;
const LONG_LIVED: usize = 16;
/// Last octets of the addresses that the exits dial from.
const EXITS: [u8; 2] = [11, 12];

const fn measure(order: u8, name: &'static str, more_is_better: bool) -> Measure {
    Measure { order, name, unit: "", more_is_better }
}

const REPLACED: Measure = measure(0, "replacements", true);
const CONNECTIONS: Measure = measure(1, "connections", true);
const FAILED: Measure = measure(2, "failed connections", false);
const DIRECT: Measure = measure(3, "connections past the exits", false);
const CUT: Measure = measure(4, "long-lived connections cut", false);

pub(super) fn run(settings: &Settings) -> Result<bool> {
    let mut report = Report::new("swap", settings, &settings.products);
    for run in 0..settings.runs {
        for product in in_turn(&settings.products, run).filter(|product| product.has_chains()) {
            if let Err(error) = one(settings, product, run, &mut report) {
                report.fail((SCENARIO, product.name), &error);
            }
        }
    }
    report.finish(settings.json.as_deref())
}

/// Entry and exits in one set of processes.
struct Scene {
    running: Running,
    entry: SocketAddr,
    exits: [SocketAddr; 2],
    /// Where the target is; what comes there from the entry came directly.
    target: SocketAddr,
    file: PathBuf,
    /// GOST's.
    api: Option<SocketAddr>,
}

impl Scene {
    fn start(product: &Product, target: SocketAddr, dir: &Path) -> Result<Self> {
        let exits = [free_address()?, free_address()?];
        let mut scene = Self {
            running: Running::default(),
            entry: free_address()?,
            exits,
            target,
            file: dir.join("entry.json"),
            api: if product.is_ours() { None } else { Some(free_address()?) },
        };
        let services: Vec<Value> = exits
            .iter()
            .zip(EXITS)
            .map(|(addr, octet)| {
                json!({
                    "name": format!("exit-{octet}"), "addr": addr.to_string(), "listener": { "type": "tcp" },
                    "handler": { "type": "relay", "metadata": { "nodelay": true } },
                    "metadata": { "interface": format!("127.0.1.{octet}") },
                })
            })
            .collect();
        let file = dir.join("exits.json");
        fs::write(&file, json!({ "services": services }).to_string())?;
        let mut command = product.command();
        command.arg("-C").arg(&file);
        scene.running.add(command, &dir.join("exits.log"), Listens::Tcp(exits[1]))?;
        fs::write(&scene.file, scene.document(0).to_string())?;
        let mut command = product.command();
        command.env("RUST_LOG", "info").arg("-C").arg(&scene.file);
        scene.running.add(command, &dir.join("entry.log"), Listens::Tcp(scene.entry))?;
        Ok(scene)
    }

    /// The chain in which this exit comes first.
    fn chain(&self, first: usize) -> Value {
        let order = [first % 2, 1 - first % 2];
        let nodes: Vec<Value> = order.iter().map(|&exit| json!({
            "name": format!("exit-{}", EXITS[exit]), "addr": self.exits[exit].to_string(),
            "connector": { "type": "relay", "metadata": { "nodelay": true } }, "dialer": { "type": "tcp" },
        })).collect();
        let selector = json!({ "strategy": "fifo", "maxFails": 1, "failTimeout": "600s" });
        json!({ "name": "c", "hops": [{ "name": "h", "selector": selector, "nodes": nodes }] })
    }

    fn document(&self, first: usize) -> Value {
        let mut document = json!({
            "services": [{
                "name": "entry", "addr": self.entry.to_string(), "listener": { "type": "tcp" },
                "handler": { "type": "tcp", "chain": "c" },
                "forwarder": { "nodes": [{ "name": "t", "addr": self.target.to_string() }] },
            }],
            "chains": [self.chain(first)],
        });
        if let Some(api) = self.api {
            document["api"] = json!({ "addr": api.to_string() });
        }
        document
    }

    /// Puts this exit first and waits until that is acknowledged. `number` counts from 1.
    fn replace(&self, number: usize) -> Result<()> {
        match self.api {
            Some(api) => put(api, "/config/chains/c", &self.chain(number)),
            None => {
                // In one step: a half-written file would be refused.
                let fresh = self.file.with_extension("new");
                fs::write(&fresh, self.document(number).to_string())?;
                fs::rename(&fresh, &self.file)?;
                let id = self.running.id(1).context("the entry is gone")?;
                run::captured(run::command("kill").arg("-HUP").arg(id.to_string()))?;
                let start = clock::now();
                while self.running.log(1).matches("reloaded").count() < number {
                    ensure!(start.elapsed() < load::PATIENCE, "the file was not read again");
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            }
        }
    }
}

/// A `PUT` that must succeed.
fn put(api: SocketAddr, path: &str, body: &Value) -> Result<()> {
    let (mut stream, body) = (load::connect(api)?, body.to_string());
    write!(
        stream,
        "PUT {path} HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split_whitespace().nth(1).unwrap_or_default();
    ensure!(status == "200", "PUT {path}: {}", answer.lines().next().unwrap_or_default());
    Ok(())
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    failed: AtomicUsize,
    direct: AtomicUsize,
}

impl Counts {
    fn clients(
        self: &Arc<Self>,
        entry: SocketAddr,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<thread::JoinHandle<()>>> {
        let client = || {
            let (counts, stop) = (self.clone(), stop.clone());
            spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    counts.connections.fetch_add(1, Ordering::Relaxed);
                    match load::reach(entry) {
                        Ok((_, octet)) if EXITS.contains(&octet) => {}
                        Ok(_) => {
                            counts.direct.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(_) => {
                            counts.failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            })
        };
        (0..CLIENTS).map(|_| client()).collect()
    }
}

fn one(settings: &Settings, product: &Product, run: usize, report: &mut Report) -> Result<()> {
    let swaps = if settings.quick { 20 } else { SWAPS };
    let dir = settings.folder(product.name)?;
    let target = Target::answering()?;
    let scene = Scene::start(product, target.addr, &dir)?;
    let mut long_lived: Vec<TcpStream> = Vec::new();
    for _ in 0..LONG_LIVED {
        long_lived.push(load::reach(scene.entry)?.0);
    }
    let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
    let clients = counts.clients(scene.entry, &stop)?;
    let replaced = (1..=swaps).try_for_each(|number| scene.replace(number));
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().map_err(|_| anyhow::anyhow!("a client panicked"))?;
    }
    replaced?;
    let lives = |stream: &mut TcpStream| {
        let mut byte = [7];
        stream.write_all(&byte).and_then(|()| stream.read_exact(&mut byte)).is_ok()
    };
    let cut = long_lived.iter_mut().filter_map(|stream| (!lives(stream)).then_some(())).count();
    let place = (SCENARIO, product.name, run);
    report.add(place, REPLACED, swaps as f64);
    report.add(place, CONNECTIONS, counts.connections.load(Ordering::Relaxed) as f64);
    report.add(place, FAILED, counts.failed.load(Ordering::Relaxed) as f64);
    report.add(place, DIRECT, counts.direct.load(Ordering::Relaxed) as f64);
    report.add(place, CUT, cut as f64);
    fs::remove_dir_all(&dir)?;
    Ok(())
}
