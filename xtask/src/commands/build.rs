//! `cargo xtask build` and `cargo xtask page`.

use crate::project::Project;
use crate::{page, run};
use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs;

/// The executables people install.
const BINARIES: [&str; 2] = ["exitpilot", "exitpilot-agent"];

/// Builds the page only.
pub(crate) fn page(project: &Project) -> Result<bool> {
    page::build(project)?;
    Ok(true)
}

/// Builds the panel with the page in it and the agent, and puts them into target/dist/ with their checksums.
pub(crate) fn run(project: &Project) -> Result<bool> {
    page::build(project)?;
    run::shown(&mut project.cargo(["build", "--release", "-p", "server", "-p", "agent"]))?;
    let dist = project.output().join("dist");
    fs::create_dir_all(&dist)?;
    let mut sums = String::new();
    for name in BINARIES {
        let built = project.cargo_target().join("release").join(name);
        let place = dist.join(name);
        // Beside it and then renamed: the old one may be running.
        let fresh = dist.join(format!(".{name}.new"));
        fs::copy(&built, &fresh).with_context(|| format!("cannot copy {}", built.display()))?;
        fs::rename(&fresh, &place).with_context(|| format!("cannot write {}", place.display()))?;
        let content = fs::read(&place)?;
        println!("build: {} ({} KiB)", place.display(), content.len() / 1024);
        // The format of sha256sum, so that `sha256sum -c SHA256SUMS` checks it.
        writeln!(sums, "{}  {name}", hex::encode(Sha256::digest(&content)))?;
    }
    fs::write(dist.join("SHA256SUMS"), sums)?;
    Ok(true)
}
