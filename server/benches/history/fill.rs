//! A database with a long past, written past the store: no panel has a month to spare.

use anyhow::Result;
use server::store::{LegKey, LegSample};
use shared::best_exit::Leg;
use shared::ids::NodeId;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};
use std::path::Path;

pub(crate) const DAY_MS: i64 = 86_400_000;
/// The end of the past: a whole hour, so that every span is cut into whole steps.
pub(crate) const NOW: i64 = 1_785_542_400_000;
const ROUND_MS: i64 = 5000;
/// Legs of the tunnel that is read: one owner, four exits.
const READ: i64 = 8;

/// How much there is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    nodes: i64,
    targets: i64,
    /// Of these days quarters of every leg are there, and minutes of those that are read.
    days: i64,
}

impl Size {
    pub(crate) const FULL: Self = Self { nodes: 100, targets: 100, days: 30 };
    pub(crate) const QUICK: Self = Self { nodes: 2, targets: 10, days: 30 };

    /// Every node measures every target.
    pub(crate) fn legs(self) -> usize {
        usize::try_from(self.nodes * self.targets).unwrap_or_default()
    }
}

/// Fills a new database and tells the legs whose past is complete.
pub(crate) async fn fill(path: &Path, size: Size) -> Result<Vec<LegKey>> {
    let options = SqliteConnectOptions::new().filename(path).foreign_keys(false);
    let mut db = SqliteConnection::connect_with(&options).await?;
    let indexes: Vec<(String, String)> = sqlx::query_as(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name LIKE 'leg_%'",
    )
    .fetch_all(&mut db)
    .await?;
    let Size { nodes, targets, days } = size;
    let series = |name: &str, first: i64, last: i64, step: i64| {
        format!(
            "CREATE TEMP TABLE {name} AS WITH RECURSIVE s (value) AS \
             (SELECT {first} UNION ALL SELECT value + {step} FROM s WHERE value + {step} <= {last}) SELECT value FROM s"
        )
    };
    let times = |name: &str, days: i64, step: i64| series(name, NOW - days * DAY_MS, NOW - step, step);
    let rollup = |width: i64, times: &str, legs: &str| {
        let rounds = width / ROUND_MS;
        format!(
            "INSERT INTO leg_rollup SELECT leg.id, {width}, t.value, {rounds}, 0, {rounds} * 25.0, 0.0 \
             FROM leg CROSS JOIN {times} t {legs}"
        )
    };
    let read = format!("WHERE leg.id <= {READ}");
    // Indexes are made anew afterwards: that is sorting once, not searching for each row.
    let mut statements: Vec<String> = indexes.iter().map(|(name, _)| format!("DROP INDEX {name}")).collect();
    statements.extend([
        series("nodes", 1, nodes, 1),
        series("targets", 1, targets, 1),
        times("quarters", days, 900_000),
        times("minutes", days, 60_000),
        times("rounds", days.min(7), ROUND_MS),
        "INSERT INTO node SELECT value, 1, 'node-' || value, printf('%064d', value), '', '', '', '1-65535', '', '', \
         '', '', '[]', NULL, 0, 0 FROM nodes"
            .to_owned(),
        "INSERT INTO leg (from_node_id, target) SELECT n.value, '192.0.2.' || t.value || ':443' \
         FROM nodes n CROSS JOIN targets t"
            .to_owned(),
        rollup(900_000, "quarters", ""),
        rollup(60_000, "minutes", &read),
        format!(
            "INSERT INTO leg_sample SELECT leg.id, t.value, 'measured', 25.0, 0.0, NULL \
             FROM leg CROSS JOIN rounds t {read}"
        ),
    ]);
    statements.extend(indexes.into_iter().map(|(_, sql)| sql));
    statements.push("ANALYZE".to_owned());
    statements.push("PRAGMA wal_checkpoint(TRUNCATE)".to_owned());
    for statement in statements {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut db).await?;
    }
    db.close().await?;
    Ok((1..=READ).map(|target| key(1, target)).collect())
}

/// A leg's key.
fn key(node: i64, target: i64) -> LegKey {
    LegKey { from: NodeId(node), target: format!("192.0.2.{target}:443") }
}

/// What one round of every leg brings.
pub(crate) fn round(size: Size, at: i64) -> Vec<LegSample> {
    let leg = Leg::from_counts(4, 4, &[20.0, 21.0, 22.0, 23.0]);
    let keys = (1..=size.nodes).flat_map(|node| (1..=size.targets).map(move |target| key(node, target)));
    keys.map(|LegKey { from, target }| LegSample { from, target, at, leg: leg.clone() }).collect()
}
