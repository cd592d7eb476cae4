//! Tunnels and their nodes.

use super::{Page, PortUse, Result, StoreError, Tx, to_port};
use shared::api::{
    EntryGroup, EntryNode, Group, GroupNode, IpPreference, Tunnel, TunnelInput, TunnelType, WallMs,
};
use shared::gost::Auth;
use shared::ids::{NodeId, TunnelId};
use shared::policy::Policy;
use shared::strategy::Strategy;
use std::collections::BTreeMap;

/// A stored tunnel.
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelRow {
    /// As the API shows it; what is not stored (decisions, deployment) is empty. Every group member has its port.
    pub tunnel: Tunnel,
    /// What its relays demand.
    pub relay_auth: Auth,
}

/// A tunnel to be stored.
#[derive(Debug)]
pub struct NewTunnel<'a> {
    /// Valid, and every group member has its port.
    pub input: &'a TunnelInput,
    /// When.
    pub at: WallMs,
}

#[derive(sqlx::FromRow)]
struct HeadRow {
    id: i64,
    version: i64,
    name: String,
    r#type: i64,
    status: bool,
    ip_preference: String,
    relay_username: String,
    relay_password: String,
}

#[derive(sqlx::FromRow)]
struct ChainRow {
    tunnel_id: i64,
    chain_type: i64,
    inx: i64,
    node_id: i64,
    strategy: String,
    protocol: String,
    max_fails: i64,
    fail_timeout_ms: i64,
    port: Option<i64>,
    connect_ip: Option<String>,
}

const ENTRY: i64 = 1;
const MIDDLE: i64 = 2;
const EXIT: i64 = 3;

fn unreadable(reason: impl Into<String>) -> StoreError {
    StoreError::Unreadable { table: "chain_tunnel", reason: reason.into() }
}

fn ip_preference_text(preference: IpPreference) -> &'static str {
    match preference {
        IpPreference::Auto => "auto",
        IpPreference::V4 => "v4",
        IpPreference::V6 => "v6",
    }
}

fn type_number(kind: TunnelType) -> i64 {
    match kind {
        TunnelType::Port => 1,
        TunnelType::Tunnel => 2,
    }
}

/// Puts the rows of one tunnel together. They come in the order of place, hop and insertion.
fn assemble(head: HeadRow, rows: Vec<ChainRow>) -> Result<TunnelRow> {
    let kind = if head.r#type == 1 { TunnelType::Port } else { TunnelType::Tunnel };
    let ip_preference = match head.ip_preference.as_str() {
        "auto" => IpPreference::Auto,
        "v4" => IpPreference::V4,
        "v6" => IpPreference::V6,
        other => return Err(unreadable(format!("the address preference `{other}`"))),
    };
    let mut tunnel = Tunnel {
        id: TunnelId(head.id),
        version: head.version,
        name: head.name,
        kind,
        enabled: head.status,
        ip_preference,
        entry: EntryGroup::default(),
        hops: Vec::new(),
        exit: None,
        best_exit: None,
        deployment: Vec::new(),
        warnings: Vec::new(),
    };
    let mut hop_number = 0;
    for row in rows {
        let node_id = NodeId(row.node_id);
        let group = match row.chain_type {
            ENTRY => {
                tunnel.entry.nodes.push(EntryNode { node_id });
                continue;
            }
            MIDDLE => {
                if row.inx != hop_number {
                    hop_number = row.inx;
                    tunnel.hops.push(group_of(&row)?);
                }
                tunnel.hops.last_mut()
            }
            _ => {
                if tunnel.exit.is_none() {
                    tunnel.exit = Some(group_of(&row)?);
                }
                tunnel.exit.as_mut()
            }
        };
        let port = row.port.map(|port| to_port("chain_tunnel", port)).transpose()?;
        if let Some(group) = group {
            group.nodes.push(GroupNode { node_id, port, connect_ip: row.connect_ip });
        }
    }
    let relay_auth = Auth { username: head.relay_username, password: head.relay_password };
    Ok(TunnelRow { tunnel, relay_auth })
}

