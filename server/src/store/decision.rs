//! What the owners' agents have accepted, and the log of how it came about.

use super::{Db, Result, Tx, from_json, to_json};
use serde_json::json;
use shared::api::{CandidateDecision, DecisionLogEntry, SwitchRecord, WallMs};
use shared::best_exit::Reason;
use shared::ids::{NodeId, TunnelId};

/// What is known about one owner of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDecision {
    /// The tunnel.
    pub tunnel: TunnelId,
    /// The node that holds the chain.
    pub owner: NodeId,
    /// Exits in the order last accepted; empty = none was accepted yet.
    pub order: Vec<NodeId>,
    /// An order on its way when the panel stopped: the agent runs this one or `order`.
    pub proposed: Option<Vec<NodeId>>,
    /// When the exit was last switched.
    pub last_switch_at: Option<WallMs>,
    /// The last switch or refused push.
    pub last_switch: Option<SwitchRecord>,
}

/// An entry for the decision log.
#[derive(Clone, Debug, PartialEq)]
pub struct NewLogEntry {
    /// The tunnel.
    pub tunnel: TunnelId,
    /// The owner.
    pub owner: NodeId,
    /// When.
    pub at: WallMs,
    /// Exit before.
    pub from: Option<NodeId>,
    /// Exit concerned.
    pub to: Option<NodeId>,
    /// Why.
    pub reason: Reason,
    /// The candidates of that round in rank order.
    pub candidates: Vec<CandidateDecision>,
}

/// Which part of a tunnel's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionLogQuery {
    /// The newest win.
    pub limit: u32,
    /// Older than the entry with this id.
    pub before: Option<i64>,
    /// First moment, included.
    pub from: Option<WallMs>,
    /// Codes of the reasons that are wanted; empty = all.
    pub reasons: Vec<&'static str>,
}

impl DecisionLogQuery {
    /// The newest entries, whatever they say.
    pub fn newest(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }
}

/// One of many writes that go together.
#[derive(Clone, Debug, PartialEq)]
pub enum DecisionWrite {
    /// An order is about to be pushed.
    Propose {
        /// The tunnel.
        tunnel: TunnelId,
        /// The owner.
        owner: NodeId,
        /// All exits, the new first one in front.
        order: Vec<NodeId>,
    },
    /// What an owner runs; forgets the proposed order.
    Store(StoredDecision),
    /// Why something was, or was not, done.
    Log(NewLogEntry),
}

#[derive(sqlx::FromRow)]
struct DecisionRow {
    tunnel_id: i64,
    owner_node_id: i64,
    applied_order: String,
    proposed_order: Option<String>,
    last_switch_at: Option<i64>,
    last_switch: Option<String>,
}

const TABLE: &str = "best_exit_decision";

