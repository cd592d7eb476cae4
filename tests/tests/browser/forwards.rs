//! Forwards.

use crate::browser::Device;
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Context as _, Result, ensure};
use shared::api::{EntryGroup, EntryNode, Forward, NodeInput, TunnelInput, TunnelType};
use shared::testid;
use tests::rig::Api;

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
