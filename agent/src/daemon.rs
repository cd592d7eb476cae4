//! The agent that obeys a panel: state file, data plane, commands and link put together.

use crate::api::{Api, ApiOptions};
use crate::chain::group::choices::Choices;
use crate::clash::{Clash, ClashOptions};
use crate::clock::{Clock, Random};
use crate::commands::Commands;
use crate::guard::blocked::BlockedProtocols;
use crate::link::{Link, LinkOptions};
use crate::probe::Prober;
use crate::runtime::{Change, Runtime, RuntimeOptions};
use crate::state::{Loaded, Saver, StateFolder};
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// For running commands to end when the agent stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// How to run.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// Folder of the state file.
    pub state_dir: PathBuf,
    /// The panel.
    pub link: LinkOptions,
    /// Whether the panel may write probes that run commands.
    pub allow_commands: bool,
    /// The API, if it is wanted.
    pub api: Option<ApiOptions>,
    /// The API for dashboards, if it is wanted.
    pub clash: Option<ClashOptions>,
}

/// Runs until `stop`: loads the state, so that traffic flows without the panel, then connects.
///
/// Fails when another agent uses the same state folder or the file of authorities cannot be used.
pub async fn run(options: DaemonOptions, stop: CancellationToken) -> anyhow::Result<()> {
    let (clock, random) = (options.link.clock.clone(), options.link.random.clone());
    let api = match &options.api {
        Some(options) => Some(Api::bind(options).await?),
        None => None,
    };
    let clash = match &options.clash {
        Some(options) => Some(Clash::bind(options).await?),
        None => None,
    };
    let folder = StateFolder::open(&options.state_dir)?;
    let choices = Choices::open(&options.state_dir);
    let blocked = BlockedProtocols::open(&options.state_dir);
    let kept = (choices, blocked);
    let runtime = new_runtime(&clock, &random, options.allow_commands, kept);
    if clash.is_some() {
        // Before the first connection.
        runtime.watch().begin();
    }
    let mut loaded = folder.load();
    if let Loaded::Config(config) = &loaded
        && let Err(error) = runtime.apply(Change::Load(config.clone())).await
    {
        loaded = folder.set_aside(error.to_string());
    }
    let saved = match loaded {
        Loaded::Nothing => {
            tracing::info!("no saved configuration in {}", options.state_dir.display());
            None
        }
        Loaded::Config(config) => {
            let (services, chains) = (config.services.len(), config.chains.len());
            tracing::info!(services, chains, "loaded {}", options.state_dir.display());
            for (object, reason) in runtime.failed() {
                tracing::error!("{object} does not run: {reason}");
            }
            Some(config)
        }
        Loaded::SetAside { reason, to } => {
            tracing::error!("the saved configuration is unusable ({reason}); see {}", to.display());
            None
        }
    };
    let tasks = TaskTracker::new();
    let source = runtime.clone();
    let saver = Saver::start(folder, saved.as_ref(), move || source.config(), &tasks, stop.clone());
    let prober = Prober::new(clock, random);
    let commands = Commands::new(runtime.clone(), saver, prober, tasks.clone(), stop.clone());
    let link = Link::new(options.link, runtime.clone(), commands)?;
    if let Some(api) = api {
        tasks.spawn(api.serve(runtime.clone(), None, stop.clone()));
    }
    if let Some(clash) = clash {
        tasks.spawn(clash.serve(runtime.clone(), stop.clone()));
    }
    tracing::info!("ready");
    link.run(&stop).await;
    runtime.shutdown().await;
    drop(link);
    tasks.close();
    if tokio::time::timeout(STOP_TIMEOUT, tasks.wait()).await.is_err() {
        tracing::warn!("some commands were still running");
    }
    Ok(())
}

/// A data plane with the same time and randomness as the link.
pub(crate) fn new_runtime(
    clock: &Clock,
    random: &Random,
    allow_commands: bool,
    (choices, blocked): (Choices, BlockedProtocols),
) -> Runtime {
    let (clock, random) = (clock.clone(), random.clone());
    Runtime::new(RuntimeOptions {
        clock,
        random,
        allow_commands,
        choices,
        blocked,
        ..RuntimeOptions::default()
    })
}
