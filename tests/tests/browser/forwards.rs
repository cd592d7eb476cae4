//! Forwards.

use crate::browser::Device;
use crate::page::{PATIENCE, Page};
use crate::played::Played;
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use shared::api::{EntryGroup, EntryNode, Forward, NodeInput, TunnelInput, TunnelType};
use shared::strategy::Strategy;
use shared::testid;
use tests::rig::{Api, eventually};

fn field(name: &str) -> String {
    testid::with(testid::FORWARD_FIELD, name)
}

async fn only_forward(api: &Api) -> Result<Forward> {
    let [forward] = <[Forward; 1]>::try_from(api.forwards().await?).ok().context("not one forward")?;
    Ok(forward)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forward_is_made_paused_resumed_and_deleted() {
    with_panel("forward", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let node =
            NodeInput { name: "entry-1".to_owned(), server_ip: "192.0.2.7".into(), ..NodeInput::default() };
        let node = api.create_node(&node).await?;
        let tunnel = TunnelInput {
            name: "port only".to_owned(),
            kind: TunnelType::Port,
            enabled: true,
            entry: EntryGroup { nodes: vec![EntryNode { node_id: node.id }] },
            ..TunnelInput::default()
        };
        let tunnel = api.create_tunnel(&tunnel).await?;
        logged_in(page, panel.password()).await?;
        page.click("nav:forwards").await?;
        page.shows(testid::EMPTY).await?;
        page.click(testid::FORWARD_NEW).await?;
        page.fill(&field("name"), "web").await?;
        page.choose(&field("tunnelId"), &tunnel.id.to_string()).await?;
        page.fill(&field("targets"), "no port").await?;
        page.click(testid::FORWARD_SAVE).await?;
        let wrong = page.all_of(&testid::with(testid::FIELD_ERROR, "targets")).await?;
        ensure!(!wrong.is_empty(), "nothing is said about the target");
        page.screenshot("zh-light-forward-wrong").await?;
        ensure!(page.value(&field("name")).await? == "web", "the name was lost");
        page.fill(&field("targets"), "198.51.100.9:8443").await?;
        page.click(testid::FORWARD_SAVE).await?;
        page.hides(testid::FORWARD_SAVE).await?;

        let forward = only_forward(&api).await?;
        ensure!(forward.listen_port != 0 && forward.targets == ["198.51.100.9:8443"], "{forward:?}");
        let address = format!("192.0.2.7:{}", forward.listen_port);
        page.says(&testid::with(testid::FORWARD_ADDRESS, forward.id), &address).await?;
        page.screenshot("zh-light-forwards").await?;

        page.click(&testid::with(testid::FORWARD_PAUSE, forward.id)).await?;
        page.shows(&testid::with(testid::FORWARD_RESUME, forward.id)).await?;
        ensure!(!only_forward(&api).await?.enabled, "not paused");
        page.click(&testid::with(testid::FORWARD_RESUME, forward.id)).await?;
        page.shows(&testid::with(testid::FORWARD_PAUSE, forward.id)).await?;
        let resumed = only_forward(&api).await?;
        ensure!(resumed.enabled && resumed.listen_port == forward.listen_port, "{resumed:?}");

        page.click(&testid::with(testid::FORWARD_DELETE, forward.id)).await?;
        page.click(testid::CONFIRM).await?;
        page.shows(testid::EMPTY).await?;
        ensure!(api.forwards().await?.is_empty(), "not deleted");
        nothing_wrong(page).await
    })
    .await;
}

/// A strategy in the form's list: what it is called, and whether it can be chosen.
async fn offered(page: &Page, kind: &str) -> Result<(String, bool)> {
    let script = format!(
        "const option = document.querySelector('[data-testid=\"{}\"] option[value=\"{kind}\"]');
         return [option.textContent, !option.disabled]",
        field("strategy")
    );
    Ok(serde_json::from_value(page.script(&script).await?)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_of_the_entry_cannot_do_is_not_to_be_chosen() {
    with_panel("forward-strategy", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let mut tunnels = Vec::new();
        let mut nodes = Vec::new();
        for name in ["able", "basic"] {
            let node = NodeInput { name: name.into(), server_ip: "192.0.2.7".into(), ..NodeInput::default() };
            let node = api.create_node(&node).await?;
            let tunnel = TunnelInput {
                name: format!("by {name}"),
                kind: TunnelType::Port,
                enabled: true,
                entry: EntryGroup { nodes: vec![EntryNode { node_id: node.id }] },
                ..TunnelInput::default()
            };
            tunnels.push(api.create_tunnel(&tunnel).await?.id.to_string());
            nodes.push(node);
        }
        // Made when nobody knew yet what the agent can do.
        let early = serde_json::from_value(json!({
            "tunnelId": tunnels[1].parse::<i64>()?, "name": "early", "targets": ["198.51.100.9:80"], "strategy": "rand"
        }))?;
        let early = api.create_forward(&early).await?;
        let secret = nodes[1].secret.as_deref().context("no secret")?;
        let can = ["protocol:tcp", "strategy:fifo", "strategy:round"];
        let _agent = Played::connect(panel.address(), secret, &can).await?;
        eventually("the panel knows what the agent can do", PATIENCE, async || {
            let known = api.node(nodes[1].id).await?.capabilities;
            ensure!(known == can, "{known:?}");
            Ok(())
        })
        .await?;

        logged_in(page, panel.password()).await?;
        let words = [
            ("zh-CN", "basic 的代理程序不支持", ["随机", "轮询"]),
            ("en", "not supported by the agent of basic", ["Random", "Round robin"]),
        ];
        for (language, why, [random, round]) in words {
            page.open("/settings").await?;
            page.click(&format!("language:{language}")).await?;
            page.open("/forwards").await?;
            page.click(testid::FORWARD_NEW).await?;
            page.choose(&field("tunnelId"), &tunnels[0]).await?;
            ensure!(offered(page, "rand").await? == (random.to_owned(), true), "for the able one");
            page.choose(&field("tunnelId"), &tunnels[1]).await?;
            eventually("it cannot be chosen", PATIENCE, async || {
                let rand = offered(page, "rand").await?;
                ensure!(rand == (format!("{random} — {why}"), false), "{rand:?}");
                Ok(())
            })
            .await?;
            ensure!(offered(page, "round").await? == (round.to_owned(), true), "what it can do");
            page.screenshot(&format!("{language}-light-forward-strategy")).await?;

            // The same in the editor, where the entry chooses among the exits.
            page.open("/tunnels/new").await?;
            page.choose("editor-add-node:entry", &nodes[1].id.to_string()).await?;
            page.has("editor-strategy-option:exit:rand", "disabled", "true", PATIENCE).await?;
            page.says(&testid::with(testid::EDITOR_STRATEGY, "exit"), why).await?;
        }

        // What is stored is shown as it is, and is not sent again.
        page.open("/forwards").await?;
        page.click(&testid::with(testid::FORWARD_EDIT, early.id)).await?;
        ensure!(page.value(&field("strategy")).await? == "rand", "opening the form changed it");
        page.fill(&field("name"), "late").await?;
        page.click(testid::FORWARD_SAVE).await?;
        page.says(&testid::with(testid::FIELD_ERROR, "strategy"), "basic").await?;
        page.choose(&field("strategy"), "round").await?;
        page.click(testid::FORWARD_SAVE).await?;
        page.hides(testid::FORWARD_SAVE).await?;
        let forward = only_forward(&api).await?;
        ensure!(forward.name == "late" && forward.strategy == Strategy::Round, "{forward:?}");
        nothing_wrong(page).await
    })
    .await;
}
