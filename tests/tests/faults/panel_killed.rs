//! `kill -9` of the panel while it is written to.

use crate::stages::{SWITCH, Scene, on_stage, options, pairs, switches};
use crate::{agents_are_back, all_served_by, evaluated_anew};
use anyhow::ensure;
use shared::api::{ForwardInput, NodeInput};
use shared::ids::{ForwardId, NodeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tests::netlab::Impairment;
use tests::rig::client::start;
use tests::rig::long_lived::Ending;
use tests::rig::{Api, LongLived, eventually, settled};

/// What the panel said it has: ids with names, and of forwards the port.
#[derive(Debug, Default)]
struct Promises {
    nodes: BTreeMap<NodeId, String>,
    forwards: BTreeMap<ForwardId, (String, u16)>,
}

#[derive(Clone, Debug, Default)]
struct Notebook(Arc<Mutex<Promises>>);

impl Notebook {
    fn open(&self) -> MutexGuard<'_, Promises> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes nodes and forwards in turn until the panel is gone.
async fn write(api: Api, like: ForwardInput, writer: usize, notebook: Notebook) {
    for number in 0.. {
        let name = format!("w{writer}-{number}");
        if number % 2 == 0 {
            let node = NodeInput { name, server_ip: "192.0.2.1".into(), ..NodeInput::default() };
            // Without an answer it may or may not be there; only what was acknowledged is promised.
            let Ok(node) = api.create_node(&node).await else { return };
            notebook.open().nodes.insert(node.id, node.name);
        } else {
            let forward = ForwardInput { name, ..like.clone() };
            let Ok(forward) = api.create_forward(&forward).await else { return };
            notebook.open().forwards.insert(forward.id, (forward.name, forward.listen_port));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panel_killed_while_forwards_are_made_keeps_its_promises_and_its_exit() {
    on_stage(options("f-panel"), async |stage| {
        let scene = Scene::open(stage).await?;
        // Away from the first saved exit: a return to the saved order would show.
        stage.lab.link("entry-1", "exit-a").set_both(Impairment::delay(Duration::from_millis(90)))?;
        stage.switched(scene.tunnel.id, "exit-b", SWITCH).await?;
        scene.serves("exit-b").await?;
        let kept = LongLived::open(&stage.client()?, scene.address, start()).await?;
        let order = stage.api.decision(scene.tunnel.id).await?.applied_order;

        let notebook = Notebook::default();
        let like = stage.forward(&scene.tunnel);
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..4 {
            writers.spawn(write(stage.api.clone(), like.clone(), writer, notebook.clone()));
        }
        eventually("some writes", Duration::from_secs(60), async || {
            let forwards = notebook.open().forwards.len();
            ensure!(forwards >= 8, "{forwards} forwards so far");
            Ok(())
        })
        .await?;
        stage.panel.kill().await?;
        while writers.join_next().await.is_some() {}
        let promised = std::mem::take(&mut *notebook.open());
        println!("acknowledged: {} nodes, {} forwards", promised.nodes.len(), promised.forwards.len());

        scene.serves("exit-b").await?;
        all_served_by(stage, scene.address, "exit-b").await?;

        stage.panel.start_again().await?;
        stage.api = stage.panel.api().await?;
        let nodes: BTreeMap<NodeId, String> =
            stage.api.nodes().await?.into_iter().map(|node| (node.id, node.name)).collect();
        for (id, name) in &promised.nodes {
            ensure!(nodes.get(id) == Some(name), "node {id} {name} is lost: {:?}", nodes.get(id));
        }
        for (id, (name, port)) in &promised.forwards {
            let forward = stage.api.forward(*id).await?;
            ensure!(
                forward.name == *name && forward.listen_port == *port,
                "{forward:?}, promised {name} {port}"
            );
        }

        agents_are_back(stage).await?;
        evaluated_anew(stage, scene.tunnel.id).await?;
        // What was promised and not yet sent when it died is sent now.
        let entry = stage.host("entry-1")?;
        for (id, (_, port)) in &promised.forwards {
            stage.forward_deployed(*id).await?;
            all_served_by(stage, entry.addr(*port), "exit-b").await?;
        }
        settled("the order stays", Duration::from_secs(4), async || {
            let decision = stage.api.decision(scene.tunnel.id).await?;
            ensure!(decision.applied_order == order, "{decision:?}");
            Ok(())
        })
        .await?;
        ensure!(switches(stage, scene.tunnel.id).await? == pairs([("exit-a", "exit-b")]));
        // Commands are in the agents' logs.
        ensure!(
            stage.agent("entry-1")?.log().count("command=\"UpdateService\"") > 0,
            "no command is in the log"
        );
        for (name, agent) in &stage.agents {
            for teardown in ["DeleteService", "PauseService", "DeleteChains"] {
                ensure!(agent.log().count(teardown) == 0, "{teardown} at {name}:\n{}", agent.log().tail(40));
            }
        }

        let bytes = kept.bytes();
        eventually("the kept connection goes on", Duration::from_secs(10), async || {
            ensure!(kept.bytes() > bytes, "{bytes} bytes and no more");
            Ok(())
        })
        .await?;
        let life = kept.close().await?;
        ensure!(life.ending == Ending::Client && life.exit == "exit-b", "{life:?}");
        let tally = scene.nobody_noticed(&[]).await?;
        ensure!(!tally.per_exit.contains_key("exit-c"), "{tally:?}");
        Ok(())
    })
    .await;
}
