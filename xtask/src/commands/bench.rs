//! `cargo xtask bench`.

use crate::cache::Cache;
use crate::project::Project;
use crate::{run, site};
use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf, absolute};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The benchmark; without it all of them
    name: Option<String>,
    /// Write the results to this file; of several benchmarks as one object with their names as keys
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs one benchmark or all of them, one after the other.
pub(crate) fn run(project: &Project, arguments: &Arguments) -> Result<bool> {
    let mut known: Vec<(&str, &str)> = project
        .packages()
        .iter()
        .flat_map(|package| package.targets("bench").into_iter().map(|bench| (bench, package.name.as_str())))
        .collect();
    known.sort_unstable();
    if known.is_empty() {
        bail!("there are no benchmarks yet");
    }
    let names = || known.iter().map(|(bench, _)| *bench).collect::<Vec<_>>().join(", ");
    let json = arguments.json.as_deref().map(absolute).transpose()?;
    let cache = Cache::open()?;
    site::ensure_placeholder(&project.output().join("site"))?;

    if let Some(name) = &arguments.name {
        let Some((bench, package)) = known.iter().find(|(bench, _)| bench == name) else {
            bail!("there is no benchmark {name}; there are: {}", names());
        };
        one(project, &cache, package, bench, json.as_deref())?;
        return Ok(true);
    }
    let mut results = Map::new();
    for (bench, package) in &known {
        println!("bench: {bench}");
        let part = json.as_ref().map(|_| project.cargo_target().join(format!("bench-{bench}.json")));
        one(project, &cache, package, bench, part.as_deref())?;
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
    Ok(true)
}

fn one(project: &Project, cache: &Cache, package: &str, bench: &str, json: Option<&Path>) -> Result<()> {
    // Benchmarks of whole processes measure what people run: the release profile.
    run::shown(&mut project.cargo(["build", "--release", "-p", "server", "-p", "agent"]))?;
    let mut cargo = project.cargo(["bench", "-p", package, "--bench", bench]);
    cargo.env("EXITPILOT_BIN_DIR", project.cargo_target().join("release"));
    cargo.env("EXITPILOT_PEERS_DIR", cache.peers());
    if let Some(json) = json {
        cargo.arg("--").arg("--json").arg(json);
    }
    run::shown(&mut cargo)
}
