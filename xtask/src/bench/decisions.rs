//! The decision core, natively and as WebAssembly in Node.js: the same program, and the same decisions.

use super::numbers::Spread;
use super::{Settings, machine};
use crate::cache::Cache;
use crate::project::Project;
use crate::setup::{self, Part};
use crate::{clock, run};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// A way to build and run the program.
struct Build {
    name: &'static str,
    profile: &'static str,
    wasm: bool,
}

const BUILDS: [Build; 3] = [
    Build { name: "native", profile: "release", wasm: false },
    Build { name: "wasm", profile: "release", wasm: true },
    // The page is built for size.
    Build { name: "wasm as in the page", profile: "wasm-release", wasm: true },
];

/// Numbers by what was measured and by build, one for each run.
type Series = BTreeMap<String, BTreeMap<&'static str, Vec<f64>>>;

/// Runs the builds in turn and compares them; false if they did not decide the same.
pub(super) fn run(project: &Project, cache: &Cache, settings: &Settings) -> Result<bool> {
    setup::ensure(project, cache, &[Part::WasmStd, Part::WasmBindgen, Part::Node])?;
    let mut programs = Vec::new();
    for build in &BUILDS {
        let start = clock::now();
        programs.push((build.name, prepare(project, cache, build, &settings.dir)?));
        println!("bench: {} built in {} s", build.name, start.elapsed().as_secs());
    }
    let mut head = machine::facts();
    head["node"] = run::captured(run::command("node").arg("--version"))?.trim().into();
    let (mut ms, mut rates, mut sums) =
        (Series::new(), Series::new(), BTreeMap::<String, Vec<String>>::new());
    for number in 0..settings.runs {
        println!("bench: run {} of {}", number + 1, settings.runs);
        for (name, program) in &programs {
            for result in results(program, settings.quick)? {
                let what = result["name"].as_str().context("a result has a name")?.to_owned();
                let number = |key: &str| result[key].as_f64().with_context(|| format!("{what} has no {key}"));
                ms.entry(what.clone()).or_default().entry(name).or_default().push(number("medianMs")?);
                rates.entry(what.clone()).or_default().entry(name).or_default().push(number("perSecond")?);
                sums.entry(what).or_default().push(result["checksum"].to_string());
            }
        }
    }
    head["loadAfter"] = machine::load().into();
    println!("\ndecisions: {} runs, builds in turn; {head}", settings.runs);
    let mut written = Vec::new();
    for (what, of_builds) in &rates {
        println!("\n{what}");
        for (build, rates) in of_builds {
            let (Some(rate), Some(took)) = (Spread::of(rates), Spread::of(&ms[what][build])) else {
                continue;
            };
            let ratio = slower(&of_builds["native"], rates);
            println!(
                "  {build:<20} {:>8.2} million per second ({:.2} to {:.2}), {:>8.2} ms; slower than native {:.2} times",
                rate.median / 1e6,
                rate.min / 1e6,
                rate.max / 1e6,
                took.median,
                ratio.median
            );
            written.push(json!({
                "what": what, "build": build, "perSecond": rate.json(), "ms": took.json(),
                "slowerThanNative": ratio.json(),
            }));
        }
    }
    let differing: Vec<&String> = sums
        .iter()
        .filter(|(_, sums)| sums.iter().any(|sum| *sum != sums[0]))
        .map(|(what, _)| what)
        .collect();
    for what in &differing {
        println!("bench: {what}: the builds did not decide the same");
    }
    if let Some(json) = &settings.json {
        let value = json!({
            "benchmark": "decisions", "machine": head, "runs": settings.runs, "results": written, "differing": differing,
        });
        fs::write(json, serde_json::to_string_pretty(&value)?)
            .with_context(|| format!("cannot write {}", json.display()))?;
    }
    Ok(differing.is_empty())
}

/// How many times slower, run by run.
fn slower(native: &[f64], rates: &[f64]) -> Spread {
    let ratios: Vec<f64> = native.iter().zip(rates).map(|(native, rate)| native / rate).collect();
    Spread::of(&ratios).unwrap_or(Spread { median: f64::NAN, min: f64::NAN, max: f64::NAN })
}

/// The command line of a built program.
fn prepare(project: &Project, cache: &Cache, build: &Build, dir: &Path) -> Result<Vec<PathBuf>> {
    let mut cargo = project.cargo(["build", "-p", "shared", "--bench", "decisions"]);
    cargo.args(["--profile", build.profile, "--message-format", "json-render-diagnostics"]);
    if build.wasm {
        cargo.args(["--target", TARGET]);
        if let Some(name) = setup::wasm_toolchain(cache) {
            cargo.env("RUSTUP_TOOLCHAIN", name).env_remove("LD_LIBRARY_PATH");
        }
    }
    let program = executable(&run::captured(&mut cargo)?)?;
    if !build.wasm {
        return Ok(vec![program]);
    }
    let dir = dir.join(build.profile);
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let mut bindgen = Command::new(setup::wasm_bindgen_dir(project, cache)?.join("wasm-bindgen"));
    bindgen.args(["--target", "nodejs", "--no-typescript", "--out-name", "decisions", "--out-dir"]);
    run::captured(bindgen.arg(&dir).arg(program))?;
    Ok(vec!["node".into(), dir.join("decisions.js")])
}

/// The program among the messages of cargo.
fn executable(messages: &str) -> Result<PathBuf> {
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        if message["reason"] == "compiler-artifact" && message["target"]["name"] == "decisions" {
            let files = message["filenames"].as_array().into_iter().flatten();
            let file = message["executable"]
                .as_str()
                .or_else(|| files.filter_map(Value::as_str).find(|file| file.ends_with(".wasm")));
            return file.map(PathBuf::from).context("cargo built no program");
        }
    }
    bail!("cargo does not say what it built")
}

/// What one run printed last.
fn results(program: &[PathBuf], quick: bool) -> Result<Vec<Value>> {
    let mut command = run::command(&program[0]);
    command.args(&program[1..]).args(quick.then_some("--quick"));
    let said = run::captured(&mut command)?;
    let last = said.lines().last().context("the program says nothing")?;
    let value: Value = serde_json::from_str(last).context("the program's result")?;
    Ok(value["results"].as_array().cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_the_messages() {
        let other = r#"{"reason":"compiler-artifact","target":{"name":"shared"},"filenames":["a.rlib"],"executable":null}"#;
        let native = r#"{"reason":"compiler-artifact","target":{"name":"decisions"},"filenames":["b"],"executable":"b"}"#;
        let wasm = r#"{"reason":"compiler-artifact","target":{"name":"decisions"},"filenames":["c.js","c.wasm"],"executable":null}"#;
        assert_eq!(executable(&format!("{other}\n{native}")).unwrap(), PathBuf::from("b"));
        assert_eq!(executable(&format!("{other}\n{wasm}")).unwrap(), PathBuf::from("c.wasm"));
        assert!(executable(other).is_err());
    }

    #[test]
    fn slower_compares_the_same_runs() {
        let spread = slower(&[10.0, 40.0], &[5.0, 10.0]);
        assert_eq!((spread.min, spread.median, spread.max), (2.0, 3.0, 4.0));
    }
}
