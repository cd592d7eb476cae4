//! A panel that stops politely and comes back.

use crate::stages::{Scene, on_stage, options};
use anyhow::{Result, ensure};
use std::time::Duration;
use tests::rig::{Stage, eventually};

/// Waits until the agents of the stage are connected; nodes that tests invented have none.
async fn online_again(stage: &Stage) -> Result<()> {
    eventually("the agents are back", Duration::from_secs(60), async || {
        for node in stage.api.nodes().await? {
            ensure!(node.online || !stage.agents.contains_key(&node.name), "{} is not", node.name);
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panel_that_stops_politely_stops_quickly() {
    on_stage(options("polite"), async |stage| {
        let scene = Scene::open(stage).await?;
        let status = stage.panel.process().terminate(Duration::from_secs(10)).await?;
        ensure!(status.success(), "{status}");
        scene.serves("exit-a").await?;
        stage.panel.start_again().await?;
        stage.api = stage.panel.api().await?;
        online_again(stage).await?;
        scene.nobody_noticed(&[]).await?;
        Ok(())
    })
    .await;
}
