//! The rounds of a minute and of a quarter of an hour, summed up, so that a month is read as quickly as an hour.

use super::{Db, Result};
use shared::api::WallMs;

const SECOND_MS: i64 = 1000;
/// The narrower roll-up.
pub(super) const MINUTE_MS: i64 = 60 * SECOND_MS;
/// The wider one; made of the narrower.
pub(super) const QUARTER_MS: i64 = 15 * MINUTE_MS;
/// A round is stored some seconds after its end, while a busy disk may need a few rounds more.
const LATE_MS: i64 = MINUTE_MS;

/// The next stretch of rounds that is not summed up: the first round from `$1` on and before `$2`.
const FIRST_ROUND: &str = "SELECT min(at) FROM leg_sample WHERE at >= $1 AND at < $2";
const FIRST_MINUTE: &str = "SELECT min(at) FROM leg_rollup WHERE width_ms = 60000 AND at >= $1 AND at < $2";

/// Per leg, because its rounds lie side by side in the table.
const SUM_ROUNDS: &str = "INSERT INTO leg_rollup (leg_id, width_ms, at, measured, failed, latency_sum, loss_sum) \
     SELECT leg.id, 60000, $1, count(s.latency_ms), count(CASE s.state WHEN 'failed' THEN 1 END), \
     coalesce(sum(s.latency_ms), 0.0), coalesce(sum(CASE s.state WHEN 'measured' THEN s.loss WHEN 'failed' THEN 1.0 END), 0.0) \
     FROM leg CROSS JOIN leg_sample s WHERE s.leg_id = leg.id AND s.at >= $1 AND s.at < $2 GROUP BY leg.id \
     ON CONFLICT DO NOTHING";
const SUM_MINUTES: &str = "INSERT INTO leg_rollup (leg_id, width_ms, at, measured, failed, latency_sum, loss_sum) \
     SELECT leg.id, 900000, $1, sum(m.measured), sum(m.failed), sum(m.latency_sum), sum(m.loss_sum) \
     FROM leg CROSS JOIN leg_rollup m \
     WHERE m.leg_id = leg.id AND m.width_ms = 60000 AND m.at >= $1 AND m.at < $2 GROUP BY leg.id \
     ON CONFLICT DO NOTHING";

impl Db {
    /// Sums up every minute and every quarter of an hour that has ended some time before `now` and is not summed up yet.
    /// One transaction each, so that nobody else waits long for the writer. Doing it again changes nothing.
    pub async fn roll_up(&self, now: WallMs) -> Result<()> {
        for (width, first, sum) in
            [(MINUTE_MS, FIRST_ROUND, SUM_ROUNDS), (QUARTER_MS, FIRST_MINUTE, SUM_MINUTES)]
        {
            let end = floor(now.saturating_sub(LATE_MS), width);
            let mut from = self.rolled_up_to(width).await?;
            // Hours without the panel are passed over.
            while let (Some(at),) = sqlx::query_as::<_, (Option<i64>,)>(first)
                .bind(from)
                .bind(end)
                .fetch_one(&self.reader)
                .await?
            {
                let start = floor(at, width);
                from = start + width;
                sqlx::query(sum).bind(start).bind(from).execute(&self.writer).await?;
            }
        }
        Ok(())
    }

    /// The end of the newest roll-up of this width.
    async fn rolled_up_to(&self, width: i64) -> Result<i64> {
        let (newest,): (Option<i64>,) = sqlx::query_as("SELECT max(at) FROM leg_rollup WHERE width_ms = $1")
            .bind(width)
            .fetch_one(&self.reader)
            .await?;
        Ok(newest.map_or(0, |at| at + width))
    }
}

/// A stretch of time; the end is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: i64,
    pub(super) to: i64,
}

/// Where the parts of a history are read from. Together they are exactly what was asked for; a part may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sources {
    /// Rounds before and behind what is summed up.
    pub(super) rounds: [Stretch; 2],
    /// Minutes before and behind the quarters.
    pub(super) minutes: [Stretch; 2],
    pub(super) quarters: Stretch,
}

impl Sources {
    /// For `from` to `to` in steps of `step_ms`, of a leg whose minutes and quarters reach to these moments. A width is
    /// used where a step is a multiple of it: then no roll-up belongs to two steps.
    pub(super) fn of(from: i64, to: i64, step_ms: i64, minutes_to: i64, quarters_to: i64) -> Self {
        let whole = |width: i64, around: Stretch, reach: i64| {
            let inner = Stretch { from: ceil(around.from, width), to: floor(around.to, width).min(reach) };
            let usable = step_ms > 0 && step_ms % width == 0 && inner.from < inner.to;
            // Nothing: at the start, so that all the rest is behind it.
            if usable { inner } else { Stretch { from: around.from, to: around.from } }
        };
        // Quarters outlive the minutes they were made of.
        let minutes = whole(MINUTE_MS, Stretch { from, to }, minutes_to.max(quarters_to));
        let quarters = whole(QUARTER_MS, minutes, quarters_to);
        let around = |outer: Stretch, inner: Stretch| {
            [Stretch { from: outer.from, to: inner.from }, Stretch { from: inner.to, to: outer.to }]
        };
        Self { rounds: around(Stretch { from, to }, minutes), minutes: around(minutes, quarters), quarters }
    }
}

