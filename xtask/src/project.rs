//! The workspace the commands work on: its folders and what `cargo metadata` tells about its packages.

use crate::run;
use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The workspace.
pub(crate) struct Project {
    root: PathBuf,
    metadata: Metadata,
}

/// The part of `cargo metadata --no-deps` that the commands look at.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

/// One package of the workspace.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// One entry of a package's dependencies, of any kind (normal, dev, build).
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
}

/// One thing cargo can build from a package.
#[derive(Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

impl Package {
    /// Names of the package's targets of one kind (`bin`, `test`, `bench`), in alphabetical order.
    pub(crate) fn targets(&self, kind: &str) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .targets
            .iter()
            .filter(|target| target.kind.iter().any(|k| k == kind))
            .map(|target| target.name.as_str())
            .collect();
        names.sort_unstable();
        names
    }
}

impl Project {
    /// Finds the workspace around this command.
    pub(crate) fn load() -> Result<Self> {
        let root = find_root()?;
        let mut metadata = run::command("cargo");
        metadata.current_dir(&root).args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
        let json = run::captured(&mut metadata)?;
        let metadata = serde_json::from_str(&json).context("cargo metadata printed something unexpected")?;
        Ok(Self { root, metadata })
    }

    /// The workspace's top folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo builds; follows `CARGO_TARGET_DIR`.
    pub(crate) fn cargo_target(&self) -> &Path {
        &self.metadata.target_directory
    }

    /// Where the page, the distribution and their marks go. The panel embeds the page from there, so it does not
    /// follow `CARGO_TARGET_DIR`.
    pub(crate) fn output(&self) -> PathBuf {
        self.root.join("target")
    }

    /// The folder of the executables of `cargo build`.
    pub(crate) fn debug_binaries(&self) -> PathBuf {
        self.cargo_target().join("debug")
    }

    /// All packages of the workspace.
    pub(crate) fn packages(&self) -> &[Package] {
        &self.metadata.packages
    }

    /// One package of the workspace.
    pub(crate) fn package(&self, name: &str) -> Result<&Package> {
        self.packages()
            .iter()
            .find(|package| package.name == name)
            .with_context(|| format!("the workspace has no package {name}"))
    }

    /// The text of Cargo.lock.
    pub(crate) fn lockfile(&self) -> Result<String> {
        fs::read_to_string(self.root.join("Cargo.lock")).context("cannot read Cargo.lock")
    }

    /// A cargo command in the workspace.
    pub(crate) fn cargo<const N: usize>(&self, arguments: [&str; N]) -> std::process::Command {
        let mut command = run::command("cargo");
        command.current_dir(&self.root).args(arguments);
        command
    }
}

/// `cargo run` tells the folder of xtask; a binary started by hand looks upwards from where it was started.
fn find_root() -> Result<PathBuf> {
    if let Some(parent) =
        env::var_os("CARGO_MANIFEST_DIR").and_then(|dir| Some(Path::new(&dir).parent()?.to_owned()))
    {
        return Ok(parent);
    }
    let here = env::current_dir().context("cannot read the current folder")?;
    here.ancestors()
        .find(|dir| dir.join("xtask/Cargo.toml").is_file())
        .map(Path::to_owned)
        .with_context(|| format!("{} is not inside the workspace", here.display()))
}
