//! `exitpilot export-history` and `exitpilot replay`: what other settings would have made of what was measured.

use crate::app::quality::Points;
use crate::app::replays;
use crate::app::span::{Asked, HOUR_MS};
use crate::clock::Clock;
use crate::store::{Db, Page};
use anyhow::{Context as _, bail};
use clap::ValueEnum;
use shared::api::Tunnel;
use shared::best_exit::DecisionRules;
use shared::replay::history::History;
use shared::replay::report::{DECIDING, Request, replay};
use std::io::Read as _;
use std::path::PathBuf;

/// The form of the file, for `--help`.
const FORM: &str = "\
The file is JSON:
  { \"exitpilotHistory\": 1, \"name\": \"hk\", \"settings\": { … as in /api/v1/settings, all optional … },
    \"owners\": [ { \"owner\": \"entry-1\", \"exits\": [\"hk-1\", \"hk-2\"],
      \"rounds\": [ [1785542400000, [ [[31.2, 0], [18.4, 0.25]], [[40.1, 0], \"all_lost\"] ]], … ] } ] }
A round is its time (UTC milliseconds) and, for each exit, both legs: owner to exit, exit to target. A leg is mean
latency in ms and loss (0 to 1), or why it failed (all_lost, refused, unresolved, unreachable, unsuccessful), or null:
not measured. `exitpilot export-history` writes such a file; an answer of GET /api/v1/tunnels/ID/quality is read too.
Every replay begins with the first exit.";

/// `exitpilot export-history`
#[derive(clap::Args)]
pub(crate) struct ExportArguments {
    /// The tunnel: its name or its number.
    tunnel: String,
    /// Only so many hours back; without it everything that is kept.
    #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    hours: Option<u32>,
    /// Where to write it; without it to the standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// `exitpilot replay`
#[derive(clap::Args)]
#[command(after_help = FORM)]
pub(crate) struct ReplayArguments {
    /// What was measured; `-` is the standard input.
    #[arg(value_name = "HISTORY")]
    file: PathBuf,
    /// A setting of how to decide that differs from the history's; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", long_help = set_help())]
    set: Vec<String>,
    /// Only these rules of `best`; without it both.
    #[arg(long, value_enum)]
    rules: Vec<Rules>,
    /// A policy of a group beside them, as in `urltest(tolerance=20)`; may be given several times.
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Suggest no settings; that takes most of the time.
    #[arg(long)]
    no_suggestion: bool,
}

fn set_help() -> String {
    format!("A setting of how to decide that differs from the history's: one of {}", DECIDING.join(", "))
}

#[derive(Clone, Copy, ValueEnum)]
enum Rules {
    /// Rounds in a row.
    Classic,
    /// Windows and noise.
    Adaptive,
}

/// The history of a tunnel as a file.
pub(crate) async fn export(db: &Db, clock: &Clock, arguments: &ExportArguments) -> anyhow::Result<()> {
    let mut tx = db.read().await?;
    let tunnels: Vec<Tunnel> = tx.tunnels(Page::ALL).await?.into_iter().map(|row| row.tunnel).collect();
    let named = tunnels.iter().find(|tunnel| tunnel.name == arguments.tunnel);
    let numbered = || tunnels.iter().find(|tunnel| tunnel.id.to_string() == arguments.tunnel);
    let Some(tunnel) = named.or_else(numbered) else {
        let names: Vec<&str> = tunnels.iter().map(|tunnel| tunnel.name.as_str()).collect();
        bail!("there is no tunnel `{}`; there are: {}", arguments.tunnel, names.join(", "));
    };
    drop(tx);
    let from = arguments.hours.is_none().then_some(0);
    let length_ms = i64::from(arguments.hours.unwrap_or(0)).saturating_mul(HOUR_MS);
    let span = Asked { from, ..Asked::default() }.span(clock.wall_ms(), length_ms)?;
    let history = replays::read(db, tunnel.id, span, Points::Newest(u32::MAX)).await?;
    history.check().with_context(|| format!("nothing of `{}` can be replayed", tunnel.name))?;
    let text = serde_json::to_string(&history)? + "\n";
    match &arguments.output {
        None => crate::cli::print(&text),
        Some(file) => {
            std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
            let rounds: usize = history.owners.iter().map(|owner| owner.rounds.len()).sum();
            crate::cli::print(&format!(
                "{}: {rounds} rounds of {} owners, {:.2} days\n",
                file.display(),
                history.owners.len(),
                history.days()
            ))
        }
    }
}

/// Replays a file.
pub(crate) fn run(arguments: &ReplayArguments) -> anyhow::Result<()> {
    let name = arguments.file.display();
    let text = if arguments.file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("the standard input")?;
        text
    } else {
        std::fs::read_to_string(&arguments.file).with_context(|| format!("cannot read {name}"))?
    };
    let history = History::parse(&text).with_context(|| format!("{name} is no history"))?;
    let mut request = Request {
        policies: arguments.policies.clone(),
        suggest: !arguments.no_suggestion,
        ..Request::default()
    };
    for set in &arguments.set {
        let Some((name, value)) = set.split_once('=') else { bail!("--set {set}: write NAME=VALUE") };
        request.set.push((name.to_owned(), value.to_owned()));
    }
    let rules = |rules: &Rules| match rules {
        Rules::Classic => DecisionRules::Classic,
        Rules::Adaptive => DecisionRules::Adaptive,
    };
    request.rules = arguments.rules.iter().map(rules).collect();
    let report = replay(&history, &request)?;
    let text = if arguments.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.table() };
    crate::cli::print(&text)
}
