//! Builds the page: Trunk, then the screens that are loaded later, the compressed forms, and a look at its weight.

use crate::cache::{Cache, FileLock, path_with};
use crate::clock;
use crate::project::Project;
use crate::setup::{self, Part};
use crate::{modules, run, site, stamp};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// What a first visit may load, in bytes as brotli: a first view within a second or two on a slow line. Screens that are
/// loaded when they are first opened are not among it.
const LIMIT: u64 = 350_000;

/// What the page is made of.
const INPUTS: [&str; 7] = [
    "frontend",
    "shared",
    "packaging/npm/shared",
    "Cargo.lock",
    "Cargo.toml",
    "Trunk.toml",
    ".cargo/config.toml",
];

/// Builds the page into target/site/ unless its inputs are those of the last build.
pub(crate) fn build(project: &Project) -> Result<()> {
    let cache = Cache::open()?;
    setup::ensure(project, &cache, &Part::PAGE)?;
    let output = project.output();
    let site = output.join("site");
    let _lock = FileLock::take(&output.join("site.lock"), "another build of the page")?;

    let wasm_opt = setup::wasm_opt_dir(&cache);
    let wasm_bindgen = setup::wasm_bindgen_dir(project, &cache)?;
    let stamp_file = output.join("site.stamp");
    let stamp = inputs(project, wasm_opt.is_some(), setup::wasm_toolchain(&cache).as_deref())?;
    if site.join("index.html").is_file() && fs::read_to_string(&stamp_file).is_ok_and(|last| last == stamp) {
        println!("page: unchanged since it was built into {}", site.display());
        return Ok(());
    }
    let start = clock::now();
    println!("page: building, about 2 minutes on 2 cores");
    let _ = fs::remove_file(&stamp_file);
    // Trunk builds without the network, so the crates have to be there before.
    run::shown(&mut project.cargo(["fetch", "--quiet"]))?;

    let unoptimised = match &wasm_opt {
        Some(_) => None,
        None => Some(UnoptimisedPage::write(project.root())?),
    };
    let path = [Some(setup::trunk_dir(&cache)), Some(wasm_bindgen), wasm_opt];
    let path: Vec<PathBuf> = path.into_iter().flatten().collect();
    let mut trunk = run::command(setup::trunk_dir(&cache).join("trunk"));
    trunk.current_dir(project.root()).args(["build", "--release"]);
    if let Some(page) = &unoptimised {
        trunk.arg(&page.0);
    }
    trunk.env("PATH", path_with(&path)?).env("TRUNK_OFFLINE", "true");
    trunk.env("CARGO_TARGET_DIR", modules::target_dir(project));
    // Trunk takes only `true` and `false` for it and stops at the usual `NO_COLOR=1`.
    trunk.env_remove("NO_COLOR");
    if let Some(name) = setup::wasm_toolchain(&cache) {
        trunk.env("RUSTUP_TOOLCHAIN", name).env_remove("LD_LIBRARY_PATH");
    }
    run::shown(&mut trunk)?;
    drop(unoptimised);
    modules::build(project, &cache, &site)?;
    site::precompress(&site)?;
    weigh(&site)?;
    fs::write(&stamp_file, stamp)?;
    println!("page: built into {} in {} s", site.display(), start.elapsed().as_secs());
    Ok(())
}

fn inputs(project: &Project, optimised: bool, toolchain: Option<&str>) -> Result<String> {
    let mut stamp = stamp::Stamp::new();
    stamp.text("trunk", setup::TRUNK_VERSION);
    stamp.text("modules", &modules::NAMES.join(" "));
    stamp.text("wasm-opt", if optimised { setup::WASM_OPT_VERSION } else { "none" });
    stamp.text("toolchain", toolchain.unwrap_or("default"));
    stamp.text("rustc", &run::captured(run::command("rustc").arg("-vV"))?);
    for input in INPUTS {
        stamp.path(project.root(), Path::new(input))?;
    }
    Ok(stamp.finish())
}

/// Says what a first visit loads, and what screens load later; fails above the limit of the first.
fn weigh(site: &Path) -> Result<()> {
    let files = site::first_visit(site)?;
    for (file, size) in &files {
        println!("page: {size:>8} bytes (brotli)  {}", file.display());
    }
    modules::weigh(site)?;
    let total: u64 = files.iter().map(|(_, size)| size).sum();
    println!("page: {total:>8} bytes (brotli)  a first visit; {LIMIT} are allowed");
    if total > LIMIT {
        bail!("the page is too heavy: {total} bytes for a first visit, {LIMIT} are allowed");
    }
    Ok(())
}

/// A copy of the page's source that asks Trunk for no optimiser, beside the original because Trunk resolves names from
/// there. It goes away with the value.
struct UnoptimisedPage(PathBuf);

impl UnoptimisedPage {
    fn write(root: &Path) -> Result<Self> {
        let original = root.join("frontend/index.html");
        let html =
            fs::read_to_string(&original).with_context(|| format!("cannot read {}", original.display()))?;
        let copy = root.join("frontend/.index-unoptimised.html");
        fs::write(&copy, without_optimiser(&html)?)?;
        Ok(Self(copy))
    }
}

impl Drop for UnoptimisedPage {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Sets Trunk's level of wasm-opt to "none".
fn without_optimiser(html: &str) -> Result<String> {
    const LEVEL: &str = "data-wasm-opt=\"";
    if let Some((before, rest)) = html.split_once(LEVEL) {
        let (_, after) = rest.split_once('"').context("data-wasm-opt has no end")?;
        return Ok(format!("{before}{LEVEL}0\"{after}"));
    }
    let (before, after) =
        html.split_once("rel=\"rust\"").context("frontend/index.html has no link rel=\"rust\"")?;
    Ok(format!("{before}rel=\"rust\" {LEVEL}0\"{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_optimiser_is_taken_out_whether_or_not_it_is_named() {
        assert_eq!(
            without_optimiser(r#"<link data-trunk rel="rust" data-wasm-opt="z" data-bin="x">"#).unwrap(),
            r#"<link data-trunk rel="rust" data-wasm-opt="0" data-bin="x">"#
        );
        assert_eq!(
            without_optimiser(r#"<link data-trunk rel="rust">"#).unwrap(),
            r#"<link data-trunk rel="rust" data-wasm-opt="0">"#
        );
        assert!(without_optimiser("<html>").is_err());
    }
}
