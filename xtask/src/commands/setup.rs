//! `cargo xtask setup`.

use crate::cache::Cache;
use crate::project::Project;
use crate::setup::{self, Way};
use anyhow::Result;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Also install the products that tests and benchmarks compare with: GOST, sing-box, HAProxy, nginx, iperf3
    #[arg(long)]
    peers: bool,
    /// How to get the standard library for wasm32
    #[arg(long, value_enum, default_value = "auto")]
    wasm_std: Way,
}

/// Installs what is missing and says so; repeatable.
pub(crate) fn run(project: &Project, arguments: &Arguments) -> Result<bool> {
    let cache = Cache::open()?;
    println!("setup: tools are kept in {}", cache.dir().display());
    setup::everything(project, &cache, arguments.wasm_std, arguments.peers)
}
