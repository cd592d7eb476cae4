//! TypeScript, and the types of React, for projects that use our npm packages. Never shipped; a machine that cannot get
//! them skips what compiles such projects.

use super::{Found, Setup};
use crate::cache::{Cache, find_program};
use crate::run;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const VERSION: &str = "5.9.3";
/// All that is installed, and what it hashes to. Nothing of it runs while it is installed.
const PACKAGES: [(&str, &str, &str); 3] = [
    (
        "typescript",
        VERSION,
        "sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==",
    ),
    (
        "@types/react",
        "19.1.13",
        "sha512-hHkbU/eoO3EG5/MZkuFSKmYqPbSVk5byPFa3e7y/8TybHiLMACgI8seVYlicwk7H5K/rI2px9xrQp/C+AUDTiQ==",
    ),
    (
        "csstype",
        "3.1.3",
        "sha512-M1uQkMl8rQK/szD0LNhtqxIPLpimGm8sOBwU7lLnCpSbTyY3yeU1Vc7l4KT5zT4s/yOxHH5O7tIuuLOCnLADRw==",
    ),
];

const LIMIT: Duration = Duration::from_secs(300);

/// The folder whose `node_modules` they are in.
pub(crate) fn folder(cache: &Cache) -> PathBuf {
    cache.tool("typescript", VERSION)
}

pub(super) fn install(setup: &Setup<'_>) -> Result<Found> {
    let folder = folder(setup.cache);
    let what = format!("typescript {VERSION}");
    let (manifest, lock) = (manifest().to_string(), lock().to_string());
    // Written last: an interrupted run must not look like a finished one.
    let mark = folder.join("pinned.json");
    if fs::read_to_string(&mark).is_ok_and(|pinned| pinned == lock) {
        return Ok(Found::There(what));
    }
    let without = |why: String| Ok(Found::Without(format!("projects in TypeScript are not compiled: {why}")));
    if find_program("npm").is_none() {
        return without("npm is not installed".to_owned());
    }
    let fetch = || -> Result<()> {
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        fs::write(folder.join("package.json"), &manifest)?;
        fs::write(folder.join("package-lock.json"), &lock)?;
        let mut npm = run::command("npm");
        npm.current_dir(&folder);
        npm.args(["ci", "--ignore-scripts", "--no-fund", "--no-audit", "--no-update-notifier"]);
        run::logged(&mut npm, &setup.cache.log("typescript"), LIMIT)?;
        ensure!(folder.join("node_modules/typescript/bin/tsc").is_file(), "there is no compiler in it");
        Ok(fs::write(&mark, &lock)?)
    };
    match fetch() {
        Ok(()) => Ok(Found::Installed(what)),
        Err(error) => without(format!("{error:#}")),
    }
}

fn wanted() -> Value {
    PACKAGES
        .iter()
        .map(|(name, version, _)| ((*name).to_owned(), json!(version)))
        .collect::<Map<_, _>>()
        .into()
}

fn manifest() -> Value {
    json!({ "name": "exitpilot-typescript", "version": "0.0.0", "private": true, "dependencies": wanted() })
}

/// npm refuses a package whose archive does not hash to what stands here.
fn lock() -> Value {
    let mut packages = Map::new();
    packages.insert(
        String::new(),
        json!({ "name": "exitpilot-typescript", "version": "0.0.0", "dependencies": wanted() }),
    );
    for (name, version, integrity) in PACKAGES {
        let mut package = json!({ "version": version, "integrity": integrity });
        if name == "@types/react" {
            package["dependencies"] = json!({ "csstype": "^3.0.2" });
        }
        packages.insert(format!("node_modules/{name}"), package);
    }
    json!({ "name": "exitpilot-typescript", "version": "0.0.0", "lockfileVersion": 3, "requires": true, "packages": packages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_pinned() {
        let lock = lock();
        for (name, version, _) in PACKAGES {
            let package = &lock["packages"][format!("node_modules/{name}")];
            assert_eq!(package["version"], version);
            assert!(package["integrity"].as_str().is_some_and(|hash| hash.starts_with("sha512-")));
            assert_eq!(lock["packages"][""]["dependencies"][name], version);
        }
    }
}
