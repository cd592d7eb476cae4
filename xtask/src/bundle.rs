//! WebAssembly for the web: from what cargo compiled to a script and a module beside it.

use crate::cache::Cache;
use crate::project::Project;
use crate::{run, setup};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What cargo compiles for.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// What code is to be.
#[derive(Clone, Copy)]
pub(crate) enum Code {
    /// As small as it can be: screens.
    Small,
    /// As fast as it can be: what computes for long.
    Fast,
}

impl Code {
    /// Cargo's profile, and the level of wasm-opt.
    fn profile(self) -> (&'static str, &'static str) {
        match self {
            Code::Small => ("wasm-release", "-Oz"),
            Code::Fast => ("wasm-fast", "-O3"),
        }
    }
}

/// Compiles and answers with the module of that name; `cargo` says what.
pub(crate) fn compile(
    cargo: &mut Command,
    cache: &Cache,
    target_dir: &Path,
    name: &str,
    code: Code,
) -> Result<PathBuf> {
    let (profile, _) = code.profile();
    cargo.args(["--profile", profile, "--target", TARGET]);
    if let Some(name) = setup::wasm_toolchain(cache) {
        cargo.env("RUSTUP_TOOLCHAIN", name).env_remove("LD_LIBRARY_PATH");
    }
    run::shown(cargo)?;
    let module = target_dir.join(TARGET).join(profile).join(name).with_extension("wasm");
    ensure!(module.is_file(), "cargo built no {}", module.display());
    Ok(module)
}

/// Writes `<name>.js` and `<name>_bg.wasm` into a folder.
pub(crate) fn pack(
    project: &Project,
    cache: &Cache,
    module: &Path,
    name: &str,
    folder: &Path,
    code: Code,
) -> Result<()> {
    let mut bindgen = run::command(setup::wasm_bindgen_dir(project, cache)?.join("wasm-bindgen"));
    bindgen.args(["--target", "web", "--no-typescript", "--out-name", name, "--out-dir"]);
    run::captured(bindgen.arg(folder).arg(module))?;
    if let Some(dir) = setup::wasm_opt_dir(cache) {
        let module = folder.join(format!("{name}_bg.wasm"));
        let mut optimise = run::command(dir.join("wasm-opt"));
        // As for the page: what Rust's code uses, and no more.
        optimise.args([code.profile().1, "--enable-bulk-memory", "--enable-nontrapping-float-to-int"]);
        optimise.args(["--enable-sign-ext", "--enable-mutable-globals", "--enable-reference-types"]);
        optimise.args(["--enable-multivalue", "-o"]).arg(&module).arg(&module);
        run::captured(&mut optimise)?;
    }
    Ok(())
}
