//! Which port of which node is used by whom.

use super::{Result, Tx, to_json, to_port};
use shared::ids::{ForwardId, NodeId, TunnelId};
use std::collections::BTreeMap;

/// Who uses a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortUse {
    /// A relay of a tunnel.
    Tunnel(TunnelId),
    /// A forward.
    Forward(ForwardId),
}

/// A port in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// By whom.
    pub user: PortUse,
    /// What people call the user: `tunnel hk` or `forward web`.
    pub label: String,
}

impl Tx {
    /// The ports in use of these nodes.
    pub async fn ports(&mut self, nodes: &[NodeId]) -> Result<BTreeMap<NodeId, BTreeMap<u16, Reservation>>> {
        #[derive(sqlx::FromRow)]
        struct Row {
            node_id: i64,
            port: i64,
            tunnel_id: Option<i64>,
            forward_id: Option<i64>,
            tunnel_name: Option<String>,
            forward_name: Option<String>,
        }
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT node_port.*, tunnel.name AS tunnel_name, forward.name AS forward_name FROM node_port \
             LEFT JOIN tunnel ON tunnel.id = node_port.tunnel_id \
             LEFT JOIN forward ON forward.id = node_port.forward_id \
             WHERE node_port.node_id IN (SELECT value FROM json_each($1))",
        )
        .bind(to_json(&nodes)?)
        .fetch_all(&mut *self.0)
        .await?;
        let mut ports: BTreeMap<NodeId, BTreeMap<u16, Reservation>> = BTreeMap::new();
        for row in rows {
            let name = |name: Option<String>| name.unwrap_or_default();
            let reservation = match (row.tunnel_id, row.forward_id) {
                (Some(id), _) => Reservation {
                    user: PortUse::Tunnel(TunnelId(id)),
                    label: format!("tunnel {}", name(row.tunnel_name)),
                },
                // The table's own constraint: one of the two is set.
                (None, id) => Reservation {
                    user: PortUse::Forward(ForwardId(id.unwrap_or_default())),
                    label: format!("forward {}", name(row.forward_name)),
                },
            };
            ports
                .entry(NodeId(row.node_id))
                .or_default()
                .insert(to_port("node_port", row.port)?, reservation);
        }
        Ok(ports)
    }

    /// Reserves a port.
    pub(super) async fn reserve_port(&mut self, node: NodeId, port: u16, user: PortUse) -> Result<()> {
        let (tunnel, forward) = match user {
            PortUse::Tunnel(id) => (Some(id.0), None),
            PortUse::Forward(id) => (None, Some(id.0)),
        };
        sqlx::query("INSERT INTO node_port (node_id, port, tunnel_id, forward_id) VALUES ($1, $2, $3, $4)")
            .bind(node.0)
            .bind(i64::from(port))
            .bind(tunnel)
            .bind(forward)
            .execute(&mut *self.0)
            .await?;
        Ok(())
    }
}
