//! What the tests of this suite have in common.

use anyhow::{Context as _, Result, bail, ensure};
use shared::api::{SettingsInput, Tunnel};
use shared::best_exit::Reason;
use shared::ids::TunnelId;
use std::net::SocketAddr;
use std::time::Duration;
use tests::netlab::{Impairment, LabError};
use tests::rig::client::{Client, Connection, Outcome, Tally, start};
use tests::rig::{Stage, StageOptions, eventually};

/// For a switch to come: seconds by the settings here, and the machine is busy.
pub(crate) const SWITCH: Duration = Duration::from_secs(40);
/// Between two connections of the users.
pub(crate) const PACE: Duration = Duration::from_millis(40);
/// One way to the exits when all is well, in their order.
const DELAYS_MS: [u64; 3] = [5, 15, 40];

/// The real rules at the highest pace that is allowed.
pub(crate) fn fast() -> SettingsInput {
    SettingsInput {
        round_interval_ms: Some(500),
        ping_count: Some(2),
        ping_timeout_ms: Some(250),
        cooldown_ms: Some(1500),
        apply_retry_ms: Some(1000),
        unmeasured_grace_ms: Some(5000),
        ..SettingsInput::default()
    }
}

pub(crate) fn options(name: &str) -> StageOptions {
    StageOptions { settings: fast(), ..StageOptions::new(name) }
}

/// Runs a test on a stage; a failure shows the ends of all logs. Where there can be no lab, it says so and passes.
pub(crate) async fn on_stage(options: StageOptions, play: impl AsyncFnOnce(&mut Stage) -> Result<()>) {
    let mut stage = match Stage::start(options).await {
        Ok(stage) => stage,
        Err(error) if matches!(error.downcast_ref(), Some(LabError::Unavailable { .. })) => {
            println!("SKIPPED: {error:#}");
            return;
        }
        Err(error) => panic!("{error:#}"),
    };
    let outcome = Box::pin(play(&mut stage)).await;
    if let Err(error) = outcome {
        panic!("{error:#}\n{}", stage.logs(60));
    }
    stage.close().await;
}

/// Links from `owners` to the exits as they are when all is well: A is the best, then B, then C.
pub(crate) fn heal(stage: &Stage, owners: &[&str]) -> Result<()> {
    for (exit, ms) in stage.exits.iter().zip(DELAYS_MS) {
        for owner in owners {
            let link = stage.lab.link(owner, exit);
            link.set_both(Impairment::delay(Duration::from_millis(ms)))?;
            link.repair()?;
        }
    }
    Ok(())
}

/// A `best` tunnel from entry-1 to all exits with users on it, after the first decision.
pub(crate) struct Scene {
    pub(crate) tunnel: Tunnel,
    pub(crate) address: SocketAddr,
    pub(crate) users: Client,
}

impl Scene {
    pub(crate) async fn open(stage: &Stage) -> Result<Self> {
        heal(stage, &["entry-1"])?;
        let exits: Vec<&str> = stage.exits.iter().map(String::as_str).collect();
        let (tunnel, _, addresses) = stage.open(&stage.best("best", &["entry-1"], &[], &exits)?).await?;
        decided(stage, tunnel.id, "current_is_best").await?;
        let address = addresses[0];
        let users = Client::start(stage.client()?, vec![address], stage.exits.clone(), PACE, start());
        let scene = Self { tunnel, address, users };
        scene.serves("exit-a").await?;
        Ok(scene)
    }

    /// Waits until connections begun from now on go through this exit.
    pub(crate) async fn serves(&self, exit: &str) -> Result<()> {
        let from = self.users.now();
        eventually(&format!("users go through {exit}"), SWITCH, async || {
            let newer: Vec<Connection> =
                self.users.so_far().into_iter().filter(|c| c.started > from).collect();
            let tally = Tally::of(&newer);
            ensure!(tally.per_exit.get(exit).is_some_and(|count| *count >= 5), "{tally:?}");
            Ok(())
        })
        .await
    }

    /// Sends the users home and fails if anything went wrong for one whose life lies outside of what is excused
    /// (times since the users' start). Nobody is ever excused for going direct.
    pub(crate) async fn nobody_noticed(self, excused: &[(Duration, Duration)]) -> Result<Tally> {
        unnoticed(&self.users.stop().await, excused)
    }
}

/// [`Scene::nobody_noticed`] of users that have gone home.
pub(crate) fn unnoticed(connections: &[Connection], excused: &[(Duration, Duration)]) -> Result<Tally> {
    let all = Tally::of(connections);
    ensure!(all.direct == 0, "{} connections went direct", all.direct);
    let counted = connections.iter().filter(|c| !excused.iter().any(|(from, to)| c.overlaps(*from, *to)));
    let wrong: Vec<&Connection> = counted.filter(|c| !matches!(c.outcome, Outcome::Served(_))).collect();
    ensure!(
        wrong.is_empty(),
        "{} of {} connections: {:?}",
        wrong.len(),
        all.total,
        &wrong[..wrong.len().min(5)]
    );
    Ok(all)
}

/// Waits until the last reason of the only owner is this one.
pub(crate) async fn decided(stage: &Stage, tunnel: TunnelId, code: &str) -> Result<Reason> {
    eventually(&format!("the reason is {code}"), SWITCH, async || {
        let reason = stage.api.decision(tunnel).await?.reason;
        if reason.code() == code {
            return Ok(reason);
        }
        bail!("{reason:?}")
    })
    .await
}

/// The switches in the decision log, oldest first.
pub(crate) async fn switches(stage: &Stage, tunnel: TunnelId) -> Result<Vec<(String, String)>> {
    let mut entries = stage.api.decision_log(tunnel).await?;
    entries.reverse();
    let mut switches = Vec::new();
    for entry in entries {
        if let Reason::Switched { from, to, .. } = entry.reason {
            let from = from.context("a switch has an exit before it")?;
            switches.push((stage.name(from), stage.name(to)));
        }
    }
    Ok(switches)
}

pub(crate) fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(from, to)| (from.to_owned(), to.to_owned())).into()
}
