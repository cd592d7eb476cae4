//! `cargo xtask build`, `cargo xtask page` and `cargo xtask packages`.

use crate::project::Project;
use crate::{packages, page, run};
use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The executables people install.
const BINARIES: [&str; 2] = ["exitpilot", "exitpilot-agent"];
/// What goes with them, from the project's own folders.
const BESIDE: [&str; 6] = [
    "packaging/install.sh",
    "packaging/exitpilot.service",
    "packaging/exitpilot-agent.service",
    "packaging/Dockerfile",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];
/// File with the checksums of all others, as `sha256sum -c` reads it.
const SUMS: &str = "SHA256SUMS";

/// Builds the page only.
pub(crate) fn page(project: &Project) -> Result<bool> {
    page::build(project)?;
    Ok(true)
}

/// Builds the npm packages only.
pub(crate) fn packages(project: &Project) -> Result<bool> {
    packages::build(project)?;
    Ok(true)
}

/// Builds the panel with the page in it and the agent, and puts them into target/dist/ with what belongs to them, their
/// checksums, and an archive of all; the npm packages beside them.
pub(crate) fn run(project: &Project) -> Result<bool> {
    page::build(project)?;
    packages::build(project)?;
    run::shown(&mut project.cargo(["build", "--release", "-p", "server", "-p", "agent"]))?;
    let dist = project.output().join("dist");
    fs::create_dir_all(&dist)?;
    let mut names = Vec::new();
    for name in BINARIES {
        place(&project.cargo_target().join("release").join(name), &dist.join(name))?;
        names.push(name);
    }
    for path in BESIDE {
        let name = path.rsplit('/').next().unwrap_or(path);
        place(&project.root().join(path), &dist.join(name))?;
        names.push(name);
    }
    let mut sums = String::new();
    for name in &names {
        writeln!(sums, "{}  {name}", sum(&dist.join(name))?)?;
    }
    fs::write(dist.join(SUMS), sums)?;
    names.push(SUMS);

    let version = env!("CARGO_PKG_VERSION");
    let folder = format!("exitpilot-{version}-linux-{}", std::env::consts::ARCH);
    let archive = dist.join(format!("{folder}.tar.gz"));
    pack(&dist, &names, &folder, &archive)?;
    let line = format!("{}  {folder}.tar.gz\n", sum(&archive)?);
    fs::write(dist.join(format!("{folder}.tar.gz.sha256")), line)?;
    for name in BINARIES.map(|name| dist.join(name)).into_iter().chain([archive]) {
        println!("build: {} ({} KiB)", name.display(), fs::metadata(&name)?.len() / 1024);
    }
    Ok(true)
}

/// Copies a file: beside its place and then renamed, because the old one may be running.
fn place(from: &Path, to: &Path) -> Result<()> {
    let fresh = to.with_file_name(format!(".{}.new", to.file_name().unwrap_or_default().to_string_lossy()));
    fs::copy(from, &fresh).with_context(|| format!("cannot copy {}", from.display()))?;
    fs::rename(&fresh, to).with_context(|| format!("cannot write {}", to.display()))
}

fn sum(path: &Path) -> Result<String> {
    Ok(hex::encode(Sha256::digest(fs::read(path)?)))
}

/// Packs the files of `dist` into one archive, below `folder`. The same files make the same archive: neither times nor
/// users of the machine are in it.
fn pack(dist: &Path, names: &[&str], folder: &str, archive: &Path) -> Result<()> {
    let fresh = archive.with_extension("new");
    let file = GzBuilder::new().mtime(0).write(File::create(&fresh)?, Compression::best());
    let mut packer = tar::Builder::new(file);
    packer.mode(tar::HeaderMode::Deterministic);
    for name in names {
        let mut content = File::open(dist.join(name))?;
        packer.append_file(format!("{folder}/{name}"), &mut content)?;
    }
    io::Write::flush(&mut packer.into_inner()?.finish()?)?;
    Ok(fs::rename(fresh, archive)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn an_archive_holds_the_files_and_nothing_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("program"), "runs").unwrap();
        fs::set_permissions(path("program"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(path("text"), "is read").unwrap();
        for archive in ["one.tar.gz", "two.tar.gz"] {
            pack(folder.path(), &["program", "text"], "it-1.0", &path(archive)).unwrap();
        }
        assert_eq!(sum(&path("one.tar.gz")).unwrap(), sum(&path("two.tar.gz")).unwrap());
        let mut found = Vec::new();
        let file = flate2::read::GzDecoder::new(File::open(path("one.tar.gz")).unwrap());
        for entry in tar::Archive::new(file).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            let name = entry.path().unwrap().display().to_string();
            let header = entry.header();
            found.push((name, content, header.mode().unwrap() & 0o777, header.uid().unwrap()));
        }
        let expected = [("it-1.0/program", "runs", 0o755, 0), ("it-1.0/text", "is read", 0o644, 0)];
        assert_eq!(
            found,
            expected.map(|(name, content, mode, uid)| (name.into(), content.into(), mode, uid))
        );
    }

    #[test]
    fn all_that_is_packed_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for path in BESIDE {
            assert!(root.join(path).is_file(), "{path}");
        }
    }
}
