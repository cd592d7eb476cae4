//! The command line.

use crate::app::users;
use crate::clock::Clock;
use crate::config::{Config, ConfigFile, LogFormat, Options, unknown_variables};
use crate::replay;
use crate::store::Db;
use anyhow::{Context as _, bail};
use clap::{CommandFactory as _, Parser, Subcommand};
use std::io::{IsTerminal as _, Write as _};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Control panel for traffic-forwarding networks.
#[derive(Parser)]
#[command(name = "exitpilot", version, about)]
pub struct Cli {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the panel (also without any command).
    Serve,
    /// Look at the configuration.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Look after users.
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Write what was measured for a tunnel to a file, for `replay`.
    ExportHistory(replay::ExportArguments),
    /// Show what other settings, rules and policies would have made of what was measured, and suggest settings.
    Replay(replay::ReplayArguments),
    /// Print the OpenAPI document.
    Openapi,
    /// Print the completions for a shell.
    Completion {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print the configuration in force, passwords masked.
    Show,
}

#[derive(Subcommand)]
enum AdminCommand {
    /// Give a user a new random password, print it, and end his sessions.
    ResetPassword {
        /// Whose.
        #[arg(long, default_value = users::FIRST_USER)]
        username: String,
    },
}

impl Cli {
    /// Does what the command line says.
    pub async fn run(self) -> anyhow::Result<()> {
        let load =
            || Config::load(self.options, self.file.config.as_deref(), &|name| std::env::var(name).ok());
        match self.command {
            None | Some(Command::Serve) => serve(load()?).await,
            Some(Command::Config { command: ConfigCommand::Show }) => print(&load()?.to_toml()),
            Some(Command::Admin { command: AdminCommand::ResetPassword { username } }) => {
                reset_password(&load()?, &username).await
            }
            Some(Command::ExportHistory(arguments)) => {
                let db = Db::open(&load()?.database).await.context("opening the database")?;
                replay::export(&db, &Clock::system(), &arguments).await?;
                db.close().await;
                Ok(())
            }
            Some(Command::Replay(arguments)) => replay::run(&arguments),
            Some(Command::Openapi) => print(&format!("{}\n", crate::http::document().to_pretty_json()?)),
            Some(Command::Completion { shell }) => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Cli::command(), "exitpilot", &mut script);
                print(&String::from_utf8_lossy(&script))
            }
        }
    }
}

/// A reader that has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

async fn serve(config: Config) -> anyhow::Result<()> {
    start_logging(&config)?;
    for name in unknown_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())) {
        tracing::warn!("the environment variable {name} is not known");
    }
    let listener = std::net::TcpListener::bind(config.listen)
        .with_context(|| format!("listening on {}", config.listen))?;
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    let signals = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        stop.cancel();
        // Ends with the process: a second signal is not waited for.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        result = crate::run(config, listener, shutdown) => result,
        () = signals => Ok(()),
    }
}

fn start_logging(config: &Config) -> anyhow::Result<()> {
    let filter =
        EnvFilter::try_new(&config.log).with_context(|| format!("the log filter `{}`", config.log))?;
    // Standard output is for what programs read: the address, and the first password.
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}

async fn reset_password(config: &Config, username: &str) -> anyhow::Result<()> {
    let db = Db::open(&config.database).await.context("opening the database")?;
    let Some(password) = users::reset_password(&db, &Clock::system(), username).await? else {
        // Named without its options: a folder of one's own has a database of its own.
        bail!("there is no user `{username}` in this database; name the panel's own with --database");
    };
    db.close().await;
    print(&format!("the password of {username} is now {password}\n"))
}
