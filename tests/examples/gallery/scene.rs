//! What the pictures show: a small network in which something has just happened.

use anyhow::{Context as _, Result};
use shared::api::{ForwardInput, NodeInput, Role, SettingsInput, Tunnel, UserInput, UserRecord};
use shared::ids::NodeId;
use std::net::SocketAddr;
use std::time::Duration;
use tests::netlab::Impairment;
use tests::rig::{Stage, StageOptions};

const ENTRY: &str = "hk-entry";
/// One way from the entry to an exit. The first is best until it gets [`SLOW`].
const EXITS: [(&str, u64); 3] = [("tokyo-1", 25), ("seoul-1", 45), ("sgp-1", 70)];
const SLOW: Duration = Duration::from_millis(140);
/// For a decision, on a busy machine.
const DECISION: Duration = Duration::from_secs(90);
/// Before and after the switch, so that there is something to draw.
const HISTORY: Duration = Duration::from_secs(25);

/// The network with its panel, and where a browser outside finds the page.
pub(crate) struct Scene {
    pub(crate) stage: Stage,
    pub(crate) address: SocketAddr,
    pub(crate) tunnel: Tunnel,
    /// A node that nothing uses.
    pub(crate) unused: NodeId,
}

impl Scene {
    /// Starts everything, and lets it come to a switch.
    pub(crate) async fn start() -> Result<Self> {
        let mut options = StageOptions::new("gallery");
        options.entries = vec![ENTRY.to_owned()];
        options.mids.clear();
        options.exits = EXITS.map(|(name, _)| name.to_owned()).to_vec();
        options.settings = SettingsInput {
            round_interval_ms: Some(1_000),
            cooldown_ms: Some(2_000),
            ping_timeout_ms: Some(1_000),
            ..SettingsInput::default()
        };
        let stage = Stage::start(options).await?;
        for (exit, ms) in EXITS {
            stage.lab.link(ENTRY, exit).set_both(Impairment::delay(Duration::from_millis(ms)))?;
        }
        let exits = EXITS.map(|(name, _)| name);
        let (tunnel, _, _) = stage.open(&stage.best("asia", &[ENTRY], &[], &exits)?).await?;
        stage.switched(tunnel.id, exits[0], DECISION).await?;
        let unused = surroundings(&stage, &tunnel).await?;
        tokio::time::sleep(HISTORY).await;
        stage.lab.link(ENTRY, exits[0]).set_both(Impairment::delay(SLOW))?;
        stage.switched(tunnel.id, exits[1], DECISION).await?;
        tokio::time::sleep(HISTORY).await;
        let panel = stage.host("panel")?;
        let address = stage.lab.publish(&panel, stage.panel.address().port())?;
        Ok(Self { stage, address, tunnel, unused })
    }

    /// The entry, which owns the chain.
    pub(crate) fn owner(&self) -> Result<NodeId> {
        self.stage.node(ENTRY).context("the entry")
    }
}

/// What needs somebody, what is paused, and who else may log in.
async fn surroundings(stage: &Stage, tunnel: &Tunnel) -> Result<NodeId> {
    let node = NodeInput {
        name: "osaka-1".to_owned(),
        server_ip: "192.0.2.7".to_owned(),
        port_range: "10000-60000".to_owned(),
        ..NodeInput::default()
    };
    let unused = stage.api.create_node(&node).await?.id;
    let stopped = ForwardInput { name: "old-site".to_owned(), enabled: false, ..stage.forward(tunnel) };
    stage.api.create_forward(&stopped).await?;
    let viewer = UserInput {
        username: "wang".to_owned(),
        password: "only to look at things".to_owned(),
        role: Role::Viewer,
    };
    stage.api.send::<UserRecord>("POST", "/api/v1/users", &viewer).await?;
    Ok(unused)
}
