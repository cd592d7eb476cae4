//! The tunnel editor.

use crate::browser::Device;
use crate::page::Page;
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Context as _, Result, ensure};
use shared::api::{Group, GroupNode, NodeInput, Tunnel, TunnelInput, TunnelType};
use shared::ids::NodeId;
use shared::strategy::Strategy;
use shared::testid;
use tests::rig::{Api, Panel};

const BEST: &str = "editor-strategy-option:exit:best";

/// One entry and three exits, none of them connected: tunnels are made before servers are.
async fn nodes(api: &Api) -> Result<[NodeId; 4]> {
    let mut ids = Vec::new();
    for name in ["entry-1", "exit-a", "exit-b", "exit-c"] {
        let node = NodeInput { name: name.to_owned(), server_ip: "192.0.2.1".into(), ..NodeInput::default() };
        ids.push(api.create_node(&node).await?.id);
    }
    ids.try_into().ok().context("four nodes")
}

async fn only_tunnel(panel: &Panel) -> Result<Tunnel> {
    let tunnels = panel.api().await?.tunnels().await?;
    let [tunnel] = <[Tunnel; 1]>::try_from(tunnels).ok().context("not one tunnel")?;
    Ok(tunnel)
}

/// The exits of the editor, from the first to the last.
async fn exits(page: &Page) -> Result<Vec<String>> {
    page.shows(testid::EDITOR).await?;
    page.names_of("editor-node:exit:").await
}