/// A group's choices are stored with each of its nodes; the first one counts.
fn group_of(row: &ChainRow) -> Result<Group> {
    let max_fails = u32::try_from(row.max_fails).map_err(|_| unreadable("max_fails"))?;
    let fail_timeout_ms = u64::try_from(row.fail_timeout_ms).map_err(|_| unreadable("fail_timeout_ms"))?;
    Ok(Group {
        strategy: row.strategy.as_str().into(),
        protocol: row.protocol.as_str().into(),
        max_fails,
        fail_timeout_ms,
        nodes: Vec::new(),
    })
}

impl Tx {
    /// Tunnels by id.
    pub async fn tunnels(&mut self, page: Page) -> Result<Vec<TunnelRow>> {
        let heads: Vec<HeadRow> = sqlx::query_as("SELECT * FROM tunnel WHERE id > $1 ORDER BY id LIMIT $2")
            .bind(page.after)
            .bind(i64::from(page.limit))
            .fetch_all(&mut *self.0)
            .await?;
        let Some(last) = heads.last().map(|head| head.id) else { return Ok(Vec::new()) };
        let rows: Vec<ChainRow> = sqlx::query_as(
            "SELECT * FROM chain_tunnel WHERE tunnel_id > $1 AND tunnel_id <= $2 \
             ORDER BY tunnel_id, chain_type, inx, id",
        )
        .bind(page.after)
        .bind(last)
        .fetch_all(&mut *self.0)
        .await?;
        let mut by_tunnel: BTreeMap<i64, Vec<ChainRow>> = BTreeMap::new();
        for row in rows {
            by_tunnel.entry(row.tunnel_id).or_default().push(row);
        }
        heads
            .into_iter()
            .map(|head| {
                let rows = by_tunnel.remove(&head.id).unwrap_or_default();
                assemble(head, rows)
            })
            .collect()
    }

    /// One tunnel.
    pub async fn tunnel(&mut self, id: TunnelId) -> Result<Option<TunnelRow>> {
        let head: Option<HeadRow> = sqlx::query_as("SELECT * FROM tunnel WHERE id = $1")
            .bind(id.0)
            .fetch_optional(&mut *self.0)
            .await?;
        let Some(head) = head else { return Ok(None) };
        let rows: Vec<ChainRow> =
            sqlx::query_as("SELECT * FROM chain_tunnel WHERE tunnel_id = $1 ORDER BY chain_type, inx, id")
                .bind(id.0)
                .fetch_all(&mut *self.0)
                .await?;
        assemble(head, rows).map(Some)
    }

    /// The tunnel of that name.
    pub async fn tunnel_by_name(&mut self, name: &str) -> Result<Option<TunnelId>> {
        let id: Option<i64> = sqlx::query_scalar("SELECT id FROM tunnel WHERE name = $1")
            .bind(name)
            .fetch_optional(&mut *self.0)
            .await?;
        Ok(id.map(TunnelId))
    }

    /// Stores a new tunnel with version 1.
    pub async fn insert_tunnel(&mut self, new: &NewTunnel<'_>, relay_auth: &Auth) -> Result<TunnelId> {
        let id: i64 = sqlx::query_scalar(
            "INSERT INTO tunnel (version, name, type, status, ip_preference, relay_username, relay_password, \
             created_time, updated_time) VALUES (1, $1, $2, $3, $4, $5, $6, $7, $7) RETURNING id",
        )
        .bind(&new.input.name)
        .bind(type_number(new.input.kind))
        .bind(i64::from(new.input.enabled))
        .bind(ip_preference_text(new.input.ip_preference))
        .bind(&relay_auth.username)
        .bind(&relay_auth.password)
        .bind(new.at)
        .fetch_one(&mut *self.0)
        .await?;
        self.insert_chain(TunnelId(id), new.input).await?;
        Ok(TunnelId(id))
    }

