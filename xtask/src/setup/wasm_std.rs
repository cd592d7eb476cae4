//! The standard library for wasm32-unknown-unknown.
//!
//! Where rustup's server answers this is one `rustup target add`. Elsewhere it is built from source, once, with
//! either the compiler that builds the panel (needs the source of exactly that version) or Debian's compiler and
//! Debian's source of it.

use super::rust_source::{SOURCE_VARIABLE, find_source};
use super::scratch::ScratchDir;
use super::{Found, Setup, apt};
use crate::cache::{Cache, find_program};
use crate::run;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TARGET: &str = "wasm32-unknown-unknown";
/// The name under which rustup knows Debian's compiler with the library built for it.
const DEBIAN_TOOLCHAIN: &str = "exitpilot-debian-wasm";
/// rustup waits for a server that does not answer much longer than a person does.
const RUSTUP_LIMIT: Duration = Duration::from_secs(180);
const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);
/// Lies beside a library that was built here. rustup does not know of such a library and stumbles over it.
const MARK: &str = "BUILT-FROM-SOURCE";

/// How to get the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Way {
    /// rustup, then source, then Debian
    Auto,
    /// `rustup target add` only
    Rustup,
    /// Only the source of the running rustc, built with it
    Source,
    /// Only Debian's compiler and its source
    Debian,
}

impl Way {
    fn allows(self, way: Self) -> bool {
        self == Self::Auto || self == way
    }
}

/// The rustup toolchain to build for wasm32 with; `None` is the default one.
pub(crate) fn toolchain(cache: &Cache) -> Option<String> {
    fs::read_to_string(choice_file(cache)).ok().map(|name| name.trim().to_owned())
}

fn choice_file(cache: &Cache) -> PathBuf {
    cache.dir().join("wasm-toolchain")
}

pub(super) fn install(setup: &Setup<'_>) -> Result<Found> {
    let cache = setup.cache;
    let version = rustc_version(&mut run::command("rustc"))?;
    let default = format!("that of rustc {version}");
    if probe(&[]).is_ok() {
        // A library of the default toolchain goes before the linked one, which was a makeshift.
        let _ = fs::remove_file(choice_file(cache));
        return Ok(Found::There(default));
    }
    if setup.way.allows(Way::Debian) && probe(&[&format!("+{DEBIAN_TOOLCHAIN}")]).is_ok() {
        fs::write(choice_file(cache), DEBIAN_TOOLCHAIN)?;
        return Ok(Found::There("that of Debian's rustc".into()));
    }
    let mut tried = Vec::new();
    if setup.way.allows(Way::Rustup) {
        match with_rustup(setup) {
            Ok(()) => return Ok(Found::Installed(default)),
            Err(error) => tried.push(format!("rustup: {error:#}")),
        }
    }
    if setup.way.allows(Way::Source) {
        match with_source(setup, &version) {
            Ok(()) => return Ok(Found::Installed(format!("{default}, built from source,"))),
            Err(error) => tried.push(format!("source: {error:#}")),
        }
    }
    if setup.way.allows(Way::Debian) {
        match with_debian(setup) {
            Ok(version) => {
                fs::write(choice_file(cache), DEBIAN_TOOLCHAIN)?;
                return Ok(Found::Installed(format!("that of Debian's rustc {version}, built from source,")));
            }
            Err(error) => tried.push(format!("Debian: {error:#}")),
        }
    }
    bail!(
        "rustc {version} cannot build for {TARGET} here. Do one of these and run setup again:\n\
         - with access to rustup's server: rustup target add {TARGET}\n\
         - with the source of rust {version} at hand: set {SOURCE_VARIABLE} to the folder that holds its library/\n\
         - on Debian 12, as root: apt-get install --no-install-recommends rustc-web cargo-web rust-web-src\n\
         What was tried:\n- {}",
        tried.join("\n- ")
    )
}

/// Links a module that uses std. Asking rustup is not enough: the library may have been built here, and the linker may
/// be missing.
fn probe(arguments: &[&str]) -> Result<()> {
    let dir = ScratchDir::new("probe")?;
    let source = dir.path().join("probe.rs");
    fs::write(
        &source,
        "#[unsafe(no_mangle)]\npub extern \"C\" fn size(n: usize) -> usize { vec![1u8; n].len() }\n",
    )?;
    let mut rustc = run::command("rustc");
    // Not in the workspace, and without its flags.
    super::page_tools::forget_build_settings(&mut rustc);
    rustc.current_dir(dir.path()).args(arguments);
    rustc.args(["--edition=2024", "--crate-type=cdylib", "--target", TARGET, "-O", "-Cpanic=abort", "-o"]);
    rustc.arg(dir.path().join("probe.wasm")).arg(&source);
    run::captured(&mut rustc).map(drop)
}

