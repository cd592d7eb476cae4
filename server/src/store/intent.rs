//! Everything a plan is made from, as one consistent picture.

use super::{Db, ForwardRow, Page, Result, StoreError, TunnelRow};
use crate::plan::intent::{ForwardIntent, GroupIntent, Intent, MemberIntent, NodeIntent, TunnelIntent};
use shared::api::{Group, Node};

impl From<Node> for NodeIntent {
    fn from(node: Node) -> Self {
        Self {
            name: node.name,
            server_ip: node.server_ip,
            server_ip_v4: node.server_ip_v4,
            server_ip_v6: node.server_ip_v6,
            interface_name: node.interface_name,
            tcp_listen_addr: node.tcp_listen_addr,
            udp_listen_addr: node.udp_listen_addr,
            port_range: node.port_range,
            capabilities: node.capabilities,
        }
    }
}

fn group_intent(group: Group) -> Result<GroupIntent> {
    let nodes = group.nodes.into_iter().map(|member| {
        let port = member.port.ok_or_else(|| StoreError::Unreadable {
            table: "chain_tunnel",
            reason: format!("node {} has no port", member.node_id),
        })?;
        Ok(MemberIntent { node: member.node_id, port, connect_ip: member.connect_ip })
    });
    Ok(GroupIntent {
        strategy: group.strategy,
        protocol: group.protocol,
        max_fails: group.max_fails,
        fail_timeout_ms: group.fail_timeout_ms,
        nodes: nodes.collect::<Result<_>>()?,
    })
}

impl TryFrom<TunnelRow> for TunnelIntent {
    type Error = StoreError;
    fn try_from(row: TunnelRow) -> Result<Self> {
        let tunnel = row.tunnel;
        Ok(TunnelIntent {
            name: tunnel.name,
            kind: tunnel.kind,
            enabled: tunnel.enabled,
            ip_preference: tunnel.ip_preference,
            entry: tunnel.entry.nodes.into_iter().map(|entry| entry.node_id).collect(),
            hops: tunnel.hops.into_iter().map(group_intent).collect::<Result<_>>()?,
            exit: tunnel.exit.map(group_intent).transpose()?,
            relay_auth: row.relay_auth,
        })
    }
}

impl From<ForwardRow> for ForwardIntent {
    fn from(row: ForwardRow) -> Self {
        let forward = row.forward;
        Self {
            name: forward.name,
            tunnel: forward.tunnel_id,
            user: row.user,
            listen_port: forward.listen_port,
            listen_ip: forward.listen_ip,
            targets: forward.targets,
            strategy: forward.strategy,
            enabled: forward.enabled,
        }
    }
}

impl Db {
    /// The whole intent, read in one transaction.
    pub async fn intent(&self) -> Result<Intent> {
        let mut tx = self.read().await?;
        let nodes = tx.nodes(Page::ALL).await?.into_iter().map(|node| (node.id, node.into())).collect();
        let tunnels = tx
            .tunnels(Page::ALL)
            .await?
            .into_iter()
            .map(|row| Ok((row.tunnel.id, TunnelIntent::try_from(row)?)));
        let tunnels = tunnels.collect::<Result<_>>()?;
        let forwards = tx.forwards(Page::ALL).await?;
        let forwards = forwards.into_iter().map(|row| (row.forward.id, row.into())).collect();
        let decisions = tx.decisions().await?.into_iter().filter(|decision| !decision.order.is_empty());
        let applied = decisions.map(|decision| ((decision.tunnel, decision.owner), decision.order)).collect();
        let choices = tx.choices().await?.into_iter();
        let choices = choices.map(|(tunnel, owner, choice)| ((tunnel, owner), choice)).collect();
        Ok(Intent { nodes, tunnels, forwards, applied, choices })
    }
}
