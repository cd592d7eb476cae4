//! What the machine lacks, part by part. Each part looks first and prints one line.

pub(crate) mod apt;
mod axe;
mod dashboard;
mod npm;
mod page_tools;
mod peers;
mod react;
mod rust_source;
mod scratch;
mod typescript;
mod wasm_std;

pub(crate) use axe::script as axe_script;
pub(crate) use dashboard::folder as dashboard_dir;
pub(crate) use page_tools::{TRUNK_VERSION, WASM_OPT_VERSION, trunk_dir, wasm_bindgen_dir, wasm_opt_dir};
pub(crate) use react::folder as react_dir;
pub(crate) use typescript::folder as typescript_dir;
pub(crate) use wasm_std::{Way, toolchain as wasm_toolchain};

use crate::cache::Cache;
use crate::clock;
use crate::project::Project;
use anyhow::{Result, anyhow};

/// Something a command may need from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The standard library for wasm32-unknown-unknown.
    WasmStd,
    /// The builder of the page.
    Trunk,
    /// wasm-bindgen in the version of Cargo.lock, with its test runner.
    WasmBindgen,
    /// The optimiser of the page's code. The page builds without it, only bigger.
    WasmOpt,
    /// Runs the wasm tests.
    Node,
    /// Chromium, its driver, and a font with Chinese characters.
    Browser,
    /// `ip`, for the network namespaces of the lab.
    Lab,
    /// What the browser suite looks for barriers with.
    Axe,
    /// What the browser suite puts before the agent.
    Dashboard,
    /// What compiles projects that use our npm packages.
    TypeScript,
    /// React and a bundler, for a page that uses our npm packages.
    React,
    /// The server binaries for the suite that runs on PostgreSQL.
    Postgres,
}

impl Part {
    /// What building the page takes.
    pub(crate) const PAGE: [Self; 4] = [Self::WasmStd, Self::Trunk, Self::WasmBindgen, Self::WasmOpt];

    fn name(self) -> &'static str {
        match self {
            Self::WasmStd => "wasm32 standard library",
            Self::Trunk => "trunk",
            Self::WasmBindgen => "wasm-bindgen",
            Self::WasmOpt => "wasm-opt",
            Self::Node => "Node.js",
            Self::Browser => "Chromium",
            Self::Lab => "iproute2",
            Self::Axe => "axe-core",
            Self::Dashboard => "dashboard",
            Self::TypeScript => "TypeScript",
            Self::React => "React",
            Self::Postgres => "PostgreSQL",
        }
    }

    fn install(self, setup: &Setup<'_>) -> Result<Found> {
        match self {
            Self::WasmStd => wasm_std::install(setup),
            Self::Trunk => page_tools::trunk(setup),
            Self::WasmBindgen => page_tools::wasm_bindgen(setup),
            Self::WasmOpt => page_tools::wasm_opt(setup),
            Self::Node => apt::node(setup),
            Self::Browser => apt::browser(setup),
            Self::Lab => apt::lab(setup),
            Self::Axe => axe::install(setup),
            Self::Dashboard => dashboard::install(setup),
            Self::TypeScript => typescript::install(setup),
            Self::React => react::install(setup),
            Self::Postgres => apt::postgres(setup),
        }
    }
}

/// How a part was found or came to be.
pub(crate) enum Found {
    /// It was there; the text says which.
    There(String),
    /// It was installed now.
    Installed(String),
    /// It cannot be had and the work goes on without it; the text says what that costs.
    Without(String),
}

/// One run of setup.
pub(crate) struct Setup<'a> {
    project: &'a Project,
    cache: &'a Cache,
    way: Way,
    /// Whether to print lines about what is there already.
    talkative: bool,
}

impl Setup<'_> {
    /// Announces a step that takes a while.
    fn starting(&self, part: &str, what: &str) {
        println!("setup: {part}: {what}");
    }
}

/// Makes sure that `parts` are there; silent about those that are.
pub(crate) fn ensure(project: &Project, cache: &Cache, parts: &[Part]) -> Result<()> {
    let setup = Setup { project, cache, way: Way::Auto, talkative: false };
    let failed = install_all(&setup, parts)?;
    if failed.is_empty() { Ok(()) } else { Err(anyhow!("missing on this machine: {}", failed.join(", "))) }
}

/// Makes sure that everything is there, and says so. Returns whether it is.
pub(crate) fn everything(project: &Project, cache: &Cache, way: Way, with_peers: bool) -> Result<bool> {
    let setup = Setup { project, cache, way, talkative: true };
    let mut parts = Part::PAGE.to_vec();
    parts.extend([
        Part::Node,
        Part::TypeScript,
        Part::React,
        Part::Browser,
        Part::Axe,
        Part::Dashboard,
        Part::Lab,
    ]);
    if project.packages().iter().any(|package| package.targets("test").contains(&"postgres")) {
        parts.push(Part::Postgres);
    }
    let failed = install_all(&setup, &parts)?;
    if with_peers {
        let _lock = cache.lock()?;
        peers::install(&setup);
    }
    if !failed.is_empty() {
        println!("setup: missing: {}", failed.join(", "));
    }
    Ok(failed.is_empty())
}

/// Installs the parts one after the other and returns the names of those that could not be had.
fn install_all(setup: &Setup<'_>, parts: &[Part]) -> Result<Vec<&'static str>> {
    let _lock = setup.cache.lock()?;
    let mut failed = Vec::new();
    for part in parts {
        let start = clock::now();
        match part.install(setup) {
            Ok(Found::There(what)) => {
                if setup.talkative {
                    println!("setup: {}: {what} is there", part.name());
                }
            }
            Ok(Found::Installed(what)) => {
                println!("setup: {}: {what} installed in {} s", part.name(), start.elapsed().as_secs());
            }
            Ok(Found::Without(cost)) => println!("setup: {}: {cost}", part.name()),
            Err(error) => {
                println!("setup: {}: FAILED: {error:#}", part.name());
                failed.push(part.name());
            }
        }
    }
    Ok(failed)
}
