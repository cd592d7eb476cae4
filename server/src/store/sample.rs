//! What the rounds measured, per leg.

use super::{Db, Result, StoreError, Tx};
use shared::api::{LegPoint, WallMs};
use shared::best_exit::Leg;
use shared::ids::NodeId;

/// What one round says about one leg.
#[derive(Clone, Debug, PartialEq)]
pub struct LegSample {
    /// Node that measured.
    pub from: NodeId,
    /// What it measured, `host:port`.
    pub target: String,
    /// End of the round.
    pub at: WallMs,
    /// The result.
    pub leg: Leg,
}

/// A leg: who measures what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LegKey {
    /// Node that measures.
    pub from: NodeId,
    /// What it measures, `host:port`.
    pub target: String,
}

/// Which part of a leg's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegHistoryQuery {
    /// First moment, included.
    pub from: WallMs,
    /// Last moment, excluded.
    pub to: WallMs,
    /// Rounds of each step are averaged; 1 = every round by itself.
    pub step_ms: i64,
    /// The newest points win.
    pub max_points: u32,
}

impl Db {
    /// Stores the results of a round, all or none. Legs of nodes that were deleted meanwhile are left out.
    pub async fn append_leg_samples(&self, samples: &[LegSample]) -> Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        let mut tx = self.write().await?;
        for sample in samples {
            // Most legs exist already; only the first sample of a leg pays for the look.
            if !tx.insert_sample(sample).await? {
                sqlx::query(
                    "INSERT INTO leg (from_node_id, target) SELECT id, $2 FROM node WHERE id = $1 \
                     ON CONFLICT DO NOTHING",
                )
                .bind(sample.from.0)
                .bind(&sample.target)
                .execute(&mut *tx.0)
                .await?;
                tx.insert_sample(sample).await?;
            }
        }
        tx.commit().await
    }
}

impl Tx {
    /// False: there is no such leg, or it has a sample of that moment already.
    async fn insert_sample(&mut self, sample: &LegSample) -> Result<bool> {
        let numbers = sample.leg.numbers();
        let (state, reason) = match &sample.leg {
            Leg::Measured { .. } if numbers.is_some() => ("measured", None),
            // Numbers that cannot be are a failure, here too.
            Leg::Measured { .. } => ("failed", Some("unsuccessful".to_owned())),
            Leg::Failed { reason } => {
                let text = serde_json::to_value(reason).map_err(|e| StoreError::Failed(Box::new(e)))?;
                ("failed", text.as_str().map(str::to_owned))
            }
            Leg::Unmeasured { reason } => ("unmeasured", Some(reason.clone())),
        };
        let done = sqlx::query(
            "INSERT INTO leg_sample (leg_id, at, state, latency_ms, loss, reason) \
             SELECT id, $3, $4, $5, $6, $7 FROM leg WHERE from_node_id = $1 AND target = $2 \
             ON CONFLICT DO NOTHING",
        )
        .bind(sample.from.0)
        .bind(&sample.target)
        .bind(sample.at)
        .bind(state)
        .bind(numbers.map(|(latency_ms, _)| latency_ms))
        .bind(numbers.map(|(_, loss)| loss))
        .bind(reason)
        .execute(&mut *self.0)
        .await?;
        Ok(done.rows_affected() > 0)
    }

    /// The history of a leg, ascending in time; empty when it was never measured.
    pub async fn leg_history(&mut self, leg: &LegKey, query: LegHistoryQuery) -> Result<Vec<LegPoint>> {
        let rows: Vec<(i64, Option<f64>, Option<f64>)> = sqlx::query_as(
            "SELECT at / $5 * $5 AS step, avg(latency_ms), \
             avg(CASE state WHEN 'measured' THEN loss WHEN 'failed' THEN 1.0 END) \
             FROM leg_sample WHERE leg_id = (SELECT id FROM leg WHERE from_node_id = $1 AND target = $2) \
             AND at >= $3 AND at < $4 GROUP BY step ORDER BY step DESC LIMIT $6",
        )
        .bind(leg.from.0)
        .bind(&leg.target)
        .bind(query.from)
        .bind(query.to)
        .bind(query.step_ms.max(1))
        .bind(i64::from(query.max_points))
        .fetch_all(&mut *self.0)
        .await?;
        Ok(rows.into_iter().rev().map(|(at, latency_ms, loss)| LegPoint { at, latency_ms, loss }).collect())
    }
}
