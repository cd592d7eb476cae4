//! `cargo xtask test`.

use super::suites::{Step, Suite};
use crate::cache::{Cache, path_with};
use crate::outcome::{Reader, Tally};
use crate::project::Project;
use crate::setup::{self, apt::is_root};
use crate::{clock, packages, page, run, site};
use anyhow::{Context as _, Result};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A suite that takes longer hangs; the longest needs a few minutes after it is built.
const STEP_LIMIT: Duration = Duration::from_secs(40 * 60);
/// How long output may still come after `cargo test` has ended. A process that a test left behind holds the pipe open.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// The suite; without it all of them
    suite: Option<Suite>,
    /// How many tests of the system, interop and browser suites run at once
    #[arg(long, value_name = "N")]
    test_threads: Option<usize>,
    /// Only tests whose name holds this
    #[arg(long, value_name = "TEXT", requires = "suite")]
    filter: Option<String>,
}

/// Runs the suites and prints their sum as the last line.
pub(crate) fn run(project: &Project, arguments: &Arguments) -> Result<bool> {
    let cache = Cache::open()?;
    let suites = arguments.suite.map_or_else(|| Suite::ALL.to_vec(), |suite| vec![suite]);
    let mut sum = Tally::default();
    let mut report = Vec::new();
    for suite in suites {
        println!("suite {}", suite.name());
        let start = clock::now();
        let tally = run_suite(project, &cache, suite, arguments).unwrap_or_else(|error| {
            println!("suite {} did not run to its end: {error:#}", suite.name());
            Tally { failed: 1, ..Tally::default() }
        });
        report.push(format!("suite {}: {tally}, {} s", suite.name(), start.elapsed().as_secs()));
        println!("{}", report[report.len() - 1]);
        sum += tally;
    }
    if report.len() > 1 {
        println!("\n{}", report.join("\n"));
    }
    println!("{sum}");
    Ok(sum.failed == 0)
}

/// Runs one suite. An error means that it did not get to its tests.
fn run_suite(project: &Project, cache: &Cache, suite: Suite, arguments: &Arguments) -> Result<Tally> {
    let steps = suite.steps(project);
    if steps.is_empty() {
        if suite.may_be_missing() {
            println!("SKIPPED: {} suite does not exist yet", suite.name());
            return Ok(Tally { skipped: 1, ..Tally::default() });
        }
        anyhow::bail!("it has no test targets");
    }
    setup::ensure(project, cache, suite.needs())?;
    site::ensure_placeholder(&project.output().join("site"))?;
    if suite.needs_page() {
        page::build(project)?;
    }
    if suite.needs_packages() {
        packages::build(project)?;
    }
    if suite.needs_binaries() {
        run::shown(&mut project.cargo(["build", "-p", "server", "-p", "agent"]))?;
    }
    let mut sum = Tally::default();
    for step in &steps {
        sum += run_step(project, cache, step, arguments)?;
    }
    Ok(sum)
}

fn run_step(project: &Project, cache: &Cache, step: &Step, arguments: &Arguments) -> Result<Tally> {
    let mut cargo = if step.namespaces && !is_root() {
        // Built outside: in there is no network, and cargo may have to fetch something.
        let mut build = project.cargo(["test", "--no-run"]);
        run::shown(build.args(&step.cargo))?;
        let Some(wrapped) = in_user_namespace(project) else {
            println!("SKIPPED: this needs root or user namespaces, and this system allows neither");
            return Ok(Tally { skipped: 1, ..Tally::default() });
        };
        wrapped
    } else {
        project.cargo(["test"])
    };
    cargo.arg("--no-fail-fast").args(&step.cargo).arg("--");
    if let Some(filter) = &arguments.filter {
        cargo.arg(filter);
    }
    if step.wasm {
        let tools = setup::wasm_bindgen_dir(project, cache)?;
        cargo.env("PATH", path_with(&[tools])?);
        cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", "wasm-bindgen-test-runner");
        if let Some(name) = setup::wasm_toolchain(cache) {
            cargo.env("RUSTUP_TOOLCHAIN", name).env_remove("LD_LIBRARY_PATH");
        }
    } else {
        cargo.arg("--show-output");
        if let Some(threads) = step.threads {
            cargo.arg(format!("--test-threads={}", arguments.test_threads.unwrap_or(threads)));
        }
    }
    cargo.env("EXITPILOT_BIN_DIR", project.debug_binaries());
    cargo.env("EXITPILOT_PEERS_DIR", cache.peers());
    cargo.env("EXITPILOT_TYPESCRIPT_DIR", setup::typescript_dir(cache));
    cargo.env("EXITPILOT_REACT_DIR", setup::react_dir(cache));
    cargo.env("EXITPILOT_DASHBOARD_DIR", setup::dashboard_dir(cache));
    cargo.env("EXITPILOT_AXE", setup::axe_script(cache));
    stream(&mut cargo, STEP_LIMIT)
}

