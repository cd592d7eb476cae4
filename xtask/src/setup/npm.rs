//! Packages of npm for the tests, pinned by what their archives hash to. Nothing of them runs while they are installed,
//! and none is shipped.

use super::{Found, Setup};
use crate::cache::{Cache, find_program};
use crate::run;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);

/// A package: name, version, hash.
pub(super) type Package = (&'static str, &'static str, &'static str);

/// Packages in one folder of the cache.
pub(super) struct Set {
    /// Of the folder.
    pub(super) name: &'static str,
    /// Of the folder.
    pub(super) version: &'static str,
    /// All that is installed.
    pub(super) packages: &'static [Package],
    /// Which of them asks for which other.
    pub(super) needs: &'static [(&'static str, &'static str, &'static str)],
    /// A file below `node_modules` that has to be there in the end.
    pub(super) proof: &'static str,
    /// What is not done without it.
    pub(super) without: &'static str,
}

impl Set {
    /// The folder whose `node_modules` they are in.
    pub(super) fn folder(&self, cache: &Cache) -> PathBuf {
        cache.tool(self.name, self.version)
    }

    pub(super) fn install(&self, setup: &Setup<'_>) -> Result<Found> {
        let folder = self.folder(setup.cache);
        let what = format!("{} {}", self.name, self.version);
        let (manifest, lock) = (self.manifest().to_string(), self.lock().to_string());
        // Written last: an interrupted run must not look like a finished one.
        let mark = folder.join("pinned.json");
        if fs::read_to_string(&mark).is_ok_and(|pinned| pinned == lock) {
            return Ok(Found::There(what));
        }
        let without = |why: String| Ok(Found::Without(format!("{}: {why}", self.without)));
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
            run::logged(&mut npm, &setup.cache.log(self.name), LIMIT)?;
            let proof = folder.join("node_modules").join(self.proof);
            ensure!(proof.is_file(), "there is no {}", proof.display());
            Ok(fs::write(&mark, &lock)?)
        };
        match fetch() {
            Ok(()) => Ok(Found::Installed(what)),
            Err(error) => without(format!("{error:#}")),
        }
    }

    fn project(&self) -> String {
        format!("exitpilot-{}", self.name)
    }

    fn wanted(&self) -> Value {
        let versions = self.packages.iter().map(|(name, version, _)| ((*name).to_owned(), json!(version)));
        versions.collect::<Map<_, _>>().into()
    }

    fn manifest(&self) -> Value {
        json!({ "name": self.project(), "version": "0.0.0", "private": true, "dependencies": self.wanted() })
    }

    /// npm refuses a package whose archive does not hash to what stands here.
    fn lock(&self) -> Value {
        let own = json!({ "name": self.project(), "version": "0.0.0", "dependencies": self.wanted() });
        let mut packages = Map::from_iter([(String::new(), own)]);
        for (name, version, integrity) in self.packages {
            let mut package = json!({ "version": version, "integrity": integrity });
            let needs = self.needs.iter().filter(|(who, ..)| who == name);
            let needs: Map<_, _> =
                needs.map(|(_, other, range)| ((*other).to_owned(), json!(range))).collect();
            if !needs.is_empty() {
                package["dependencies"] = needs.into();
            }
            packages.insert(format!("node_modules/{name}"), package);
        }
        json!({ "name": self.project(), "version": "0.0.0", "lockfileVersion": 3, "requires": true, "packages": packages })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{react, typescript};

    #[test]
    fn everything_is_pinned() {
        for set in [&typescript::SET, &react::SET] {
            let lock = set.lock();
            for (name, version, _) in set.packages {
                let package = &lock["packages"][format!("node_modules/{name}")];
                assert_eq!(package["version"], *version);
                assert!(package["integrity"].as_str().is_some_and(|hash| hash.starts_with("sha512-")));
                assert_eq!(lock["packages"][""]["dependencies"][name], *version);
            }
        }
        assert_eq!(
            typescript::SET.lock()["packages"]["node_modules/@types/react"]["dependencies"]["csstype"],
            "^3.0.2"
        );
    }
}
