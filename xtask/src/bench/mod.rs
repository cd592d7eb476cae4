//! Benchmarks of the data plane: the agent beside other products, on this machine's loopback.
//!
//! The soak is no comparison: it shows that the agent does not grow. Nor are the decisions: they compare a machine's own
//! code with WebAssembly.
//!
//! Every product does the same with the same load, within the same minutes and in an order that turns round from run to
//! run, so that what else the machine does hits all alike. Medians and ratios are told, never single numbers.

mod decisions;
mod idle;
mod load;
mod machine;
mod numbers;
mod product;
mod relay;
mod report;
mod running;
pub(crate) mod soak;
mod swap;
mod udp;

use crate::cache::Cache;
use crate::project::Project;
use crate::run;
use anyhow::{Context as _, Result};
use product::{Product, Products};
use std::fs;
use std::path::PathBuf;

/// Names of the benchmarks, in alphabetical order.
pub(crate) const NAMES: [&str; 6] = ["decisions", "idle", "relay", "soak", "swap", "udp"];
/// Open files that the largest benchmark would like to have.
const FILES: usize = 65_536;
/// Files of a process that are no relayed connection.
const OTHER_FILES: usize = 1_500;

/// Whether a benchmark needs the release build of the agent.
pub(crate) fn needs_agent(name: &str) -> bool {
    name != "decisions"
}

/// How to run one.
#[derive(Default)]
pub(crate) struct Options {
    /// Runs of each product.
    pub(crate) runs: usize,
    /// As short as still shows that everything works; the numbers mean nothing.
    pub(crate) quick: bool,
    /// Only scenarios whose names hold this.
    pub(crate) only: Option<String>,
    /// Without other products.
    pub(crate) alone: bool,
    /// Where the results go.
    pub(crate) json: Option<PathBuf>,
    /// How long and with how many connections the soak runs.
    pub(crate) soak: soak::Size,
}

struct Settings {
    runs: usize,
    quick: bool,
    only: Option<String>,
    json: Option<PathBuf>,
    products: Products,
    dir: PathBuf,
    files: usize,
}

impl Settings {
    /// A fresh folder for one product's files.
    fn folder(&self, product: &str) -> Result<PathBuf> {
        let dir = self.dir.join(product);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(dir)
    }

    /// Whether a scenario is wanted.
    fn wants(&self, scenario: &str) -> bool {
        self.only.as_deref().is_none_or(|only| scenario.contains(only))
    }

    /// Connections that one process can relay, and this one be both ends of. The agent admits fewer than two files each
    /// would allow, since some need a third.
    fn most_connections(&self) -> usize {
        self.files.saturating_sub(OTHER_FILES) / 3
    }
}

/// Runs one of [`NAMES`] with the release build of the agent, which must be there for those that need it.
pub(crate) fn run(project: &Project, cache: &Cache, name: &str, options: Options) -> Result<bool> {
    let Options { runs, quick, only, alone, json, soak } = options;
    let dir = project.cargo_target().join("bench-files").join(name);
    let mut products = Products::find(project, cache)?;
    if alone {
        products.there.retain(Product::is_ours);
    }
    let settings = Settings { runs, quick, only, json, products, dir, files: raise_file_limit() };
    let outcome = match name {
        "decisions" => decisions::run(project, cache, &settings),
        "idle" => idle::run(&settings),
        "relay" => relay::run(&settings),
        "soak" => soak::run(&settings, soak),
        "swap" => swap::run(&settings),
        _ => udp::run(&settings),
    };
    let _ = fs::remove_dir_all(&settings.dir);
    outcome
}

/// The products, forwards and backwards in turn.
fn in_turn(products: &Products, run: usize) -> impl Iterator<Item = &Product> {
    let count = products.there.len();
    (0..count).map(move |i| &products.there[if run.is_multiple_of(2) { i } else { count - 1 - i }])
}

/// Raises the limit on open files for this process and those it starts, as far as the system lets it; returns it.
fn raise_file_limit() -> usize {
    let mut limit = run::command("prlimit");
    limit.arg(format!("--pid={}", std::process::id())).arg(format!("--nofile={FILES}:{FILES}"));
    if let Err(error) = run::captured(&mut limit) {
        println!("bench: the limit on open files stays as it is: {error:#}");
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(1024)
}
