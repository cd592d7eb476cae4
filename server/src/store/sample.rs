//! What the rounds measured, per leg.

use super::rollup::{MINUTE_MS, QUARTER_MS, Sources};
use super::{Db, Result, StoreError, Tx, to_json};
use shared::api::{LegPoint, WallMs};
use shared::best_exit::Leg;
use shared::ids::NodeId;

/// Means per step, newest first, of the leg `$1` in steps of `$2`, `$3` of them at most: two stretches of rounds, two of
/// minutes and one of quarters. Divided by the counts, so that each round weighs the same wherever it is read from.
pub(super) const HISTORY: &str = "SELECT at / $2 * $2 AS step, sum(latency_sum) / nullif(sum(measured), 0), \
     sum(loss_sum) / nullif(sum(counted), 0) FROM ( \
     SELECT at, latency_ms AS latency_sum, CASE state WHEN 'measured' THEN 1 ELSE 0 END AS measured, \
     CASE state WHEN 'measured' THEN loss WHEN 'failed' THEN 1.0 END AS loss_sum, \
     CASE state WHEN 'unmeasured' THEN 0 ELSE 1 END AS counted \
     FROM leg_sample WHERE leg_id = $1 AND at >= $4 AND at < $5 \
     UNION ALL \
     SELECT at, latency_ms, CASE state WHEN 'measured' THEN 1 ELSE 0 END, \
     CASE state WHEN 'measured' THEN loss WHEN 'failed' THEN 1.0 END, \
     CASE state WHEN 'unmeasured' THEN 0 ELSE 1 END \
     FROM leg_sample WHERE leg_id = $1 AND at >= $6 AND at < $7 \
     UNION ALL \
     SELECT at, latency_sum, measured, loss_sum, measured + failed \
     FROM leg_rollup WHERE leg_id = $1 AND width_ms = 60000 AND at >= $8 AND at < $9 \
     UNION ALL \
     SELECT at, latency_sum, measured, loss_sum, measured + failed \
     FROM leg_rollup WHERE leg_id = $1 AND width_ms = 60000 AND at >= $10 AND at < $11 \
     UNION ALL \
     SELECT at, latency_sum, measured, loss_sum, measured + failed \
     FROM leg_rollup WHERE leg_id = $1 AND width_ms = 900000 AND at >= $12 AND at < $13 \
     ) AS parts GROUP BY step ORDER BY step DESC LIMIT $3";

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

/// Many samples at once, given as one JSON text: a statement for each would cost more than its row.
const APPEND: &str = "INSERT INTO leg_sample (leg_id, at, state, latency_ms, loss, reason) \
     SELECT leg.id, s.value ->> 2, s.value ->> 3, s.value ->> 4, s.value ->> 5, s.value ->> 6 \
     FROM json_each($1) s CROSS JOIN leg \
     WHERE leg.from_node_id = s.value ->> 0 AND leg.target = s.value ->> 1 ON CONFLICT DO NOTHING";
/// The legs of such samples.
const APPEND_LEGS: &str = "INSERT INTO leg (from_node_id, target) \
     SELECT node.id, s.value ->> 1 FROM json_each($1) s CROSS JOIN node \
     WHERE node.id = s.value ->> 0 ON CONFLICT DO NOTHING";

impl Db {
    /// Stores the results of a round, all or none. Legs of nodes that were deleted meanwhile are left out.
    pub async fn append_leg_samples(&self, samples: &[LegSample]) -> Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        let rows = to_json(&samples.iter().map(row).collect::<Result<Vec<_>>>()?)?;
        let mut tx = self.write().await?;
        let written = sqlx::query(APPEND).bind(&rows).execute(&mut *tx.0).await?.rows_affected();
        // Most legs exist already; only the first samples of a leg pay for the look.
        if written < u64::try_from(samples.len()).unwrap_or(u64::MAX) {
            sqlx::query(APPEND_LEGS).bind(&rows).execute(&mut *tx.0).await?;
            sqlx::query(APPEND).bind(&rows).execute(&mut *tx.0).await?;
        }
        tx.commit().await
    }
}

/// A sample as the statements read it: node, target, moment, state, latency, loss, reason.
type Row<'a> = (i64, &'a str, i64, &'static str, Option<f64>, Option<f64>, Option<String>);

fn row(sample: &LegSample) -> Result<Row<'_>> {
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
    let (latency_ms, loss) = numbers.unzip();
    Ok((sample.from.0, &sample.target, sample.at, state, latency_ms, loss, reason))
}

impl Tx {
    /// The history of a leg, ascending in time; empty when it was never measured. Rounds that are no longer kept one by
    /// one are in it where the step is a multiple of a minute, and the oldest where it is one of a quarter of an hour.
    pub async fn leg_history(&mut self, leg: &LegKey, query: LegHistoryQuery) -> Result<Vec<LegPoint>> {
        let found: Option<(i64,)> =
            sqlx::query_as("SELECT id FROM leg WHERE from_node_id = $1 AND target = $2")
                .bind(leg.from.0)
                .bind(&leg.target)
                .fetch_optional(&mut *self.0)
                .await?;
        let Some((id,)) = found else { return Ok(Vec::new()) };
        let LegHistoryQuery { from, to, step_ms, max_points } = query;
        let step_ms = step_ms.max(1);
        let minutes_to = self.rolled_up_to(id, MINUTE_MS).await?;
        let quarters_to = self.rolled_up_to(id, QUARTER_MS).await?;
        let Sources { rounds, minutes, quarters } = Sources::of(from, to, step_ms, minutes_to, quarters_to);
        let mut history = sqlx::query_as(HISTORY).bind(id).bind(step_ms).bind(i64::from(max_points));
        for part in [rounds[0], rounds[1], minutes[0], minutes[1], quarters] {
            history = history.bind(part.from).bind(part.to);
        }
        let rows: Vec<(i64, Option<f64>, Option<f64>)> = history.fetch_all(&mut *self.0).await?;
        Ok(rows.into_iter().rev().map(|(at, latency_ms, loss)| LegPoint { at, latency_ms, loss }).collect())
    }

    /// The end of a leg's newest roll-up of this width.
    async fn rolled_up_to(&mut self, leg: i64, width: i64) -> Result<i64> {
        let (newest,): (Option<i64>,) =
            sqlx::query_as("SELECT max(at) FROM leg_rollup WHERE leg_id = $1 AND width_ms = $2")
                .bind(leg)
                .bind(width)
                .fetch_one(&mut *self.0)
                .await?;
        Ok(newest.map_or(0, |at| at + width))
    }
}
