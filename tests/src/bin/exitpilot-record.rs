//! `exitpilot-record FOLDER`: see [`tests::recorder`].

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tests::demo::rootless;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        let _ = writeln!(std::io::stderr(), "usage: exitpilot-record FOLDER");
        return ExitCode::FAILURE;
    };
    match start(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(folder: &std::path::Path) -> anyhow::Result<()> {
    // Before there are threads: it may become another process.
    rootless::ensure_network()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(Box::pin(tests::recorder::record(folder)))
}
