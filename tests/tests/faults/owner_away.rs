//! The panel and the node that chooses the exit cannot reach each other.

use crate::stages::{SWITCH, Scene, decided, on_stage, options, pairs, switches};
use anyhow::ensure;
use shared::best_exit::Leg;
use std::time::Duration;
use tests::netlab::Impairment;
use tests::rig::settled;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_is_away_is_skipped_and_nothing_is_held_against_its_exits() {
    on_stage(options("f-owner"), async |stage| {
        let scene = Scene::open(stage).await?;
        let order = stage.api.decision(scene.tunnel.id).await?.applied_order;
        stage.lab.link("panel", "entry-1").cut()?;
        decided(stage, scene.tunnel.id, "owner_offline").await?;
        // There would be a reason to switch, if anybody could know.
        stage.lab.link("entry-1", "exit-a").set_both(Impairment::delay(Duration::from_millis(90)))?;
        // Three times the rounds that would be enough.
        settled("it is skipped", Duration::from_secs(8), async || {
            let decision = stage.api.decision(scene.tunnel.id).await?;
            ensure!(decision.reason.code() == "owner_offline", "{:?}", decision.reason);
            ensure!(decision.applied_order == order && decision.pending.is_none(), "{decision:?}");
            for candidate in &decision.candidates {
                let failed =
                    [&candidate.leg_a, &candidate.leg_b].iter().any(|leg| matches!(leg, Leg::Failed { .. }));
                ensure!(!failed, "{candidate:?}");
            }
            Ok(())
        })
        .await?;
        ensure!(switches(stage, scene.tunnel.id).await?.is_empty());
        scene.serves("exit-a").await?;

        stage.lab.link("panel", "entry-1").repair()?;
        stage.switched(scene.tunnel.id, "exit-b", SWITCH * 2).await?;
        scene.serves("exit-b").await?;
        ensure!(switches(stage, scene.tunnel.id).await? == pairs([("exit-a", "exit-b")]));
        scene.nobody_noticed(&[]).await?;
        Ok(())
    })
    .await;
}
