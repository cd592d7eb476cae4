//! The nodes, the tunnels and the users of the story.

use super::plot;
use crate::netlab::Impairment;
use crate::rig::{Stage, StageOptions};
use anyhow::{Context as _, Result};
use shared::ids::TunnelId;
use std::net::{Ipv4Addr, SocketAddr};

/// The port of the page when nobody wants another one and it is free: the product's.
const PAGE_PORT: u16 = 6365;

/// Nodes whose chains list the exits: the entry of the direct tunnel, and the middle node of the other one.
pub const OWNERS: [&str; 2] = ["entry-1", "mid-1"];

/// Everything in place.
#[derive(Debug)]
pub struct Scene {
    stage: Stage,
    page: SocketAddr,
    direct: TunnelId,
    via_mid: TunnelId,
    addresses: Vec<SocketAddr>,
}

impl Scene {
    /// Builds it, and opens both tunnels.
    ///
    /// # Errors
    /// When anything does not work.
    pub async fn set(port: Option<u16>) -> Result<Self> {
        let options = StageOptions { settings: plot::settings(), ..StageOptions::new("demo") };
        let stage = Stage::start(options).await?;
        let page = publish(&stage, port)?;
        let exits: Vec<&str> = plot::DELAYS.iter().map(|(exit, _)| *exit).collect();
        stage.lab.link("entry-1", "mid-1").set_both(Impairment::delay(plot::MID_DELAY))?;
        for exit in &exits {
            stage.lab.link(exit, "target").set_both(Impairment::delay(plot::TARGET_DELAY))?;
        }
        let mut scene =
            Self { stage, page, direct: TunnelId(0), via_mid: TunnelId(0), addresses: Vec::new() };
        scene.heal()?;
        let stage = &scene.stage;
        let direct = stage.open(&stage.best("direct", &["entry-1"], &[], &exits)?).await?;
        let via_mid = stage.open(&stage.best("via-mid", &["entry-1"], &["mid-1"], &exits)?).await?;
        scene.addresses = [direct.2, via_mid.2].concat();
        (scene.direct, scene.via_mid) = (direct.0.id, via_mid.0.id);
        Ok(scene)
    }

    /// The network and what runs in it.
    #[must_use]
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Where the page is.
    #[must_use]
    pub fn page(&self) -> SocketAddr {
        self.page
    }

    /// The tunnel from the entry to the exits.
    #[must_use]
    pub fn direct(&self) -> TunnelId {
        self.direct
    }

    /// The tunnel with a middle node.
    #[must_use]
    pub fn via_mid(&self) -> TunnelId {
        self.via_mid
    }

    /// Where users connect.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// All links to the exits as they are when all is well.
    ///
    /// # Errors
    /// The lab's.
    pub fn heal(&self) -> Result<()> {
        for (exit, delay) in plot::DELAYS {
            for owner in OWNERS {
                let link = self.stage.lab.link(owner, exit);
                link.set_both(Impairment::delay(delay))?;
                link.repair()?;
            }
        }
        Ok(())
    }

    /// Changes the links of all owners to one exit.
    ///
    /// # Errors
    /// The lab's.
    pub fn impair(&self, exit: &str, impairment: &Impairment) -> Result<()> {
        for owner in OWNERS {
            self.stage.lab.link(owner, exit).set_both(impairment.clone())?;
        }
        Ok(())
    }

    /// Cuts the links of all owners to all exits.
    ///
    /// # Errors
    /// The lab's.
    pub fn cut(&self) -> Result<()> {
        for (exit, _) in plot::DELAYS {
            for owner in OWNERS {
                self.stage.lab.link(owner, exit).cut()?;
            }
        }
        Ok(())
    }

    /// Takes everything down.
    pub async fn strike(self) {
        self.stage.close().await;
    }
}

fn publish(stage: &Stage, port: Option<u16>) -> Result<SocketAddr> {
    let host = stage.host("panel")?;
    let inside = stage.panel.address().port();
    let at = |port| stage.lab.publish_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), &host, inside);
    match port {
        Some(port) => at(port).with_context(|| format!("cannot show the page at port {port}")),
        None => Ok(at(PAGE_PORT).or_else(|_| at(0))?),
    }
}