    /// Replaces what was typed and counts the version. Credentials stay.
    pub async fn update_tunnel(&mut self, id: TunnelId, new: &NewTunnel<'_>) -> Result<()> {
        sqlx::query(
            "UPDATE tunnel SET version = version + 1, name = $2, type = $3, status = $4, ip_preference = $5, \
             updated_time = $6 WHERE id = $1",
        )
        .bind(id.0)
        .bind(&new.input.name)
        .bind(type_number(new.input.kind))
        .bind(i64::from(new.input.enabled))
        .bind(ip_preference_text(new.input.ip_preference))
        .bind(new.at)
        .execute(&mut *self.0)
        .await?;
        for statement in
            ["DELETE FROM chain_tunnel WHERE tunnel_id = $1", "DELETE FROM node_port WHERE tunnel_id = $1"]
        {
            sqlx::query(statement).bind(id.0).execute(&mut *self.0).await?;
        }
        self.insert_chain(id, new.input).await
    }

    /// Deletes a tunnel with its forwards, ports, decisions, log and pins.
    pub async fn delete_tunnel(&mut self, id: TunnelId) -> Result<()> {
        sqlx::query("DELETE FROM tunnel WHERE id = $1").bind(id.0).execute(&mut *self.0).await?;
        Ok(())
    }

    /// A node has another name now: strategies that call it their default call it by that.
    pub async fn rename_defaults(&mut self, node: NodeId, old: &str, new: &str) -> Result<()> {
        let groups: Vec<(i64, String)> =
            sqlx::query_as("SELECT tunnel_id, strategy FROM chain_tunnel WHERE node_id = $1")
                .bind(node.0)
                .fetch_all(&mut *self.0)
                .await?;
        for (tunnel, text) in groups {
            let strategy = Strategy::from(text.as_str());
            let Some(Policy::Selector { default: Some(default), interrupt, drain_ms }) = strategy.policy()
            else {
                continue;
            };
            if default == old {
                let default = Some(new.to_owned());
                let policy = Policy::Selector { default, interrupt: *interrupt, drain_ms: *drain_ms };
                // A node is in a tunnel once, so a group with the same text and without it has no such default.
                sqlx::query("UPDATE chain_tunnel SET strategy = $3 WHERE tunnel_id = $1 AND strategy = $2")
                    .bind(tunnel)
                    .bind(text)
                    .bind(policy.to_string())
                    .execute(&mut *self.0)
                    .await?;
            }
        }
        Ok(())
    }

    async fn insert_chain(&mut self, id: TunnelId, input: &TunnelInput) -> Result<()> {
        let entry = Group::default();
        for (i, node) in input.entry.nodes.iter().enumerate() {
            let member = GroupNode { node_id: node.node_id, port: None, connect_ip: None };
            self.insert_member(id, (ENTRY, i + 1), &entry, &member).await?;
        }
        for (i, hop) in input.hops.iter().enumerate() {
            for member in &hop.nodes {
                self.insert_member(id, (MIDDLE, i + 1), hop, member).await?;
            }
        }
        if let Some(exit) = &input.exit {
            for (i, member) in exit.nodes.iter().enumerate() {
                self.insert_member(id, (EXIT, i + 1), exit, member).await?;
            }
        }
        Ok(())
    }

    async fn insert_member(
        &mut self,
        tunnel: TunnelId,
        (chain_type, inx): (i64, usize),
        group: &Group,
        member: &GroupNode,
    ) -> Result<()> {
        if let Some(port) = member.port {
            self.reserve_port(member.node_id, port, PortUse::Tunnel(tunnel)).await?;
        }
        let too_large = |e: std::num::TryFromIntError| StoreError::Failed(Box::new(e));
        sqlx::query(
            "INSERT INTO chain_tunnel (tunnel_id, chain_type, inx, node_id, strategy, protocol, max_fails, \
             fail_timeout_ms, port, connect_ip) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(tunnel.0)
        .bind(chain_type)
        .bind(i64::try_from(inx).map_err(too_large)?)
        .bind(member.node_id.0)
        .bind(group.strategy.as_str())
        .bind(group.protocol.as_str())
        .bind(i64::from(group.max_fails))
        .bind(i64::try_from(group.fail_timeout_ms).map_err(too_large)?)
        .bind(member.port.map(i64::from))
        .bind(member.connect_ip.as_deref().filter(|ip| !ip.is_empty()))
        .execute(&mut *self.0)
        .await?;
        Ok(())
    }
}
