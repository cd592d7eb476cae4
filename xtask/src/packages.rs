//! Builds the npm packages into target/dist/npm/.

use crate::bundle::{self, Code};
use crate::cache::{Cache, FileLock};
use crate::project::Project;
use crate::setup::{self, Part};
use crate::{clock, run, site, stamp};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// What the package's JavaScript calls the module and the code that wasm-bindgen makes for it.
const NAME: &str = "exitpilot_shared";
/// What of the package is written by hand.
const SOURCE: &str = "packaging/npm/shared";
const LICENSES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// What the package is made of.
const INPUTS: [&str; 7] =
    [SOURCE, "shared", "Cargo.lock", "Cargo.toml", ".cargo/config.toml", LICENSES[0], LICENSES[1]];

/// What building takes.
pub(crate) const NEEDS: [Part; 3] = [Part::WasmStd, Part::WasmBindgen, Part::WasmOpt];

/// Where `@exitpilot/shared` is built, ready for `npm pack`.
pub(crate) fn shared_dir(project: &Project) -> PathBuf {
    project.output().join("dist/npm/shared")
}

/// Builds `@exitpilot/shared` unless its inputs are those of the last build.
pub(crate) fn build(project: &Project) -> Result<()> {
    let cache = Cache::open()?;
    setup::ensure(project, &cache, &NEEDS)?;
    let done = shared_dir(project);
    let _lock = FileLock::take(&project.output().join("npm.lock"), "another build of the packages")?;
    let optimiser = setup::wasm_opt_dir(&cache);
    let stamp_file = project.output().join("npm.stamp");
    let stamp = inputs(project, optimiser.is_some(), setup::wasm_toolchain(&cache).as_deref())?;
    if done.join("package.json").is_file() && fs::read_to_string(&stamp_file).is_ok_and(|last| last == stamp)
    {
        println!("packages: unchanged since they were built into {}", done.display());
        return Ok(());
    }
    let start = clock::now();
    println!("packages: building, about a minute on 2 cores");
    let _ = fs::remove_file(&stamp_file);
    let module = compile(project, &cache)?;
    let fresh = done.with_file_name(".shared.new");
    let _ = fs::remove_dir_all(&fresh);
    copy(&project.root().join(SOURCE), &fresh)?;
    for license in LICENSES {
        fs::copy(project.root().join(license), fresh.join(license))?;
    }
    bundle::pack(project, &cache, &module, NAME, &fresh, Code::Fast)?;
    check(&fresh)?;
    let _ = fs::remove_dir_all(&done);
    fs::rename(&fresh, &done).with_context(|| format!("cannot write {}", done.display()))?;
    weigh(&done)?;
    fs::write(&stamp_file, stamp)?;
    println!("packages: built into {} in {} s", done.display(), start.elapsed().as_secs());
    Ok(())
}

fn inputs(project: &Project, optimised: bool, toolchain: Option<&str>) -> Result<String> {
    let mut stamp = stamp::Stamp::new();
    stamp.text("wasm-opt", if optimised { setup::WASM_OPT_VERSION } else { "none" });
    stamp.text("toolchain", toolchain.unwrap_or("default"));
    stamp.text("rustc", &run::captured(run::command("rustc").arg("-vV"))?);
    for input in INPUTS {
        stamp.path(project.root(), Path::new(input))?;
    }
    Ok(stamp.finish())
}

/// The crate as one module. `cargo rustc` makes it without telling every other build of the crate to make one, too.
fn compile(project: &Project, cache: &Cache) -> Result<PathBuf> {
    let mut cargo = project.cargo(["rustc", "-p", "shared", "--lib", "--features", "wasm"]);
    cargo.args(["--crate-type", "cdylib"]);
    bundle::compile(&mut cargo, cache, project.cargo_target(), "shared", Code::Fast)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let copied = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &copied)?;
        } else {
            fs::copy(entry.path(), copied)?;
        }
    }
    Ok(())
}

/// The version is the product's, and every file that package.json names is there.
fn check(package: &Path) -> Result<()> {
    let json: Value = serde_json::from_str(&fs::read_to_string(package.join("package.json"))?)?;
    let (version, own) = (json["version"].as_str().unwrap_or_default(), env!("CARGO_PKG_VERSION"));
    ensure!(version == own, "{SOURCE}/package.json says version {version}, and the product is {own}");
    let mut named = Vec::new();
    files_in(&json["exports"], &mut named);
    ensure!(!named.is_empty(), "{SOURCE}/package.json exports nothing");
    named.extend(["main", "types"].into_iter().filter_map(|key| json[key].as_str()));
    for name in named {
        ensure!(package.join(name).is_file(), "{SOURCE}/package.json names {name}, which is not there");
    }
    Ok(())
}

fn files_in<'a>(exports: &'a Value, found: &mut Vec<&'a str>) {
    match exports {
        Value::String(name) => found.push(name),
        Value::Object(conditions) => conditions.values().for_each(|value| files_in(value, found)),
        _ => {}
    }
}

/// Says what a page loads that uses the package.
fn weigh(package: &Path) -> Result<()> {
    let mut total = (0, 0);
    let mut files: Vec<PathBuf> = fs::read_dir(package)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !(name.ends_with(".js") || name.ends_with(".wasm")) || name == "node.js" {
            continue;
        }
        let content = fs::read(&file)?;
        let packed = site::brotli(&content)?.len();
        println!("packages: {:>8} bytes, {packed:>7} as brotli  {name}", content.len());
        total = (total.0 + content.len(), total.1 + packed);
    }
    println!("packages: {:>8} bytes, {:>7} as brotli  @exitpilot/shared in a browser", total.0, total.1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_package_json_names_has_to_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let json = |version: &str| {
            format!(
                r#"{{"version":"{version}","main":"./a.js","exports":{{".":{{"node":"./a.js","default":"./b.js"}}}}}}"#
            )
        };
        write("package.json", &json(version));
        write("a.js", "");
        assert!(check(dir.path()).unwrap_err().to_string().contains("./b.js"));
        write("b.js", "");
        check(dir.path()).unwrap();
        write("package.json", &json("0.0.0"));
        assert!(check(dir.path()).unwrap_err().to_string().contains("0.0.0"));
    }
}
