//! An agent as a process.

use super::binaries;
use super::place::Place;
use super::process::{Log, Process};
use anyhow::Result;
use std::net::SocketAddr;
use std::path::PathBuf;
use tempfile::TempDir;

/// How to start it.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Name for messages.
    pub name: String,
    /// Where its panel is.
    pub panel: SocketAddr,
    /// Secret of its node.
    pub secret: String,
    /// What it logs (`RUST_LOG`); empty = its default.
    pub log: String,
}

/// An agent with its own state. Killed when dropped.
#[derive(Debug)]
pub struct Agent {
    place: Place,
    options: AgentOptions,
    folder: TempDir,
    process: Process,
}

impl Agent {
    /// Starts it. It connects by itself: what it is good for is the panel's to say.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(place: impl Into<Place>, options: AgentOptions) -> Result<Self> {
        let place = place.into();
        let folder = tempfile::Builder::new().prefix("exitpilot-agent-").tempdir()?;
        let process = launch(&place, &options, &folder)?;
        Ok(Self { place, options, folder, process })
    }

    /// What it wrote since it was last started.
    #[must_use]
    pub fn log(&self) -> &Log {
        self.process.log()
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The folder of its state.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// The kernel's.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.kill().await
    }

    /// Starts it again on the same state. It must have ended before.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_again(&mut self) -> Result<()> {
        self.process = launch(&self.place, &self.options, &self.folder)?;
        Ok(())
    }
}

fn launch(place: &Place, options: &AgentOptions, folder: &TempDir) -> Result<Process> {
    let mut command = place.command(binaries::find(binaries::AGENT)?);
    command.arg("run").arg("--panel").arg(format!("ws://{}", options.panel));
    command.arg("--state-dir").arg(folder.path()).current_dir(folder.path());
    // Not as a flag: command lines are visible.
    command.env("EXITPILOT_AGENT_SECRET", &options.secret);
    if !options.log.is_empty() {
        command.env("RUST_LOG", &options.log);
    }
    Process::start(&options.name, command)
}
