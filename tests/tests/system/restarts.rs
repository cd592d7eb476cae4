//! Processes that die in the middle of things.

use crate::stages::{SWITCH, Scene, on_stage, options, pairs, switches};
use anyhow::{Context as _, Result, ensure};
use shared::api::{NodeInput, Tunnel, TunnelInput};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tests::netlab::Impairment;
use tests::rig::client::start;
use tests::rig::long_lived::Ending;
use tests::rig::{Api, LongLived, Stage, eventually, settled};

/// Names that the panel has acknowledged.
type Acknowledged = Arc<Mutex<BTreeSet<String>>>;

fn count(acknowledged: &Acknowledged) -> usize {
    acknowledged.lock().unwrap_or_else(PoisonError::into_inner).len()
}

/// Writes until the panel is gone: nodes, and tunnels over the first entry and exits.
async fn write(api: Api, like: TunnelInput, writer: usize, acknowledged: Acknowledged) {
    for number in 0.. {
        let name = format!("w{writer}-{number}");
        let created = if number % 2 == 0 {
            let node =
                NodeInput { name: name.clone(), server_ip: "192.0.2.1".into(), ..NodeInput::default() };
            api.create_node(&node).await.map(|node| node.name)
        } else {
            let tunnel = TunnelInput { name: name.clone(), ..like.clone() };
            api.create_tunnel(&tunnel).await.map(|tunnel| tunnel.name)
        };
        // Without an answer it may or may not be there; only what was acknowledged is promised.
        let Ok(created) = created else { return };
        acknowledged.lock().unwrap_or_else(PoisonError::into_inner).insert(created);
    }
}

/// What the panel has that these writers wrote.
async fn written(api: &Api) -> Result<BTreeSet<String>> {
    let nodes = api.nodes().await?.into_iter().map(|node| node.name);
    let tunnels = api.tunnels().await?.into_iter().map(|tunnel: Tunnel| tunnel.name);
    Ok(nodes.chain(tunnels).filter(|name| name.starts_with('w')).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panel_killed_while_writing_loses_nothing_and_nobody_notices() {
    let mut options = options("panel-killed");
    // Commands are seen in the agents' logs.
    options.agent_log = "info,agent=debug".into();
    on_stage(options, async |stage| {
        let scene = Scene::open(stage).await?;
        // A switch before, so that the order that must survive is not the saved one.
        stage.lab.link("entry-1", "exit-a").set_both(Impairment::delay(Duration::from_millis(90)))?;
        stage.switched(scene.tunnel.id, "exit-b", SWITCH).await?;
        scene.serves("exit-b").await?;
        let kept = LongLived::open(&stage.client()?, scene.address, start()).await?;
        let order = stage.api.decision(scene.tunnel.id).await?.applied_order;

        let acknowledged = Acknowledged::default();
        let like = stage.best("like", &["entry-1"], &[], &["exit-a", "exit-b"])?;
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..4 {
            writers.spawn(write(stage.api.clone(), like.clone(), writer, acknowledged.clone()));
        }
        eventually("some writes", Duration::from_secs(60), async || {
            ensure!(count(&acknowledged) >= 12, "{} so far", count(&acknowledged));
            Ok(())
        })
        .await?;
        stage.panel.kill().await?;
        while writers.join_next().await.is_some() {}
        let promised = acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();

        // Without the panel users are served, through the exit that was the best.
        scene.serves("exit-b").await?;
        let bytes = kept.bytes();
        stage.panel.start_again().await?;
        let api = stage.panel.api().await?;
        let found = written(&api).await?;
        let lost: Vec<&String> = promised.difference(&found).collect();
        ensure!(lost.is_empty(), "acknowledged and lost: {lost:?}");

        stage.api = api;
        online_again(stage).await?;
        eventually("the owner is evaluated again", SWITCH, async || {
            let decision = stage.api.decision(scene.tunnel.id).await?;
            ensure!(decision.reason.code() == "current_is_best", "{:?}", decision.reason);
            Ok(())
        })
        .await?;
        settled("no switch", Duration::from_secs(5), async || {
            let decision = stage.api.decision(scene.tunnel.id).await?;
            ensure!(decision.applied_order == order, "{decision:?}");
            Ok(())
        })
        .await?;
        ensure!(switches(stage, scene.tunnel.id).await? == pairs([("exit-a", "exit-b")]));
        for agent in stage.agents.values() {
            for teardown in ["DeleteService", "PauseService", "DeleteChains"] {
                ensure!(agent.log().count(teardown) == 0, "{teardown}:\n{}", agent.log().tail(40));
            }
        }
        scene.serves("exit-b").await?;
        ensure!(kept.bytes() > bytes, "the kept connection stands still");
        let life = kept.close().await?;
        ensure!(life.ending == Ending::Client, "{life:?}");
        scene.nobody_noticed(&[]).await?;
        Ok(())
    })
    .await;
}

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
async fn an_agent_killed_without_a_panel_comes_back_forwarding() {
    on_stage(options("agent-killed"), async |stage| {
        let scene = Scene::open(stage).await?;
        stage.lab.link("entry-1", "exit-a").set_both(Impairment::delay(Duration::from_millis(90)))?;
        stage.switched(scene.tunnel.id, "exit-b", SWITCH).await?;
        scene.serves("exit-b").await?;
        stage.panel.kill().await?;

        for name in ["entry-1", "exit-b"] {
            let died = scene.users.now();
            stage.agent(name)?.kill().await?;
            stage.agent(name)?.start_again()?;
            // Through the exit that was last accepted, not the one that was first saved. While exit-b is away the
            // entry uses the next one, and marks it: so the way back may take as long as a mark.
            let served = if name == "entry-1" { scene.serves("exit-b").await } else { Ok(()) };
            served.with_context(|| format!("{name} came back"))?;
            let back = scene.users.now();
            let newer = eventually("users are served", Duration::from_secs(30), async || {
                let all = scene.users.so_far();
                let newer: Vec<_> = all.into_iter().filter(|c| c.started > back).collect();
                ensure!(newer.len() >= 20, "{}", newer.len());
                Ok(newer)
            });
            let tally = tests::rig::client::Tally::of(&newer.await?);
            ensure!(tally.failed == 0 && tally.direct == 0, "{name}, since {died:?}: {tally:?}");
        }

        stage.panel.start_again().await?;
        stage.api = stage.panel.api().await?;
        online_again(stage).await?;
        stage.deployed(scene.tunnel.id).await?;
        ensure!(switches(stage, scene.tunnel.id).await? == pairs([("exit-a", "exit-b")]));
        let connections = scene.users.stop().await;
        ensure!(tests::rig::client::Tally::of(&connections).direct == 0);
        Ok(())
    })
    .await;
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
