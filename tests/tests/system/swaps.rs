//! Two thousand changes of a chain under a hundred thousand connections: nobody notices.

use crate::fake_panel::{FakePanel, FakeSession};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use shared::gost::{ChainConfig, ServiceConfig};
use shared::link::Command;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::clock;
use tests::rig::client::{Outcome, Visit};
use tests::rig::long_lived::Ending;
use tests::rig::{Agent, AgentOptions, LongLived, Place, Process, Target, binaries, eventually};
use tokio::task::JoinSet;

const CONNECTIONS: usize = 100_000;
const SWAPS: usize = 2_000;
/// Clients at the same time.
const CLIENTS: usize = 48;
/// Connections that stay open through all of it.
const KEPT: usize = 16;
const SECRET: &str = "00112233445566778899aabbccddeeff";

/// Addresses by which the target tells the exits apart; the entry would come from 127.0.0.1.
const EXITS: [(&str, [u8; 4]); 2] = [("exit-a", [127, 0, 1, 1]), ("exit-b", [127, 0, 1, 2])];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_swaps_under_a_hundred_thousand_connections() {
    if let Err(error) = swap_under_load().await {
        panic!("{error:#}");
    }
}

/// A port that was free a moment ago. Whoever takes it in between makes the test fail with a clear message.
fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// An exit on its own, without a panel.
async fn exit(name: &str, from: IpAddr) -> Result<(Process, tempfile::TempDir, SocketAddr)> {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let config = json!({ "services": [{
        "name": name, "addr": address.to_string(), "handler": { "type": "relay" },
        "listener": { "type": "tcp" }, "metadata": { "interface": from.to_string() }
    }] });
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("gost.yaml");
    std::fs::write(&file, config.to_string())?;
    let mut command = Place::Loopback.command(binaries::find(binaries::AGENT)?);
    command.arg("-C").arg(file).current_dir(folder.path());
    let process = Process::start(name, command)?;
    listening(address).await.with_context(|| format!("{name}:\n{}", process.log().tail(20)))?;
    Ok((process, folder, address))
}

async fn listening(address: SocketAddr) -> Result<()> {
    eventually("somebody listens", Duration::from_secs(30), async || {
        tokio::net::TcpStream::connect(address).await?;
        Ok(())
    })
    .await
}

fn chain(exits: [SocketAddr; 2], first: usize) -> Result<ChainConfig> {
    let node = |exit: usize| {
        json!({ "name": format!("node_{exit}"), "addr": exits[exit].to_string(),
            "connector": { "type": "relay" }, "dialer": { "type": "tcp" } })
    };
    let nodes: [Value; 2] = [node(first), node(1 - first)];
    let selector = json!({ "strategy": "fifo", "maxFails": 3, "failTimeout": 30_000_000_000_u64 });
    let chain = json!({ "name": "chains_1",
        "hops": [{ "name": "hop_1", "selector": selector, "nodes": nodes }] });
    Ok(serde_json::from_value(chain)?)
}

fn forward(listen: SocketAddr, target: SocketAddr) -> Result<ServiceConfig> {
    let service = json!({ "name": "1_1_0_tcp", "addr": listen.to_string(),
        "handler": { "type": "tcp", "chain": "chains_1" }, "listener": { "type": "tcp" },
        "forwarder": { "nodes": [{ "name": "target", "addr": target.to_string() }],
            "selector": { "strategy": "fifo" } } });
    Ok(serde_json::from_value(service)?)
}

#[derive(Default)]
struct Counts {
    done: AtomicUsize,
    failed: AtomicUsize,
    direct: AtomicUsize,
    cut: AtomicUsize,
}

