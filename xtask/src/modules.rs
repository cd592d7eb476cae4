//! Screens that the page loads when they are first opened: each is a bundle of its own in target/site/modules/.

use crate::bundle::{self, Code};
use crate::cache::Cache;
use crate::packages;
use crate::project::Project;
use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// Their names: those of the programs of `frontend`, and those by which the page asks for them.
pub(crate) const NAMES: [&str; 3] = ["tunnel-editor", "tunnel-charts", "what-if"];

/// The worker that replays histories beside the page: its script, which uses the npm package's code.
const WORKER: &str = "replay-worker";
const WORKER_SOURCE: &str = "frontend/replay_worker.js";
/// The code that wasm-bindgen made for the package.
const PACKAGE: &str = "exitpilot_shared";

/// The folder in that of the page.
pub(crate) const FOLDER: &str = "modules";

/// What index.html has for the names of the files, empty.
const PLACE: &str = "<meta name=\"exitpilot-modules\" content=\"\"";

/// How many digits of a hash are in a name: as Trunk has them, and as the panel knows names with a hash by.
const DIGITS: usize = 16;

/// Builds all of them into the page's folder and writes their names into its index.html.
pub(crate) fn build(project: &Project, cache: &Cache, site: &Path) -> Result<()> {
    let folder = site.join(FOLDER);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let mut named = Vec::new();
    for name in NAMES {
        let work = target_dir(project).join("modules");
        let _ = fs::remove_dir_all(&work);
        bundle(project, cache, name, name, &work)?;
        named.push(format!("{name}={}", place(&work, name, &folder)?));
    }
    packages::build_shared(project)?;
    let package = place(&packages::shared_dir(project), PACKAGE, &folder)?;
    let source = fs::read_to_string(project.root().join(WORKER_SOURCE))?;
    named.push(format!("{WORKER}={}", script(WORKER, &source, &format!("{PACKAGE}.js"), &package, &folder)?));
    let index = site.join("index.html");
    let html = fs::read_to_string(&index).with_context(|| format!("cannot read {}", index.display()))?;
    Ok(fs::write(&index, with_names(&html, &named.join(" "))?)?)
}

/// Builds one of them as `<out>.js` and `<out>_bg.wasm` in a folder.
pub(crate) fn bundle(project: &Project, cache: &Cache, name: &str, out: &str, folder: &Path) -> Result<()> {
    let mut cargo = project.cargo(["build", "-p", "frontend", "--bin", name]);
    // Where Trunk builds, so that what is used by both is compiled once.
    cargo.env("CARGO_TARGET_DIR", target_dir(project));
    let module = bundle::compile(&mut cargo, cache, &target_dir(project), name, Code::Small)?;
    fs::create_dir_all(folder)?;
    bundle::pack(project, cache, &module, out, folder, Code::Small)
}

/// A folder of its own: the page's profile and flags share nothing with the other builds, and cargo would make the one
/// wait for the other.
pub(crate) fn target_dir(project: &Project) -> PathBuf {
    project.cargo_target().join("trunk")
}

/// Moves a bundle to its place under names with hashes, which browsers keep for ever. Answers with the script's name.
fn place(work: &Path, name: &str, folder: &Path) -> Result<String> {
    let module = fs::read(work.join(format!("{name}_bg.wasm")))?;
    let hashed = format!("{name}-{}_bg.wasm", hash(&module));
    fs::write(folder.join(&hashed), module)?;
    let text = fs::read_to_string(work.join(format!("{name}.js")))?;
    script(name, &text, &format!("{name}_bg.wasm"), &hashed, folder)
}

/// Writes a script under a name with its hash, with another name for the file that it uses. Answers with its own.
fn script(name: &str, text: &str, uses: &str, instead: &str, folder: &Path) -> Result<String> {
    ensure!(text.contains(uses), "{name}.js does not name {uses}");
    let text = text.replace(uses, instead);
    let script_name = format!("{name}-{}.js", hash(text.as_bytes()));
    fs::write(folder.join(&script_name), text)?;
    Ok(script_name)
}

fn hash(content: &[u8]) -> String {
    let mut digits = hex::encode(Sha256::digest(content));
    digits.truncate(DIGITS);
    digits
}

fn with_names(html: &str, names: &str) -> Result<String> {
    let (before, after) =
        html.split_once(PLACE).with_context(|| format!("frontend/index.html has no {PLACE}>"))?;
    let place = PLACE.trim_end_matches("\"\"");
    Ok(format!("{before}{place}\"{names}\"{after}"))
}

/// Says what each of them loads beyond a first visit.
pub(crate) fn weigh(site: &Path) -> Result<()> {
    for name in NAMES.into_iter().chain([WORKER, PACKAGE]) {
        let mut total = 0;
        for entry in fs::read_dir(site.join(FOLDER))? {
            let entry = entry?;
            let file = entry.file_name().to_string_lossy().into_owned();
            let own = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
            if own.is_some_and(|rest| {
                rest.starts_with(|c: char| c.is_ascii_hexdigit()) && rest.ends_with(".br")
            }) {
                total += entry.metadata()?.len();
            }
        }
        ensure!(total > 0, "there is no {name} in {}", site.join(FOLDER).display());
        println!("page: {total:>8} bytes (brotli)  {name}, when it is first opened");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_what_is_there_by_its_content() {
        let (work, site) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |script: &str, module: &str| {
            fs::write(work.path().join("x.js"), script).unwrap();
            fs::write(work.path().join("x_bg.wasm"), module).unwrap();
        };
        let put = || place(work.path(), "x", site.path()).unwrap();
        write("new URL('x_bg.wasm', import.meta.url)", "one");
        let first = put();
        assert_eq!(put(), first);
        // Other code under the same script is another script: it names other code.
        write("new URL('x_bg.wasm', import.meta.url)", "two");
        let second = put();
        assert_ne!(first, second);
        let script = fs::read_to_string(site.path().join(&second)).unwrap();
        let module = script.split('\'').nth(1).unwrap();
        assert_eq!(fs::read_to_string(site.path().join(module)).unwrap(), "two");
        write("", "");
        assert!(place(work.path(), "x", site.path()).is_err());

        let html = "<head><meta name=\"exitpilot-modules\" content=\"\"></head>";
        let named = with_names(html, "x=x-1.js y=y-2.js").unwrap();
        assert_eq!(named, "<head><meta name=\"exitpilot-modules\" content=\"x=x-1.js y=y-2.js\"></head>");
        assert!(with_names("<head></head>", "").is_err());
    }

    #[test]
    fn every_bundle_is_a_program_of_the_page() {
        let project = Project::load().unwrap();
        let programs = project.package("frontend").unwrap().targets("bin");
        for name in NAMES {
            assert!(programs.contains(&name), "{name}");
        }
        assert_eq!(programs.len(), NAMES.len() + 1, "{programs:?}");
    }
}
