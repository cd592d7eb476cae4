//! `kill -9` of an agent that cannot ask the panel for its configuration.

use crate::stages::{SWITCH, Scene, on_stage, options, pairs, switches};
use crate::{agents_are_back, all_served_by, evaluated_anew};
use anyhow::ensure;
use std::time::Duration;
use tests::netlab::Impairment;
use tests::rig::client::Tally;
use tests::rig::settled;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_killed_beside_a_dead_panel_forwards_as_before_and_the_panel_changes_nothing() {
    on_stage(options("f-agent"), async |stage| {
        let scene = Scene::open(stage).await?;
        stage.lab.link("entry-1", "exit-a").set_both(Impairment::delay(Duration::from_millis(90)))?;
        stage.switched(scene.tunnel.id, "exit-b", SWITCH).await?;
        scene.serves("exit-b").await?;
        let order = stage.api.decision(scene.tunnel.id).await?.applied_order;

        stage.panel.kill().await?;
        let died = scene.users.now();
        stage.agent("entry-1")?.kill().await?;
        stage.agent("entry-1")?.start_again()?;
        scene.serves("exit-b").await?;
        let back = scene.users.now();
        all_served_by(stage, scene.address, "exit-b").await?;

        stage.panel.start_again().await?;
        stage.api = stage.panel.api().await?;
        agents_are_back(stage).await?;
        stage.deployed(scene.tunnel.id).await?;
        evaluated_anew(stage, scene.tunnel.id).await?;
        settled("the order stays", Duration::from_secs(4), async || {
            let decision = stage.api.decision(scene.tunnel.id).await?;
            ensure!(decision.applied_order == order, "{decision:?}");
            Ok(())
        })
        .await?;
        // It runs what it should, so that there is nothing to tell it.
        let log = stage.agent("entry-1")?.log().clone();
        ensure!(log.count("command=") == 0, "it was sent something:\n{}", log.tail(40));
        ensure!(switches(stage, scene.tunnel.id).await? == pairs([("exit-a", "exit-b")]));
        all_served_by(stage, scene.address, "exit-b").await?;

        // Users may notice the death of their entry, and nothing else.
        let connections = scene.users.stop().await;
        let dead: Vec<_> = connections.iter().filter(|c| !c.overlaps(died, back)).cloned().collect();
        let outside = Tally::of(&dead);
        ensure!(outside.failed == 0 && Tally::of(&connections).direct == 0, "{outside:?}");
        Ok(())
    })
    .await;
}