fn with_rustup(setup: &Setup<'_>) -> Result<()> {
    if find_program("rustup").is_none() {
        bail!("not installed");
    }
    let own = library_dir(&sysroot(&mut run::command("rustc"))?);
    if own.join(MARK).exists() {
        // It was built by an earlier setup and does not fit any more, or the probe would have passed.
        fs::remove_dir_all(own.parent().unwrap_or(&own))?;
    }
    setup.starting("wasm32 standard library", &format!("rustup target add {TARGET}, up to 3 minutes"));
    let mut rustup = run::command("rustup");
    rustup.args(["target", "add", TARGET]).env("RUST_BACKTRACE", "0");
    run::logged(&mut rustup, &setup.cache.log("rustup"), RUSTUP_LIMIT)?;
    probe(&[])
}

fn with_source(setup: &Setup<'_>, version: &str) -> Result<()> {
    let cargo = real_program("cargo")?;
    let rustc = real_program("rustc")?;
    let sysroot = sysroot(&mut run::command(&rustc))?;
    let source = find_source(setup, &sysroot, version)?;
    setup.starting("wasm32 standard library", "building it from source, about half a minute on 2 cores");
    build(setup.cache, &cargo, &rustc, &source, &library_dir(&sysroot))?;
    probe(&[])
}

/// The program behind rustup's proxy, or the one on the path.
fn real_program(name: &str) -> Result<PathBuf> {
    if find_program("rustup").is_some()
        && let Ok(path) = run::captured(run::command("rustup").args(["which", name]))
    {
        return Ok(PathBuf::from(path.trim()));
    }
    find_program(name).with_context(|| format!("{name} is not installed"))
}

/// Debian's own compiler for browsers, with the source of the same package: a pair that always fits. Its code is a
/// little bigger and it compiles slower, so it comes last.
fn with_debian(setup: &Setup<'_>) -> Result<String> {
    if find_program("apt-get").is_none() || find_program("rustup").is_none() {
        bail!("this takes apt-get and rustup");
    }
    let rustc = Path::new("/usr/bin/rustc");
    let source = |version: &str| PathBuf::from(format!("/usr/src/rustc-{version}"));
    let fits = || {
        let version = rustc_version(&mut run::command(rustc)).ok()?;
        source(&version).join("library").is_dir().then_some(version)
    };
    let version = match fits() {
        Some(version) => version,
        None => {
            setup.starting("wasm32 standard library", "installing Debian's rustc-web (about 150 MB)");
            apt::install(setup.cache, &["rustc-web", "cargo-web", "rust-web-src"])?;
            fits().context("/usr/bin/rustc has no source of its version in /usr/src")?
        }
    };
    let host = host_triple()?;
    let root = setup.cache.dir().join(format!("debian-rust-{version}"));
    let host_bin = root.join(format!("lib/rustlib/{host}/bin"));
    fs::create_dir_all(root.join("bin"))?;
    fs::create_dir_all(&host_bin)?;
    // A toolchain of links, because the library for wasm32 has to lie in a sysroot that apt does not own.
    let wrapper = root.join("bin/rustc");
    fs::write(&wrapper, format!("#!/bin/sh\nexec /usr/bin/rustc --sysroot '{}' \"$@\"\n", root.display()))?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    relink(Path::new("/usr/bin/cargo"), &root.join("bin/cargo"))?;
    relink(Path::new("/usr/bin/rustdoc"), &root.join("bin/rustdoc"))?;
    relink(
        &Path::new("/usr/lib/rustlib").join(&host).join("lib"),
        &root.join(format!("lib/rustlib/{host}/lib")),
    )?;
    relink(&find_linker(&host)?, &host_bin.join("rust-lld"))?;
    setup.starting("wasm32 standard library", "building it with Debian's rustc, about a minute on 2 cores");
    build(setup.cache, Path::new("/usr/bin/cargo"), rustc, &source(&version), &library_dir(&root))?;
    run::captured(run::command("rustup").args(["toolchain", "link", DEBIAN_TOOLCHAIN]).arg(&root))?;
    probe(&[&format!("+{DEBIAN_TOOLCHAIN}")])?;
    Ok(version)
}

/// A linker for wasm: that of the rustup toolchain, or one of LLVM's packages.
fn find_linker(host: &str) -> Result<PathBuf> {
    let own = sysroot(&mut run::command("rustc"))?.join(format!("lib/rustlib/{host}/bin/rust-lld"));
    if own.is_file() {
        return Ok(own);
    }
    let mut packaged: Vec<PathBuf> = fs::read_dir("/usr/lib")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|dir| {
            dir.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("llvm-"))
        })
        .map(|dir| dir.join("bin/lld"))
        .filter(|lld| lld.is_file())
        .collect();
    packaged.sort();
    packaged.pop().context("neither the toolchain nor LLVM's packages have lld")
}

