//! `exitpilot-demo`: see [`tests::demo`].

use clap::Parser as _;
use std::io::Write as _;
use std::process::ExitCode;
use tests::demo::{Options, rootless, run};

fn main() -> ExitCode {
    let options = Options::parse();
    match start(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the story went as told. Ctrl-C is a good end for visitors.
fn start(options: &Options) -> anyhow::Result<bool> {
    // Before there are threads: it may become another process.
    rootless::ensure_network()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            outcome = Box::pin(run(options)) => outcome,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                Ok(!options.headless)
            }
        }
    })
}
