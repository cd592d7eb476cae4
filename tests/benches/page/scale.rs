//! What fills the panel.

use anyhow::{Context as _, Result};
use shared::api::{EntryGroup, EntryNode, Group, GroupNode, NodeInput, TunnelInput, TunnelType};
use shared::strategy::Strategy;
use tests::rig::Panel;

/// Exits of a tunnel.
const EXITS: usize = 3;

/// How many of what.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) tunnels: usize,
}

impl Size {
    pub(crate) const FULL: Self = Self { nodes: 300, tunnels: 1000 };
    pub(crate) const SMALL: Self = Self { nodes: 20, tunnels: 150 };
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
