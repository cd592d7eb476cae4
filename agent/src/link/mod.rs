//! The agent's side of the link to a panel: connects, obeys, reports, and connects again.

mod address;
mod backoff;
mod codec;
mod dial;
mod flow;
mod metric;
mod session;

pub use address::{PanelAddress, PanelAddressError, Scheme};
pub use backoff::Backoff;

use crate::clock::{Clock, Random};
use crate::commands::Commands;
use crate::runtime::Runtime;
use dial::{Connected, DialError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::ClientConfig;
use tokio_util::sync::CancellationToken;

/// Name of this program in the hello.
pub const AGENT_NAME: &str = "exitpilot-agent";
/// Version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Begins the line of the log about a link that works; packaging/install.sh waits for it.
const CONNECTED: &str = "connected to panel";

/// The shared secret of a node and its panel. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// `None` for a blank text: the peer's panel would not encrypt then.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Periods and deadlines of the link. The defaults are those of the peer's agents (2.1.9 to 3.0), so that either panel
/// sees what it expects.
#[derive(Clone, Debug)]
pub struct Timings {
    /// For each scheme: name, TCP, TLS and upgrade together.
    pub handshake: Duration,
    /// Between own pings.
    pub ping: Duration,
    /// Without any traffic for so long the connection is given up. The panel pings every 15 s.
    pub read: Duration,
    /// For one frame.
    pub write: Duration,
    /// Between looks at what changed, and between metrics.
    pub report: Duration,
    /// Between reports of what services have carried, to a compatible panel.
    pub traffic: Duration,
    /// Between reports of the configuration, to a compatible panel.
    pub config: Duration,
    /// From the beginning of a link to its first report of the configuration: the panel sends changes first.
    pub first_config: Duration,
    /// Waits between attempts.
    pub backoff: Backoff,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            ping: Duration::from_secs(20),
            read: Duration::from_secs(60),
            write: Duration::from_secs(5),
            report: Duration::from_secs(5),
            traffic: Duration::from_secs(5),
            config: Duration::from_secs(600),
            first_config: Duration::from_secs(10),
            backoff: Backoff::default(),
        }
    }
}

/// How to reach the panel.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// Where it is.
    pub panel: PanelAddress,
    /// Of this node.
    pub secret: Secret,
    /// PEM file of a further authority for `wss`.
    pub ca_file: Option<PathBuf>,
    /// Periods and deadlines.
    pub timings: Timings,
    /// Time.
    pub clock: Clock,
    /// For nonces and jitter.
    pub random: Random,
}

/// The link of one agent to its panel.
pub struct Link {
    options: LinkOptions,
    tls: Arc<ClientConfig>,
    runtime: Runtime,
    commands: Commands,
}

impl Link {
    /// Fails when the file of authorities cannot be used.
    pub fn new(options: LinkOptions, runtime: Runtime, commands: Commands) -> anyhow::Result<Self> {
        let tls = dial::tls_config(options.ca_file.as_deref())?;
        Ok(Self { options, tls, runtime, commands })
    }

    /// Keeps the link up until `stop`.
    pub async fn run(&self, stop: &CancellationToken) {
        let mut backoff = self.options.timings.backoff.clone();
        let mut worked = None;
        let mut flow = flow::Flow::default();
        while !stop.is_cancelled() {
            let connected = tokio::select! {
                connected = self.connect(worked) => connected,
                () = stop.cancelled() => return,
            };
            let reason = match connected {
                Ok((scheme, connected)) => {
                    backoff.reset();
                    let kind = if connected.ours { "ExitPilot" } else { "compatible" };
                    tracing::info!("{CONNECTED} {} ({kind})", self.options.panel.shown(scheme));
                    if scheme == Scheme::Ws && worked != Some(scheme) {
                        tracing::warn!("the link has no TLS: the node secret can be read on the way");
                    }
                    worked = Some(scheme);
                    let reason = session::serve(self, scheme, connected, &mut flow, stop).await;
                    if stop.is_cancelled() {
                        return;
                    }
                    format!("disconnected from the panel: {reason}")
                }
                Err(reason) => reason,
            };
            let wait = backoff.wait(self.options.random.unit());
            tracing::warn!("{reason}; next attempt in {:.1} s", wait.as_secs_f64());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Tries the schemes one after another. The text says why none worked, in one line.
    async fn connect(&self, worked: Option<Scheme>) -> Result<(Scheme, Connected), String> {
        let LinkOptions { panel, secret, timings, .. } = &self.options;
        let version = format!("{VERSION} ({}/{})", std::env::consts::OS, std::env::consts::ARCH);
        let mut reasons = Vec::new();
        for scheme in panel.schemes(worked) {
            let attempt = dial::dial(panel, scheme, secret.reveal(), &version, &self.tls, timings.handshake);
            match attempt.await {
                Ok(connected) => return Ok((scheme, connected)),
                Err(error @ DialError::SecretRefused(_)) => return Err(error.to_string()),
                Err(error) => reasons.push(format!("{}: {error}", panel.shown(scheme))),
            }
        }
        Err(format!("no panel reached ({})", reasons.join("; ")))
    }
}