fn floor(at: i64, width: i64) -> i64 {
    at - at.rem_euclid(width)
}

fn ceil(at: i64, width: i64) -> i64 {
    floor(at.saturating_add(width - 1), width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_parts_are_exactly_what_was_asked_for(
            from in 0..10 * QUARTER_MS,
            length in 1..10 * QUARTER_MS,
            step in prop_oneof![Just(0), Just(1), Just(7_000), Just(MINUTE_MS), Just(5 * MINUTE_MS), Just(QUARTER_MS), Just(4 * QUARTER_MS)],
            minutes_to in (0..20 * 15_i64).prop_map(|n| n * MINUTE_MS),
            quarters_to in (0..20_i64).prop_map(|n| n * QUARTER_MS),
        ) {
            let to = from + length;
            let Sources { rounds, minutes, quarters } = Sources::of(from, to, step, minutes_to, quarters_to);
            let mut end = from;
            for part in [rounds[0], minutes[0], quarters, minutes[1], rounds[1]] {
                prop_assert!(part.from == end && part.to >= part.from, "{part:?} behind {end}");
                end = part.to;
            }
            prop_assert_eq!(end, to);
            for (part, width, reach) in [
                (minutes[0], MINUTE_MS, minutes_to.max(quarters_to)), (minutes[1], MINUTE_MS, minutes_to.max(quarters_to)), (quarters, QUARTER_MS, quarters_to),
            ] {
                if part.from < part.to {
                    prop_assert!(part.from % width == 0 && part.to % width == 0 && part.to <= reach);
                    prop_assert!(step % width == 0);
                }
            }
        }
    }

    #[test]
    fn a_month_in_quarters_is_read_from_quarters() {
        const DAY_MS: i64 = 96 * QUARTER_MS;
        let now = 40 * DAY_MS + 5 * MINUTE_MS + 1;
        let sources =
            Sources::of(now - 30 * DAY_MS, now, QUARTER_MS, 40 * DAY_MS + 4 * MINUTE_MS, 40 * DAY_MS);
        let Sources { rounds, minutes, quarters } = sources;
        assert_eq!(quarters, Stretch { from: 10 * DAY_MS + QUARTER_MS, to: 40 * DAY_MS });
        assert_eq!(minutes[0].to - minutes[0].from, 9 * MINUTE_MS);
        assert_eq!(minutes[1].to - minutes[1].from, 4 * MINUTE_MS);
        assert_eq!(rounds.map(|part| part.to - part.from), [59_999, MINUTE_MS + 1]);
    }

    #[test]
    fn what_is_not_summed_up_is_read_from_the_rounds() {
        let asked = Stretch { from: 5, to: 10 * QUARTER_MS };
        for (step, minutes_to) in [(1, 10 * QUARTER_MS), (MINUTE_MS, 0), (MINUTE_MS + 1, 10 * QUARTER_MS)] {
            let sources = Sources::of(asked.from, asked.to, step, minutes_to, minutes_to);
            assert_eq!(sources.rounds[1], asked, "{step}");
        }
    }

    /// A month of ten thousand legs is a few hundred million rows: nothing may look at more than it needs.
    #[tokio::test]
    async fn no_statement_reads_past_its_leg_and_its_time() {
        let db = Db::memory().await.unwrap();
        let statements = [
            (FIRST_ROUND, vec!["SEARCH leg_sample USING COVERING INDEX leg_sample_at (at>? AND at<?)"]),
            (
                FIRST_MINUTE,
                vec!["SEARCH leg_rollup USING COVERING INDEX leg_rollup_at (width_ms=? AND at>? AND at<?)"],
            ),
            (SUM_ROUNDS, vec!["SCAN leg", "SEARCH s USING PRIMARY KEY (leg_id=? AND at>? AND at<?)"]),
            (
                SUM_MINUTES,
                vec!["SCAN leg", "SEARCH m USING PRIMARY KEY (leg_id=? AND width_ms=? AND at>? AND at<?)"],
            ),
            (
                super::super::sample::HISTORY,
                vec![
                    "SEARCH leg_sample USING PRIMARY KEY (leg_id=? AND at>? AND at<?)",
                    "SEARCH leg_rollup USING PRIMARY KEY (leg_id=? AND width_ms=? AND at>? AND at<?)",
                ],
            ),
        ];
        for (statement, wanted) in statements {
            let plan: Vec<(i64, i64, i64, String)> =
                sqlx::query_as(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}")))
                    .fetch_all(&db.reader)
                    .await
                    .unwrap();
            let steps: Vec<&str> = plan.iter().map(|(.., step)| step.as_str()).collect();
            for wanted in wanted {
                assert!(steps.iter().any(|step| step.starts_with(wanted)), "{statement}: {steps:#?}");
            }
            // The legs themselves are thousands, and each is wanted.
            let whole = |step: &&&str| {
                step.starts_with("SCAN leg_") || step.starts_with("SCAN s") || step.starts_with("SCAN m")
            };
            assert_eq!(steps.iter().find(whole), None, "{statement}: {steps:#?}");
        }
    }
}
