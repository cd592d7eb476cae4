//! `cargo xtask demo`.

use crate::cache::Cache;
use crate::project::Project;
use crate::setup::{self, Part};
use crate::{page, run};
use anyhow::{Context as _, Result, bail};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;

const BINARY: &str = "exitpilot-demo";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Play the story once without waiting for a visitor, and end
    #[arg(long)]
    headless: bool,
    /// Write what happened to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The port of the panel's page
    #[arg(long)]
    port: Option<u16>,
}

/// Builds everything and becomes the demo.
pub(crate) fn run(project: &Project, arguments: &Arguments) -> Result<bool> {
    if !project.package("tests")?.targets("bin").contains(&BINARY) {
        bail!("the package `tests` has no binary {BINARY}");
    }
    let cache = Cache::open()?;
    // Without namespaces the demo falls back to loopback addresses, so a missing `ip` must not stop it.
    if let Err(error) = setup::ensure(project, &cache, &[Part::Lab]) {
        println!("demo: {error:#}; going on without a network of its own");
    }
    page::build(project)?;
    println!("demo: building panel, agent and lab");
    run::shown(&mut project.cargo(["build", "-p", "server", "-p", "agent", "-p", "tests"]))?;

    let binaries = project.debug_binaries();
    // In the caller's folder: the file of --json is relative to it.
    let mut demo = run::command(binaries.join(BINARY));
    demo.stdin(Stdio::inherit()).env("EXITPILOT_BIN_DIR", &binaries);
    if arguments.headless {
        demo.arg("--headless");
    }
    if let Some(file) = &arguments.json {
        demo.arg("--json").arg(file);
    }
    if let Some(port) = arguments.port {
        demo.arg("--port").arg(port.to_string());
    }
    Err(demo.exec()).with_context(|| format!("cannot start {BINARY}"))
}
