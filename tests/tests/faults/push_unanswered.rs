//! The command to switch does not arrive.

use crate::all_served_by;
use crate::stages::{SWITCH, decided, heal, on_stage, options, pairs, switches};
use anyhow::{bail, ensure};
use shared::api::SettingsInput;
use shared::best_exit::Reason;
use std::time::Duration;
use tests::netlab::Impairment;
use tests::rig::{StageOptions, eventually};

/// More packets than the last measurement of a round still sends after the round is evaluated, fewer than two send.
const LEFT_OVER: u64 = 4;

/// Rounds far enough apart to do something between two, and measurements that take most of a second.
fn slow() -> SettingsInput {
    SettingsInput {
        round_interval_ms: Some(2000),
        ping_count: Some(5),
        ping_timeout_ms: Some(500),
        cooldown_ms: Some(1000),
        apply_retry_ms: Some(2000),
        ..SettingsInput::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_without_an_answer_keeps_the_order_and_is_tried_again() {
    on_stage(StageOptions { settings: slow(), ..options("f-push") }, async |stage| {
        heal(stage, &["entry-1"])?;
        let best = stage.best("best", &["entry-1"], &[], &["exit-a", "exit-b"])?;
        let (tunnel, _, addresses) = stage.open(&best).await?;
        decided(stage, tunnel.id, "current_is_best").await?;
        let order = stage.api.decision(tunnel.id).await?.applied_order;
        let to = stage.node("exit-b")?;
        all_served_by(stage, addresses[0], "exit-a").await?;

        // Nobody else uses this link from here on: what leaves is a measurement of the next round.
        let probes = stage.lab.link("entry-1", "exit-b");
        stage.lab.link("entry-1", "exit-a").set_both(Impairment::delay(Duration::from_millis(90)))?;
        let sent = eventually("the last but one confirmation", SWITCH, async || {
            match stage.api.decision(tunnel.id).await?.reason {
                Reason::Confirming { rounds: 2, .. } => Ok(probes.stats()?.packets),
                other => bail!("{other:?}"),
            }
        })
        .await?;
        // The owner was asked and measures: more packets than can be left of the round before. Its answer still gets
        // through, and what the panel says then does not.
        let way = stage.lab.link("panel", "entry-1");
        eventually("the deciding round", SWITCH, async || {
            let packets = probes.stats()?.packets - sent;
            ensure!(packets >= LEFT_OVER, "{packets} packets so far");
            Ok(way.black_hole()?)
        })
        .await?;

        let error = eventually("the push has failed", SWITCH, async || {
            let log = stage.api.decision_log(tunnel.id).await?;
            let failed = log.iter().find_map(|entry| match &entry.reason {
                Reason::ApplyFailed { exit, error } if *exit == to => Some(error.clone()),
                _ => None,
            });
            match failed {
                Some(error) => Ok(error),
                None => bail!("{:?}", stage.api.decision(tunnel.id).await?.reason),
            }
        })
        .await?;
        ensure!(error.contains("did not answer in time"), "{error}");
        ensure!(stage.api.decision(tunnel.id).await?.applied_order == order, "the order has changed");
        ensure!(switches(stage, tunnel.id).await?.is_empty());
        all_served_by(stage, addresses[0], "exit-a").await?;

        way.repair()?;
        stage.switched(tunnel.id, "exit-b", SWITCH * 2).await?;
        ensure!(switches(stage, tunnel.id).await? == pairs([("exit-a", "exit-b")]));
        all_served_by(stage, addresses[0], "exit-b").await
    })
    .await;
}
