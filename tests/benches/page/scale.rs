//! What fills the panel.

use anyhow::{Context as _, Result};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use server::clock::Clock;
use server::store::{Db, LegSample};
use shared::api::{EntryGroup, EntryNode, Group, GroupNode, NodeInput, TunnelInput, TunnelType};
use shared::best_exit::{Leg, LegFailure};
use shared::ids::{NodeId, TunnelId};
use shared::strategy::Strategy;
use tests::rig::Panel;

/// Exits of a tunnel.
const EXITS: usize = 3;

/// How many of what.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) tunnels: usize,
    /// Of a tunnel over four exits, measured one after the other up to now.
    pub(crate) rounds: i64,
}

/// A tunnel that was measured for a week.
#[derive(Clone, Copy)]
pub(crate) struct Week {
    pub(crate) tunnel: TunnelId,
}

const ROUND_MS: i64 = 5000;

impl Size {
    pub(crate) const FULL: Self = Self { nodes: 300, tunnels: 1000, rounds: 7 * 24 * 3600 * 1000 / ROUND_MS };
    pub(crate) const SMALL: Self = Self { nodes: 20, tunnels: 150, rounds: 2000 };
}

/// Makes nodes and tunnels through the panel's API, as somebody else would.
pub(crate) async fn fill(panel: &Panel, size: Size) -> Result<()> {
    let api = panel.api().await?;
    let mut nodes = Vec::new();
    for number in 0..size.nodes {
        let node = NodeInput {
            name: format!("node-{number:03}"),
            server_ip: format!("192.0.{}.{}", 2 + number / 250, 1 + number % 250),
            port_range: "20000-29999".to_owned(),
            ..NodeInput::default()
        };
        nodes.push(api.create_node(&node).await.context("a node")?.id);
    }
    for number in 0..size.tunnels {
        let node = |step: usize| nodes[(number + step * 7) % nodes.len()];
        let exits = (1..=EXITS).map(|step| GroupNode { node_id: node(step), port: None, connect_ip: None });
        let tunnel = TunnelInput {
            name: format!("tunnel-{number:04}"),
            kind: TunnelType::Tunnel,
            enabled: true,
            entry: EntryGroup { nodes: vec![EntryNode { node_id: node(0) }] },
            exit: Some(Group { strategy: Strategy::Best, nodes: exits.collect(), ..Group::default() }),
            ..TunnelInput::default()
        };
        api.create_tunnel(&tunnel).await.context("a tunnel")?;
    }
    Ok(())
}

/// Makes a tunnel over four exits and the measurements of all its rounds. They go straight into the panel's database: nobody
/// waits a week.
pub(crate) async fn measure(panel: &Panel, size: Size) -> Result<Week> {
    let api = panel.api().await?;
    let mut nodes = Vec::new();
    for number in 0..5 {
        let (name, server_ip) = (format!("week-{number}"), format!("198.51.100.{}", 1 + number));
        let node = NodeInput { name, server_ip, ..NodeInput::default() };
        nodes.push(api.create_node(&node).await.context("a node")?);
    }
    let exits = nodes[1..].iter().map(|node| GroupNode { node_id: node.id, port: None, connect_ip: None });
    let tunnel = TunnelInput {
        name: "week".to_owned(),
        kind: TunnelType::Tunnel,
        enabled: true,
        entry: EntryGroup { nodes: vec![EntryNode { node_id: nodes[0].id }] },
        exit: Some(Group { strategy: Strategy::Best, nodes: exits.collect(), ..Group::default() }),
        ..TunnelInput::default()
    };
    let tunnel = api.create_tunnel(&tunnel).await.context("a tunnel")?.id;
    let target = api.settings().await?.settings.probe_target.clone();

    let db = Db::open(&format!("sqlite://{}", panel.folder().join("exitpilot.db").display())).await?;
    let start = Clock::system().wall_ms() - size.rounds * ROUND_MS;
    for (number, exit) in nodes[1..].iter().enumerate() {
        let base = 30.0 + 15.0 * number as f64;
        let legs = [(nodes[0].id, exit.server_ip.clone(), base), (exit.id, target.clone(), 5.0)];
        for (seed, (from, target, base)) in legs.into_iter().enumerate() {
            let mut random = ChaCha8Rng::seed_from_u64((number * 2 + seed) as u64);
            // A leg at a time: rows that lie together are written together.
            let samples: Vec<LegSample> = (0..size.rounds)
                .map(|round| sample(from, &target, start, round, base, &mut random))
                .collect();
            for part in samples.chunks(20_000) {
                db.append_leg_samples(part).await?;
            }
        }
    }
    db.close().await;
    Ok(Week { tunnel })
}

/// Jitter, a bad quarter of an hour now and then, a lost packet in a hundred rounds, and a failure in a thousand.
fn sample(from: NodeId, target: &str, at: i64, round: i64, base: f64, random: &mut ChaCha8Rng) -> LegSample {
    let bad = (round / 180 + base as i64) % 24 == 0;
    let latency_ms = base + random.random_range(0.0..8.0) + if bad { 90.0 } else { 0.0 };
    let leg = match random.random_range(0..1000) {
        0 => Leg::Failed { reason: LegFailure::AllLost },
        1..=10 => Leg::Measured { latency_ms, loss: 0.25 },
        _ => Leg::Measured { latency_ms, loss: 0.0 },
    };
    LegSample { from, target: target.to_owned(), at: at + round * ROUND_MS, leg }
}
