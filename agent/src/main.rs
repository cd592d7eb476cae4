//! The program `exitpilot-agent`: command line, log, signals. Everything else is in the library.

use agent::api::ApiOptions;
use agent::clash::ClashOptions;
use agent::cli::{Action, Cli, LogForm, RunArgs, completion};
use agent::clock::{Clock, Random};
use agent::daemon::{self, DaemonOptions};
use agent::link::{LinkOptions, Timings};
use agent::runtime::Runtime;
use agent::standalone::{self, Reload};
use anyhow::Context as _;
use clap::Parser as _;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    match start(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not through the log: this is for whoever typed the command, whatever the log's form and level.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(cli: Cli) -> anyhow::Result<()> {
    match (cli.command, cli.config) {
        (Some(Action::Check { config }), _) => {
            let checked = standalone::checked(&config)?;
            for warning in Runtime::warnings(&checked) {
                writeln!(std::io::stderr(), "warning: {warning}")?;
            }
            let (services, chains) = (checked.services.len(), checked.chains.len());
            writeln!(std::io::stdout(), "ok: {services} services, {chains} chains")?;
            Ok(())
        }
        (Some(Action::Completion { shell }), _) => Ok(std::io::stdout().write_all(&completion(shell))?),
        (Some(Action::Run(args)), _) => {
            start_log(cli.log)?;
            run(args, (cli.api.options()?, cli.clash.options()?))
        }
        (None, Some(file)) => {
            start_log(cli.log)?;
            let apis = (cli.api.options()?, cli.clash.options()?);
            let choices = cli.state_dir;
            in_runtime(|stop, reloads| standalone::run(file, reloads, apis, choices, stop))
        }
        (None, None) => anyhow::bail!("nothing to do: see --help"),
    }
}

fn run(args: RunArgs, (api, clash): (Option<ApiOptions>, Option<ClashOptions>)) -> anyhow::Result<()> {
    let link = LinkOptions {
        secret: args.secret()?,
        panel: args.panel,
        ca_file: args.panel_ca,
        timings: Timings::default(),
        clock: Clock::system(),
        random: Random::system(),
    };
    let (state_dir, allow_commands) = (args.state_dir, args.allow_probe_commands);
    let options = DaemonOptions { state_dir, link, allow_commands, api, clash };
    in_runtime(|stop, (_, mut hangups)| async move {
        let hangup = async {
            // Without a file there is nothing to read again; the signal must not end the agent either.
            while hangups.recv().await.is_some() {
                tracing::info!("SIGHUP ignored: the panel decides what runs");
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            outcome = daemon::run(options, stop) => outcome,
            () = hangup => Ok(()),
        }
    })
}

fn in_runtime<F: Future<Output = anyhow::Result<()>>>(
    body: impl FnOnce(CancellationToken, (mpsc::Sender<Reload>, mpsc::Receiver<Reload>)) -> F,
) -> anyhow::Result<()> {
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let stop = CancellationToken::new();
        let (hangups, reloads) = mpsc::channel(1);
        let signals = watch_signals(stop.clone(), hangups.clone())?;
        let outcome = Box::pin(body(stop, (hangups, reloads))).await;
        signals.abort();
        outcome
    });
    // A name look-up may still hold a thread; nobody waits for it.
    runtime.shutdown_background();
    outcome
}

/// SIGTERM and SIGINT stop; SIGHUP is passed on. A second SIGTERM or SIGINT ends the process at once.
fn watch_signals(
    stop: CancellationToken,
    hangups: mpsc::Sender<Reload>,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
    let mut hangup = signal(SignalKind::hangup()).context("SIGHUP")?;
    Ok(tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => {
                    // One is waiting already when there is no room, and it will read the newest file.
                    let _ = hangups.try_send(Reload::default());
                    continue;
                }
            }
            if stop.is_cancelled() {
                std::process::exit(1);
            }
            tracing::info!("stopping");
            stop.cancel();
        }
    }))
}

/// Each relayed connection needs two or more open files; the usual soft limit of 1024 is for programs that use select().
fn raise_file_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard) } else { Ok(()) }
    });
    if let Err(error) = raised {
        tracing::warn!("cannot raise the limit of open files: {error}");
    }
}

fn start_log(form: LogForm) -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // The websocket library writes requests, and with them the secret, at its trace level.
    let filter =
        filter.add_directive("tungstenite=info".parse()?).add_directive("tokio_tungstenite=info".parse()?);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let log = log.with_ansi(std::io::stderr().is_terminal());
    let started = match form {
        LogForm::Text => log.with_target(false).try_init(),
        LogForm::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot start the log: {error}"))
}
