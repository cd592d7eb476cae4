//! The panel as a process.

use super::api::Api;
use super::binaries;
use super::place::Place;
use super::process::{Log, Process};
use anyhow::{Context as _, Result};
use rand::Rng as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// From the start to the line that says that it listens: migrations and a password hash, in a debug build, beside
/// other tests.
const START: Duration = Duration::from_secs(60);

/// How to start it.
#[derive(Clone, Debug, Default)]
pub struct PanelOptions {
    /// What it logs; empty = its default.
    pub log: String,
    /// Further variables of its environment.
    pub environment: Vec<(String, String)>,
}

/// A panel with its own data. Killed when dropped.
#[derive(Debug)]
pub struct Panel {
    place: Place,
    options: PanelOptions,
    folder: TempDir,
    password: String,
    address: SocketAddr,
    process: Process,
}

impl Panel {
    /// Starts it on any free port and waits until it accepts requests.
    ///
    /// # Errors
    /// When it does not.
    pub async fn start(place: impl Into<Place>, options: PanelOptions) -> Result<Self> {
        let place = place.into();
        let folder = tempfile::Builder::new().prefix("exitpilot-panel-").tempdir()?;
        let password = random_password();
        let (process, port) = launch(&place, &options, folder.path(), &password, 0).await?;
        let address = place.addr(port);
        Ok(Self { place, options, folder, password, address, process })
    }

    /// Where agents and programs reach it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Password of the user `admin`.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
    }

    /// What it wrote since it was last started.
    #[must_use]
    pub fn log(&self) -> &Log {
        self.process.log()
    }

    /// The folder of its data.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// A client of its API, logged in, that runs beside it: no impaired link is in between.
    ///
    /// # Errors
    /// When the login fails.
    pub async fn api(&self) -> Result<Api> {
        let login = Api::login(self.place.clone(), self.address, "admin", &self.password);
        login.await.context("logging in")
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// The kernel's.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.kill().await
    }

    /// Starts it again on the same data and the same port. It must have ended before.
    ///
    /// # Errors
    /// As [`Panel::start`].
    pub async fn start_again(&mut self) -> Result<()> {
        let port = self.address.port();
        let launched = launch(&self.place, &self.options, self.folder.path(), &self.password, port);
        (self.process, _) = launched.await?;
        Ok(())
    }
}

async fn launch(
    place: &Place,
    options: &PanelOptions,
    folder: &Path,
    password: &str,
    port: u16,
) -> Result<(Process, u16)> {
    let mut command = place.command(binaries::find(binaries::PANEL)?);
    let listen = match place {
        Place::Loopback => "127.0.0.1",
        Place::Host(_) => "0.0.0.0",
    };
    command.arg("serve").current_dir(folder);
    // What is meant for this program, or for a panel of whoever runs it, is not meant for this one.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("EXITPILOT_")) {
            command.env_remove(name);
        }
    }
    command.env("EXITPILOT_LISTEN", format!("{listen}:{port}"));
    command.env("EXITPILOT_DATABASE", format!("sqlite://{}", folder.join("exitpilot.db").display()));
    command.env("EXITPILOT_ADMIN_PASSWORD", password);
    command.env_remove("DATABASE_URL");
    if !options.log.is_empty() {
        command.env("EXITPILOT_LOG", &options.log);
    }
    command.envs(options.environment.iter().cloned());
    let mut process = Process::start("panel", command)?;
    let port = process
        .wait_for("listening on http://…", START, |line| {
            let address = line.split_once("listening on http://")?.1;
            address.split_whitespace().next()?.rsplit_once(':')?.1.trim_end_matches('/').parse().ok()
        })
        .await?;
    Ok((process, port))
}

/// 24 letters and digits: more than anybody guesses, easy to copy.
fn random_password() -> String {
    let mut random = crate::clock::random();
    (0..24).map(|_| char::from(random.sample(rand::distr::Alphanumeric))).collect()
}
