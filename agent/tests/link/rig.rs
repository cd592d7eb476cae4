//! An agent in this process, and the objects that tests send to it.

use crate::panel::{Panel, SECRET, patient};
use agent::clock::{Clock, Random};
use agent::daemon::{DaemonOptions, run};
use agent::link::{Backoff, LinkOptions, Secret, Timings};
use serde_json::json;
use shared::gost::{ChainConfig, ServiceConfig};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct Agent {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

/// Short waits, so that a reconnect takes no seconds.
pub(crate) fn quick() -> Timings {
    let backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(200));
    Timings { report: Duration::from_millis(50), backoff, ..Timings::default() }
}

pub(crate) fn link_options(panel: &str, timings: Timings) -> LinkOptions {
    LinkOptions {
        panel: panel.parse().unwrap(),
        secret: Secret::new(SECRET).unwrap(),
        ca_file: None,
        timings,
        clock: Clock::system(),
        random: Random::system(),
    }
}

impl Agent {
    pub(crate) fn start(panel: &Panel, state: &Path) -> Self {
        Self::start_at(&format!("ws://{}", panel.address()), state, quick())
    }

    pub(crate) fn start_at(panel: &str, state: &Path, timings: Timings) -> Self {
        Self::start_with(link_options(panel, timings), state)
    }

    pub(crate) fn start_with(link: LinkOptions, state: &Path) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(run(
            DaemonOptions {
                state_dir: state.to_owned(),
                link,
                allow_commands: false,
                api: None,
                clash: None,
            },
            stop.clone(),
        ));
        Self { stop, task }
    }

    /// Asks the agent to stop without waiting.
    pub(crate) fn request_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        patient("the agent to stop", self.task).await.unwrap().unwrap();
    }
}

/// A chain with one exit at `addr`.
pub(crate) fn chain(name: &str, addr: &str) -> ChainConfig {
    serde_json::from_value(json!({"name": name, "hops": [{"name": "hop_1", "nodes": [
        {"name": "node_1", "addr": addr, "connector": {"type": "relay"}, "dialer": {"type": "tcp"}}
    ]}]}))
    .unwrap()
}

/// A service that forwards `listen` to `target` without a chain.
pub(crate) fn forward(name: &str, listen: SocketAddr, target: SocketAddr) -> ServiceConfig {
    serde_json::from_value(json!({"name": name, "addr": listen.to_string(), "handler": {"type": "tcp"},
        "listener": {"type": "tcp"},
        "forwarder": {"nodes": [{"name": "node_1", "addr": target.to_string()}]}}))
    .unwrap()
}

/// A port that is free now and was never connected to.
pub(crate) async fn free_address() -> SocketAddr {
    tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
