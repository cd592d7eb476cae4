//! The agent without a panel: runs a file.

use crate::api::{Api, ApiOptions};
use crate::chain::group::choices::Choices;
use crate::clash::{Clash, ClashOptions};
use crate::clock::{Clock, Random};
use crate::daemon::new_runtime;
use crate::document;
use crate::guard::blocked::BlockedProtocols;
use crate::runtime::{Change, Runtime};
use shared::gost::GostConfig;
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Runs `file` until `stop`; each message in the channel, whose other end the agent's own API gets too, reads it again.
///
/// What persons choose in groups is kept in the folder `choices_in`; without one, as long as the agent runs.
///
/// Fails when the file is invalid or something in it cannot be started.
pub async fn run(
    file: PathBuf,
    (wishes, mut reloads): (mpsc::Sender<Reload>, mpsc::Receiver<Reload>),
    (api, clash): (Option<ApiOptions>, Option<ClashOptions>),
    choices_in: Option<PathBuf>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let config = checked(&file)?;
    let api = match &api {
        Some(options) => Some(Api::bind(options).await?),
        None => None,
    };
    let clash = match &clash {
        Some(options) => Some(Clash::bind(options).await?),
        None => None,
    };
    // Whoever may write the file of this machine's agent may run commands on it anyway.
    let choices = choices_in.as_deref().map(Choices::open).unwrap_or_default();
    let runtime =
        new_runtime(&Clock::system(), &Random::system(), true, (choices, BlockedProtocols::default()));
    if clash.is_some() {
        // Before the first connection.
        runtime.watch().begin();
    }
    runtime.apply(Change::Load(config)).await?;
    let failed = runtime.failed();
    if !failed.is_empty() {
        runtime.shutdown().await;
        let reasons: Vec<String> =
            failed.iter().map(|(object, reason)| format!("{object}: {reason}")).collect();
        anyhow::bail!("{}", reasons.join("\n"));
    }
    let tasks = TaskTracker::new();
    if let Some(api) = api {
        tasks.spawn(api.serve(runtime.clone(), Some(wishes), stop.clone()));
    }
    if let Some(clash) = clash {
        tasks.spawn(clash.serve(runtime.clone(), stop.clone()));
    }
    tracing::info!("ready");
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(Reload(answer)) = reloads.recv() => {
                let outcome = reload(&runtime, &file).await;
                if let Some(answer) = answer {
                    // Whoever asked may have stopped waiting.
                    let _ = answer.send(outcome);
                }
            }
        }
    }
    runtime.shutdown().await;
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Reads and validates a file without running anything.
pub fn checked(file: &Path) -> anyhow::Result<GostConfig> {
    let config = document::read(file)?;
    let problems = Runtime::validate(&config).err().unwrap_or_default();
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(config)
}

/// A wish to read the file again; the sender, if there is one, learns how it went.
#[derive(Debug, Default)]
pub struct Reload(pub Option<oneshot::Sender<Result<(), String>>>);

/// All of the file or nothing.
async fn reload(runtime: &Runtime, file: &Path) -> Result<(), String> {
    let outcome = match checked(file) {
        Ok(config) => runtime.apply(Change::Replace(config)).await.map_err(|error| error.to_string()),
        Err(error) => Err(format!("{error:#}")),
    };
    match &outcome {
        Ok(()) => tracing::info!("reloaded {}", file.display()),
        Err(reason) => {
            // One line, however many problems there are.
            let reason = reason.lines().collect::<Vec<_>>().join("; ");
            tracing::error!("not reloaded, still running the old configuration: {reason}");
        }
    }
    outcome
}
