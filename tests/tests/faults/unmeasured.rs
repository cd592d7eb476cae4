//! The panel cannot reach the agent of the exit in use; users can.

use crate::stages::{SWITCH, Scene, fast, on_stage, options, pairs, switches};
use anyhow::{bail, ensure};
use shared::api::SettingsInput;
use shared::best_exit::{Leg, Reason};
use std::time::Duration;
use tests::rig::{StageOptions, eventually};

/// How long such an exit is kept.
const GRACE: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exit_that_only_the_panel_lost_is_kept_for_the_grace_and_left_after_it() {
    let settings = SettingsInput { unmeasured_grace_ms: Some(8000), ..fast() };
    on_stage(StageOptions { settings, ..options("f-grace") }, async |stage| {
        let scene = Scene::open(stage).await?;
        let exit = stage.node("exit-a")?;
        stage.lab.link("panel", "exit-a").cut()?;

        // From the first round without an answer on, until the grace is nearly over, nothing else is said.
        let (mut seen, mut least, mut began) = (0u32, u64::MAX, None);
        let watched = eventually("the grace passes", SWITCH, async || {
            let decision = stage.api.decision(scene.tunnel.id).await?;
            match decision.reason {
                Reason::CurrentUnmeasured { remaining_ms } => {
                    ensure!(remaining_ms <= GRACE.as_millis() as u64, "{remaining_ms} ms of {GRACE:?}");
                    let candidate = decision.candidates.iter().find(|c| c.exit_node_id == exit);
                    let measured = candidate.is_some_and(|c| {
                        matches!(c.leg_a, Leg::Measured { .. }) && matches!(c.leg_b, Leg::Unmeasured { .. })
                    });
                    if !measured || decision.applied_order.first() != Some(&exit) {
                        return Ok(Err(anyhow::anyhow!("{decision:?}")));
                    }
                    began.get_or_insert_with(|| scene.users.now());
                    (seen, least) = (seen + 1, least.min(remaining_ms));
                }
                // Left before its time, or not yet noticed.
                reason if seen > 0 && least > 2500 => return Ok(Err(anyhow::anyhow!("{reason:?}"))),
                reason if seen == 0 => bail!("{reason:?}"),
                _ => return Ok(Ok(())),
            }
            bail!("{least} ms of the grace are left")
        });
        watched.await??;
        let kept = began.map_or(Duration::ZERO, |began| scene.users.now().saturating_sub(began));
        println!("the grace was seen {seen} times, down to {least} ms, for {kept:?}");
        // Less what may pass before a first look, on a busy machine.
        ensure!(kept + Duration::from_secs(2) >= GRACE, "kept for {kept:?} of {GRACE:?}");

        stage.switched(scene.tunnel.id, "exit-b", SWITCH).await?;
        scene.serves("exit-b").await?;
        ensure!(switches(stage, scene.tunnel.id).await? == pairs([("exit-a", "exit-b")]));
        scene.nobody_noticed(&[]).await?;
        Ok(())
    })
    .await;
}