impl Tx {
    /// All decisions by tunnel and owner.
    pub async fn decisions(&mut self) -> Result<Vec<StoredDecision>> {
        let rows: Vec<DecisionRow> =
            sqlx::query_as("SELECT * FROM best_exit_decision ORDER BY tunnel_id, owner_node_id")
                .fetch_all(&mut *self.0)
                .await?;
        let read = |row: DecisionRow| {
            Ok(StoredDecision {
                tunnel: TunnelId(row.tunnel_id),
                owner: NodeId(row.owner_node_id),
                order: from_json(TABLE, &row.applied_order)?,
                proposed: row.proposed_order.map(|text| from_json(TABLE, &text)).transpose()?,
                last_switch_at: row.last_switch_at,
                last_switch: row.last_switch.map(|text| from_json(TABLE, &text)).transpose()?,
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// Forgets the decisions of nodes that are no longer owners of the tunnel.
    pub async fn drop_orphaned_decisions(&mut self, tunnel: TunnelId, owners: &[NodeId]) -> Result<()> {
        sqlx::query(
            "DELETE FROM best_exit_decision WHERE tunnel_id = $1 \
             AND owner_node_id NOT IN (SELECT value FROM json_each($2))",
        )
        .bind(tunnel.0)
        .bind(to_json(&owners)?)
        .execute(&mut *self.0)
        .await?;
        Ok(())
    }

    /// Log entries of a tunnel, newest first.
    pub async fn decision_log(
        &mut self,
        tunnel: TunnelId,
        query: &DecisionLogQuery,
    ) -> Result<Vec<DecisionLogEntry>> {
        #[derive(sqlx::FromRow)]
        struct Row {
            id: i64,
            at: i64,
            owner_node_id: i64,
            owner_name: String,
            from_exit: Option<i64>,
            to_exit: Option<i64>,
            reason: String,
            candidates: String,
        }
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT * FROM decision_log WHERE tunnel_id = $1 AND id < $2 AND at >= $4 \
             AND ($5 = '[]' OR reason_code IN (SELECT value FROM json_each($5))) ORDER BY id DESC LIMIT $3",
        )
        .bind(tunnel.0)
        .bind(query.before.unwrap_or(i64::MAX))
        .bind(i64::from(query.limit))
        .bind(query.from.unwrap_or(i64::MIN))
        .bind(to_json(&query.reasons)?)
        .fetch_all(&mut *self.0)
        .await?;
        let read = |row: Row| {
            Ok(DecisionLogEntry {
                id: row.id,
                at: row.at,
                owner_node_id: NodeId(row.owner_node_id),
                owner_name: row.owner_name,
                from_exit_node_id: row.from_exit.map(NodeId),
                to_exit_node_id: row.to_exit.map(NodeId),
                reason: from_json("decision_log", &row.reason)?,
                candidates: from_json("decision_log", &row.candidates)?,
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// Writes of one kind, as one JSON list.
    async fn write_decisions(&mut self, kind: Kind, rows: &[serde_json::Value]) -> Result<()> {
        let statement = match kind {
            Kind::Propose => PROPOSE,
            Kind::Store => STORE,
            Kind::Log => LOG,
        };
        sqlx::query(statement).bind(to_json(&rows)?).execute(&mut *self.0).await?;
        Ok(())
    }
}

/// Many writes are one statement: a large panel has hundreds of them in a round, and each statement would go to the
/// database's thread and back.
const PROPOSE: &str = "INSERT INTO best_exit_decision (tunnel_id, owner_node_id, applied_order, proposed_order) \
     SELECT tunnel.id, node.id, '[]', w.value ->> 2 FROM json_each($1) w CROSS JOIN tunnel CROSS JOIN node \
     WHERE tunnel.id = w.value ->> 0 AND node.id = w.value ->> 1 \
     ON CONFLICT (tunnel_id, owner_node_id) DO UPDATE SET proposed_order = excluded.proposed_order";
const STORE: &str = "INSERT INTO best_exit_decision (tunnel_id, owner_node_id, applied_order, last_switch_at, last_switch) \
     SELECT tunnel.id, node.id, w.value ->> 2, w.value ->> 3, w.value ->> 4 \
     FROM json_each($1) w CROSS JOIN tunnel CROSS JOIN node \
     WHERE tunnel.id = w.value ->> 0 AND node.id = w.value ->> 1 \
     ON CONFLICT (tunnel_id, owner_node_id) DO UPDATE SET applied_order = excluded.applied_order, \
     proposed_order = NULL, last_switch_at = excluded.last_switch_at, last_switch = excluded.last_switch";
const LOG: &str = "INSERT INTO decision_log \
     (tunnel_id, at, owner_node_id, owner_name, from_exit, to_exit, reason_code, reason, candidates) \
     SELECT tunnel.id, w.value ->> 2, node.id, node.name, w.value ->> 3, w.value ->> 4, w.value ->> 5, w.value ->> 6, \
     w.value ->> 7 FROM json_each($1) w CROSS JOIN tunnel CROSS JOIN node \
     WHERE tunnel.id = w.value ->> 0 AND node.id = w.value ->> 1 ORDER BY w.key";

/// Which statement a write belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Propose,
    Store,
    Log,
}

impl DecisionWrite {
    fn kind(&self) -> Kind {
        match self {
            DecisionWrite::Propose { .. } => Kind::Propose,
            DecisionWrite::Store(_) => Kind::Store,
            DecisionWrite::Log(_) => Kind::Log,
        }
    }

    /// The values in the order of the statements; what a column keeps as JSON is a text here.
    fn row(&self) -> Result<serde_json::Value> {
        Ok(match self {
            DecisionWrite::Propose { tunnel, owner, order } => json!([tunnel.0, owner.0, to_json(order)?]),
            DecisionWrite::Store(decision) => {
                let last_switch = decision.last_switch.as_ref().map(to_json).transpose()?;
                let (tunnel, owner) = (decision.tunnel.0, decision.owner.0);
                json!([tunnel, owner, to_json(&decision.order)?, decision.last_switch_at, last_switch])
            }
            DecisionWrite::Log(entry) => json!([
                entry.tunnel.0,
                entry.owner.0,
                entry.at,
                entry.from.map(|id| id.0),
                entry.to.map(|id| id.0),
                entry.reason.code(),
                to_json(&entry.reason)?,
                to_json(&entry.candidates)?,
            ]),
        })
    }
}

// A tunnel or a node may be deleted while a round is under way. Then there is nothing left to remember, and the
// statements below insert nothing: they select from the rows they refer to.
impl Db {
    /// All decisions by tunnel and owner.
    pub async fn decisions(&self) -> Result<Vec<StoredDecision>> {
        self.read().await?.decisions().await
    }

    /// Notes an order that is about to be pushed.
    pub async fn propose_order(&self, tunnel: TunnelId, owner: NodeId, order: &[NodeId]) -> Result<()> {
        let order = order.to_vec();
        self.write_decisions(&[DecisionWrite::Propose { tunnel, owner, order }]).await
    }

    /// Stores what an owner runs and forgets the proposed order, together with the log entry that explains it.
    pub async fn store_decision(&self, decision: &StoredDecision, log: Option<NewLogEntry>) -> Result<()> {
        let store = DecisionWrite::Store(decision.clone());
        let writes: Vec<_> = std::iter::once(store).chain(log.map(DecisionWrite::Log)).collect();
        self.write_decisions(&writes).await
    }

    /// Appends to the log.
    pub async fn append_decision_log(&self, entry: NewLogEntry) -> Result<()> {
        self.write_decisions(&[DecisionWrite::Log(entry)]).await
    }

    /// Many writes in one transaction, in order.
    pub async fn write_decisions(&self, writes: &[DecisionWrite]) -> Result<()> {
        let mut tx = self.write().await?;
        // In order, since a later write about the same owner replaces an earlier one.
        for same in writes.chunk_by(|a, b| a.kind() == b.kind()) {
            let rows = same.iter().map(DecisionWrite::row).collect::<Result<Vec<_>>>()?;
            tx.write_decisions(same[0].kind(), &rows).await?;
        }
        tx.commit().await
    }
}
