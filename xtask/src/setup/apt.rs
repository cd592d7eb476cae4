//! What comes from the machine's package manager.

use super::{Found, Setup};
use crate::cache::{Cache, find_program};
use crate::run;
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;
use std::time::Duration;

const INSTALL_LIMIT: Duration = Duration::from_secs(30 * 60);

pub(super) fn node(setup: &Setup<'_>) -> Result<Found> {
    provide(setup, "Node.js", &["nodejs"], "about 30 MB", || find_program("node").is_some())
}

pub(super) fn browser(setup: &Setup<'_>) -> Result<Found> {
    let packages = ["chromium", "chromium-driver", "fonts-noto-cjk"];
    provide(setup, "Chromium", &packages, "about 200 MB", || {
        find_program("chromium").is_some() && find_program("chromedriver").is_some() && has_chinese_font()
    })
}

pub(super) fn lab(setup: &Setup<'_>) -> Result<Found> {
    provide(setup, "iproute2", &["iproute2"], "about 1 MB", || find_program("ip").is_some())
}

pub(super) fn postgres(setup: &Setup<'_>) -> Result<Found> {
    provide(setup, "PostgreSQL", &["postgresql"], "about 60 MB", || {
        fs::read_dir("/usr/lib/postgresql")
            .is_ok_and(|mut versions| versions.any(|v| v.is_ok_and(|v| v.path().join("bin/initdb").exists())))
            || find_program("initdb").is_some()
    })
}

/// Installs `packages` unless `there` says that they are not needed.
pub(super) fn provide(
    setup: &Setup<'_>,
    name: &str,
    packages: &[&str],
    size: &str,
    there: impl Fn() -> bool,
) -> Result<Found> {
    let what = packages.join(", ");
    if there() {
        return Ok(Found::There(what));
    }
    setup.starting(name, &format!("installing {what} ({size})"));
    install(setup.cache, packages)?;
    if !there() {
        bail!("{what} was installed, but is not found");
    }
    Ok(Found::Installed(what))
}

/// Installs Debian packages; without the right to do so the error says the command.
pub(super) fn install(cache: &Cache, packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if find_program("apt-get").is_none() {
        bail!("install it with the package manager of this machine (Debian calls it: {names})");
    }
    if !is_root() {
        bail!("run: sudo apt-get install --no-install-recommends {names}");
    }
    let apt = |arguments: &[&str]| {
        let mut command = run::command("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("-q").args(arguments);
        command
    };
    // The package lists of a fresh image are empty or old. When the update fails, the lists there may still do.
    let updated = run::logged(&mut apt(&["update"]), &cache.log("apt-update"), INSTALL_LIMIT);
    let mut command = apt(&["install", "-y", "--no-install-recommends"]);
    command.args(packages);
    let installed = run::logged(&mut command, &cache.log("apt-install"), INSTALL_LIMIT);
    match (installed, updated) {
        (Err(error), Err(update)) => Err(error.context(update)),
        (result, _) => result,
    }
}

/// Whether this process may change the system.
pub(crate) fn is_root() -> bool {
    // The effective user is the second number of the line; asking the kernel's file saves a dependency.
    fs::read_to_string("/proc/self/status").is_ok_and(|status| effective_user(&status) == Some(0))
}

fn effective_user(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

/// Without such a font every Chinese character is an empty box, and no test notices: they read the text, not the
/// picture.
fn has_chinese_font() -> bool {
    if Path::new("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc").exists() {
        return true;
    }
    run::captured(run::command("fc-list").arg(":lang=zh-cn")).is_ok_and(|fonts| !fonts.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_effective_user() {
        assert_eq!(effective_user("Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n"), Some(0));
        assert_eq!(effective_user("Name:\tx\n"), None);
    }
}
