//! What goes wrong on single nodes is told, and the rest works.

use crate::stages::{SWITCH, decided, heal, on_stage, options};
use anyhow::{Context as _, Result, bail, ensure};
use shared::api::{DeploymentStatus, DiagnoseLine, Event, ForwardInput};
use std::collections::BTreeSet;
use tests::rig::client::{Outcome, Visit};
use tests::rig::{Stage, eventually};

fn visit(stage: &Stage) -> Result<Visit> {
    Ok(Visit {
        place: stage.client()?,
        exits: std::sync::Arc::new(stage.exits.iter().cloned().collect()),
        payload: std::sync::Arc::from([7; 100]),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_told_for_its_node_and_the_rest_works() {
    let mut options = options("port");
    options.entries.push("entry-2".into());
    on_stage(options, async |stage| {
        heal(stage, &["entry-1", "entry-2"])?;
        let best = stage.best("best", &["entry-1", "entry-2"], &[], &["exit-a", "exit-b"])?;
        let (tunnel, _, addresses) = stage.open(&best).await?;
        // Some other program on one of the two nodes has the port.
        let host = stage.host("entry-1")?;
        let mut foreign = host.tcp_listener(0)?;
        // The kernel's range ends a little above the nodes'.
        while foreign.local_addr()?.port() > 60_000 {
            foreign = host.tcp_listener(0)?;
        }
        let port = foreign.local_addr()?.port();
        let input = ForwardInput { listen_port: port, name: "second".into(), ..stage.forward(&tunnel) };
        let forward = stage.api.create_forward(&input).await?;

        let (one, two) = (stage.node("entry-1")?, stage.node("entry-2")?);
        let reason = eventually("one node has failed and the other has not", SWITCH, async || {
            let forward = stage.api.forward(forward.id).await?;
            let of = |id| forward.deployment.iter().find(|d| d.node_id == id).context("it has a part");
            let (first, second) = (of(one)?, of(two)?);
            ensure!(second.status == DeploymentStatus::Applied, "{second:?}");
            ensure!(first.status == DeploymentStatus::Failed, "{first:?}");
            first.reason.clone().context("a failure has a reason")
        })
        .await?;
        ensure!(reason.contains("in use"), "{reason}");

        let visit = visit(stage)?;
        for address in [addresses[0], addresses[1], stage.host("entry-2")?.addr(port)] {
            let outcome = visit.pay(address).await;
            ensure!(outcome == Outcome::Served("exit-a".into()), "{address}: {outcome:?}");
        }

        drop(foreign);
        stage.api.call("POST", &format!("/api/v1/tunnels/{}/redeploy", tunnel.id)).await?;
        stage.forward_deployed(forward.id).await?;
        let outcome = visit.pay(stage.host("entry-1")?.addr(port)).await;
        ensure!(outcome == Outcome::Served("exit-a".into()), "{outcome:?}");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_diagnosis_opens_a_real_connection_by_way_of_every_exit() {
    on_stage(options("diagnosis"), async |stage| {
        heal(stage, &["entry-1", "mid-1"])?;
        let best = stage.best("best", &["entry-1"], &["mid-1"], &["exit-a", "exit-b", "exit-c"])?;
        let (tunnel, _, _) = stage.open(&best).await?;
        stage.lab.link("mid-1", "exit-b").cut()?;
        let lines = stage.api.diagnose(tunnel.id).await?;
        let Some(DiagnoseLine::Start { items }) = lines.first() else { bail!("{lines:?}") };
        let mut said = std::collections::BTreeMap::new();
        for line in &lines {
            if let DiagnoseLine::Item { index, success, latency_ms, message, .. } = line
                && items[*index].kind == "connection"
            {
                let exit = items[*index].to.split(' ').next().unwrap_or_default().to_owned();
                ensure!(items[*index].from == "mid-1", "{items:?}");
                said.insert(exit, (*success, *latency_ms, message.clone()));
            }
        }
        let worked: Vec<(&str, bool)> =
            said.iter().map(|(exit, (success, ..))| (exit.as_str(), *success)).collect();
        ensure!(worked == [("exit-a", true), ("exit-b", false), ("exit-c", true)], "{said:?}");
        // Connect, TLS and question are three ways there and back, of 10 and of 80 ms.
        let ms = |exit: &str| said[exit].1.context("it was measured");
        ensure!(ms("exit-a")? >= 30.0 && ms("exit-c")? >= 240.0, "{said:?}");
        ensure!(said["exit-b"].2.contains("no node could be used"), "{said:?}");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_tunnels_over_the_same_exits_measure_each_leg_once() {
    let mut options = options("legs");
    // Rounds that end before the next one begins, on a busy machine too: a node that is late is left out of a round.
    options.settings.round_interval_ms = Some(1500);
    on_stage(options, async |stage| {
        heal(stage, &["entry-1"])?;
        let exits = ["exit-a", "exit-b", "exit-c"];
        let mut tunnels = Vec::new();
        for number in 0..10 {
            let best = stage.best(&format!("best-{number}"), &["entry-1"], &[], &exits)?;
            tunnels.push(stage.api.create_tunnel(&best).await?);
        }
        // What there is to measure: the way to every exit, though each tunnel dials a port of its own there, and each exit
        // to the probe target.
        let (mut legs, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for tunnel in &tunnels {
            stage.deployed(tunnel.id).await?;
            decided(stage, tunnel.id, "current_is_best").await?;
            for node in stage.api.runtime(tunnel.id).await? {
                let chains = node.config.chains.into_iter().flat_map(|chain| chain.hops);
                for member in chains.flat_map(|hop| hop.nodes.unwrap_or_default()) {
                    addresses.insert(member.addr.clone());
                    let host = member.addr.rsplit_once(':').context("an address has a port")?.0.to_owned();
                    legs.insert((node.node_name.clone(), host));
                }
            }
        }
        ensure!((legs.len(), addresses.len()) == (3, 30), "{legs:?} {addresses:?}");
        legs.extend(exits.map(|exit| (exit.to_owned(), stage.target.probe().to_string())));
        ensure!(legs.len() == 6, "{legs:?}");

        // Between two ends of rounds, a whole number of rounds was measured.
        let mut events = stage.api.events().await?;
        let mut ends = Vec::new();
        while ends.len() < 2 {
            let event = tokio::time::timeout(SWITCH, events.recv()).await?.context("events go on")?;
            if !matches!(event, Event::Round { .. }) {
                continue;
            }
            let (rounds, measured) = (
                stage.api.metric("exitpilot_rounds_total").await?,
                stage.api.metric("exitpilot_legs_total").await?,
            );
            let first: Option<&(f64, f64)> = ends.first();
            if first.is_none_or(|(before, _)| rounds - before >= 8.0) {
                ends.push((rounds, measured));
            }
        }
        let (rounds, measured) = (ends[1].0 - ends[0].0, ends[1].1 - ends[0].1);
        let per_round = measured / rounds;
        println!(
            "{} legs for 10 tunnels, {per_round:.2} measured per round over {rounds} rounds",
            legs.len()
        );
        // A look may come while the next round is under way: one round more of what is counted.
        let once = legs.len() as f64;
        ensure!(per_round <= once + once / rounds, "{per_round} legs per round, {once} are there");
        ensure!(per_round >= once / 2.0, "{per_round} legs per round: hardly anything is measured");
        Ok(())
    })
    .await;
}