/// `cargo test` as root of a network of its own, where the system allows that. The folder for named namespaces is on
/// /run, which a plain user cannot write: it gets one of its own.
fn in_user_namespace(project: &Project) -> Option<Command> {
    const SCRIPT: &str = "mount -t tmpfs tmpfs /run && ip link set lo up && exec \"$@\"";
    let namespace = |words: &[&str]| {
        let mut command = run::command("unshare");
        command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c", SCRIPT, "sh"]).args(words);
        command.env(
            "PATH",
            path_with(&["/usr/sbin".into(), "/sbin".into()]).unwrap_or(OsString::from("/usr/bin:/bin")),
        );
        command
    };
    run::captured(&mut namespace(&["true"])).ok()?;
    let mut command = namespace(&["cargo", "test"]);
    command.current_dir(project.root()).env("CARGO_NET_OFFLINE", "true");
    Some(command)
}

/// Runs a test command, shows what it prints, and counts.
fn stream(command: &mut Command, limit: Duration) -> Result<Tally> {
    println!("$ {}", run::line(command));
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", run::line(command)))?;
    let stdout = child.stdout.take().context("the child has no output")?;
    let (lines, incoming) = mpsc::sync_channel::<String>(1024);
    // Not joined: it ends when the pipe does, which a process left behind by a test may hold open for ever.
    thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            if lines.send(text).is_err() {
                return;
            }
            line.clear();
        }
    });
    // The child is waited for beside the reading: its pipe must be emptied for it to end.
    let (ended, end) = mpsc::sync_channel(1);
    thread::spawn(move || ended.send(run::wait(&mut child, limit)));

    let mut reader = Reader::default();
    let mut status = None;
    let mut quiet_since = clock::now();
    loop {
        match incoming.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => {
                quiet_since = clock::now();
                if reader.line(&line) {
                    println!("{line}");
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if status.is_some() && quiet_since.elapsed() > DRAIN_LIMIT => {
                println!("a test left a process behind that still holds its output open");
                break;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if status.is_none()
            && let Ok(result) = end.try_recv()
        {
            status = Some(result?);
            quiet_since = clock::now();
        }
    }
    let status = match status {
        Some(status) => status,
        None => end.recv().context("the waiting thread is gone")??,
    };
    std::io::stdout().flush()?;
    let mut tally = reader.tally();
    let trouble = match status {
        None => Some(format!("it did not end within {} s and was stopped", limit.as_secs())),
        Some(status) if !status.success() && tally.failed == 0 => {
            Some(format!("it did not run to its end ({status})"))
        }
        Some(_) if reader.results() == 0 && tally.skipped == 0 => Some("it ran no tests".to_owned()),
        Some(_) => None,
    };
    if let Some(trouble) = trouble {
        println!("FAILED: {}: {trouble}", run::line(command));
        tally.failed += 1;
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Command {
        let mut command = run::command("sh");
        command.args(["-c", text]).stderr(Stdio::null());
        command
    }

    const MINUTE: Duration = Duration::from_secs(60);
    const RESULT: &str = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";

    #[test]
    fn counts_what_ran() {
        let tally = stream(&mut script(&format!("echo '{RESULT}'; echo '{RESULT}'")), MINUTE).unwrap();
        assert_eq!(tally, Tally { passed: 4, failed: 0, skipped: 0 });
    }

    #[test]
    fn what_does_not_compile_is_one_failure() {
        let tally = stream(&mut script("echo 'error: no such thing' >&2; exit 101"), MINUTE).unwrap();
        assert_eq!(tally, Tally { passed: 0, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_program_that_dies_is_a_failure_though_others_passed() {
        let tally = stream(&mut script(&format!("echo '{RESULT}'; exit 101")), MINUTE).unwrap();
        assert_eq!(tally, Tally { passed: 2, failed: 1, skipped: 0 });
    }

    #[test]
    fn to_run_nothing_is_not_to_pass() {
        let tally = stream(&mut script("true"), MINUTE).unwrap();
        assert_eq!(tally, Tally { passed: 0, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_hanging_program_is_stopped() {
        let tally = stream(&mut script(&format!("echo '{RESULT}'; sleep 1000")), Duration::ZERO).unwrap();
        assert_eq!(tally.failed, 1);
    }

    #[test]
    fn a_process_left_behind_does_not_hold_up_the_rest() {
        let start = clock::now();
        let tally = stream(&mut script(&format!("sleep 50 & echo '{RESULT}'")), MINUTE).unwrap();
        assert_eq!(tally, Tally { passed: 2, failed: 0, skipped: 0 });
        assert!(start.elapsed() < Duration::from_secs(40));
    }
}
