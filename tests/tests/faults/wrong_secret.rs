//! An agent with a secret that is none.

use crate::stages::{on_stage, options};
use anyhow::{Context as _, ensure};
use shared::api::NodeInput;
use std::time::Duration;
use tests::rig::{Agent, AgentOptions, StageOptions, eventually, settled};

/// No node has it.
const WRONG: &str = "0123456789abcdef0123456789abcdee";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_secret_is_told_on_both_sides_and_the_right_one_then_works() {
    let few =
        StageOptions { entries: Vec::new(), mids: Vec::new(), exits: Vec::new(), ..options("f-secret") };
    on_stage(few, async |stage| {
        let host = stage.host("late")?;
        let input =
            NodeInput { name: "late".into(), server_ip: host.ip().to_string(), ..NodeInput::default() };
        let node = stage.api.create_node(&input).await?;
        let right = node.secret.context("the answer to a new node has its secret")?;
        let with = |secret: &str| AgentOptions {
            name: "late".into(),
            panel: stage.panel.address(),
            secret: secret.to_owned(),
            log: String::new(),
        };

        let mut agent = Agent::start(&host, with(WRONG))?;
        let refusal = |line: &str| line.contains("the panel refused the node secret").then_some(());
        agent.process().wait_for("a refusal", Duration::from_secs(30), refusal).await?;
        // 2 s, 4 s, 8 s, each ±25 %: the third attempt is 4.5 s after the first or later, the fourth 10.5 s.
        settled("few attempts, and the node is offline", Duration::from_secs(10), async || {
            let refused = stage.api.metric("exitpilot_agents_refused_total").await?;
            ensure!((1.0..=3.0).contains(&refused), "{refused} refused");
            ensure!(agent.log().count("the panel refused the node secret") <= 3);
            ensure!(!stage.api.node(node.id).await?.online, "it is online");
            Ok(())
        })
        .await?;
        let told = stage.panel.log().count("an agent with an unknown secret was refused");
        ensure!(told >= 1, "the panel's log says nothing:\n{}", stage.panel.log().tail(20));
        for log in [agent.log(), stage.panel.log()] {
            for secret in [WRONG, &right] {
                ensure!(log.count(secret) == 0, "a secret is in a log:\n{}", log.tail(20));
            }
        }

        agent.kill().await?;
        let agent = Agent::start(&host, with(&right))?;
        eventually("the right secret is accepted", Duration::from_secs(30), async || {
            ensure!(stage.api.node(node.id).await?.online, "offline; its log:\n{}", agent.log().tail(5));
            Ok(())
        })
        .await
    })
    .await;
}
