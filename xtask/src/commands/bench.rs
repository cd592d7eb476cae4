//! `cargo xtask bench`.

use crate::cache::Cache;
use crate::project::Project;
use crate::setup::{self, Part};
use crate::{bench, page, run, site};
use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};
use std::fs;
use std::path::{PathBuf, absolute};

/// Enough for a median that one disturbed run does not move.
const RUNS: usize = 5;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The benchmark; without it all of them
    name: Option<String>,
    /// Write the results to this file; of several benchmarks as one object with their names as keys
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Runs of each product of a comparison, or visits of the page; 5 without it
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// Only those scenarios of a comparison whose names hold this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Only show that the benchmark works: one short run, whose numbers mean nothing
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    soak: bench::soak::Size,
}

/// Who has a benchmark.
#[derive(Clone, Copy)]
enum Home<'a> {
    /// This program: whole products beside each other.
    Here,
    /// A package, as a target of `cargo bench`.
    Package(&'a str),
}

/// Runs one benchmark or all of them, one after the other.
pub(crate) fn run(project: &Project, arguments: &Arguments) -> Result<bool> {
    let mut known: Vec<(&str, Home<'_>)> = project
        .packages()
        .iter()
        .flat_map(|package| {
            let home = Home::Package(&package.name);
            let own = package.targets("bench").into_iter().filter(|bench| !bench::NAMES.contains(bench));
            own.map(move |bench| (bench, home))
        })
        .chain(bench::NAMES.map(|bench| (bench, Home::Here)))
        .collect();
    known.sort_unstable_by_key(|(bench, _)| *bench);
    let names = || known.iter().map(|(bench, _)| *bench).collect::<Vec<_>>().join(", ");
    let json = arguments.json.as_deref().map(absolute).transpose()?;
    let cache = Cache::open()?;
    site::ensure_placeholder(&project.output().join("site"))?;

    if let Some(name) = &arguments.name {
        let Some((bench, home)) = known.iter().find(|(bench, _)| bench == name) else {
            bail!("there is no benchmark {name}; there are: {}", names());
        };
        return one(project, &cache, (bench, *home), json, arguments);
    }
    let (mut results, mut good) = (Map::new(), true);
    for (bench, home) in &known {
        println!("bench: {bench}");
        let part = json.as_ref().map(|_| project.cargo_target().join(format!("bench-{bench}.json")));
        good &= one(project, &cache, (bench, *home), part.clone(), arguments)?;
        if let Some(part) = part {
            let text =
                fs::read_to_string(&part).with_context(|| format!("{bench} wrote no {}", part.display()))?;
            results.insert((*bench).to_owned(), serde_json::from_str(&text)?);
            fs::remove_file(&part)?;
        }
    }
    if let Some(json) = json {
        fs::write(&json, serde_json::to_string_pretty(&Value::Object(results))?)
            .with_context(|| format!("cannot write {}", json.display()))?;
    }
    Ok(good)
}

/// Shows that the comparisons work: each runs once, shortly, without other products, and writes its results. The release
/// build of the agent must be there. And that the benchmark of the panel works.
pub(crate) fn smoke(project: &Project) -> Result<bool> {
    let cache = Cache::open()?;
    let mut good = true;
    for name in bench::NAMES {
        let json = project.cargo_target().join(format!("bench-{name}.json"));
        let options = bench::Options {
            runs: 1,
            quick: true,
            alone: true,
            json: Some(json.clone()),
            ..bench::Options::default()
        };
        good &= bench::run(project, &cache, name, options)?;
        let written: Value = serde_json::from_str(&fs::read_to_string(&json)?)?;
        let results = written["results"].as_array().map_or(0, Vec::len);
        if results == 0 {
            println!("bench: {name} has no results");
            good = false;
        }
        fs::remove_file(&json)?;
    }
    // The panel that the suites have built; its numbers mean nothing anyway.
    let mut cargo = project.cargo(["bench", "-p", "server", "--bench", "panel", "--profile", "dev"]);
    run::shown(cargo.args(["--", "--quick"]))?;
    Ok(good)
}

fn one(
    project: &Project,
    cache: &Cache,
    (bench, home): (&str, Home<'_>),
    json: Option<PathBuf>,
    arguments: &Arguments,
) -> Result<bool> {
    // Benchmarks of whole processes measure what people run: the release profile.
    match home {
        Home::Here => {
            if bench::needs_agent(bench) {
                run::shown(&mut project.cargo(["build", "--release", "-p", "agent"]))?;
            }
            let (quick, only) = (arguments.quick, arguments.only.clone());
            let runs = if arguments.quick { 1 } else { arguments.runs.unwrap_or(RUNS).max(1) };
            let soak = arguments.soak;
            bench::run(project, cache, bench, bench::Options { runs, quick, only, alone: false, json, soak })
        }
        Home::Package(package) => {
            let mut cargo = project.cargo(["bench", "-p", package, "--bench", bench]);
            // The others need no other program.
            if package == "tests" {
                setup::ensure(project, cache, &[Part::Browser])?;
                page::build(project)?;
                run::shown(&mut project.cargo(["build", "--release", "-p", "server", "-p", "agent"]))?;
                // It only drives what is measured, and is built already where the suites have run.
                cargo.args(["--profile", "dev"]);
            }
            cargo.arg("--");
            cargo.env("EXITPILOT_BIN_DIR", project.cargo_target().join("release"));
            cargo.env("EXITPILOT_PEERS_DIR", cache.peers());
            if let Some(json) = json {
                cargo.arg("--json").arg(json);
            }
            if arguments.quick {
                cargo.arg("--quick");
            }
            cargo.args(arguments.runs.iter().flat_map(|runs| ["--runs".to_owned(), runs.to_string()]));
            cargo.args(arguments.only.iter().flat_map(|only| ["--only", only]));
            run::shown(&mut cargo).map(|()| true)
        }
    }
}
