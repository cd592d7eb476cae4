//! Trunk, wasm-bindgen and wasm-opt, each in a folder of its own in the cache.

use super::{Found, Setup};
use crate::cache::{Cache, find_program};
use crate::lockfile::locked_version;
use crate::project::Project;
use crate::run;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The newest Trunk that Rust 1.95 builds: 0.22 asks for 1.96.1.
pub(crate) const TRUNK_VERSION: &str = "0.21.14";
/// The version of binaryen's npm package. Version 108, which Debian 12 has, turns a valid module into one that the
/// browser refuses with `WebAssembly.Table.set(): Argument 1 is invalid`, and reports success.
pub(crate) const WASM_OPT_VERSION: &str = "132";

/// A slow machine needs a quarter of an hour for Trunk; this is for one that hangs.
const INSTALL_LIMIT: Duration = Duration::from_secs(60 * 60);

/// The folder with `trunk` in it.
pub(crate) fn trunk_dir(cache: &Cache) -> PathBuf {
    cache.tool("trunk", TRUNK_VERSION).join("bin")
}

/// The folder with `wasm-bindgen` and `wasm-bindgen-test-runner` of exactly the version in Cargo.lock: the tool
/// refuses code that was built with any other.
pub(crate) fn wasm_bindgen_dir(project: &Project, cache: &Cache) -> Result<PathBuf> {
    let version = locked_version(&project.lockfile()?, "wasm-bindgen")?;
    Ok(cache.tool("wasm-bindgen", &version).join("bin"))
}

/// The folder with `wasm-opt`, or `None` where it could not be installed.
pub(crate) fn wasm_opt_dir(cache: &Cache) -> Option<PathBuf> {
    let dir = binaryen(cache).join("node_modules/.bin");
    dir.join("wasm-opt").exists().then_some(dir)
}

fn binaryen(cache: &Cache) -> PathBuf {
    cache.tool("binaryen", &format!("{WASM_OPT_VERSION}.0.0"))
}

pub(super) fn trunk(setup: &Setup<'_>) -> Result<Found> {
    let what = format!("trunk {TRUNK_VERSION}");
    if says_version(&trunk_dir(setup.cache).join("trunk"), TRUNK_VERSION) {
        return Ok(Found::There(what));
    }
    setup.starting("trunk", "building it, about 3 minutes on 2 cores");
    // Unoptimised: it builds in half the time and the page takes as long with it.
    let flags = ["--locked", "--debug", "--no-default-features", "--features", "rustls"];
    cargo_install(setup.cache, "trunk", "trunk", TRUNK_VERSION, &flags, "0")?;
    Ok(Found::Installed(what))
}

pub(super) fn wasm_bindgen(setup: &Setup<'_>) -> Result<Found> {
    let version = locked_version(&setup.project.lockfile()?, "wasm-bindgen")?;
    let what = format!("wasm-bindgen {version}");
    let dir = setup.cache.tool("wasm-bindgen", &version).join("bin");
    if says_version(&dir.join("wasm-bindgen"), &version) && dir.join("wasm-bindgen-test-runner").is_file() {
        return Ok(Found::There(what));
    }
    setup.starting("wasm-bindgen", &format!("building {version}, about 3 minutes on 2 cores"));
    // Not --locked: its lock file names versions that not every registry mirror has. A little optimisation, because it
    // works through the whole unoptimised module at every build of the page.
    cargo_install(setup.cache, "wasm-bindgen", "wasm-bindgen-cli", &version, &["--debug"], "1")?;
    Ok(Found::Installed(what))
}

pub(super) fn wasm_opt(setup: &Setup<'_>) -> Result<Found> {
    let what = format!("wasm-opt {WASM_OPT_VERSION}");
    let installed =
        |dir: Option<PathBuf>| dir.is_some_and(|dir| says_version(&dir.join("wasm-opt"), WASM_OPT_VERSION));
    if installed(wasm_opt_dir(setup.cache)) {
        return Ok(Found::There(what));
    }
    if find_program("npm").is_none() || find_program("node").is_none() {
        return Ok(Found::Without("npm is not installed; the page is built without it and is bigger".into()));
    }
    let dir = binaryen(setup.cache);
    fs::create_dir_all(&dir)?;
    let mut npm = run::command("npm");
    npm.current_dir(&dir).args(["install", "--no-fund", "--no-audit", "--no-update-notifier", "--prefix"]);
    npm.arg(&dir).arg(format!("binaryen@{WASM_OPT_VERSION}.0.0"));
    if let Err(error) = run::logged(&mut npm, &setup.cache.log("wasm-opt"), Duration::from_secs(300)) {
        return Ok(Found::Without(format!("the page is built without it and is bigger: {error:#}")));
    }
    if !installed(wasm_opt_dir(setup.cache)) {
        bail!("npm installed binaryen in {}, but its wasm-opt does not run", dir.display());
    }
    Ok(Found::Installed(what))
}

/// Installs one crate's executables below the cache. A build folder of its own in the cache lets an interrupted run go
/// on where it stopped.
fn cargo_install(
    cache: &Cache,
    tool: &str,
    krate: &str,
    version: &str,
    flags: &[&str],
    opt_level: &str,
) -> Result<()> {
    let root = cache.tool(tool, version);
    let build = cache.dir().join("build").join(format!("{tool}-{version}"));
    fs::create_dir_all(&build)?;
    let mut cargo = run::command("cargo");
    // From the cache, so that the workspace's .cargo/config.toml has no say.
    cargo.current_dir(cache.dir()).args(["install", "--force", "--version", version]).args(flags);
    cargo.arg("--root").arg(&root).arg(krate);
    forget_build_settings(&mut cargo);
    cargo.env("CARGO_TARGET_DIR", &build);
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_OPT_LEVEL", opt_level);
    run::logged(&mut cargo, &cache.log(tool), INSTALL_LIMIT)?;
    fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))
}

/// Takes away what a caller may have set for building the product and what would spoil a tool.
pub(super) fn forget_build_settings(command: &mut Command) {
    for name in [
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET_DIR",
        "CARGO_BUILD_TARGET",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTFLAGS",
    ] {
        command.env_remove(name);
    }
}

/// Whether the program starts and has the version among the words of its `--version`.
fn says_version(program: &Path, version: &str) -> bool {
    if !program.exists() {
        return false;
    }
    run::captured(run::command(program).arg("--version"))
        .is_ok_and(|said| said.split_whitespace().any(|word| word == version))
}
