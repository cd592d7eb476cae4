//! Builds the npm packages into target/dist/npm/.

use crate::bundle::{self, Code};
use crate::cache::{Cache, FileLock};
use crate::project::Project;
use crate::setup::{self, Part};
use crate::{clock, modules, run, site, stamp, styles};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const LICENSES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// What all packages are made of, beside what each of them is.
const INPUTS: [&str; 6] =
    ["shared", "Cargo.lock", "Cargo.toml", ".cargo/config.toml", LICENSES[0], LICENSES[1]];

/// What building takes.
pub(crate) const NEEDS: [Part; 3] = [Part::WasmStd, Part::WasmBindgen, Part::WasmOpt];

/// One npm package.
struct Package {
    /// Its folder, in packaging/npm/ with what is written by hand, in target/dist/npm/ when it is built.
    folder: &'static str,
    /// What it is made of besides.
    inputs: &'static [&'static str],
    /// Adds what is built.
    fill: fn(&Project, &Cache, &Path) -> Result<()>,
}

const PACKAGES: [Package; 2] = [
    Package { folder: "shared", inputs: &[], fill: fill_shared },
    Package { folder: "tunnel-editor", inputs: &["frontend"], fill: fill_editor },
];

/// Where `@exitpilot/shared` is built, ready for `npm pack`.
pub(crate) fn shared_dir(project: &Project) -> PathBuf {
    PACKAGES[0].done(project)
}

/// Builds the packages, except those whose inputs are those of their last build.
pub(crate) fn build(project: &Project) -> Result<()> {
    build_some(project, &PACKAGES)
}

/// Builds only `@exitpilot/shared`, which the page loads, too.
pub(crate) fn build_shared(project: &Project) -> Result<()> {
    build_some(project, &PACKAGES[..1])
}

fn build_some(project: &Project, packages: &[Package]) -> Result<()> {
    let cache = Cache::open()?;
    setup::ensure(project, &cache, &NEEDS)?;
    let _lock = FileLock::take(&project.output().join("npm.lock"), "another build of the packages")?;
    packages.iter().try_for_each(|package| package.build(project, &cache))
}

impl Package {
    /// Where it is built, ready for `npm pack`.
    fn done(&self, project: &Project) -> PathBuf {
        project.output().join("dist/npm").join(self.folder)
    }

    /// What of it is written by hand.
    fn source(&self) -> PathBuf {
        Path::new("packaging/npm").join(self.folder)
    }

    fn build(&self, project: &Project, cache: &Cache) -> Result<()> {
        let done = self.done(project);
        let stamp_file = project.output().join(format!("npm-{}.stamp", self.folder));
        let stamp = self.stamp(project, cache)?;
        let last = fs::read_to_string(&stamp_file);
        if done.join("package.json").is_file() && last.is_ok_and(|last| last == stamp) {
            println!("packages: unchanged since it was built into {}", done.display());
            return Ok(());
        }
        let start = clock::now();
        println!("packages: building {}, a minute or two on 2 cores", self.folder);
        let _ = fs::remove_file(&stamp_file);
        let fresh = done.with_file_name(format!(".{}.new", self.folder));
        let _ = fs::remove_dir_all(&fresh);
        copy(&project.root().join(self.source()), &fresh)?;
        for license in LICENSES {
            fs::copy(project.root().join(license), fresh.join(license))?;
        }
        (self.fill)(project, cache, &fresh)?;
        check(&fresh).with_context(|| format!("{} is not whole", self.source().display()))?;
        let _ = fs::remove_dir_all(&done);
        fs::rename(&fresh, &done).with_context(|| format!("cannot write {}", done.display()))?;
        weigh(&done)?;
        fs::write(&stamp_file, stamp)?;
        println!("packages: built into {} in {} s", done.display(), start.elapsed().as_secs());
        Ok(())
    }

    fn stamp(&self, project: &Project, cache: &Cache) -> Result<String> {
        let mut stamp = stamp::Stamp::new();
        let optimised = setup::wasm_opt_dir(cache).is_some();
        stamp.text("wasm-opt", if optimised { setup::WASM_OPT_VERSION } else { "none" });
        stamp.text("toolchain", setup::wasm_toolchain(cache).as_deref().unwrap_or("default"));
        stamp.text("rustc", &run::captured(run::command("rustc").arg("-vV"))?);
        stamp.path(project.root(), &self.source())?;
        for input in INPUTS.iter().chain(self.inputs) {
            stamp.path(project.root(), Path::new(input))?;
        }
        Ok(stamp.finish())
    }
}

/// The crate as one module. `cargo rustc` makes it without telling every other build of the crate to make one, too.
fn fill_shared(project: &Project, cache: &Cache, folder: &Path) -> Result<()> {
    let mut cargo = project.cargo(["rustc", "-p", "shared", "--lib", "--features", "wasm"]);
    cargo.args(["--crate-type", "cdylib"]);
    let module = bundle::compile(&mut cargo, cache, project.cargo_target(), "shared", Code::Fast)?;
    bundle::pack(project, cache, &module, "exitpilot_shared", folder, Code::Fast)
}

/// The bundle that the page loads, and the page's styles as far as it needs them.
fn fill_editor(project: &Project, cache: &Cache, folder: &Path) -> Result<()> {
    const NAME: &str = "exitpilot_tunnel_editor";
    modules::bundle(project, cache, "tunnel-editor", NAME, folder)?;
    let module = fs::read(folder.join(format!("{NAME}_bg.wasm")))?;
    // A class that the code gives to an element is a text in it.
    let is_used = |class: &str| module.windows(class.len()).any(|text| text == class.as_bytes());
    let mut css = String::new();
    for name in ["tokens", "base", "ui", "editor"] {
        let path = project.root().join("frontend/styles").join(name).with_extension("css");
        let sheet = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        css.push_str(&styles::for_shadow_tree(&sheet, &is_used).with_context(|| format!("{name}.css"))?);
    }
    let script = format!(
        "// What of the panel's styles the editor needs.\nexport const css = {};\n",
        Value::String(css)
    );
    Ok(fs::write(folder.join("styles.js"), script)?)
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
    ensure!(version == own, "package.json says version {version}, and the product is {own}");
    let mut named = Vec::new();
    files_in(&json["exports"], &mut named);
    ensure!(!named.is_empty(), "package.json exports nothing");
    named.extend(["main", "types"].into_iter().filter_map(|key| json[key].as_str()));
    for name in named {
        ensure!(package.join(name).is_file(), "package.json names {name}, which is not there");
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
    println!("packages: {:>8} bytes, {:>7} as brotli  in a browser in all", total.0, total.1);
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
