//! Coverage-guided fuzzing: libFuzzer around the targets of the package `fuzz`.
//!
//! It needs the compiler of the project and one for C++, nothing else: what cargo-fuzz does on a nightly compiler is
//! the sanitizers, which find nothing in code without `unsafe`; the coverage is an option of LLVM.

mod ended;

use crate::project::Project;
use crate::{clock, run};
use anyhow::{Context as _, Result, ensure};
pub(crate) use ended::Ended;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, thread};

/// Counters in every edge of the control flow, a table of where they are, and the operands of comparisons: what
/// libFuzzer lives on, with the names that cargo-fuzz gives to the compiler.
const COVERAGE: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg fuzzing",
];
/// Longest input. Lengths matter where a limit is written down, and there is a test for each of these.
const LONGEST_INPUT: usize = 4096;
/// One input that takes longer hangs.
const INPUT_SECONDS: u32 = 10;
/// A target that needs more memory than this has no bound where it should have one.
const MEMORY_MIB: u32 = 2048;
/// What the corpus of one target may grow to in the repository.
const MOST_FILES: usize = 100;
/// See [`MOST_FILES`].
const MOST_BYTES: u64 = 200_000;
/// How often a running target is looked at.
const POLL: Duration = Duration::from_millis(100);
/// How much longer than asked a run may take: reading its corpus on a busy machine.
const GRACE: Duration = Duration::from_secs(600);

/// The built program and its folders.
pub(crate) struct Engine {
    program: PathBuf,
    /// The corpora of the repository.
    seeds: PathBuf,
    /// What runs found, logs, and inputs on which a target failed.
    work: PathBuf,
}

/// The names of the targets: each has a corpus.
pub(crate) fn corpora(project: &Project) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(project.root().join("fuzz/corpus"))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

impl Engine {
    /// Builds the program.
    pub(crate) fn build(project: &Project) -> Result<Self> {
        let version = run::captured(run::command("rustc").current_dir(project.root()).arg("-vV"))?;
        let host =
            version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc has no host")?;
        let mut flags = env::var("RUSTFLAGS").unwrap_or_default();
        for flag in COVERAGE {
            flags.push(' ');
            flags.push_str(flag);
        }
        // With a target, cargo spares build scripts and macros, which have nobody to count for.
        let mut build = project.cargo(["build", "-p", "fuzz", "--features", "engine", "--profile", "fuzz"]);
        run::shown(build.args(["--target", host]).env("RUSTFLAGS", flags))?;
        let target = project.cargo_target();
        Ok(Self {
            program: target.join(host).join("fuzz/fuzz"),
            seeds: project.root().join("fuzz/corpus"),
            work: target.join("fuzzing"),
        })
    }

    fn command(&self, target: &str) -> Command {
        let mut command = run::command(&self.program);
        command.env("EXITPILOT_FUZZ_TARGET", target);
        command.args([
            format!("-max_len={LONGEST_INPUT}"),
            format!("-timeout={INPUT_SECONDS}"),
            format!("-rss_limit_mb={MEMORY_MIB}"),
        ]);
        command
    }

    fn folder(&self, kind: &str, target: &str) -> Result<PathBuf> {
        let folder = self.work.join(kind).join(target);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Runs one target for so long. What it finds stays for the next run.
    pub(crate) fn run(&self, target: &str, seconds: NonZeroU32) -> Result<Ended> {
        let (found, findings) = (self.folder("found", target)?, self.folder("findings", target)?);
        let (log, words) =
            (self.folder("log", target)?.join("log"), self.folder("log", target)?.join("words"));
        run::captured(self.command(target).env("EXITPILOT_FUZZ_WORDS", &words))?;
        let (found_before, findings_before) = (files(&found)?, files(&findings)?);
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = self.command(target);
        command
            .args([format!("-max_total_time={seconds}"), "-print_final_stats=1".to_owned()])
            .arg(format!("-dict={}", words.display()))
            .arg(format!("-artifact_prefix={}/", findings.display()))
            .args([&found, &self.seeds.join(target)])
            .stdout(out.try_clone()?)
            .stderr(out);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", run::line(&command)))?;
        let (start, limit) = (clock::now(), Duration::from_secs(seconds.get().into()) + GRACE);
        let mut processor_seconds = 0.0;
        let good = loop {
            // A process that has ended keeps its times until it is waited for.
            let seen = ended::processor_seconds(child.id());
            processor_seconds = seen.unwrap_or(processor_seconds);
            if !run::runs(child.id())
                && let Some(status) = child.try_wait()?
            {
                break status.success();
            }
            if start.elapsed() > limit {
                run::kill_tree(&mut child)?;
                break false;
            }
            thread::sleep(POLL);
        };
        let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let new: Vec<PathBuf> = files(&findings)?.difference(&findings_before).cloned().collect();
        ensure!(good || !new.is_empty(), "ended badly without an input that shows it, see {}", log.display());
        Ok(Ended {
            counts: ended::counts(&said),
            processor_seconds,
            new_entries: files(&found)?.difference(&found_before).count(),
            findings: new,
        })
    }

    /// Runs one input; whether it is a good one.
    pub(crate) fn replay(&self, target: &str, file: &Path) -> Result<bool> {
        let mut command = self.command(target);
        let status = command.env("RUST_BACKTRACE", "1").arg(file).status();
        Ok(status.with_context(|| format!("cannot start {}", run::line(&command)))?.success())
    }

    /// Adds to the corpus of the repository the few inputs that reach all that the found ones reach, the smallest first,
    /// until it is large enough. Returns how many it has.
    pub(crate) fn keep(&self, target: &str) -> Result<usize> {
        let (found, seeds) = (self.folder("found", target)?, self.seeds.join(target));
        let kept = self.work.join("kept").join(target);
        let _ = fs::remove_dir_all(&kept);
        fs::create_dir_all(&kept)?;
        let log = self.folder("log", target)?.join("merge");
        let mut merge = self.command(target);
        merge.arg("-set_cover_merge=1").args([&kept, &seeds, &found]);
        run::logged(&mut merge, &log, GRACE * 3)?;
        let own = files(&seeds)?;
        let contents: BTreeSet<Vec<u8>> = own.iter().map(fs::read).collect::<Result<_, _>>()?;
        let (mut count, mut bytes) = (own.len(), contents.iter().map(|one| one.len() as u64).sum::<u64>());
        let mut new: Vec<Vec<u8>> = files(&kept)?.iter().map(fs::read).collect::<Result<_, _>>()?;
        new.retain(|input| !contents.contains(input));
        new.sort_by_key(Vec::len);
        for input in new {
            bytes += input.len() as u64;
            if count >= MOST_FILES || bytes > MOST_BYTES {
                break;
            }
            fs::write(seeds.join(name_of(&input)), &input)?;
            count += 1;
        }
        Ok(count)
    }
}

/// A name that says nothing and stays the same.
fn name_of(input: &[u8]) -> String {
    use sha2::Digest as _;
    hex::encode(&sha2::Sha256::digest(input)[..8])
}

fn files(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}
