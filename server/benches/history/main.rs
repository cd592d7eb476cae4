//! `cargo xtask bench history`: reading and writing what was measured, beside a month of ten thousand legs.
//!
//! The database is a file as the panel has it. The quarters of an hour of a month are there for every leg; the legs of one
//! tunnel have their minutes and a week of their rounds, too. Rows of other legs are what a statement must not look at.
mod fill;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use fill::{DAY_MS, Size};
use serde_json::json;
use server::store::{Db, LegHistoryQuery};
use std::path::PathBuf;

#[derive(Parser)]
struct Arguments {
    /// Write the results to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Only show that it works: few legs, few repetitions
    #[arg(long)]
    quick: bool,
    /// `cargo bench` says so.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A screen's question: its name, how far back, in what steps.
const SPANS: [(&str, i64, i64); 4] = [
    ("an hour in steps of 10 s", 3_600_000, 10_000),
    ("a day in minutes", DAY_MS, 60_000),
    ("a week in quarters of an hour", 7 * DAY_MS, 900_000),
    ("a month in hours", 30 * DAY_MS, 3_600_000),
];

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let size = if arguments.quick { Size::QUICK } else { Size::FULL };
    let repetitions = if arguments.quick { 3 } else { 31 };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history.db");
    let db = Db::open(&format!("sqlite://{}", path.display())).await?;
    println!("history: filling {} legs", size.legs());
    let legs = fill::fill(&path, size).await?;
    let bytes = std::fs::metadata(&path)?.len();
    println!("history: {:.1} GB on disk", bytes as f64 / 1e9);

    let mut results = Vec::new();
    let mut told = |what: &str, mut ms: Vec<f64>, rows: usize| {
        ms.sort_by(f64::total_cmp);
        let (median, first, last) = (ms[ms.len() / 2], ms[0], ms[ms.len() - 1]);
        println!("{what:<48} {median:>9.2} ms  ({first:.2} to {last:.2}), {rows} rows");
        results.push(json!({ "what": what, "medianMs": median, "ms": ms, "rows": rows }));
    };
    for (what, span, step_ms) in SPANS {
        let query = LegHistoryQuery { from: fill::NOW - span, to: fill::NOW, step_ms, max_points: 5000 };
        let mut ms = Vec::new();
        let mut points = 0;
        for _ in 0..repetitions {
            let start = now();
            let mut tx = db.read().await?;
            points = 0;
            for leg in &legs {
                points += tx.leg_history(leg, query).await?.len();
            }
            drop(tx);
            ms.push(ms_since(start));
        }
        let wanted = legs.len() * usize::try_from(span / step_ms)?;
        ensure!(points == wanted, "{what}: {points} points instead of {wanted}");
        told(&format!("read {what}, {} legs", legs.len()), ms, points);
    }

    // The round of every leg, as often as there is one; then the minute that these rounds fill.
    let (mut writing, mut summing) = (Vec::new(), Vec::new());
    for repetition in 0..if arguments.quick { 1 } else { 5 } {
        let minute = fill::NOW + repetition * 60_000;
        for round in 0..12 {
            let samples = fill::round(size, minute + round * 5000);
            let start = now();
            db.append_leg_samples(&samples).await?;
            writing.push(ms_since(start));
        }
        let start = now();
        db.roll_up(minute + 120_000).await?;
        summing.push(ms_since(start));
    }
    told("write a round of every leg", writing, size.legs());
    told("sum up a minute of every leg", summing, size.legs());
    db.close().await;

    if let Some(path) = &arguments.json {
        let text = json!({ "legs": size.legs(), "bytes": bytes, "results": results });
        std::fs::write(path, serde_json::to_string_pretty(&text)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// A benchmark reads the clock and nothing else does with it.
#[expect(clippy::disallowed_methods, reason = "what is measured is time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Milliseconds since then.
fn ms_since(start: std::time::Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}
