//! Nodes: from the page to an agent that is connected.

use crate::browser::Device;
use crate::page::PATIENCE;
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Context as _, ensure};
use shared::api::{EntryGroup, EntryNode, NodeInput, TunnelInput, TunnelType};
use shared::testid;
use tests::rig::{Agent, AgentOptions, Place};

fn field(name: &str) -> String {
    testid::with(testid::NODE_FIELD, name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_made_its_secret_is_shown_once_and_its_agent_is_seen_at_once() {
    with_panel("node", Device::Desk, async |page, panel| {
        logged_in(page, panel.password()).await?;
        page.click("nav:nodes").await?;
        page.shows(testid::EMPTY).await?;
        page.screenshot("zh-light-nodes-empty").await?;

        page.click(testid::NODE_NEW).await?;
        // Wrong first: told at the field, and nothing typed is lost.
        page.fill(&field("name"), "tokyo-1").await?;
        page.fill(&field("serverIp"), "not an address").await?;
        page.click(testid::NODE_SAVE).await?;
        page.shows(&testid::with(testid::FIELD_ERROR, "serverIp")).await?;
        page.screenshot("zh-light-node-wrong").await?;
        ensure!(page.value(&field("name")).await? == "tokyo-1", "the name was lost");
        ensure!(page.value(&field("serverIp")).await? == "not an address", "the address was lost");
        page.fill(&field("serverIp"), "127.0.0.1").await?;
        page.hides(&testid::with(testid::FIELD_ERROR, "serverIp")).await?;
        page.click(testid::NODE_SAVE).await?;

        let secret = page.text(testid::NODE_SECRET).await?;
        let secret = secret.split_whitespace().next().context("no secret")?.to_owned();
        ensure!(
            secret.len() == 32 && secret.bytes().all(|b| b.is_ascii_hexdigit()),
            "a secret like {secret:?}"
        );
        page.says(testid::INSTALL_SCRIPT, &secret).await?;
        page.says(testid::INSTALL_SCRIPT, "/install.sh | sudo sh").await?;
        page.says(testid::INSTALL_COMMAND, &secret).await?;
        page.says(testid::INSTALL_COMMAND, "exitpilot-agent").await?;
        page.screenshot("zh-light-node-install").await?;
        page.click(testid::CANCEL).await?;
        page.hides(testid::NODE_SECRET).await?;

        let api = panel.api().await?;
        let nodes = api.nodes().await?;
        let [node] = nodes.as_slice() else { anyhow::bail!("{nodes:?}") };
        ensure!(node.name == "tokyo-1" && node.server_ip == "127.0.0.1" && node.secret.is_none(), "{node:?}");
        let state = testid::with(testid::NODE_STATE, node.id);
        page.has(&state, "data-online", "false", PATIENCE).await?;

        page.mark().await?;
        let options = AgentOptions {
            name: "tokyo-1".to_owned(),
            panel: panel.address(),
            secret: secret.clone(),
            log: String::new(),
        };
        let mut agent = Agent::start(Place::Loopback, options)?;
        page.has(&state, "data-online", "true", PATIENCE).await?;
        page.screenshot("zh-light-node-online").await?;
        agent.kill().await?;
        page.has(&state, "data-online", "false", PATIENCE).await?;
        page.was_not_reloaded().await?;

        page.reload().await?;
        page.click(&testid::with(testid::NODE_INSTALL, node.id)).await?;
        page.says(testid::INSTALL_COMMAND, "<secret>").await?;
        ensure!(!page.everything().await?.contains(&secret), "the secret can still be seen");
        page.click(testid::CANCEL).await?;

        // A new secret, and the old one is gone.
        page.click(&testid::with(testid::NODE_ROTATE, node.id)).await?;
        page.click(testid::CONFIRM).await?;
        let rotated = page.text(testid::NODE_SECRET).await?;
        ensure!(!rotated.contains(&secret), "the secret is the same");
        page.click(testid::CANCEL).await?;
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_a_node_is_deleted_the_page_names_what_uses_it() {
    with_panel("node-delete", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let input = |name: &str| NodeInput {
            name: name.to_owned(),
            server_ip: "192.0.2.1".into(),
            ..NodeInput::default()
        };
        let [used, unused] =
            [api.create_node(&input("used")).await?, api.create_node(&input("unused")).await?];
        let tunnel = TunnelInput {
            name: "needs it".to_owned(),
            kind: TunnelType::Port,
            enabled: true,
            entry: EntryGroup { nodes: vec![EntryNode { node_id: used.id }] },
            ..TunnelInput::default()
        };
        api.create_tunnel(&tunnel).await?;

        logged_in(page, panel.password()).await?;
        page.open("/nodes").await?;
        page.click(&testid::with(testid::NODE_DELETE, used.id)).await?;
        page.says(testid::DELETE_PREVIEW, "needs it").await?;
        page.screenshot("zh-light-node-delete").await?;
        page.click(testid::CANCEL).await?;
        page.hides(testid::DELETE_PREVIEW).await?;

        page.click(&testid::with(testid::NODE_DELETE, unused.id)).await?;
        page.says(testid::DELETE_PREVIEW, "没有隧道使用这个节点").await?;
        page.click(testid::CONFIRM).await?;
        page.hides(&testid::with(testid::NODE_ROW, unused.id)).await?;
        page.shows(&testid::with(testid::NODE_ROW, used.id)).await?;
        let left: Vec<String> = api.nodes().await?.into_iter().map(|node| node.name).collect();
        ensure!(left == ["used"], "{left:?} are left");
        nothing_wrong(page).await
    })
    .await;
}
