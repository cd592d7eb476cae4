//! Starting other programs.

use crate::clock;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use std::{env, thread};

/// How often a child with a time limit is looked at.
const POLL: Duration = Duration::from_millis(50);
/// How long a signalled process may take to stop; one that waits for a disk takes its time.
const STOP_LIMIT: Duration = Duration::from_secs(2);
/// How much of a failed step's output is shown.
const TAIL_LINES: usize = 60;
/// Ticks in which Linux counts the time of processes (`USER_HZ`, the same on all its platforms but alpha).
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;

/// A command with the caller's environment, less what `cargo run` put there about xtask itself: build scripts that
/// watch those variables would run again on every change between `cargo build` and `cargo xtask`.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_about_xtask) {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

fn is_about_xtask(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "DEP_"];
    const NAMES: [&str; 5] =
        ["CARGO", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR", "CARGO_RUSTC_CURRENT_DIR"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Runs a command whose output goes to the terminal, and fails when it fails.
pub(crate) fn shown(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", line(command));
    }
    Ok(())
}

/// Runs a short command and returns what it wrote to its standard output. What it wrote to its standard error becomes
/// part of the error.
pub(crate) fn captured(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", name(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({}): {}", line(command), output.status, said.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a long command quietly: its output goes to the file `log` and its end is shown only when the command fails or
/// does not finish within `limit`.
pub(crate) fn logged(command: &mut Command, log: &Path, limit: Duration) -> Result<()> {
    if let Some(dir) = log.parent() {
        fs::create_dir_all(dir)?;
    }
    let out = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let err = out.try_clone()?;
    let mut child =
        command.stdout(out).stderr(err).spawn().with_context(|| format!("cannot start {}", name(command)))?;
    let failure = match wait(&mut child, limit)? {
        Some(status) if status.success() => return Ok(()),
        Some(status) => format!("failed ({status})"),
        None => format!("did not finish within {} s", limit.as_secs()),
    };
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
    bail!("{} {failure}; the end of what it said:\n{tail}", line(command))
}

/// Waits for a child; after `limit` kills it with everything it started and returns `None`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let start = clock::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            kill_tree(child)?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// Kills a child and its descendants. cargo does not take its tests with it when it is killed.
///
/// All are stopped before any is killed: a process that starts another between the look at the process table and its
/// own end would leave an orphan that nothing leads to.
pub(crate) fn kill_tree(child: &mut Child) -> Result<()> {
    let mut doomed = BTreeSet::from([child.id()]);
    let mut new = doomed.clone();
    while !new.is_empty() {
        signal("-STOP", &new);
        let start = clock::now();
        while new.iter().any(|pid| runs(*pid)) && start.elapsed() < STOP_LIMIT {
            thread::sleep(Duration::from_millis(1));
        }
        new = children_of(&doomed).difference(&doomed).copied().collect();
        doomed.extend(&new);
    }
    signal("-KILL", &doomed);
    child.wait()?;
    Ok(())
}

/// A process and its descendants.
pub(crate) fn tree(root: u32) -> BTreeSet<u32> {
    let (mut all, mut new) = (BTreeSet::from([root]), BTreeSet::from([root]));
    while !new.is_empty() {
        new = children_of(&new).difference(&all).copied().collect();
        all.extend(&new);
    }
    all
}

/// Sends a signal; a process that is gone by now is as good as one that got it.
fn signal(name: &str, pids: &BTreeSet<u32>) {
    let _ =
        Command::new("kill").arg(name).args(pids.iter().map(u32::to_string)).stderr(Stdio::null()).status();
}

/// Whether the process exists and is neither stopped nor dead.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state_in_stat(&stat).is_some_and(|state| !"TtZX".contains(state))
}

/// The processes that one of `parents` has started.
fn children_of(parents: &BTreeSet<u32>) -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let children = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        parents.contains(&parent_in_stat(&stat)?).then_some(pid)
    });
    children.collect()
}

/// Time in user and kernel mode: fields 14 and 15, counted from the name in parentheses, which may hold anything.
pub(crate) fn ticks(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some(next()? + next()?)
}

/// The state in a line of `/proc/<pid>/stat`: the first field after the last `)`, because the name in parentheses may
/// hold anything.
fn state_in_stat(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// The parent's id, the field after the state.
fn parent_in_stat(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// The command as one would type it, without its environment.
pub(crate) fn line(command: &Command) -> String {
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    std::iter::once(name(command)).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_is_found_behind_any_name() {
        assert_eq!(parent_in_stat("12 (a) b (c)) S 7 12 12 0 -1"), Some(7));
        assert_eq!(parent_in_stat("12 (cat"), None);
        assert_eq!(state_in_stat("12 (a) b (c)) S 7 12 12 0 -1"), Some('S'));
    }

    #[test]
    fn only_variables_about_xtask_are_hidden() {
        for name in ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "OUT_DIR"] {
            assert!(is_about_xtask(name), "{name}");
        }
        for name in ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_NET_OFFLINE", "PATH", "RUSTUP_TOOLCHAIN"] {
            assert!(!is_about_xtask(name), "{name}");
        }
    }

    #[test]
    fn a_failing_step_shows_the_end_of_its_output() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("deep/step.log");
        let mut step = command("sh");
        step.args(["-c", "seq 1 100; echo broken >&2; exit 3"]);
        let error = logged(&mut step, &log, Duration::from_secs(60)).unwrap_err().to_string();
        assert!(error.ends_with("\n100\nbroken"), "{error}");
        assert!(!error.contains("\n40\n"), "{error}");
        assert!(fs::read_to_string(&log).unwrap().starts_with("1\n2\n"));
    }

    #[test]
    fn a_step_that_hangs_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let pid_file = dir.path().join("pid");
        let mut step = command("sh");
        step.arg("-c").arg(format!("sleep 1000 & echo $! >{}; wait", pid_file.display()));
        let mut child = step.spawn().unwrap();
        let pid = loop {
            if let Ok(pid) = fs::read_to_string(&pid_file).unwrap_or_default().trim().parse::<u32>() {
                break pid;
            }
            thread::yield_now();
        };
        assert!(wait(&mut child, Duration::ZERO).unwrap().is_none());
        // The kernel delivers the signal when the process is next scheduled.
        let start = clock::now();
        while runs(pid) && start.elapsed() < Duration::from_secs(20) {
            thread::yield_now();
        }
        assert!(!runs(pid), "{pid} is still there");
    }
}