fn exits_of(tunnel: &Tunnel) -> Vec<NodeId> {
    tunnel.exit.iter().flat_map(|exit| &exit.nodes).map(|node| node.node_id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn best_and_the_order_of_exits_survive_saving_opening_and_renaming() {
    with_panel("editor-best", Device::Desk, async |page, panel| {
        let [entry, a, b, c] = nodes(&panel.api().await?).await?;
        logged_in(page, panel.password()).await?;
        page.click("nav:tunnels").await?;
        page.screenshot("zh-light-tunnels-empty").await?;
        page.click(testid::TUNNEL_NEW).await?;
        page.comes_to("/tunnels/new").await?;

        page.fill(testid::EDITOR_NAME, "香港最优").await?;
        page.choose("editor-add-node:entry", &entry.to_string()).await?;
        page.click(BEST).await?;
        page.shows(testid::EDITOR_BEST_HINT).await?;
        for exit in [a, b, c] {
            page.choose("editor-add-node:exit", &exit.to_string()).await?;
        }
        page.hides(testid::EDITOR_BEST_HINT).await?;
        // c before a before b.
        page.click(&testid::of(testid::EDITOR_NODE_UP, "exit", c)).await?;
        page.click(&testid::of(testid::EDITOR_NODE_UP, "exit", c)).await?;
        let order = [c, a, b];
        let names = order.map(|id| id.to_string());
        ensure!(exits(page).await? == names, "the buttons made {:?}", exits(page).await?);
        page.screenshot("zh-light-editor-new").await?;
        page.click(testid::EDITOR_SAVE).await?;
        page.comes_to("/tunnels").await?;

        let made = only_tunnel(panel).await?;
        let exit = made.exit.as_ref().context("no exits")?;
        ensure!(exit.strategy == Strategy::Best && exits_of(&made) == order, "{made:?}");
        // Nobody has measured anything yet.
        page.says(&testid::with(testid::TUNNEL_CHIP, made.id), "等待探测").await?;
        page.screenshot("zh-light-tunnels").await?;

        page.reload().await?;
        page.click(&testid::with(testid::TUNNEL_EDIT, made.id)).await?;
        ensure!(exits(page).await? == names, "opened with {:?}", exits(page).await?);
        ensure!(page.is_on(BEST).await?, "the editor does not show 最优");
        page.fill(testid::EDITOR_NAME, "香港 2").await?;
        page.click(testid::EDITOR_SAVE).await?;
        page.comes_to("/tunnels").await?;
        page.says(&testid::with(testid::TUNNEL_ROW, made.id), "香港 2").await?;

        page.open(&format!("/tunnels/{}/edit", made.id)).await?;
        ensure!(exits(page).await? == names, "after the second save {:?}", exits(page).await?);
        ensure!(page.is_on(BEST).await?, "the editor does not show 最优 any more");
        let renamed = only_tunnel(panel).await?;
        ensure!(renamed.name == "香港 2" && renamed.exit == made.exit, "{renamed:?}\ninstead of\n{made:?}");
        ensure!(renamed.version == made.version + 1, "{} after {}", renamed.version, made.version);
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_told_at_its_field_and_nothing_typed_is_lost() {
    with_panel("editor-wrong", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let [entry, a, b, c] = nodes(&api).await?;
        let node = |id, port| GroupNode { node_id: id, port, connect_ip: None };
        let taken = TunnelInput {
            name: "first".to_owned(),
            kind: TunnelType::Tunnel,
            enabled: true,
            entry: shared::api::EntryGroup { nodes: vec![shared::api::EntryNode { node_id: entry }] },
            exit: Some(Group {
                strategy: Strategy::Best,
                nodes: vec![node(a, Some(20_443)), node(b, None)],
                ..Group::default()
            }),
            ..TunnelInput::default()
        };
        api.create_tunnel(&taken).await?;
        logged_in(page, panel.password()).await?;

        // What the page finds by itself.
        page.open("/tunnels/new").await?;
        page.fill(testid::EDITOR_NAME, "x").await?;
        page.click(BEST).await?;
        page.click(testid::EDITOR_SAVE).await?;
        for field in ["name", "entry.nodes", "exit.nodes"] {
            page.shows(&testid::with(testid::FIELD_ERROR, field)).await?;
        }
        page.has(testid::EDITOR_NAME, "aria-invalid", "true", crate::page::PATIENCE).await?;
        page.screenshot("zh-light-editor-wrong").await?;
        page.fill(testid::EDITOR_NAME, "first").await?;
        page.choose("editor-add-node:entry", &entry.to_string()).await?;
        page.choose("editor-add-node:exit", &a.to_string()).await?;
        page.choose("editor-add-node:exit", &c.to_string()).await?;
        page.hides(&testid::with(testid::FIELD_ERROR, "exit.nodes")).await?;
        // The name is taken; then it is not.
        page.shows(&testid::with(testid::FIELD_ERROR, "name")).await?;
        page.fill(testid::EDITOR_NAME, "second").await?;
        page.hides(&testid::with(testid::FIELD_ERROR, "name")).await?;

        // What only the panel can know: the port is another tunnel's.
        let port = testid::of(testid::EDITOR_NODE_PORT, "exit", a);
        page.fill(&port, "20443").await?;
        page.click(testid::EDITOR_SAVE).await?;
        page.shows(&testid::with(testid::FIELD_ERROR, "exit.nodes[0].port")).await?;
        page.has(&port, "aria-invalid", "true", crate::page::PATIENCE).await?;
        page.screenshot("zh-light-editor-refused").await?;
        ensure!(page.path().await? == "/tunnels/new", "the editor was left");
        ensure!(page.value(testid::EDITOR_NAME).await? == "second", "the name was lost");
        ensure!(page.value(&port).await? == "20443", "the port was lost");
        ensure!(exits(page).await? == [a, c].map(|id| id.to_string()), "the exits were lost");
        ensure!(page.is_on(BEST).await?, "the strategy was lost");
        // A refused request is in the browser's log.
        page.only_complains_about("422").await?;

        page.fill(&port, "20444").await?;
        page.hides(&testid::with(testid::FIELD_ERROR, "exit.nodes[0].port")).await?;
        page.click(testid::EDITOR_SAVE).await?;
        page.comes_to("/tunnels").await?;
        let tunnels = api.tunnels().await?;
        let second = tunnels.iter().find(|tunnel| tunnel.name == "second").context("not saved")?;
        let exit = second.exit.as_ref().context("no exits")?;
        ensure!(exit.nodes[0].port == Some(20_444), "{exit:?}");
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hops_are_added_and_never_offer_best() {
    with_panel("editor-hops", Device::Desk, async |page, panel| {
        let [entry, a, b, c] = nodes(&panel.api().await?).await?;
        logged_in(page, panel.password()).await?;
        page.open("/tunnels/new").await?;
        page.fill(testid::EDITOR_NAME, "two hops").await?;
        page.choose("editor-add-node:entry", &entry.to_string()).await?;
        for (index, node) in [(0, a), (1, b)] {
            page.click(testid::EDITOR_ADD_HOP).await?;
            page.choose(&format!("editor-add-node:hop-{index}"), &node.to_string()).await?;
            page.shows(&format!("editor-strategy-option:hop-{index}:round")).await?;
            let best = page.all(&format!("editor-strategy-option:hop-{index}:best")).await?;
            ensure!(best.is_empty(), "最优 is offered for a hop");
        }
        page.click("editor-hop-up:1").await?;
        page.click("editor-strategy-option:hop-0:rand").await?;
        page.choose("editor-add-node:exit", &c.to_string()).await?;
        page.click("editor-strategy-option:exit:fifo").await?;
        page.choose("editor-protocol:exit", "tcp").await?;
        page.click(testid::EDITOR_SAVE).await?;
        page.comes_to("/tunnels").await?;

        let tunnel = only_tunnel(panel).await?;
        let hops: Vec<(NodeId, String)> =
            tunnel.hops.iter().map(|hop| (hop.nodes[0].node_id, hop.strategy.to_string())).collect();
        ensure!(hops[0] == (b, "rand".to_owned()) && hops[1].0 == a, "{hops:?}");
        let exit = tunnel.exit.context("no exits")?;
        ensure!(exit.strategy == Strategy::Fifo && exit.protocol.as_str() == "tcp", "{exit:?}");
        // Nothing is chosen here, so nothing is said about it.
        let chip = page.all(&testid::with(testid::TUNNEL_CHIP, tunnel.id)).await?;
        ensure!(chip.is_empty(), "a chip for a tunnel without 最优");
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_at_one_tunnel_overwrite_nothing_unasked() {
    with_panel("editor-stale", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let [entry, a, b, _] = nodes(&api).await?;
        let node = |id| GroupNode { node_id: id, port: None, connect_ip: None };
        let input = TunnelInput {
            name: "shared".to_owned(),
            kind: TunnelType::Tunnel,
            enabled: true,
            entry: shared::api::EntryGroup { nodes: vec![shared::api::EntryNode { node_id: entry }] },
            exit: Some(Group { strategy: Strategy::Best, nodes: vec![node(a), node(b)], ..Group::default() }),
            ..TunnelInput::default()
        };
        let tunnel = api.create_tunnel(&input).await?;
        logged_in(page, panel.password()).await?;
        page.open(&format!("/tunnels/{}/edit", tunnel.id)).await?;
        page.fill(testid::EDITOR_NAME, "mine").await?;

        let mut theirs = TunnelInput::from(tunnel.clone());
        theirs.name = "theirs".to_owned();
        api.update_tunnel(tunnel.id, &theirs).await?;
        page.click(testid::EDITOR_SAVE).await?;
        page.shows(testid::EDITOR_STALE).await?;
        page.screenshot("zh-light-editor-stale").await?;
        ensure!(page.value(testid::EDITOR_NAME).await? == "mine", "what was typed is lost");
        ensure!(only_tunnel(panel).await?.name == "theirs", "overwritten unasked");
        page.only_complains_about("409").await?;

        page.click(testid::EDITOR_KEEP_MINE).await?;
        page.hides(testid::EDITOR_STALE).await?;
        page.click(testid::EDITOR_SAVE).await?;
        page.comes_to("/tunnels").await?;
        ensure!(only_tunnel(panel).await?.name == "mine", "not saved");
        nothing_wrong(page).await
    })
    .await;
}
