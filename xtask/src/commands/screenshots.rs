//! `cargo xtask screenshots`.

use crate::cache::Cache;
use crate::project::Project;
use crate::setup::{self, Part};
use crate::{page, run};
use anyhow::Result;
use std::fs;

/// Where the pictures of docs/screens.md are.
const FOLDER: &str = "docs/screens";

/// Takes the pictures anew.
pub(crate) fn run(project: &Project) -> Result<bool> {
    let cache = Cache::open()?;
    setup::ensure(project, &cache, &[Part::Lab, Part::Browser])?;
    page::build(project)?;
    run::shown(&mut project.cargo(["build", "-p", "server", "-p", "agent"]))?;
    let folder = project.root().join(FOLDER);
    // A picture of a screen that is no more must not stay.
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut cargo = project.cargo(["run", "-p", "tests", "--example", "gallery", "--"]);
    cargo.arg("--folder").arg(&folder).env("EXITPILOT_BIN_DIR", project.debug_binaries());
    run::shown(&mut cargo).map(|()| true)
}
