//! What the panel has to look after, and how the networks between its nodes behave. All of it follows from numbers, so that
//! every run has the same world.

use anyhow::{Context as _, Result};
use server::store::{Db, NewForward, NewNode, NewTunnel};
use shared::api::{EntryGroup, EntryNode, ForwardInput, Group, GroupNode, NodeInput, TunnelInput};
use shared::best_exit::Settings;
use shared::envelope::link_key;
use shared::gost::Auth;
use shared::ids::{NodeId, TunnelId, UserId};
use shared::link::Sample;
use shared::strategy::Strategy;
use std::collections::BTreeMap;

/// Exits of a tunnel.
pub(crate) const EXITS: usize = 4;
/// What every exit measures.
const PROBE_TARGET: &str = "probe.example:443";
/// Of so many ways one is disturbed every now and then.
const DISTURBED_ONE_IN: u64 = 10;
/// By which a disturbed way is slower, in milliseconds.
const DISTURBANCE_MS: f64 = 120.0;
/// Of so many samples one is lost.
const LOST_ONE_IN: u64 = 1000;

/// How much there is. Every tunnel has one entry, four exits and one forward.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) tunnels: usize,
    pub(crate) entries: usize,
    pub(crate) exits: usize,
    /// The tunnels of an entry use so many exits altogether.
    pub(crate) near: usize,
}

impl Size {
    /// A tenth as many nodes as tunnels, of ten one an exit; but four exits need at least ten to choose from.
    pub(crate) fn of(tunnels: usize) -> Self {
        Self { tunnels, entries: tunnels * 9 / 100, exits: (tunnels / 100).max(10), near: 10 }
    }

    /// The same with tunnels that share as little as they can.
    pub(crate) fn apart(self) -> Self {
        Self { near: self.exits, ..self }
    }

    pub(crate) fn nodes(self) -> usize {
        self.entries + self.exits
    }

    /// Objects that all nodes together run: a chain and a service for TCP and for UDP at the entry, and four relays.
    pub(crate) fn objects(self) -> usize {
        self.tunnels * (1 + 2 + EXITS)
    }

    /// Numbers of a tunnel's entry and exits among the nodes.
    fn tunnel(self, number: usize) -> (usize, [usize; EXITS]) {
        let entry = number % self.entries;
        let of_entry = number / self.entries;
        // Four different ones of those near the entry, others for each of its tunnels.
        let first = mix(number as u64, 1) as usize % self.near;
        let exit = |step: usize| {
            let nth = (first + step * (1 + of_entry % 2)) % self.near;
            self.entries + (entry * 7 + nth) % self.exits
        };
        (entry, std::array::from_fn(exit))
    }
}

/// What is in the panel.
#[derive(Debug)]
pub(crate) struct World {
    /// The nodes' secrets, entries first.
    pub(crate) secrets: Vec<String>,
    /// Exits of each tunnel, as numbers among the nodes.
    pub(crate) exits: BTreeMap<i64, [usize; EXITS]>,
    /// Different ways that are measured.
    pub(crate) legs: usize,
}

impl World {
    /// Puts everything into an empty store.
    pub(crate) async fn fill(db: &Db, size: Size, settings: &Settings) -> Result<Self> {
        let mut tx = db.write().await?;
        let settings = Settings { probe_target: PROBE_TARGET.to_owned(), ..settings.clone() };
        tx.update_settings(&settings).await?;
        let (mut ids, mut secrets) = (Vec::new(), Vec::new());
        for number in 0..size.nodes() {
            let secret = format!("secret-of-node-{number}");
            let host = format!("198.18.{}.{}", number / 250, 1 + number % 250);
            let input =
                NodeInput { name: format!("node-{number:04}"), server_ip: host, ..NodeInput::default() };
            let link_key = link_key(&secret);
            ids.push(tx.insert_node(&NewNode { input: &input, link_key, at: 0 }).await?);
            secrets.push(secret);
        }
        let mut next_port = vec![10_000u16; size.nodes()];
        let mut port = |node: usize| {
            next_port[node] += 1;
            next_port[node]
        };
        let (mut exits, mut legs) = (BTreeMap::new(), std::collections::BTreeSet::new());
        for number in 0..size.tunnels {
            let (entry, members) = size.tunnel(number);
            let input = tunnel(number, ids[entry], members.map(|exit| (ids[exit], port(exit))));
            let auth = Auth { username: format!("user-{number}"), password: format!("password-{number}") };
            let id =
                tx.insert_tunnel(&NewTunnel { input: &input, at: 0 }, &auth).await.context("a tunnel")?;
            let input = forward(number, id, port(entry));
            let new = NewForward { input: &input, entries: &[ids[entry]], at: 0 };
            tx.insert_forward(&new, UserId(1)).await.context("a forward")?;
            legs.extend(members.map(|exit| (entry, exit)));
            legs.extend(members.map(|exit| (exit, usize::MAX)));
            exits.insert(id.0, members);
        }
        tx.commit().await?;
        Ok(Self { secrets, exits, legs: legs.len() })
    }

    /// How a node's connect to a host goes. `round` grows by one with every round's length.
    pub(crate) fn sample(&self, from: usize, host: &str, round: f64, nth: u64) -> Sample {
        let way = host.bytes().fold(mix(from as u64, 2), |sum, byte| mix(sum, u64::from(byte)));
        let moment = mix(way, (round * 16.0) as u64 ^ (nth << 32));
        if moment.is_multiple_of(LOST_ONE_IN) && round > 0.0 {
            return Sample::Lost;
        }
        let length = (12 + mix(way, 3) % 12) as f64;
        let phase = (mix(way, 4) % 1000) as f64 / 1000.0;
        let disturbed =
            mix(way, 5).is_multiple_of(DISTURBED_ONE_IN) && (round / length + phase).fract() < 0.5;
        let noise = (mix(moment, 6) % 100) as f64 / 100.0;
        let ms = 10.0 + (mix(way, 7) % 190) as f64 + noise + if disturbed { DISTURBANCE_MS } else { 0.0 };
        Sample::Ok { ms, retransmits: 0 }
    }
}

fn tunnel(number: usize, entry: NodeId, exits: [(NodeId, u16); EXITS]) -> TunnelInput {
    let member = |(node_id, port)| GroupNode { node_id, port: Some(port), connect_ip: None };
    TunnelInput {
        name: format!("tunnel-{number:05}"),
        enabled: true,
        entry: EntryGroup { nodes: vec![EntryNode { node_id: entry }] },
        exit: Some(Group { strategy: Strategy::Best, nodes: exits.map(member).into(), ..Group::default() }),
        ..TunnelInput::default()
    }
}

fn forward(number: usize, tunnel_id: TunnelId, listen_port: u16) -> ForwardInput {
    ForwardInput {
        version: None,
        tunnel_id,
        name: format!("forward-{number:05}"),
        listen_port,
        listen_ip: None,
        targets: vec!["service.example:80".to_owned()],
        strategy: Strategy::Fifo,
        enabled: true,
        id: None,
        addresses: None,
        deployment: None,
    }
}

/// One number of two, as if it were random (splitmix64).
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_add(b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
