//! `cargo xtask bench page`: how quick the page is with 300 nodes and 1,000 tunnels, in a real browser in front of a real
//! panel, on this machine's processor and on one that is made four times slower; and how long it takes to replay a week.
//!
//! All times are taken in the page by its own clock. It prints medians, and writes every number with `--json`.
#![allow(dead_code, reason = "the page as the browser suite handles it, of which a benchmark needs less")]

#[path = "../../tests/browser/browser.rs"]
mod browser;
#[path = "../../tests/browser/page.rs"]
mod page;
mod scale;
mod visit;
mod week;

use anyhow::{Context as _, Result};
use browser::{Browser, Device};
use clap::Parser;
use page::Page;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tests::rig::{Panel, PanelOptions, Place};

/// How much slower the processor is made.
const SLOWDOWNS: [u32; 2] = [1, 4];

#[derive(Parser)]
struct Arguments {
    /// Write the results to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Only show that it works: few of everything, one run
    #[arg(long)]
    quick: bool,
    /// Visits of which the median is told
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// `cargo bench` says so.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Numbers by what was measured, in the order of a visit.
pub(crate) type Numbers = BTreeMap<&'static str, Vec<f64>>;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    tokio::runtime::Runtime::new()?.block_on(run(&arguments))
}

async fn run(arguments: &Arguments) -> Result<()> {
    if browser::installed().is_none() {
        println!("SKIPPED: chromium not installed, run cargo xtask setup");
        return Ok(());
    }
    let size = if arguments.quick { scale::Size::SMALL } else { scale::Size::FULL };
    let runs = if arguments.quick { 1 } else { arguments.runs.max(1) };
    let panel = Panel::start(Place::Loopback, PanelOptions::default()).await?;
    println!("page: making {} nodes and {} tunnels", size.nodes, size.tunnels);
    scale::fill(&panel, size).await?;
    println!("page: measuring {} rounds", size.rounds);
    let week = scale::measure(&panel, size).await?;
    let mut results = Vec::new();
    for slowdown in SLOWDOWNS {
        let mut numbers = Numbers::new();
        for run in 0..runs {
            println!("page: {slowdown} times slower, run {} of {runs}", run + 1);
            // A profile of its own each time: nothing is in the browser's cache.
            let browser = Browser::start(Device::Desk).await?;
            let page = Page::new(browser.driver.clone(), format!("http://{}", panel.address()));
            let mut visited = visit::visit(&browser, &page, panel.password(), slowdown, size).await;
            // The worker that replays is not slowed.
            if slowdown == 1
                && let Ok(found) = &mut visited
            {
                found.extend(week::replay(&browser, &page, week).await?);
            }
            browser.quit().await?;
            for (what, number) in visited.with_context(|| format!("{slowdown} times slower"))? {
                numbers.entry(what).or_default().push(number);
            }
        }
        for (what, all) in &numbers {
            let median = median(all);
            let (min, max) = (least(all), all.iter().copied().fold(f64::MIN, f64::max));
            println!("{slowdown}x  {what:<52} {median:>8.1}  ({min:.1} to {max:.1})");
            results.push(json!({
                "slowdown": slowdown, "what": what, "median": median, "min": min, "max": max, "all": all,
            }));
        }
    }
    if let Some(path) = &arguments.json {
        let text = json!({ "nodes": size.nodes, "tunnels": size.tunnels, "runs": runs, "results": results });
        std::fs::write(path, serde_json::to_string_pretty(&text)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn least(all: &[f64]) -> f64 {
    all.iter().copied().fold(f64::MAX, f64::min)
}

fn median(all: &[f64]) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}
