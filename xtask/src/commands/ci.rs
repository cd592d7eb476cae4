//! `cargo xtask ci`.

use super::{bench, build, test, tidy};
use crate::cache::{Cache, find_program};
use crate::project::Project;
use crate::setup::{self, Part};
use crate::{clock, page, run, site};
use anyhow::{Context as _, Result};
use std::time::Duration;

/// Everything a change has to pass. All steps run, so that one look shows all that is wrong.
pub(crate) fn run(project: &Project) -> Result<bool> {
    let start = clock::now();
    let cache = Cache::open()?;
    let mut steps = Steps::default();
    steps.run("format", || shown(project, &["fmt", "--all", "--check"]));
    steps.run("tidy", || tidy::run(project));
    steps.run("licences and sources", || deny(project));
    steps.run("page", || page::build(project).map(|()| true));
    site::ensure_placeholder(&project.output().join("site"))?;
    steps.run("clippy", || {
        shown(
            project,
            &["clippy", "-p", "shared", "--all-features", "--all-targets", "--", "-D", "warnings"],
        )?;
        let rest = [
            "clippy",
            "-p",
            "server",
            "-p",
            "agent",
            "-p",
            "tests",
            "-p",
            "fuzz",
            "-p",
            "xtask",
            "--all-targets",
        ];
        shown(project, &[&rest[..], &["--", "-D", "warnings"]].concat())
    });
    steps.run("clippy for wasm", || {
        setup::ensure(project, &cache, &[Part::WasmStd])?;
        // The makeshift toolchain has no clippy; that the code compiles is what remains to be seen.
        let toolchain = setup::wasm_toolchain(&cache);
        if toolchain.is_some() {
            println!("SKIPPED: Debian's rustc has no clippy, only checking");
        }
        let mut cargo = project.cargo([if toolchain.is_some() { "check" } else { "clippy" }]);
        cargo.args(["-p", "shared", "-p", "frontend", "--target", "wasm32-unknown-unknown"]);
        match toolchain {
            Some(name) => cargo.env("RUSTUP_TOOLCHAIN", name).env_remove("LD_LIBRARY_PATH"),
            None => cargo.args(["--", "-D", "warnings"]),
        };
        run::shown(&mut cargo).map(|()| true)
    });
    steps.run("test", || test::run(project, &test::Arguments::default()));
    steps.run("build", || build::run(project));
    steps.run("benchmarks work", || bench::smoke(project));
    steps.report(start.elapsed());
    Ok(steps.all_good())
}

fn shown(project: &Project, arguments: &[&str]) -> Result<bool> {
    run::shown(project.cargo([]).args(arguments)).map(|()| true)
}

/// cargo-deny is big; the check runs where somebody has installed it.
fn deny(project: &Project) -> Result<bool> {
    if find_program("cargo-deny").is_none() {
        println!("SKIPPED: cargo-deny not installed, run cargo install --locked cargo-deny");
        return Ok(true);
    }
    // Advisories come from the network and change without the project; they are not a property of a change.
    shown(project, &["deny", "check", "bans", "licenses", "sources"]).context("deny.toml")
}

/// What ran, how it ended and how long it took.
#[derive(Default)]
struct Steps {
    done: Vec<(&'static str, bool, Duration)>,
}

impl Steps {
    fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<bool>) {
        println!("\n== {name}");
        let start = clock::now();
        let good = step().unwrap_or_else(|error| {
            println!("{error:#}");
            false
        });
        let took = start.elapsed();
        println!("== {name}: {} in {} s", verdict(good), took.as_secs());
        self.done.push((name, good, took));
    }

    fn report(&self, total: Duration) {
        println!("\n== summary");
        for (name, good, took) in &self.done {
            println!("{:>6} s  {:<6}  {name}", took.as_secs(), verdict(*good));
        }
        println!("{:>6} s  {:<6}  all", total.as_secs(), verdict(self.all_good()));
    }

    fn all_good(&self) -> bool {
        self.done.iter().all(|(_, good, _)| *good)
    }
}

fn verdict(good: bool) -> &'static str {
    if good { "ok" } else { "FAILED" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_step_fails_the_whole_and_stops_nothing() {
        let mut steps = Steps::default();
        steps.run("a", || Ok(true));
        assert!(steps.all_good());
        steps.run("b", || anyhow::bail!("broken"));
        steps.run("c", || Ok(true));
        assert!(!steps.all_good());
        assert_eq!(steps.done.len(), 3);
    }
}