async fn swap_under_load() -> Result<()> {
    let names = EXITS.map(|(name, address)| (IpAddr::from(address), name.to_owned()));
    let target = Target::start(Place::Loopback, names.into())?;
    let a = exit(EXITS[0].0, EXITS[0].1.into()).await?;
    let b = exit(EXITS[1].0, EXITS[1].1.into()).await?;
    let exits = [a.2, b.2];
    let panel = FakePanel::start(SECRET)?;
    let options = AgentOptions {
        name: "entry".into(),
        panel: panel.address()?,
        secret: SECRET.into(),
        log: "warn".into(),
    };
    let entry = Agent::start(Place::Loopback, options)?;
    let mut session = panel.accept().await?;
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    session.command(&Command::UpdateChains(chain(exits, 0)?)).await?;
    session.command(&Command::AddService(vec![forward(listen, target.service())?])).await?;

    let start = clock::now();
    let mut kept = Vec::new();
    for _ in 0..KEPT {
        kept.push(LongLived::open(&Place::Loopback, listen, start).await?);
    }
    let (counts, errors) = load_and_swap(listen, exits, &mut session).await?;
    let took = start.elapsed();

    let mut lives = Vec::new();
    for kept in kept {
        lives.push(kept.close().await?);
    }
    let broken: Vec<_> = lives.iter().filter(|life| life.ending != Ending::Client).collect();
    let served = target.served();
    println!(
        "{CONNECTIONS} connections, {SWAPS} swaps, {:.1} s: failed {}, direct {}, cut {}, per exit {served:?}",
        took.as_secs_f64(),
        counts.failed.load(Ordering::Relaxed),
        counts.direct.load(Ordering::Relaxed),
        counts.cut.load(Ordering::Relaxed) + broken.len(),
    );
    ensure!(errors.is_empty(), "{errors:?}\n{}", entry.log().tail(40));
    ensure!(broken.is_empty(), "kept connections broke: {broken:?}");
    ensure!(served.keys().map(String::as_str).eq(["exit-a", "exit-b"]), "{served:?}");
    // Both were in front half of the time; a swap that did nothing would show here.
    ensure!(served.values().all(|count| *count > CONNECTIONS as u64 / 5), "{served:?}");
    Ok(())
}

/// Opens all connections, and swaps at even distances among them. Returns the first errors too.
async fn load_and_swap(
    listen: SocketAddr,
    exits: [SocketAddr; 2],
    session: &mut FakeSession,
) -> Result<(Arc<Counts>, BTreeMap<String, usize>)> {
    let visit = Visit {
        place: Place::Loopback,
        exits: Arc::new(EXITS.iter().map(|(name, _)| (*name).to_owned()).collect()),
        payload: Arc::from([42; 64]),
    };
    let counts = Arc::new(Counts::default());
    let begun = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (visit, counts, begun) = (visit.clone(), counts.clone(), begun.clone());
        clients.spawn(async move {
            let mut errors: BTreeMap<String, usize> = BTreeMap::new();
            while begun.fetch_add(1, Ordering::Relaxed) < CONNECTIONS {
                let outcome = visit.pay(listen).await;
                let (count, error) = match outcome {
                    Outcome::Served(_) => (None, None),
                    Outcome::Direct(from) => (Some(&counts.direct), Some(format!("direct from {from}"))),
                    Outcome::Failed(error) => (Some(&counts.failed), Some(error)),
                    Outcome::Broken { error, .. } => (Some(&counts.cut), Some(error)),
                };
                if let Some(count) = count {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                if let Some(error) = error {
                    *errors.entry(error).or_insert(0) += 1;
                }
                counts.done.fetch_add(1, Ordering::Relaxed);
            }
            errors
        });
    }
    let every = CONNECTIONS / SWAPS;
    for swap in 1..=SWAPS {
        while counts.done.load(Ordering::Relaxed) < (swap - 1) * every {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        session.command(&Command::UpdateChains(chain(exits, swap % 2)?)).await?;
    }
    let mut errors = BTreeMap::new();
    while let Some(more) = clients.join_next().await {
        for (error, count) in more? {
            *errors.entry(error).or_insert(0) += count;
        }
    }
    ensure!(counts.done.load(Ordering::Relaxed) == CONNECTIONS, "not all connections were made");
    Ok((counts, errors))
}
