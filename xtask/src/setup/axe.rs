//! axe-core, which looks for what keeps people with disabilities from using the page. The browser suite runs it on every
//! screen. Never shipped; a machine that cannot get it skips that test.

use super::{Found, Setup};
use crate::cache::{Cache, find_program};
use crate::run;
use anyhow::{Context as _, Result, ensure};
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha512};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The newest version at the time of writing, and the SHA-512 of its npm package.
const VERSION: &str = "4.14.1";
const SHA512: &str = "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5";
/// The whole of it as one script, where the package has it.
const IN_PACKAGE: &str = "package/axe.min.js";

const LIMIT: Duration = Duration::from_secs(300);

/// The script.
pub(crate) fn script(cache: &Cache) -> PathBuf {
    cache.tool("axe-core", VERSION).join("axe.min.js")
}

pub(super) fn install(setup: &Setup<'_>) -> Result<Found> {
    let what = format!("axe-core {VERSION}");
    let script = script(setup.cache);
    if script.is_file() {
        return Ok(Found::There(what));
    }
    let without =
        |why: String| Ok(Found::Without(format!("the test of the page's accessibility is skipped: {why}")));
    if find_program("npm").is_none() {
        return without("it comes as an npm package and npm is not installed".to_owned());
    }
    match fetch(setup, &script) {
        Ok(()) => Ok(Found::Installed(what)),
        Err(error) => without(format!("{error:#}")),
    }
}

fn fetch(setup: &Setup<'_>, script: &Path) -> Result<()> {
    let build = setup.cache.dir().join("build/axe-core");
    let _ = fs::remove_dir_all(&build);
    fs::create_dir_all(&build)?;
    let mut npm = run::command("npm");
    npm.current_dir(&build).args(["pack", "--no-update-notifier", "--pack-destination", "."]);
    npm.arg(format!("axe-core@{VERSION}"));
    run::logged(&mut npm, &setup.cache.log("axe-core"), LIMIT)?;
    let package = build.join(format!("axe-core-{VERSION}.tgz"));
    let package = fs::read(&package).context("npm downloaded no package")?;
    let text = unpack(&package, SHA512)?;
    // Renamed when it is whole: an interrupted run must not look like a script.
    let whole = build.join("axe.min.js");
    fs::write(&whole, text)?;
    if let Some(folder) = script.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::rename(&whole, script).with_context(|| format!("cannot write {}", script.display()))?;
    fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))
}

/// The script in a package, if the package is the expected one.
fn unpack(package: &[u8], sha512: &str) -> Result<Vec<u8>> {
    let found = hex::encode(Sha512::digest(package));
    ensure!(found == sha512, "axe-core {VERSION} is not what it was: its SHA-512 is {found}");
    let mut archive = tar::Archive::new(GzDecoder::new(package));
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.path()?.as_ref() == Path::new(IN_PACKAGE) {
            let mut text = Vec::new();
            entry.read_to_end(&mut text)?;
            return Ok(text);
        }
    }
    anyhow::bail!("axe-core {VERSION} has no {IN_PACKAGE}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn package(name: &str) -> Vec<u8> {
        let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_size(4);
        builder.append_data(&mut header, name, &b"text"[..]).unwrap();
        builder.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn only_the_expected_package_is_unpacked() {
        let good = package(IN_PACKAGE);
        let sum = hex::encode(Sha512::digest(&good));
        assert_eq!(unpack(&good, &sum).unwrap(), b"text");
        let other = package("package/axe.js");
        let wrong = unpack(&other, &sum).unwrap_err().to_string();
        assert!(wrong.contains("not what it was"), "{wrong}");
        let sum = hex::encode(Sha512::digest(&other));
        let wrong = unpack(&other, &sum).unwrap_err().to_string();
        assert!(wrong.contains("has no package/axe.min.js"), "{wrong}");
    }
}
