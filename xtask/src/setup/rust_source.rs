//! The source of Rust's standard library in one exact version.

use super::Setup;
use super::scratch::ScratchDir;
use crate::cache::{Cache, find_program};
use crate::run;
use anyhow::{Context as _, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

const DOWNLOAD_LIMIT: Duration = Duration::from_secs(20 * 60);
/// Suites that are newer than the machine's and may have `rust-src` of its rustc.
const SUITES: [&str; 3] = ["trixie-backports", "trixie", "sid"];
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// A folder that holds `library/` of exactly the running rustc's source, for machines that reach nothing.
pub(super) const SOURCE_VARIABLE: &str = "EXITPILOT_RUST_SOURCE";

/// The folder whose `library/` is the source of exactly that version.
pub(super) fn find_source(setup: &Setup<'_>, sysroot: &Path, version: &str) -> Result<PathBuf> {
    let component = sysroot.join("lib/rustlib/src/rust");
    let unpacked = setup.cache.dir().join(format!("rust-source-{version}"));
    let given = env::var_os(SOURCE_VARIABLE).map(PathBuf::from);
    for dir in given.into_iter().chain([component, unpacked.clone()]) {
        if dir.join("library/std/Cargo.toml").is_file() {
            return Ok(dir);
        }
    }
    setup.starting(
        "wasm32 standard library",
        &format!("looking for the source of rust {version} in newer suites"),
    );
    download_source(setup.cache, version, &unpacked)?;
    Ok(unpacked)
}

/// Gets `rust-src` of one version from a newer suite of the distribution: through a configuration of apt's own that
/// leaves the machine's alone, from the mirror the machine uses. apt checks signature and hash.
fn download_source(cache: &Cache, version: &str, unpacked: &Path) -> Result<()> {
    if find_program("apt-get").is_none() || !Path::new(KEYRING).is_file() {
        bail!("this is not Debian");
    }
    let targets = run::captured(run::command("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Created-By: Packages",
    ]))?;
    let mirror = main_mirror(&targets).context("apt knows no mirror of Debian")?;
    let apt = cache.dir().join("apt");
    for dir in ["lists/partial", "cache/archives/partial", "none"] {
        fs::create_dir_all(apt.join(dir))?;
    }
    fs::write(apt.join("status"), "")?;
    let sources: String =
        SUITES.iter().map(|suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n")).collect();
    fs::write(apt.join("sources.list"), sources)?;
    let options = [
        ("Dir::Etc::sourcelist", apt.join("sources.list").into_os_string()),
        ("Dir::Etc::sourceparts", apt.join("none").into_os_string()),
        ("Dir::State::lists", apt.join("lists").into_os_string()),
        ("Dir::State::status", apt.join("status").into_os_string()),
        ("Dir::Cache", apt.join("cache").into_os_string()),
        ("APT::Sandbox::User", "root".into()),
        ("Acquire::Languages", "none".into()),
    ];
    let apt_get = |dir: &Path| {
        let mut command = run::command("apt-get");
        command.arg("-q").current_dir(dir);
        for (name, value) in &options {
            let mut option = OsString::from(format!("{name}="));
            option.push(value);
            command.arg("-o").arg(option);
        }
        command
    };
    let log = cache.log("rust-source");
    let dir = ScratchDir::inside(&apt, "download")?;
    run::logged(apt_get(dir.path()).arg("update"), &log, DOWNLOAD_LIMIT)?;
    run::logged(
        apt_get(dir.path()).args(["download", &format!("rust-src={version}+*")]),
        &log,
        DOWNLOAD_LIMIT,
    )?;
    let package = fs::read_dir(dir.path())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt-get downloaded nothing")?;
    let content = dir.path().join("content");
    run::logged(run::command("dpkg").arg("-x").arg(&package).arg(&content), &log, DOWNLOAD_LIMIT)?;
    fs::create_dir_all(unpacked)?;
    fs::rename(content.join(format!("usr/src/rustc-{version}/library")), unpacked.join("library"))
        .context("the package has no library folder")
}

/// The mirror of the distribution proper among apt's index targets (not that of its security updates).
fn main_mirror(targets: &str) -> Option<&str> {
    let mut mirrors: Vec<&str> =
        targets.lines().map(str::trim).filter(|uri| uri.trim_end_matches('/').ends_with("/debian")).collect();
    mirrors.sort_unstable();
    mirrors.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_not_the_one_for_security_updates() {
        let targets = "http://mirror.example/debian-security/\nhttp://mirror.example/debian/\nhttp://mirror.example/debian/\n";
        assert_eq!(main_mirror(targets), Some("http://mirror.example/debian/"));
        assert_eq!(main_mirror("http://mirror.example/ubuntu\n"), None);
    }
}