/// Builds std, panic_abort and test (for the wasm tests) from `source` and puts the libraries into `out`.
fn build(cache: &Cache, cargo: &Path, rustc: &Path, source: &Path, out: &Path) -> Result<()> {
    let dir = ScratchDir::new("std")?;
    fs::create_dir(dir.path().join("src"))?;
    fs::write(dir.path().join("src/lib.rs"), "#![no_std]\n")?;
    fs::write(
        dir.path().join("Cargo.toml"),
        "[package]\nname = \"std-carrier\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
         [workspace]\n[profile.release]\npanic = \"abort\"\n",
    )?;
    let target = dir.path().join("target");
    let link = SourceLink::make(&sysroot(&mut run::command(rustc))?, source)?;
    let mut command = run::command(cargo);
    super::page_tools::forget_build_settings(&mut command);
    command.current_dir(dir.path()).args(["build", "--release", "--target", TARGET]);
    command.arg("-Zbuild-std=std,panic_abort,test,proc_macro");
    command.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", &target);
    // Debian's compiler must not load the libraries of the toolchain that `cargo xtask` runs in.
    command.env_remove("LD_LIBRARY_PATH").env_remove("RUSTUP_TOOLCHAIN");
    // cargo leaves the bitcode out unless told, and then a project with `lto = true` cannot use the libraries.
    command.env("RUSTFLAGS", "-Cembed-bitcode=yes");
    let built = run::logged(&mut command, &cache.log("wasm-std"), BUILD_LIMIT);
    drop(link);
    built?;

    // Beside the place and then renamed: an interrupted copy must not look like a library.
    let fresh = out.with_extension("new");
    let _ = fs::remove_dir_all(&fresh);
    fs::create_dir_all(&fresh)?;
    for entry in fs::read_dir(target.join(TARGET).join("release/deps"))? {
        let file = entry?.path();
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
        if name.ends_with(".rlib") && !name.starts_with("libstd_carrier") {
            fs::copy(&file, fresh.join(name))?;
        }
    }
    fs::write(fresh.join(MARK), run::captured(run::command(rustc).arg("-vV"))?)?;
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    fs::rename(&fresh, out).with_context(|| format!("cannot write {}", out.display()))
}

/// Makes the source visible where cargo looks for it, as long as it is needed.
struct SourceLink {
    made: Option<PathBuf>,
}

impl SourceLink {
    fn make(sysroot: &Path, source: &Path) -> Result<Self> {
        let place = sysroot.join("lib/rustlib/src/rust");
        if place.join("library/std/Cargo.toml").is_file() {
            return Ok(Self { made: None });
        }
        relink(source, &place)?;
        Ok(Self { made: Some(place) })
    }
}

impl Drop for SourceLink {
    fn drop(&mut self) {
        if let Some(place) = &self.made {
            let _ = fs::remove_file(place);
            if let Some(parent) = place.parent() {
                // Only when nothing else is in it.
                let _ = fs::remove_dir(parent);
            }
        }
    }
}

fn relink(original: &Path, link: &Path) -> Result<()> {
    if let Some(parent) = link.parent() {
        fs::create_dir_all(parent)?;
    }
    let _ = fs::remove_file(link);
    symlink(original, link).with_context(|| format!("cannot make the link {}", link.display()))
}

fn library_dir(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib").join(TARGET).join("lib")
}

fn sysroot(rustc: &mut Command) -> Result<PathBuf> {
    Ok(PathBuf::from(run::captured(rustc.args(["--print", "sysroot"]))?.trim()))
}

fn rustc_version(rustc: &mut Command) -> Result<String> {
    field(&run::captured(rustc.arg("-vV"))?, "release").context("rustc does not say its version")
}

fn host_triple() -> Result<String> {
    field(&run::captured(run::command("rustc").arg("-vV"))?, "host").context("rustc does not say its host")
}

/// One field of `rustc -vV`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fields_of_the_version() {
        let text = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\n";
        assert_eq!(field(text, "release").as_deref(), Some("1.95.0"));
        assert_eq!(field(text, "host").as_deref(), Some("x86_64-unknown-linux-gnu"));
        assert_eq!(field(text, "rel"), None);
    }

    #[test]
    fn one_way_excludes_the_others() {
        assert!(Way::Auto.allows(Way::Rustup) && Way::Auto.allows(Way::Debian));
        assert!(Way::Source.allows(Way::Source) && !Way::Source.allows(Way::Rustup));
    }
}
