//! `cargo xtask fuzz`.

use crate::fuzz::{Ended, Engine, corpora};
use crate::project::Project;
use anyhow::{Result, bail};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{PathBuf, absolute};
use std::sync::Mutex;
use std::thread;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The target; without it all of them
    target: Option<String>,
    /// How long each target runs
    #[arg(long, value_name = "N", default_value = "60")]
    seconds: NonZeroU32,
    /// How many targets run at once
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// Only print the names of the targets
    #[arg(long, conflicts_with_all = ["replay", "keep"])]
    list: bool,
    /// Only run this input, and print what the target says to it
    #[arg(long, value_name = "FILE", requires = "target", conflicts_with = "keep")]
    replay: Option<PathBuf>,
    /// Only add to the corpora in fuzz/corpus what earlier runs have found, as far as it reaches more code
    #[arg(long)]
    keep: bool,
}

/// Runs the targets and prints what each did. False when one of them failed on an input.
pub(crate) fn run(project: &Project, arguments: &Arguments) -> Result<bool> {
    let known = corpora(project)?;
    if arguments.list {
        println!("{}", known.join("\n"));
        return Ok(true);
    }
    let targets = match &arguments.target {
        Some(target) if known.contains(target) => vec![target.clone()],
        Some(target) => bail!("there is no target {target}; there are: {}", known.join(", ")),
        None => known,
    };
    let replay = arguments.replay.as_deref().map(absolute).transpose()?;
    let engine = Engine::build(project)?;
    if let (Some(file), [target]) = (replay, &*targets) {
        return engine.replay(target, &file);
    }
    if arguments.keep {
        for target in &targets {
            println!("{target}: {} inputs in fuzz/corpus", engine.keep(target)?);
        }
        return Ok(true);
    }
    let waiting = Mutex::new(targets.iter());
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.next());
    let (ended, mut good) = (Mutex::new(Vec::new()), true);
    thread::scope(|scope| {
        for _ in 0..arguments.jobs.get().min(targets.len()) {
            scope.spawn(|| {
                while let Some(target) = next() {
                    let outcome = engine.run(target, arguments.seconds);
                    match &outcome {
                        Ok(ended) => println!("{target}: {ended}"),
                        Err(error) => println!("{target}: {error:#}"),
                    }
                    if let Ok(mut all) = ended.lock() {
                        all.push((target, outcome));
                    }
                }
            });
        }
    });
    let mut all = ended.into_inner().unwrap_or_default();
    all.sort_by_key(|(target, _)| *target);
    println!("\n{:<16} {}", "target", Ended::HEADINGS);
    for (target, outcome) in &all {
        match outcome {
            Ok(ended) => println!("{target:<16} {}", ended.row()),
            Err(error) => println!("{target:<16} did not run: {error:#}"),
        }
        good &= outcome.as_ref().is_ok_and(|ended| ended.findings.is_empty());
    }
    for (target, file) in all.iter().flat_map(|(target, outcome)| {
        outcome.iter().flat_map(|ended| &ended.findings).map(move |file| (target, file))
    }) {
        println!("{target} fails on an input: cargo xtask fuzz {target} --replay {}", file.display());
    }
    Ok(good && all.len() == targets.len())
}
